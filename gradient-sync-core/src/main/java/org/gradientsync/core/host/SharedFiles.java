package org.gradientsync.core.host;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.DirectoryStream;
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
import org.gradientsync.core.backend.NodeIdentity;
import org.gradientsync.core.backend.OwnFiles;
import org.gradientsync.core.backend.ProcessFileNames;
import org.gradientsync.core.backend.Processes;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Host memory that the processes of one node share: files in the memory file system, mapped by each
 * process.
 *
 * <p>Only their user can read the files, and their names cannot be guessed. A file is deleted when
 * its buffer is closed, and at the latest when the JVM exits. The files of a killed process are
 * deleted by the next process of the same user. Files of other users are neither mapped nor
 * deleted.
 */
public final class SharedFiles implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(SharedFiles.class);
  private static final Path FOLDER = NodeIdentity.FOLDER;
  private static final String PREFIX = "gradient-sync-";
  private static final Thread HOOK = new Thread(SharedFiles::deleteAll, "gradient-sync-files");
  private static final Set<Path> OPEN = ConcurrentHashMap.newKeySet();
  private static final Set<String> OF_OTHERS = ConcurrentHashMap.newKeySet(); // starts of names
  private static final AtomicLong NEXT = new AtomicLong();
  private static final Cleaner CLEANER = Cleaner.create();
  private static final AtomicInteger LIVE = new AtomicInteger();
  private static final int MANY = 4096;
  private static final AtomicLong MAPPED =
      new AtomicLong(); // bytes since the last garbage collection
  private static final long MUCH = 1L << 30;
  private static final ByteBuffer ZEROS = ByteBuffer.allocateDirect(1 << 20).asReadOnlyBuffer();

  /**
   * Who has created files. Other processes get it from the owner, and do not make it up: they may
   * be in another PID namespace.
   *
   * @param namespace the owner's PID namespace, {@link Processes#NAMESPACE}
   * @param process its process id there
   * @param secret a random number
   */
  public record Owner(long namespace, long process, long secret) {}

  static {
    Runtime.getRuntime().addShutdownHook(HOOK);
  }

  private final Owner owner =
      new Owner(Processes.NAMESPACE, ProcessHandle.current().pid(), new SecureRandom().nextLong());
  private final Set<Path> own = ConcurrentHashMap.newKeySet();
  private volatile boolean keep;
  private final SharedBlocks blocks = new SharedBlocks(bytes -> create(bytes, bytes), this::keeps);
  private final MappingLimit mappingLimit;

  /** Deletes the files of killed processes first. */
  public SharedFiles() {
    this(MappingLimit.OF_THIS_PROCESS);
  }

  /** For tests, with another limit. */
  SharedFiles(MappingLimit mappingLimit) {
    this.mappingLimit = mappingLimit;
    deleteStaleFiles();
  }

  /**
   * Deletes the files of this process, which is about to end, and those of killed processes: after
   * a rank was killed, the others end soon. Any thread may call this; it throws nothing. A JVM that
   * exits does this by itself.
   */
  public static void deleteAll() {
    OPEN.forEach(SharedFiles::delete);
    deleteStaleFiles();
  }

  /**
   * Deletes as {@link #deleteAll} does, and the files of the processes whose files this one has
   * mapped. For a job that is about to be aborted: its other processes may be killed before they
   * have deleted theirs.
   */
  public static void deleteAllOfJob() {
    deleteAll();
    try (DirectoryStream<Path> files =
        Files.newDirectoryStream(
            FOLDER,
            file -> OF_OTHERS.stream().anyMatch(file.getFileName().toString()::startsWith))) {
      files.forEach(SharedFiles::delete);
    } catch (IOException | RuntimeException e) {
      log.debug("what other processes share cannot be looked for: folder={}", FOLDER, e);
    }
  }

  /**
   * Leaves it to the caller's shutdown hook to call {@link #deleteAll}: other processes may read
   * the files until they know that this one leaves.
   */
  public static void leaveDeletionToCaller() {
    Runtime.getRuntime().removeShutdownHook(HOOK);
  }

  /**
   * Deletes the files of killed processes of this user. They take memory of the machine and of
   * their container.
   */
  public static void deleteStaleFiles() {
    ProcessFileNames.deleteStaleFiles(FOLDER, PREFIX, OwnFiles.ofThisUser());
  }

  /** The owner of these files, with which other processes find them. */
  public Owner owner() {
    return owner;
  }

  /**
   * Allocates memory for a buffer: a file of its own, or part of one if it is small.
   *
   * @param bytes more than 0
   * @return zeros
   * @throws IOException for example if the memory file system is full
   */
  HostMemory allocate(long bytes, int segmentBytes) throws IOException {
    return bytes <= SharedBlocks.MAX_BYTES && segmentBytes >= SharedBlocks.MAX_BLOCK_BYTES
        ? blocks.take((int) bytes)
        : create(bytes, segmentBytes);
  }

  /**
   * Creates a file of zeros and maps it.
   *
   * @throws IOException for example if the memory file system is full
   */
  HostMemory create(long bytes, int segmentBytes) throws IOException {
    boolean interrupted = Thread.interrupted(); // an interrupt would close the channel
    try {
      while (true) {
        try {
          return createUninterrupted(bytes, segmentBytes);
        } catch (ClosedByInterruptException e) {
          interrupted |= Thread.interrupted();
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private HostMemory createUninterrupted(long bytes, int segmentBytes) throws IOException {
    long id = NEXT.getAndIncrement();
    Path path = path(owner, id);
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
   * Maps a file of another process for reading.
   *
   * @param owner its {@link #owner()}
   */
  static HostMemory open(Owner owner, long id, int segmentBytes) {
    OF_OTHERS.add(start(owner));
    long most = (long) segmentBytes * HostDevice.MAX_SEGMENTS;
    return open(path(owner, id), MapMode.READ_ONLY, 1, most, segmentBytes, id);
  }

  /**
   * Whether a process still has memory that it shared.
   *
   * @param owner its {@link #owner()}
   * @return false if the buffer is closed or the process has ended
   */
  public static boolean isThere(Owner owner, long id) {
    return Files.exists(path(owner, id), LinkOption.NOFOLLOW_LINKS);
  }

  /**
   * A file that several processes write to.
   *
   * @param memory the mapped memory, in native byte order
   */
  public record Writable(long id, ByteBuffer memory) {}

  /**
   * Creates a file that several processes write to.
   *
   * @throws UncheckedIOException if it cannot be created
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
   * Maps a file that {@link #createWritable} has created.
   *
   * @param owner its creator's {@link #owner()}
   * @throws UncheckedIOException if it cannot be mapped, belongs to another user, or has another
   *     size
   */
  public static ByteBuffer openWritable(Owner owner, long id, int bytes) {
    OF_OTHERS.add(start(owner));
    Path path = path(owner, id);
    return open(path, MapMode.READ_WRITE, bytes, bytes, bytes, id).segment(0);
  }

  /**
   * Deletes a file's name. Mappings stay as they are.
   *
   * @param id the file's id; ignored if this object has not created it
   */
  public void release(long id) {
    Path path = path(owner, id);
    if (own.remove(path)) {
      delete(path);
    }
  }

  /**
   * Only deletes files from now on, and does not truncate them: other processes may still read them
   * in a call that this one has abandoned. Their memory is freed when no process maps them any
   * more.
   */
  public void keep() {
    keep = true;
  }

  private boolean keeps() {
    return keep;
  }

  /** Deletes this object's files. No process may use their memory any more. */
  @Override
  public void close() {
    own.forEach(this::remove);
  }

  /** Maps a file of this user. */
  private static HostMemory open(
      Path path, MapMode mode, long least, long most, int segmentBytes, long id) {
    OpenOption[] options =
        mode == MapMode.READ_ONLY
            ? new OpenOption[] {StandardOpenOption.READ}
            : new OpenOption[] {StandardOpenOption.READ, StandardOpenOption.WRITE};
    boolean interrupted = Thread.interrupted(); // an interrupt would close the channel
    try (FileChannel channel = OwnFiles.ofThisUser().open(path, most, options)) {
      long bytes = channel.size();
      if (bytes < least) {
        // Access to a mapping beyond the end of the file would raise a signal.
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

  /** Also for tests. */
  static Path path(Owner owner, long id) {
    return FOLDER.resolve(start(owner) + id);
  }

  private static String start(Owner owner) {
    return ProcessFileNames.of(PREFIX, owner.namespace(), owner.process())
        + Long.toHexString(owner.secret())
        + "-";
  }

  /**
   * Writes the whole file. If the file system is full, this throws, whereas access to a mapping
   * would crash.
   */
  private static void reserve(FileChannel channel, long bytes) throws IOException {
    ByteBuffer zeros = ZEROS.duplicate();
    long looked = -FreeMemory.LARGE_BYTES;
    for (long done = 0; done < bytes; ) {
      if (done - looked >= FreeMemory.LARGE_BYTES) { // other ranks allocate at the same time
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
        System.gc(); // a process may have 65530 mappings, and only the collector unmaps
      }
    }
    if (MAPPED.addAndGet(bytes) > MUCH) {
      MAPPED.set(0);
      System.gc(); // the collector does not know how much it would free
    }
    return segments;
  }

  /**
   * Truncates the file to free its memory at once. Otherwise the mappings of this and other
   * processes would keep it until the garbage collector finds them.
   */
  private void remove(Path path) {
    boolean interrupted = Thread.interrupted(); // as in create
    try {
      boolean full = own.remove(path) && !keep;
      while (full) {
        full = false;
        try (FileChannel channel =
            FileChannel.open(path, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS)) {
          channel.truncate(0);
        } catch (ClosedByInterruptException e) {
          interrupted |= Thread.interrupted();
          full = true;
        } catch (IOException e) {
          log.debug("shared memory file cannot be emptied: file={}", path, e);
        }
      }
      delete(path);
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
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
