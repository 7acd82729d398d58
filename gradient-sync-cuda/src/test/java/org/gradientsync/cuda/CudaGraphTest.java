package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.times;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import jcuda.driver.CUgraph;
import jcuda.driver.CUgraphExec;
import jcuda.driver.CUstream;
import org.gradientsync.DeviceException;
import org.gradientsync.cuda.internal.driver.CudaApi;
import org.junit.jupiter.api.Test;

/** Tests capturing and launching graphs, and the errors when that fails. Needs no GPU. */
class CudaGraphTest {
  private static final int INVALIDATED = 901;

  private final CudaApi api = mock(CudaApi.class);
  private final CUgraph noted = new CUgraph();
  private final CUgraphExec ready = new CUgraphExec();
  private final CUstream handle = new CUstream();
  private final CudaDevice device;
  private final CudaStream stream;
  private boolean capturing;

  CudaGraphTest() {
    device = new CudaDevice(api, 0);
    when(api.createStream()).thenReturn(handle);
    stream = device.createStream();
    when(api.isCapturing(handle)).thenAnswer(call -> capturing);
    doAnswer(call -> capturing = true).when(api).beginCapture(handle);
    when(api.endCapture(handle))
        .thenAnswer(
            call -> {
              capturing = false;
              return noted;
            });
    when(api.nodes(noted)).thenReturn(3L);
    when(api.instantiate(noted)).thenReturn(ready);
  }

  @Test
  void whatWasCapturedIsLaunchedAndDestroyedOnce() {
    assertFalse(stream.isCapturing());
    stream.beginCapture();
    assertTrue(stream.isCapturing());
    CudaGraph graph = stream.endCapture();
    assertFalse(stream.isCapturing());
    verify(api, times(1)).destroyGraph(noted);
    graph.launch(stream);
    graph.launch(stream);
    verify(api, times(2)).launch(ready, handle);
    graph.close();
    graph.close();
    verify(api, times(1)).destroyGraph(ready);
    IllegalStateException e = assertThrows(IllegalStateException.class, () -> graph.launch(stream));
    assertTrue(e.getMessage().startsWith("graph is closed: "), e.getMessage());
    verify(api, times(2)).launch(ready, handle);
  }

  @Test
  void beginAndEndBelongTogether() {
    IllegalStateException e = assertThrows(IllegalStateException.class, stream::endCapture);
    assertTrue(e.getMessage().startsWith("stream is not being captured: "), e.getMessage());
    stream.beginCapture();
    e = assertThrows(IllegalStateException.class, stream::beginCapture);
    assertTrue(e.getMessage().startsWith("stream is being captured already: "), e.getMessage());
    verify(api, times(1)).beginCapture(handle);
  }

  @Test
  void aFailedCaptureSaysWhatIsAllowed() {
    when(api.endCapture(handle))
        .thenThrow(new DeviceException("cuStreamEndCapture failed: X (901)", INVALIDATED));
    stream.beginCapture();
    DeviceException e = assertThrows(DeviceException.class, stream::endCapture);
    assertEquals(INVALIDATED, e.code());
    assertTrue(
        e.getMessage().startsWith("cuStreamEndCapture failed: X (901), device="), e.getMessage());
    assertTrue(e.getMessage().contains("enqueue only"), e.getMessage());
    verify(api, never()).instantiate(any());
  }

  @Test
  void anEmptyCaptureIsRefused() {
    when(api.nodes(noted)).thenReturn(0L);
    stream.beginCapture();
    IllegalStateException e = assertThrows(IllegalStateException.class, stream::endCapture);
    assertTrue(e.getMessage().startsWith("nothing was captured: "), e.getMessage());
    verify(api, times(1)).destroyGraph(noted);
    verify(api, never()).instantiate(any());
  }

  @Test
  void aGraphThatCannotBeMadeReadyIsGivenBack() {
    when(api.instantiate(noted)).thenThrow(new DeviceException("cuGraphInstantiate failed", 2));
    stream.beginCapture();
    assertThrows(DeviceException.class, stream::endCapture);
    verify(api, times(1)).destroyGraph(noted);
  }

  @Test
  void whatIsClosedOrAnotherGpusIsRefused() {
    stream.beginCapture();
    CudaGraph graph = stream.endCapture();
    CudaDevice other = new CudaDevice(api, 1);
    IllegalArgumentException e =
        assertThrows(IllegalArgumentException.class, () -> graph.launch(other.stream()));
    assertTrue(e.getMessage().contains("stream belongs to another device"), e.getMessage());
    stream.close();
    assertThrows(IllegalStateException.class, () -> graph.launch(stream));
    assertThrows(IllegalStateException.class, stream::beginCapture);
    assertThrows(IllegalStateException.class, stream::isCapturing);
    verify(api, never()).launch(any(), any());
  }
}
