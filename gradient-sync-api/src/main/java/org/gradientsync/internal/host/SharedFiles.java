package org.gradientsync.internal.host;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.gradientsync.spi.Availability;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Host memory that the processes of one node share: files in the memory file system, mapped by each
 * of them.
 *
 * <p>Files are readable by their user alone and have names that cannot be guessed. They are deleted
 * when their buffer is closed, and at the latest when the JVM exits; those of a process that was
 * killed are deleted by the next one of the same user. Those of other users are neither mapped nor
 * deleted.
 */
public final class SharedFiles implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(SharedFiles.class);
  private static final Path FOLDER = Path.of("/dev/shm");
  private static final String PREFIX = "gradient-sync-";
  private static final Set<Path> OPEN = ConcurrentHashMap.newKeySet();
  private static final AtomicLong NEXT = new AtomicLong();
  private static final Cleaner CLEANER = Cleaner.create();
  private static final AtomicInteger LIVE = new AtomicInteger();
  private static final int MANY = 4096;
  private static final AtomicLong MAPPED = new AtomicLong(); // bytes, since garbage was collected
  private static final long MUCH = 1L << 30;
  private static final ByteBuffer ZEROS = ByteBuffer.allocateDirect(1 << 20).asReadOnlyBuffer();

  static {
    Runtime.getRuntime().addShutdownHook(new Thread(SharedFiles::deleteAll, "gradient-sync-files"));
  }

  private final long process = ProcessHandle.current().pid();
  private final long secret = new SecureRandom().nextLong();
  private final Set<Path> own = ConcurrentHashMap.newKeySet();
  private volatile boolean keep;
  private final SharedBlocks blocks = new SharedBlocks(bytes -> create(bytes, bytes), this::keeps);
  private final MappingLimit mappingLimit;

  /** Files of this process. Deletes what killed processes have left behind. */
  public SharedFiles() {
    this(MappingLimit.OF_THIS_PROCESS);
  }

  /** For tests: with a limit of its own. */
  SharedFiles(MappingLimit mappingLimit) {
    this.mappingLimit = mappingLimit;
    deleteStaleFiles();
  }

  /**
   * Deletes the files of this process, which is about to end, and those of killed processes: where
   * a rank was killed, the others end soon after, and are its heirs. Called by any thread; throws
   * nothing. A JVM that exits does so itself.
   */
  public static void deleteAll() {
    OPEN.forEach(SharedFiles::delete);
    deleteStaleFiles();
  }

  /**
   * Deletes what killed processes of this user have left behind: it takes memory of the machine,
   * and of the container that they ran in.
   */
  public static void deleteStaleFiles() {
    ProcessFileNames.deleteStaleFiles(FOLDER, PREFIX, OwnFiles.ofThisUser());
  }

  /**
   * Whether there is a memory file system that this user may write to.
   *
   * @return usable or why not
   */
  public static Availability availability() {
    return Files.isDirectory(FOLDER) && Files.isWritable(FOLDER)
        ? Availability.yes()
        : Availability.no(FOLDER + " is not there or not writable");
  }

  /**
   * The first half of what other processes need to find this one's files.
   *
   * @return the process id
   */
  public long process() {
    return process;
  }

  /**
   * The second half of what other processes need to find this one's files.
   *
   * @return a random number
   */
  public long secret() {
    return secret;
  }

  /**
   * Takes memory for a buffer: a file of its own, or if it is small a part of one.
   *
   * @param bytes its size, more than 0
   * @param segmentBytes the size of a segment
   * @return zeros
   * @throws IOException if the memory file system is full, among others
   */
  HostMemory allocate(long bytes, int segmentBytes) throws IOException {
    return bytes <= SharedBlocks.MAX_BYTES && segmentBytes >= SharedBlocks.MAX_BLOCK_BYTES
        ? blocks.take((int) bytes)
        : create(bytes, segmentBytes);
  }

  /**
   * Makes a file of zeros and maps it.
   *
   * @param bytes its size
   * @param segmentBytes the size of a segment
   * @return the memory
   * @throws IOException if the memory file system is full, among others
   */
  HostMemory create(long bytes, int segmentBytes) throws IOException {
    boolean interrupted = Thread.interrupted(); // a channel would close itself for it
    try {
      return createUninterrupted(bytes, segmentBytes);
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private HostMemory createUninterrupted(long bytes, int segmentBytes) throws IOException {
    long id = NEXT.getAndIncrement();
    Path path = path(process, secret, id);
    Set<StandardOpenOption> options =
        Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.READ, StandardOpenOption.WRITE);
    try (FileChannel channel =
        FileChannel.open(
            path,
            options,
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")))) {
      OPEN.add(path);
      own.add(path);
      reserve(channel, bytes);
      return new HostMemory(
          map(channel, MapMode.READ_WRITE, bytes, segmentBytes, mappingLimit),
          id,
          0,
          () -> remove(path));
    } catch (IOException | RuntimeException e) {
      remove(path);
      throw e;
    }
  }

  /**
   * Maps a file of another process, for reading.
   *
   * @param ofProcess its {@link #process()}
   * @param ofSecret its {@link #secret()}
   * @param id the memory's id
   * @param segmentBytes the size of a segment
   * @return the memory
   */
  static HostMemory open(long ofProcess, long ofSecret, long id, int segmentBytes) {
    long most = (long) segmentBytes * HostDevice.MAX_SEGMENTS;
    return open(path(ofProcess, ofSecret, id), MapMode.READ_ONLY, 1, most, segmentBytes, id);
  }

  /**
   * Whether a process still has the memory that it shared.
   *
   * @param ofProcess its {@link #process()}
   * @param ofSecret its {@link #secret()}
   * @param id the memory's id
   * @return false if its buffer is closed, or the process has ended
   */
  public static boolean isThere(long ofProcess, long ofSecret, long id) {
    return Files.exists(path(ofProcess, ofSecret, id), LinkOption.NOFOLLOW_LINKS);
  }

  /**
   * A file that several processes write to.
   *
   * @param id its id
   * @param memory the mapped memory, in native byte order
   */
  public record Writable(long id, ByteBuffer memory) {}

  /**
   * Makes a file that several processes write to.
   *
   * @param bytes its size
   * @return the file
   * @throws UncheckedIOException if it cannot be made
   */
  public Writable createWritable(int bytes) {
    try {
      HostMemory memory = create(bytes, bytes);
      return new Writable(memory.id(), memory.segment(0));
    } catch (IOException e) {
      throw new UncheckedIOException("shared memory cannot be made: " + e, e);
    }
  }

  /**
   * Maps a file that {@link #createWritable} made.
   *
   * @param ofProcess its maker's {@link #process()}
   * @param ofSecret its maker's {@link #secret()}
   * @param id its id
   * @param bytes its size
   * @return the mapped memory
   * @throws UncheckedIOException if it cannot be mapped, or is not of this user, or of another size
   */
  public static ByteBuffer openWritable(long ofProcess, long ofSecret, long id, int bytes) {
    Path path = path(ofProcess, ofSecret, id);
    return open(path, MapMode.READ_WRITE, bytes, bytes, bytes, id).segment(0);
  }

  /**
   * Deletes a file's name. What is mapped stays as it is.
   *
   * @param id the file's id; one that this object has not made is ignored
   */
  public void release(long id) {
    Path path = path(process, secret, id);
    if (own.remove(path)) {
      delete(path);
    }
  }

  /**
   * From now on files are only deleted, not emptied: other processes may be reading them in a call
   * that this one has given up. Their memory is given back when nobody maps them any more.
   */
  public void keep() {
    keep = true;
  }

  private boolean keeps() {
    return keep;
  }

  /** Deletes this object's files; their memory must not be used any more, by any process. */
  @Override
  public void close() {
    own.forEach(this::remove);
  }

  /** Maps a file that a process of this user has made, and no other. */
  private static HostMemory open(
      Path path, MapMode mode, long least, long most, int segmentBytes, long id) {
    OpenOption[] options =
        mode == MapMode.READ_ONLY
            ? new OpenOption[] {StandardOpenOption.READ}
            : new OpenOption[] {StandardOpenOption.READ, StandardOpenOption.WRITE};
    boolean interrupted = Thread.interrupted(); // a channel would close itself for it
    try (FileChannel channel = OwnFiles.ofThisUser().open(path, most, options)) {
      long bytes = channel.size();
      if (bytes < least) {
        // Mapping more than there is would end in a signal when it is touched.
        throw new IOException(
            "file is too short: file=" + path + ", bytes=" + bytes + ", expected=" + least);
      }
      return new HostMemory(
          map(channel, mode, bytes, segmentBytes, MappingLimit.OF_THIS_PROCESS), id, 0, () -> {});
    } catch (IOException e) {
      throw new UncheckedIOException("shared memory of another rank cannot be mapped: " + e, e);
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** For tests: where a file lies. */
  static Path path(long process, long secret, long id) {
    return FOLDER.resolve(
        ProcessFileNames.of(PREFIX, process) + Long.toHexString(secret) + "-" + id);
  }

  /**
   * Writes all of the file: where the file system is full this is an exception, and touching a
   * mapping of it would be a crash.
   */
  private static void reserve(FileChannel channel, long bytes) throws IOException {
    ByteBuffer zeros = ZEROS.duplicate();
    long looked = -FreeMemory.LARGE_BYTES;
    for (long done = 0; done < bytes; ) {
      if (done - looked >= FreeMemory.LARGE_BYTES) { // other ranks take theirs at the same time
        looked = done;
        FreeMemory.OF_THIS_MACHINE.require(bytes - done, FOLDER);
      }
      zeros.clear().limit((int) Math.min(zeros.capacity(), bytes - done));
      done += channel.write(zeros, done);
    }
  }

  private static ByteBuffer[] map(
      FileChannel channel, MapMode mode, long bytes, int segmentBytes, MappingLimit mappingLimit)
      throws IOException {
    ByteBuffer[] segments = new ByteBuffer[(int) Math.max(1, (bytes - 1) / segmentBytes + 1)];
    mappingLimit.require(segments.length);
    for (int i = 0; i < segments.length; i++) {
      long first = (long) i * segmentBytes;
      ByteBuffer segment = channel.map(mode, first, Math.min(segmentBytes, bytes - first));
      segments[i] = segment.order(ByteOrder.nativeOrder());
      CLEANER.register(segment, LIVE::decrementAndGet);
      if (LIVE.incrementAndGet() % MANY == 0) {
        System.gc(); // a process may have 65530 mappings, and unmapping is left to the collector
      }
    }
    if (MAPPED.addAndGet(bytes) > MUCH) {
      MAPPED.set(0);
      System.gc(); // which does not know how much it would free
    }
    return segments;
  }

  /**
   * Gives the memory back at once: the mappings, this process's and the others', live until the
   * garbage collector finds them, and would keep it.
   */
  private void remove(Path path) {
    if (own.remove(path) && !keep) {
      try (FileChannel channel =
          FileChannel.open(path, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS)) {
        channel.truncate(0);
      } catch (IOException e) {
        log.debug("shared memory file cannot be emptied: file={}", path, e);
      }
    }
    delete(path);
  }

  private static void delete(Path path) {
    OPEN.remove(path);
    try {
      Files.deleteIfExists(path);
    } catch (IOException e) {
      log.warn("shared memory file cannot be deleted: file={}", path, e);
    }
  }
}
