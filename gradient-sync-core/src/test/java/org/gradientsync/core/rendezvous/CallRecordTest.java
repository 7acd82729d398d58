package org.gradientsync.core.rendezvous;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import org.gradientsync.DataType;
import org.gradientsync.DeviceBuffer;
import org.gradientsync.ReduceOp;
import org.gradientsync.core.rendezvous.CallRecord.Origin;
import org.gradientsync.local.LocalRanks;
import org.gradientsync.spi.CollectiveCall;
import org.gradientsync.spi.CollectiveCall.Kind;
import org.gradientsync.spi.RankGroup;
import org.junit.jupiter.api.Test;

/** Records that are copied over those of earlier calls. */
class CallRecordTest {
  private static ByteBuffer record(DeviceBuffer in, DeviceBuffer out) {
    Kind kind = in == out ? Kind.ALL_REDUCE : Kind.ALL_TO_ALL;
    ReduceOp op = in == out ? ReduceOp.SUM : null;
    ByteBuffer record = CallRecord.allocate();
    CollectiveCall call = new CollectiveCall(kind, in, out, op, RankGroup.NO_RANK);
    CallRecord.write(record, 1, 0, Origin.SYNC, call, 1);
    return record;
  }

  /** Of two records that follow each other, one or both or none have names or offsets. */
  @Test
  void aCopyHasTheNamesOfItsCall() {
    LocalRanks.run(
        1,
        sync -> {
          DeviceBuffer a = sync.allocate(DataType.FLOAT32, 8).named("a");
          DeviceBuffer b = sync.allocate(DataType.FLOAT32, 8).named("b");
          DeviceBuffer unnamed = sync.allocate(DataType.FLOAT32, 8);
          DeviceBuffer rest = a.slice(4, 4);
          ByteBuffer[] records = {
            record(a, a),
            record(b, b),
            record(rest, rest),
            record(unnamed, unnamed),
            record(a, b),
            record(b, a),
            record(a, unnamed),
            record(unnamed, a)
          };
          for (ByteBuffer earlier : records) {
            for (ByteBuffer later : records) {
              ByteBuffer slot = CallRecord.allocate();
              CallRecord.copy(earlier, slot);
              CallRecord.copy(later, slot);
              assertEquals(CallRecord.describe(later), CallRecord.describe(slot));
              assertEquals(earlier == later, CallRecord.sameInAll(earlier, slot));
            }
          }
          sync.close();
        });
  }
}
