package org.gradientsync.examples;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.code_intelligence.jazzer.api.FuzzedDataProvider;
import com.code_intelligence.jazzer.junit.FuzzTest;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.zip.CRC32;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.elastic.ElasticLoop;

/** Reads arbitrary files as checkpoints, including some with a correct checksum. */
class CheckpointFuzzTest {
  private static final Checkpoint.Training TRAINING =
      new Checkpoint.Training("A", "B", 5, new int[] {2, 2});
  private static final long MAGIC = 0x47_53_59_4e_43_4d_4c_50L;
  private static final double[] BEFORE = {1, 2, 3, 4};

  @FuzzTest
  void anyFileIsReadWholeOrNotAtAll(FuzzedDataProvider data) throws IOException {
    boolean right = data.consumeBoolean();
    byte[] rest = data.consumeRemainingAsBytes();
    ByteBuffer file = ByteBuffer.allocate(rest.length + (right ? 2 * Long.BYTES : 0));
    if (right) {
      file.putLong(MAGIC).put(rest);
      CRC32 crc = new CRC32();
      crc.update(file.array(), 0, file.position());
      file.putLong(crc.getValue());
    } else {
      file.put(rest);
    }
    Path path = Files.createTempFile("fuzz", "");
    try (DeviceBuffer weights = ElasticLoop.hostBuffer(DataType.FLOAT64, 4)) {
      weights.copyFrom(BEFORE);
      Files.write(path, file.array());
      Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-------"));
      double[] after = new double[4];
      try {
        long steps = Checkpoint.read(path, TRAINING, List.of(weights));
        assertEquals(file.getLong(42), steps);
        weights.copyTo(after);
        for (int i = 0; i < 4; i++) {
          assertEquals(
              file.getLong(50 + 8 * i), Double.doubleToRawLongBits(after[i]), "weight " + i);
        }
      } catch (IOException e) {
        weights.copyTo(after);
        assertArrayEquals(BEFORE, after, "weights were changed, then: " + e);
      }
    } finally {
      Files.delete(path);
    }
  }
}
