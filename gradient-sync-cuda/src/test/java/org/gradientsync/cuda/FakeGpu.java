package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyBoolean;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import jcuda.Pointer;
import jcuda.driver.CUcontext;
import jcuda.driver.CUevent;
import jcuda.driver.CUfunction;
import jcuda.driver.CUgraph;
import jcuda.driver.CUgraphExec;
import jcuda.driver.CUmodule;
import jcuda.driver.CUstream;
import org.gradientsync.DeviceException;
import org.gradientsync.cuda.internal.driver.CudaApi;

/**
 * A fake driver for one rank. It keeps track of resources, and runs nothing. By default the machine
 * has two GPUs with NVLink between them.
 */
public final class FakeGpu {
  /** The handle of each stream. */
  public static final long HANDLE = 0x5;

  private static final int INVALID_VALUE = 1;
  private static final AtomicLong next = new AtomicLong(1L << 32);

  public final CudaApi api = mock(CudaApi.class);

  /** Page-locked memory, in the order in which it was locked. */
  final CopyOnWriteArrayList<ByteBuffer> locked = new CopyOnWriteArrayList<>();

  /** What was launched: graphs, and kernels by name. */
  public final CopyOnWriteArrayList<String> launched = new CopyOnWriteArrayList<>();

  private final TreeMap<Long, Long> allocations = new TreeMap<>();
  private final Map<Long, Long> ids = new ConcurrentHashMap<>();
  private final Map<Object, String> taken = Collections.synchronizedMap(new IdentityHashMap<>());
  private final Map<CUfunction, String> names =
      Collections.synchronizedMap(new IdentityHashMap<>());
  private final CopyOnWriteArrayList<Long> imports = new CopyOnWriteArrayList<>();
  private final CopyOnWriteArrayList<String> faults = new CopyOnWriteArrayList<>();

  /** JCuda's own contexts are all equal until the driver fills them. These are all different. */
  private static final class Context extends CUcontext {
    @Override
    public boolean equals(Object other) {
      return this == other;
    }

    @Override
    public int hashCode() {
      return System.identityHashCode(this);
    }
  }

  public static CUcontext newContext() {
    return new Context();
  }

  public FakeGpu() {
    CUcontext[] contexts = {newContext(), newContext()};
    when(api.isDone(any(CUstream.class))).thenReturn(true);
    when(api.isDone(any(CUevent.class))).thenReturn(true);
    when(api.deviceCount()).thenReturn(2);
    when(api.deviceName(anyInt())).thenReturn("fake");
    when(api.pciAddress(0)).thenReturn("0000:1b:00.0");
    when(api.pciAddress(1)).thenReturn("0000:2c:00.0");
    when(api.sms(anyInt())).thenReturn(132);
    when(api.capability(anyInt())).thenReturn(100);
    when(api.blocksPerSm(any(), anyInt())).thenReturn(3);
    when(api.canAccessPeer(anyInt(), anyInt())).thenReturn(true);
    when(api.hasNativeLink(anyInt(), anyInt())).thenReturn(true);
    when(api.retainContext(anyInt())).thenAnswer(c -> contexts[(int) c.getArgument(0)]);
    when(api.memoryInfo()).thenReturn(new long[] {7, 9});
    when(api.arguments(any(), any())).thenAnswer(c -> new Pointer());
    memory();
    when(api.createStream()).thenAnswer(c -> take(CUstream::new, "stream"));
    when(api.handleOf(any())).thenReturn(HANDLE);
    when(api.createUrgentStream()).thenAnswer(c -> take(CUstream::new, "stream"));
    doAnswer(c -> give(c.getArgument(0))).when(api).destroyStream(any());
    when(api.createEvent(anyBoolean())).thenAnswer(c -> take(CUevent::new, "event"));
    doAnswer(c -> give(c.getArgument(0))).when(api).destroyEvent(any());
    when(api.loadModule(any())).thenAnswer(c -> take(CUmodule::new, "module"));
    when(api.loadImage(any(), any())).thenAnswer(c -> take(CUmodule::new, "module"));
    doAnswer(c -> give(c.getArgument(0))).when(api).unloadModule(any());
    when(api.function(any(), any()))
        .thenAnswer(
            c -> {
              CUfunction function = new CUfunction();
              names.put(function, c.getArgument(1));
              return function;
            });
    doAnswer(c -> launched.add(names.get((CUfunction) c.getArgument(0))))
        .when(api)
        .launch(any(), any(), any(), anyInt(), any(), any());
    when(api.endCapture(any())).thenAnswer(c -> take(CUgraph::new, "graph"));
    doAnswer(c -> give(c.getArgument(0))).when(api).destroyGraph(any(CUgraph.class));
    when(api.instantiate(any())).thenAnswer(c -> take(CUgraphExec::new, "executable graph"));
    doAnswer(c -> give(c.getArgument(0))).when(api).destroyGraph(any(CUgraphExec.class));
    doAnswer(c -> launched.add("graph")).when(api).launch(any(CUgraphExec.class), any());
  }

  private void memory() {
    when(api.allocate(anyLong())).thenAnswer(c -> allocate(c.getArgument(0)));
    doAnswer(c -> free(c.getArgument(0))).when(api).free(anyLong());
    when(api.allocationOf(anyLong())).thenAnswer(c -> allocationOf(c.getArgument(0)));
    when(api.allocationId(anyLong())).thenAnswer(c -> ids.get((Long) c.getArgument(0)));
    when(api.exportMemory(anyLong())).thenReturn(new byte[CudaApi.HANDLE_BYTES]);
    when(api.importMemory(any()))
        .thenAnswer(
            c -> {
              imports.add(next.addAndGet(1 << 20));
              return imports.get(imports.size() - 1);
            });
    doAnswer(
            c -> {
              note(imports.remove((Long) c.getArgument(0)), "closed, but not imported");
              return null;
            })
        .when(api)
        .closeImport(anyLong());
    doAnswer(
            c -> {
              locked.add(c.getArgument(0));
              taken.put(c.getArgument(0), "page-locked memory");
              return null;
            })
        .when(api)
        .pageLock(any());
    doAnswer(c -> give(c.getArgument(0))).when(api).pageUnlock(any());
    when(api.deviceAddress(any())).thenAnswer(c -> next.addAndGet(1 << 20));
  }

  /** Opens a device on this driver. */
  public CudaDevice open(int ordinal) {
    return new CudaDevice(api, ordinal);
  }

  /** Returns the bytes of device memory that are allocated. */
  public synchronized long allocatedBytes() {
    return allocations.values().stream().mapToLong(Long::longValue).sum();
  }

  /** Returns the number of unreleased resources, by kind. */
  public synchronized Map<String, Integer> holds() {
    Map<String, Integer> holds = new TreeMap<>();
    taken.values().forEach(kind -> holds.merge(kind, 1, Integer::sum));
    allocations.keySet().forEach(address -> holds.merge("memory", 1, Integer::sum));
    imports.forEach(address -> holds.merge("import", 1, Integer::sum));
    assertTrue(faults.isEmpty(), faults.toString());
    return holds;
  }

  /** Returns the memory of the last report, which is the last one that was page-locked. */
  public ByteBuffer report() {
    return pageLocked(0);
  }

  /** Returns memory that was page-locked: 0 for the last one, 1 for the one before. */
  public ByteBuffer pageLocked(int fromLast) {
    return locked.get(locked.size() - 1 - fromLast);
  }

  private synchronized long allocate(long bytes) {
    long address = next.getAndAdd((bytes + (2 << 20) - 1) / (1 << 20) << 20);
    allocations.put(address, bytes);
    ids.put(address, next.get());
    return address;
  }

  private synchronized Object free(long address) {
    note(allocations.remove(address) != null, "freed, but not allocated");
    return null;
  }

  private synchronized long allocationOf(long address) {
    Map.Entry<Long, Long> entry = allocations.floorEntry(address);
    if (entry == null || entry.getKey() + entry.getValue() <= address) {
      throw new DeviceException("cuMemGetAddressRange failed: X (1)", INVALID_VALUE);
    }
    return entry.getKey();
  }

  private <T> T take(Supplier<T> make, String kind) {
    T made = make.get();
    taken.put(made, kind);
    return made;
  }

  private Object give(Object given) {
    note(taken.remove(given) != null, "given back, but not taken: " + given);
    return null;
  }

  private void note(boolean right, String fault) {
    if (!right) {
      faults.add(fault);
    }
  }
}
