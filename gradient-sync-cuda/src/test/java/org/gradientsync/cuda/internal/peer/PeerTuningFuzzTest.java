package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.code_intelligence.jazzer.api.FuzzedDataProvider;
import com.code_intelligence.jazzer.junit.FuzzTest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import org.gradientsync.spi.Settings;

/** Tries arbitrary cache files, and arbitrary text as a setting. */
class PeerTuningFuzzTest {
  private static final PeerSharing ALONE = new PeerSharing(List.of(7), 0);

  private static final String KEY = "gpu.1.2-ranks.share-1=";

  private final PeerLayout layout = new PeerLayout(2);

  @FuzzTest
  void anyFileGivesSizesThatCanBeOrNone(FuzzedDataProvider data) throws IOException {
    String start = data.consumeBoolean() ? KEY : "";
    byte[] rest = data.consumeRemainingAsBytes();
    Path folder = Files.createTempDirectory("fuzz");
    Path file = folder.resolve("peer-tuning.properties");
    try {
      PeerTuningCache cache =
          new PeerTuningCache(new Settings(Map.of("dev.cache", folder.toString())), "gpu", 1, 2, 1);
      byte[] all = new byte[start.length() + rest.length];
      System.arraycopy(start.getBytes(), 0, all, 0, start.length());
      System.arraycopy(rest, 0, all, start.length(), rest.length);
      Files.write(file, all);
      Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
      long[] sizes = cache.read(layout);
      if (sizes != null) {
        assertTrue(0 <= sizes[0] && sizes[0] <= sizes[1], sizes[0] + " " + sizes[1]);
        assertTrue(sizes[1] <= layout.mostBytes(PeerAlgorithm.TWO_SHOT), "" + sizes[1]);
      }
      cache.write(new long[] {3, 4});
      assertArrayEquals(new long[] {3, 4}, cache.read(layout));
    } finally {
      Files.deleteIfExists(file);
      Files.delete(folder);
    }
  }

  @FuzzTest
  void anySettingIsUnderstoodOrRefused(FuzzedDataProvider data) {
    String name = data.pickValue(new String[] {"dev.peer.algorithm", "overlap.sms"});
    String text = data.consumeRemainingAsString();
    try {
      PeerTuning tuning = new PeerTuning(layout, 2, ALONE, 1, new Settings(Map.of(name, text)));
      for (long bytes : new long[] {0, 1, 1 << 20, Long.MAX_VALUE}) {
        PeerAlgorithm algorithm = tuning.algorithm(bytes);
        int most = tuning.mostBlocks(2, 132, algorithm, true);
        assertTrue(most >= 1 && most <= 264, tuning + ": " + most);
      }
    } catch (IllegalArgumentException e) {
      assertTrue(e.getMessage().contains("gradientsync." + name + "=" + text), e::toString);
    }
  }
}
