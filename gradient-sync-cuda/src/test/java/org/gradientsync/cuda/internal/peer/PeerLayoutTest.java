package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import jcuda.Pointer;
import org.gradientsync.DataType;
import org.gradientsync.NotFiniteException;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.collectives.messages.GroupCommunicator;
import org.gradientsync.core.group.ProcessGroup;
import org.gradientsync.core.local.LocalWorld;
import org.gradientsync.core.rendezvous.NodeMemory;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.AbstractDeviceBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.mockito.ArgumentCaptor;
import org.mockito.Mockito;

/** Tests the layout of a mailbox against the loops of the kernels. */
class PeerLayoutTest {
  private static final String SOURCE =
      source("protocol.cuh")
          + source("vectors.cuh")
          + source("lines.cuh")
          + source("chunks.cuh")
          + source("peer.cuh");
  private static final String SOURCE_OF_OPS = source("arithmetic.cuh");
  private static final int ROUND = constant("LINE") * 4 - 4; // data vectors in four lines
  private static final int ROUND_STRIDE = constant("LINE") * 4;
  private static final int SLOTS = constant("SLOTS");
  private static final long[] COUNTS = {
    0,
    1,
    2,
    3,
    7,
    8,
    9,
    223,
    224,
    225,
    959,
    960,
    961,
    1_000_003,
    16_777_216,
    123_456_789,
    1L << 33,
    (1L << 33) + 1
  };
  private static final int[] MOSTS = {1, 2, 13, 132, 264, 396, 512, 1000};

  private static String source(String name) {
    try {
      return Files.readString(Path.of("src/main/cuda", name));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static IntStream ranks() {
    return IntStream.rangeClosed(1, PeerLayout.MAX_RANKS);
  }

  static IntStream severalRanks() {
    return IntStream.rangeClosed(2, PeerLayout.MAX_RANKS);
  }

  private static int constant(String name) {
    return Integer.parseInt(found("constexpr int " + name + " = (\\d+);"));
  }

  private static String found(String pattern) {
    Matcher matcher = Pattern.compile(pattern, Pattern.DOTALL).matcher(SOURCE);
    assertTrue(matcher.find(), "not in the kernels: " + pattern);
    return matcher.group(1);
  }

  private static long up(long a, long b) {
    return (a + b - 1) / b;
  }

  /** Returns how many vectors a block of a chunked algorithm handles at once. */
  private static long batch(PeerAlgorithm algorithm, DataType type) {
    return (long) constant("WORKERS") * algorithm.batch(type);
  }

  private static long vectors(DataType type, long count) {
    return up(count, 16 / type.sizeInBytes());
  }

  /** Returns the size of struct Mailbox as the compiler lays it out. */
  private static long head() {
    int ranks = constant("MAX_RANKS");
    return 4096 + 4096 + 2L * constant("MAX_BLOCKS") * ranks * Long.BYTES;
  }

  /** Returns where the kernel's staging area ends, in bytes from its start. */
  private static long used(PeerLayout layout, PeerAlgorithm algorithm, int ranks) {
    long stride = layout.stride(algorithm);
    long parts =
        switch (algorithm) {
          case ONE_SHOT, BROADCAST, TWO_SHOT, TWO_SHOT_UNROLLED ->
              2L * ranks; // two parities or two halves
          case STREAM, STREAM_FEW_CTAS -> (long) SLOTS * (ranks - 1);
          case STAGED -> 2L * SLOTS * (ranks - 1); // contributions and results
        };
    return parts * stride * 16;
  }

  @Test
  void javasNumbersAreTheKernels() {
    assertEquals(PeerLayout.MAX_RANKS, constant("MAX_RANKS"));
    assertEquals(PeerLayout.MAX_BLOCKS, constant("MAX_BLOCKS"));
    assertEquals(PeerTag.BITS, constant("TAG_BITS"));
    assertEquals(28, ROUND);
    assertEquals(PeerLayout.ROUND_VECTORS, ROUND);
    for (PeerAlgorithm algorithm : PeerAlgorithm.values()) {
      int stream = constant("STREAM_BATCH");
      int fewCtas = constant("FEW_CTAS_BATCH");
      boolean isStream = algorithm == PeerAlgorithm.STREAM;
      for (DataType type : DataType.values()) {
        int batch = isStream ? stream : type.sizeInBytes() == 2 ? fewCtas / 2 : fewCtas;
        assertEquals(
            algorithm.isChunked() ? batch : 0, algorithm.batch(type), algorithm + " of " + type);
      }
    }
    assertEquals(4, SLOTS);
    assertEquals(constant("WORKERS") + 32, PeerAlgorithm.STREAM.threads);
    assertEquals(1 << constant("OP_BITS"), PeerTag.of(1, ReduceOp.SUM));
    assertEquals("1", found("GAVE_UP = \\(1ULL << TAG_BITS\\) - (\\d);"));
    assertEquals((1 << PeerTag.BITS) - 1, PeerTag.GAVE_UP);
  }

  @Test
  void failuresAreNumberedAlike() {
    String[] failures = found("enum Failure : unsigned long long \\{([^}]*)\\}").split(",");
    List<String> names = Stream.of(failures).map(String::trim).toList();
    assertEquals(PeerReport.NONE, names.indexOf("NONE"));
    assertEquals(PeerReport.MISMATCH, names.indexOf("MISMATCH"));
    assertEquals(PeerReport.TIMED_OUT, names.indexOf("TIMED_OUT"));
    Matcher ops = Pattern.compile("enum Op \\{([^}]*)\\}").matcher(SOURCE_OF_OPS);
    assertTrue(ops.find());
    assertEquals(
        Stream.of(ReduceOp.values()).map(Enum::name).toList(),
        Stream.of(ops.group(1).split(",")).map(String::trim).toList());
  }

  @Test
  void kernelsAreLaunchedWithTheThreadsThatTheyAreBoundTo() {
    Matcher kernels =
        Pattern.compile(
                "KERNEL\\((one_shot|two_shot|two_shot_unrolled|stream|stream_few_ctas|staged), (\\d+), \\d+, type")
            .matcher(SOURCE);
    List<String> bounds = new ArrayList<>();
    while (kernels.find()) {
      bounds.add(kernels.group(1) + " " + kernels.group(2));
    }
    String broadcast = found("__launch_bounds__\\((\\d+), \\d+\\) broadcast_");
    bounds.add("broadcast " + broadcast);
    assertEquals(
        Stream.of(PeerAlgorithm.values()).map(w -> w.text() + " " + w.threads).sorted().toList(),
        bounds.stream().distinct().sorted().toList());
  }

  /**
   * Returns the fields of a struct in protocol.cuh with their offsets, as a compiler lays them out.
   */
  private static List<String> fields(String struct) {
    List<String> fields = new ArrayList<>();
    long at = 0;
    for (String line : found("struct " + struct + " \\{(.*?)\\n\\};").split("\n")) {
      Matcher field =
          Pattern.compile(
                  "^\\s*(unsigned long long|long long|unsigned|int|[A-Za-z0-9]+\\*)\\s+(\\w+)(?:\\[(\\w+)\\])?;")
              .matcher(line);
      if (field.find()) {
        String type = field.group(1);
        int size = type.equals("int") || type.equals("unsigned") ? 4 : 8;
        at = up(at, size) * size;
        fields.add(field.group(2) + "@" + at);
        at += (long) size * (field.group(3) == null ? 1 : constant(field.group(3)));
      }
    }
    fields.add("end@" + at);
    return fields;
  }

  @Test
  void argumentsLieWhereTheKernelsReadThem() {
    CudaApi api = Mockito.mock(CudaApi.class);
    ArgumentCaptor<ByteBuffer> captor = ArgumentCaptor.captor();
    Mockito.when(api.arguments(captor.capture(), Mockito.any())).thenReturn(new Pointer());
    PeerLayout layout = new PeerLayout(3);
    PeerMailbox mailbox = Mockito.mock(PeerMailbox.class);
    Mockito.when(mailbox.layout()).thenReturn(layout);
    Mockito.when(mailbox.of(Mockito.anyInt())).thenAnswer(c -> 0x1000L + (int) c.getArgument(0));
    PeerReport report = Mockito.mock(PeerReport.class);
    Mockito.when(report.deviceAddress()).thenReturn(0x77L);
    PeerLaunch launch =
        new PeerLaunch(api, null, PeerAlgorithm.TWO_SHOT, 5)
            .mailboxes(mailbox, PeerAlgorithm.TWO_SHOT, 2, 3)
            .elements(new long[] {0x20, 0x38, 0x40}, 99)
            .waiting(report, 1234)
            .checkingFinite(0x66, 1L << 40)
            .local(0x88)
            .call(55, 4, 1, 6);
    launch.enqueue(null);
    ByteBuffer memory = captor.getValue();
    List<String> fields = new ArrayList<>();
    for (String field : fields("Arguments")) {
      String name = field.substring(0, field.indexOf('@'));
      int at = Integer.parseInt(field.substring(name.length() + 1));
      long value =
          switch (name) {
            case "mailboxes", "buffers", "staging" -> memory.getLong(at + 8);
            case "report", "count", "stride", "tag", "timeout", "found", "first", "local" ->
                memory.getLong(at);
            case "end" -> memory.capacity() == at ? 0 : -1;
            default -> memory.getInt(at);
          };
      fields.add(name + "=" + value);
    }
    assertEquals(
        List.of(
            "mailboxes=" + 0x1001,
            "buffers=" + 0x38,
            "staging=" + (0x1001 + layout.offset(PeerAlgorithm.TWO_SHOT)),
            "report=" + 0x77,
            "count=99",
            "stride=" + layout.stride(PeerAlgorithm.TWO_SHOT),
            "tag=55",
            "timeout=1234",
            "rank=2",
            "ranks=3",
            "batches=6",
            "aligned=5", // 0x20 and 0x40 are aligned, 0x38 is not
            "op=4",
            "root=1",
            "found=" + 0x66,
            "first=" + (1L << 40),
            "local=" + 0x88,
            "end=0"),
        fields);
  }

  @Test
  void whatIsNotFiniteIsReadWhereTheKernelsWriteIt() {
    LocalRanks.run(
        2,
        b -> b.device("host"),
        sync -> {
          ProcessGroup group = LocalWorld.current().orElseThrow();
          Gpu device = Mockito.mock(Gpu.class);
          Mockito.when(device.api()).thenReturn(Mockito.mock(CudaApi.class));
          ByteBuffer[] pages =
              NodeMemory.share(new GroupCommunicator(group), PeerUnmapFlags.BYTES).memory();
          PeerProgress progress = new PeerProgress(pages, sync.rank(), 2);
          PeerNames names = new PeerNames();
          AbstractDeviceBuffer buffer =
              (AbstractDeviceBuffer) sync.allocate(DataType.FLOAT32, 9).named("w");
          buffer.elementsNamed(element -> element % 2 == 0 ? "layer[" + element + "]" : "");
          names.add(7, buffer);
          try (PeerFinite finite = new PeerFinite(group, device, progress)) {
            assertFalse(finite.hasFound()); // nothing has been found yet
            sync.barrier();
            ByteBuffer found = progress.found();
            long index = (1L << 42) + 5;
            List<String> fields = fields("Found");
            assertEquals("end@" + found.capacity(), fields.get(3));
            int places = constant("FINDINGS");
            assertEquals(PeerProgress.FINDINGS, places);
            // Rank 0 has found elements in calls 11, 12 and 13. The GPUs finish call 10, then 11,
            // and so on.
            for (int call = 11; call < 14; call++) {
              put(found, fields.get(0), call % places, 7L << constant("INDEX_BITS") | index + call);
              put(found, fields.get(1), call % places, sync.rank() == 0 ? call : 0);
            }
            put(found, fields.get(2), 0, 10);
            sync.barrier();
            assertFalse(finite.hasFound()); // the other rank is ahead of this rank's GPU
            for (int call = 11; call < 14; call++) {
              put(found, fields.get(2), 0, call);
              assertTrue(finite.hasFound());
              NotFiniteException e = finite.take(names, () -> {});
              long at = index + call - 1;
              String line = "\n  rank 0: FLOAT32[9] \"w\", index=" + at;
              line += at % 2 == 0 ? " (layer[" + at + "])" : "";
              assertEquals(
                  "gradients are not finite, rank=" + sync.rank() + ":" + line, e.getMessage());
              assertFalse(finite.hasFound()); // reported only once
            }
            sync.barrier();
          }
        });
  }

  private static void put(ByteBuffer memory, String field, int place, long value) {
    int at = Integer.parseInt(field.substring(field.indexOf('@') + 1));
    memory.putLong(at + place * Long.BYTES, value);
  }

  @Test
  void reportsAreReadWhereTheKernelsWriteThem() {
    ArgumentCaptor<ByteBuffer> captor = ArgumentCaptor.captor();
    Gpu device = Mockito.mock(Gpu.class);
    CudaApi api = Mockito.mock(CudaApi.class);
    Mockito.when(device.api()).thenReturn(api);
    PeerReport report = new PeerReport(device);
    Mockito.verify(api).pageLock(captor.capture());
    ByteBuffer memory = captor.getValue();
    List<String> fields = fields("Report");
    assertEquals("end@" + memory.capacity(), fields.get(fields.size() - 1));
    for (String field : fields.subList(0, fields.size() - 1)) {
      int at = Integer.parseInt(field.substring(field.indexOf('@') + 1));
      switch (field.substring(0, field.indexOf('@'))) {
        case "failure" -> memory.putLong(at, PeerReport.TIMED_OUT);
        case "call" -> memory.putLong(at, 1L << 39);
        case "waited" -> memory.putLong(at, 1L << 41);
        case "headers" -> memory.putLong(at + 15 * 8, 0xFF_FFFF_FFFFL << 24 | 0xABCDEF);
        default -> memory.putLong(at, -1);
      }
    }
    assertEquals(PeerReport.TIMED_OUT, report.failure());
    assertEquals(1L << 39, report.call());
    assertEquals(1L << 41, report.waitedNanos());
    assertEquals(0xFF_FFFF_FFFFL, report.callOf(15));
    assertEquals(0xABCDEF, report.tagOf(15));
  }

  @ParameterizedTest
  @MethodSource("severalRanks")
  void theStagingOfTheWaysDoesNotOverlap(int ranks) {
    PeerLayout layout = new PeerLayout(ranks);
    assertEquals(head(), layout.offset(PeerAlgorithm.ONE_SHOT));
    assertEquals(layout.offset(PeerAlgorithm.ONE_SHOT), layout.offset(PeerAlgorithm.BROADCAST));
    assertEquals(layout.stride(PeerAlgorithm.ONE_SHOT), layout.stride(PeerAlgorithm.BROADCAST));
    assertEquals(
        layout.offset(PeerAlgorithm.TWO_SHOT), layout.offset(PeerAlgorithm.TWO_SHOT_UNROLLED));
    assertEquals(
        layout.stride(PeerAlgorithm.TWO_SHOT), layout.stride(PeerAlgorithm.TWO_SHOT_UNROLLED));
    assertEquals(
        layout.mostBytes(PeerAlgorithm.TWO_SHOT),
        layout.mostBytes(PeerAlgorithm.TWO_SHOT_UNROLLED));
    assertEquals(layout.offset(PeerAlgorithm.STREAM), layout.offset(PeerAlgorithm.STAGED));
    assertEquals(layout.offset(PeerAlgorithm.STREAM), layout.offset(PeerAlgorithm.STREAM_FEW_CTAS));
    assertEquals(layout.stride(PeerAlgorithm.STREAM), layout.stride(PeerAlgorithm.STREAM_FEW_CTAS));
    assertTrue(
        used(layout, PeerAlgorithm.STAGED, ranks) <= used(layout, PeerAlgorithm.STREAM, ranks));
    PeerAlgorithm[] inOrder = {
      PeerAlgorithm.ONE_SHOT, PeerAlgorithm.TWO_SHOT, PeerAlgorithm.STREAM
    };
    for (int i = 0; i < inOrder.length; i++) {
      PeerAlgorithm algorithm = inOrder[i];
      assertEquals(0, layout.offset(algorithm) % 128, algorithm + " begins within a line");
      assertTrue(layout.stride(algorithm) > 0);
      if (algorithm != PeerAlgorithm.STREAM) {
        assertEquals(
            0, layout.stride(algorithm) * 16 % 128, algorithm + "'s parts begin within a line");
      }
      long end = i + 1 < inOrder.length ? layout.offset(inOrder[i + 1]) : layout.bytes();
      assertTrue(
          layout.offset(algorithm) + used(layout, algorithm, ranks) <= end,
          algorithm + " overlaps");
    }
  }

  @ParameterizedTest
  @MethodSource("severalRanks")
  void messagesFitBehindTheStaging(int ranks) {
    PeerLayout layout = new PeerLayout(ranks);
    String source = source("message.cu");
    assertTrue(source.contains("MESSAGE_BLOCKS = " + PeerLayout.MESSAGE_BLOCKS + ";"));
    assertTrue(source.contains("MESSAGE_SLOTS = " + PeerLayout.MESSAGE_SLOTS + ";"));
    long counts = 4L * PeerLayout.MESSAGE_BLOCKS * PeerLayout.MAX_RANKS * Long.BYTES;
    long chunks = (long) ranks * PeerLayout.MESSAGE_BLOCKS * PeerLayout.MESSAGE_SLOTS;
    assertEquals(0, layout.messageOffset() % PeerLayout.VECTOR);
    assertTrue(
        layout.messageOffset()
            >= layout.offset(PeerAlgorithm.STREAM) + used(layout, PeerAlgorithm.STREAM, ranks));
    assertTrue(
        layout.messageOffset() + counts + chunks * layout.messageChunk() * PeerLayout.VECTOR
            <= layout.bytes());
    long chunk = layout.messageChunk() * PeerLayout.VECTOR;
    assertTrue(chunk >= 4096);
    assertEquals(1, layout.messageBlocks(1));
    assertEquals(1, layout.messageBlocks(chunk));
    assertEquals(2, layout.messageBlocks(chunk + 1));
    assertEquals(PeerLayout.MESSAGE_BLOCKS, layout.messageBlocks(1L << 40));
  }

  @Test
  void largeBlocksGoInSeveralChunksThatFitIntoTheStaging() {
    PeerLayout layout = new PeerLayout(2);
    PeerAlgorithm stream = PeerAlgorithm.STREAM;
    assertEquals(1, layout.batchesOfBlocks(stream, DataType.FLOAT32, 1, 1));
    assertEquals(5, layout.batchesOfBlocks(stream, DataType.FLOAT32, 2 << 20, 132)); // one chunk
    assertEquals(2, layout.batchesOfBlocks(stream, DataType.FLOAT32, 4 << 20, 132));
    assertEquals(2, layout.batchesOfBlocks(stream, DataType.FLOAT32, 1L << 31, 132));
    PeerLayout eight = new PeerLayout(8); // whose staging has room for less from each
    assertEquals(
        eight.batches(stream, DataType.FLOAT32, 1L << 34, 132),
        eight.batchesOfBlocks(stream, DataType.FLOAT32, 1L << 31, 132));
  }

  @Test
  void receiversForwardWhatTakesTheRootLong() {
    assertEquals(1, new PeerLayout(1).broadcastParts(1 << 30));
    assertEquals(1, new PeerLayout(2).broadcastParts(1 << 30));
    assertEquals(1, new PeerLayout(4).broadcastParts(256 << 10));
    assertEquals(3, new PeerLayout(4).broadcastParts((256 << 10) + 16));
    assertEquals(7, new PeerLayout(8).broadcastParts(128 << 10));
  }

  @Test
  void aBroadcastGoesInSeveralTiles() {
    assertEquals(1, PeerLayout.broadcastTile(16 << 20, 4, 132));
    assertEquals(1, PeerLayout.broadcastTile(64 << 20, 4, 132));
    assertEquals(2, PeerLayout.broadcastTile(64 << 20, 3, 132));
    assertEquals(2, PeerLayout.broadcastTile(1L << 40, 2, 132));
  }

  @Test
  void collectivesTakeBlocksThatHaveWork() {
    assertEquals(1, PeerLayout.blocks(2, 512, 264));
    assertEquals(1, PeerLayout.blocks(16384, 512, 264));
    assertEquals(2, PeerLayout.blocks(16386, 512, 264));
    assertEquals(264, PeerLayout.blocks(1L << 40, 512, 264));
    assertEquals(PeerLayout.MAX_BLOCKS, PeerLayout.blocks(1L << 40, 512, 1000));
    for (String kernel : new String[] {"put.cuh", "message.cu"}) {
      assertTrue(source(kernel).contains("__launch_bounds__(" + PeerPlanner.THREADS));
    }
  }

  @Test
  void oneRankHasNoStaging() {
    assertEquals(head(), new PeerLayout(1).bytes());
  }

  @ParameterizedTest
  @MethodSource("ranks")
  void theLargestBufferFitsInEachPart(int ranks) {
    PeerLayout layout = new PeerLayout(ranks);
    for (PeerAlgorithm algorithm :
        new PeerAlgorithm[] {
          PeerAlgorithm.ONE_SHOT, PeerAlgorithm.BROADCAST, PeerAlgorithm.TWO_SHOT
        }) {
      long most = layout.mostBytes(algorithm);
      assertEquals(0, most % 16, "pieces of a large buffer must begin at vectors");
      long vectors =
          switch (algorithm) {
            case TWO_SHOT -> up(most / 16, ranks);
            case BROADCAST -> up(most / 16, layout.broadcastParts(most));
            default -> most / 16;
          };
      assertTrue(
          up(vectors, ROUND) * ROUND_STRIDE <= layout.stride(algorithm),
          algorithm + " with " + ranks);
      assertTrue(most >= 256 << 10, algorithm + " is good for too little");
    }
  }

  @ParameterizedTest
  @MethodSource("ranks")
  void blocksStayWithinTheFlags(int ranks) {
    PeerLayout layout = new PeerLayout(ranks);
    for (PeerAlgorithm algorithm : PeerAlgorithm.values()) {
      for (DataType type : DataType.values()) {
        for (long count : COUNTS) {
          for (int most : MOSTS) {
            int blocks = layout.blocks(algorithm, type, count, most);
            String what = algorithm + " " + type + "[" + count + "] of " + ranks + ": " + blocks;
            assertTrue(blocks >= 1 && blocks <= Math.min(most, 512), what);
            if (blocks > 1) {
              // Each block has work to do.
              boolean all =
                  algorithm == PeerAlgorithm.ONE_SHOT || algorithm == PeerAlgorithm.BROADCAST;
              long vectors = all ? vectors(type, count) : up(vectors(type, count), ranks);
              long each =
                  algorithm.isChunked() ? batch(algorithm, type) : algorithm.threads / 32 * ROUND;
              assertTrue(vectors > (blocks - 1) * each, what);
            }
          }
        }
      }
    }
  }

  @ParameterizedTest
  @MethodSource("ranks")
  void aChunkFitsInItsSlot(int ranks) {
    PeerLayout layout = new PeerLayout(ranks);
    for (PeerAlgorithm algorithm :
        new PeerAlgorithm[] {
          PeerAlgorithm.STREAM, PeerAlgorithm.STREAM_FEW_CTAS, PeerAlgorithm.STAGED
        }) {
      int slots = algorithm == PeerAlgorithm.STAGED ? 2 * SLOTS : SLOTS;
      for (DataType type : DataType.values()) {
        for (long count : COUNTS) {
          for (int most : MOSTS) {
            int blocks = layout.blocks(algorithm, type, count, most);
            int batches = layout.batches(algorithm, type, count, blocks);
            long chunk = (long) batches * blocks * batch(algorithm, type);
            String what = algorithm + " " + type + "[" + count + "] of " + ranks + ": " + batches;
            assertTrue(batches >= 1, what);
            assertTrue(chunk <= layout.stride(algorithm), what);
            long shard = up(vectors(type, count), ranks);
            long chunks = up(shard, chunk);
            assertTrue(chunks + 2 < 1 << PeerTag.BITS, what + " has too many flags");
            if (shard > chunk) {
              assertTrue(
                  slots * (ranks - 1) * chunk * 16 <= 48 << 20 || batches == 1,
                  what + " does not stay in the cache");
            }
          }
        }
      }
    }
  }
}
