package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.code_intelligence.jazzer.api.FuzzedDataProvider;
import com.code_intelligence.jazzer.junit.FuzzTest;
import java.nio.ByteBuffer;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.gradientsync.cuda.internal.driver.Gpu;
import org.mockito.ArgumentCaptor;
import org.mockito.Mockito;

/** Reads arbitrary words as a report, as kernels of other ranks may write anything. */
class PeerReportFuzzTest {
  private final PeerReport report;
  private final ByteBuffer memory;

  PeerReportFuzzTest() {
    Gpu device = Mockito.mock(Gpu.class);
    CudaApi api = Mockito.mock(CudaApi.class);
    Mockito.when(device.api()).thenReturn(api);
    ArgumentCaptor<ByteBuffer> captor = ArgumentCaptor.captor();
    report = new PeerReport(device);
    Mockito.verify(api).pageLock(captor.capture());
    memory = captor.getValue();
  }

  @FuzzTest
  void anyWordsHaveAMeaning(FuzzedDataProvider data) {
    for (int at = 0; at < memory.capacity(); at += Long.BYTES) {
      memory.putLong(at, data.consumeLong());
    }
    for (int rank = 0; rank < PeerLayout.MAX_RANKS; rank++) {
      assertTrue(report.callOf(rank) >= 0, "call=" + report.callOf(rank));
      int tag = report.tagOf(rank);
      assertTrue(tag >= 0 && tag <= PeerTag.MASK, "tag=" + tag);
      assertTrue(PeerTag.registration(tag) <= PeerTag.MAX_REGISTRATIONS + 1, "tag=" + tag);
      assertFalse(PeerTag.operation(tag).isEmpty());
    }
  }
}
