package org.gradientsync.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.IntPredicate;
import jcuda.Pointer;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUevent;
import jcuda.driver.CUfunction;
import jcuda.driver.CUgraph;
import jcuda.driver.CUgraphExec;
import jcuda.driver.CUmodule;
import jcuda.driver.CUstream;
import jcuda.jcublas.cublasHandle;
import org.gradientsync.DataType;
import org.gradientsync.DeviceException;
import org.gradientsync.cuda.compute.CudaBlas;
import org.gradientsync.cuda.compute.TestBlas;
import org.gradientsync.cuda.internal.driver.BlasApi;
import org.gradientsync.cuda.internal.driver.CudaApi;

/**
 * A GPU that the test's own thread simulates. Memory lives in Java arrays, products use the
 * textbook algorithm, and tests write kernels in Java. Work runs at once when it is enqueued, or is
 * recorded during a capture.
 */
public final class SimulatedGpu implements AutoCloseable {
  /** A kernel written in Java. */
  public interface Kernel {
    /** Runs all threads of all blocks. */
    void run(Arguments arguments, int blocks);
  }

  /** The elements of a buffer from a pointer on. */
  public record Floats(ByteBuffer memory, int offset) {
    public float get(long index) {
      return memory.getFloat(offset + (int) index * Float.BYTES);
    }

    public void set(long index, float value) {
      memory.putFloat(offset + (int) index * Float.BYTES, value);
    }

    public void setDouble(long index, double value) {
      memory.putDouble(offset + (int) index * Double.BYTES, value);
    }
  }

  /** A kernel's arguments at the time of the launch. */
  public final class Arguments {
    private final ByteBuffer memory;
    private final int[] offsets;

    private Arguments(ByteBuffer memory, int[] offsets) {
      this.memory = memory;
      this.offsets = offsets;
    }

    public Floats floats(int index) {
      return at(memory.getLong(offsets[index]));
    }

    public long integer(int index) {
      return memory.getLong(offsets[index]);
    }

    public float real(int index) {
      return memory.getFloat(offsets[index]);
    }
  }

  private static final class Address extends CUdeviceptr {
    private final long value;

    private Address(long value) {
      this.value = value;
    }
  }

  private static final class Host extends Pointer {
    private final ByteBuffer memory;
    private final int[] offsets;

    private Host(ByteBuffer memory, int... offsets) {
      this.memory = memory;
      this.offsets = offsets;
    }
  }

  private static final class Function extends CUfunction {
    private final String name;

    private Function(String name) {
      this.name = name;
    }
  }

  /** Calls that the driver refuses while a thread captures. */
  private static final Set<String> REFUSED = Set.of("instantiate", "loadImage", "allocate");

  private static final class Graph extends CUgraphExec {
    private final Thread thread = Thread.currentThread(); // the thread that captures
    private final List<Runnable> steps = new ArrayList<>();
  }

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

  /**
   * Memory that is allocated at its first use, because it may be a large mailbox that no test uses.
   */
  private static final class Allocation {
    private final int bytes;
    private ByteBuffer buffer;

    private Allocation(int bytes) {
      this.bytes = bytes;
    }

    private ByteBuffer buffer() {
      if (buffer == null) {
        buffer = ByteBuffer.allocate(bytes).order(ByteOrder.nativeOrder());
      }
      return buffer;
    }
  }

  private static final class Captured extends CUgraph {
    private final Graph graph;

    private Captured(Graph graph) {
      this.graph = graph;
    }
  }

  private final TreeMap<Long, Allocation> memory = new TreeMap<>();
  private final Map<String, Kernel> kernels = new HashMap<>();
  private final List<String> enqueued = new ArrayList<>();
  private final Map<Object, String> taken = new IdentityHashMap<>();
  private final Map<Long, byte[]> imports = new HashMap<>();
  private final List<String> wrong = new ArrayList<>();
  private final CUcontext[] contexts = {new Context(), new Context()};
  private final CudaApi api;
  private final CudaDevice device;
  private Kernel otherKernels;
  private long next = 1L << 32;
  private final ThreadLocal<Integer> captureMode = ThreadLocal.withInitial(() -> 0);
  private final ThreadLocal<CUcontext> current = new ThreadLocal<>();
  private final Map<CUstream, Graph> capturing = new IdentityHashMap<>();
  private IntPredicate refused = bytes -> false;

  public SimulatedGpu() {
    this(true);
  }

  private SimulatedGpu(boolean open) {
    api =
        (CudaApi)
            Proxy.newProxyInstance(
                SimulatedGpu.class.getClassLoader(),
                new Class<?>[] {CudaApi.class},
                (proxy, method, arguments) -> answer(proxy, method, arguments));
    device = open ? new CudaDevice(api, 0) : null;
    enqueued.clear();
  }

  /** Creates a GPU without opening it, for code that opens it itself. The machine has two GPUs. */
  static SimulatedGpu unopened() {
    return new SimulatedGpu(false);
  }

  public CudaDevice device() {
    return device;
  }

  CudaApi api() {
    return api;
  }

  CUcontext context(int ordinal) {
    return contexts[ordinal];
  }

  /** Returns a cuBLAS for a device on this driver. */
  BlasApi blasApi() {
    return new Blas();
  }

  /** Sets the body of all kernels that have none of their own. */
  void otherKernels(Kernel body) {
    otherKernels = body;
  }

  /** Refuses to export memory of some sizes to other processes. */
  void refuseExports(IntPredicate ofBytes) {
    refused = ofBytes;
  }

  /** Returns the number of unreleased resources, by kind. */
  synchronized Map<String, Integer> holds() {
    assertEquals(List.of(), wrong);
    Map<String, Integer> holds = new TreeMap<>();
    taken.values().forEach(kind -> holds.merge(kind, 1, Integer::sum));
    memory.keySet().forEach(address -> holds.merge("memory", 1, Integer::sum));
    imports.keySet().forEach(address -> holds.merge("import", 1, Integer::sum));
    return holds;
  }

  /** Returns a simulated cuBLAS. */
  public CudaBlas blas() {
    return TestBlas.on(device, new Blas());
  }

  /** Defines a kernel. */
  public void kernel(String name, Kernel body) {
    kernels.put(name, body);
  }

  /** Returns the products, kernels and graphs enqueued since the last call. */
  public List<String> takeEnqueued() {
    List<String> taken = List.copyOf(enqueued);
    enqueued.clear();
    return taken;
  }

  @Override
  public void close() {
    device.close();
  }

  private synchronized Object answer(Object proxy, Method method, Object[] a) {
    if (REFUSED.contains(method.getName())
        && captureMode.get() != CudaApi.ANY_CALL
        && capturing.values().stream().anyMatch(graph -> graph.thread == Thread.currentThread())) {
      throw new DeviceException(method.getName() + " failed: the thread captures", 900);
    }
    switch (method.getName()) {
      case "equals":
        return proxy == a[0];
      case "hashCode":
        return System.identityHashCode(proxy);
      case "toString":
        return "simulated driver";
      case "driverVersion":
        return 12040;
      case "deviceCount":
        return contexts.length;
      case "deviceName":
        return "simulated";
      case "pciAddress":
        return "0000:0" + a[0] + ":00.0";
      case "sms", "blocksPerSm":
        return 2;
      case "capability":
        return 100;
      case "canAccessPeer", "hasNativeLink":
        return true;
      case "retainContext":
        return contexts[(int) a[0]];
      case "memoryInfo":
        return new long[] {1L << 30, 1L << 31};
      case "createStream", "createUrgentStream":
        return take(new CUstream(), "stream");
      case "createEvent":
        return take(new CUevent(), "event");
      case "isDone":
        return true;
      case "milliseconds":
        return 1f;
      case "pageLock":
        take(a[0], "page-locked memory");
        return null;
      case "pageUnlock", "destroyEvent", "unloadModule", "destroyGraph":
        give(a[0], method.getName());
        return null;
      case "destroyStream":
        capturing.remove(a[0]);
        give(a[0], method.getName());
        return null;
      case "deviceAddress":
        return next += 1 << 20;
      case "useContext":
        current.set((CUcontext) a[0]);
        return null;
      case "deviceOf":
        return Arrays.asList(contexts).indexOf(current.get());
      case "allocationOf":
        return memory.floorKey((long) a[0]);
      case "allocationId":
        return (long) a[0];
      case "exportMemory":
        if (refused.test(memory.get((Long) a[0]).bytes)) {
          throw new DeviceException("exportMemory failed: it is of a pool", 1);
        }
        return new byte[CudaApi.HANDLE_BYTES];
      case "importMemory":
        next += 1 << 20;
        imports.put(next, (byte[]) a[0]);
        return next;
      case "closeImport":
        note(imports.remove((Long) a[0]) != null, "closed, but not imported");
        return null;
      case "loadModule", "loadImage":
        return take(new CUmodule(), "module");
      case "function":
        return new Function((String) a[1]);
      case "allocate":
        return allocate((long) a[0]);
      case "free":
        note(memory.remove((Long) a[0]) != null, "freed, but not allocated");
        return null;
      case "fillZero":
        enqueue(
            (CUstream) a[2],
            "fillZero",
            () -> {
              if (memory.floorEntry((long) a[0]).getValue().buffer == null) {
                return; // not yet allocated, so it will be zero
              }
              Floats target = at((long) a[0]);
              target.memory.put(target.offset, new byte[(int) (long) a[1]]);
            });
        return null;
      case "pointer":
        return a.length == 1 ? new Address((long) a[0]) : new Host((ByteBuffer) a[0], (int) a[1]);
      case "arguments":
        return new Host((ByteBuffer) a[0], (int[]) a[1]);
      case "copyToDevice":
        copyToDevice((Address) a[0], (Host) a[1], (int) (long) a[2]);
        return null;
      case "copyToHost":
        copyToHost((Host) a[0], (Address) a[1], (int) (long) a[2]);
        return null;
      case "launch":
        launch(a);
        return null;
      case "beginCapture":
        capturing.put((CUstream) a[0], new Graph());
        return null;
      case "captureMode":
        int mode = captureMode.get();
        captureMode.set((int) a[0]);
        return mode;
      case "isCapturing":
        return capturing.containsKey(a[0]);
      case "endCapture":
        return take(new Captured(capturing.remove(a[0])), "graph");
      case "nodes":
        return (long) ((Captured) a[0]).graph.steps.size();
      case "instantiate":
        return take(((Captured) a[0]).graph, "executable graph");
      default:
        if (method.getReturnType() == void.class) {
          return null;
        }
        throw new UnsupportedOperationException(method.toString());
    }
  }

  private <T> T take(T made, String kind) {
    taken.put(made, kind);
    return made;
  }

  private void give(Object given, String call) {
    note(taken.remove(given) != null, call + " of what was not taken: " + given.getClass());
  }

  private void note(boolean right, String what) {
    if (!right) {
      wrong.add(what);
    }
  }

  private long allocate(long bytes) {
    long address = next;
    next += (bytes + (1 << 20)) >> 9 << 9;
    memory.put(address, new Allocation((int) bytes));
    return address;
  }

  private Floats at(long address) {
    Map.Entry<Long, Allocation> allocation = memory.floorEntry(address);
    return new Floats(allocation.getValue().buffer(), (int) (address - allocation.getKey()));
  }

  private void copyToDevice(Address to, Host from, int bytes) {
    Floats target = at(to.value);
    target.memory.put(target.offset, from.memory, from.offsets[0], bytes);
  }

  private void copyToHost(Host to, Address from, int bytes) {
    Floats source = at(from.value);
    to.memory.put(to.offsets[0], source.memory, source.offset, bytes);
  }

  private void launch(Object[] a) {
    if (a[0] instanceof Graph graph) {
      note(captureMode.get() == 0, "launched while captures are relaxed");
      enqueued.add("graph");
      graph.steps.forEach(Runnable::run);
      return;
    }
    String name = ((Function) a[0]).name;
    Host arguments = (Host) a[5];
    ByteBuffer copy = ByteBuffer.allocate(arguments.memory.capacity());
    copy.put(0, arguments.memory, 0, copy.capacity()).order(ByteOrder.nativeOrder());
    int blocks = ((int[]) a[1])[0];
    Arguments own = new Arguments(copy, arguments.offsets);
    Kernel kernel = kernels.getOrDefault(name, otherKernels);
    enqueue((CUstream) a[4], name, () -> kernel.run(own, blocks));
  }

  private void enqueue(CUstream stream, String name, Runnable work) {
    Graph graph = capturing.get(stream);
    if (graph != null) {
      graph.steps.add(work);
    } else {
      enqueued.add(name);
      work.run();
    }
  }

  /** Implements BLAS as specified: matrices are column-major. */
  private final class Blas implements BlasApi {
    private CUstream current;

    @Override
    public cublasHandle create() {
      synchronized (SimulatedGpu.this) {
        return take(new cublasHandle(), "cuBLAS");
      }
    }

    @Override
    public void destroy(cublasHandle handle) {
      synchronized (SimulatedGpu.this) {
        give(handle, "cublasDestroy");
      }
    }

    @Override
    public int version(cublasHandle handle) {
      return 120605;
    }

    @Override
    public void useStream(cublasHandle handle, CUstream stream) {
      current = stream;
    }

    @Override
    public void useWorkspace(cublasHandle handle, long address, long bytes) {}

    @Override
    public void useTf32(cublasHandle handle, boolean tf32) {}

    @Override
    public void multiply(
        cublasHandle handle,
        DataType type,
        boolean transposeA,
        boolean transposeB,
        int m,
        int n,
        int k,
        double alpha,
        long a,
        int lda,
        long b,
        int ldb,
        double beta,
        long c,
        int ldc) {
      if (type != DataType.FLOAT32
          || lda < (transposeA ? k : m)
          || ldb < (transposeB ? n : k)
          || ldc < m) {
        throw new DeviceException("cublasSgemm failed: CUBLAS_STATUS_INVALID_VALUE (7)", 7);
      }
      enqueue(
          current,
          "multiply",
          () -> {
            Floats inA = at(a);
            Floats inB = at(b);
            Floats out = at(c);
            for (int column = 0; column < n; column++) {
              for (int row = 0; row < m; row++) {
                double sum = 0;
                for (int i = 0; i < k; i++) {
                  sum +=
                      (double) inA.get(transposeA ? i + row * lda : row + i * lda)
                          * inB.get(transposeB ? column + i * ldb : i + column * ldb);
                }
                int place = row + column * ldc;
                double before = beta == 0 ? 0 : beta * out.get(place);
                out.set(place, (float) (alpha * sum + before));
              }
            }
          });
    }

    @Override
    public void scale(cublasHandle handle, DataType type, int count, double factor, long x) {
      enqueue(
          current,
          "scale",
          () -> {
            Floats values = at(x);
            for (int i = 0; i < count; i++) {
              values.set(i, (float) factor * values.get(i));
            }
          });
    }

    @Override
    public void addScaled(
        cublasHandle handle, DataType type, int count, double factor, long x, long y) {
      enqueue(
          current,
          "addScaled",
          () -> {
            Floats in = at(x);
            Floats values = at(y);
            for (int i = 0; i < count; i++) {
              values.set(i, (float) factor * in.get(i) + values.get(i));
            }
          });
    }
  }
}
