package org.gradientsync.cuda;

import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
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

/**
 * A GPU that the test's own thread plays: memory in Java arrays, products as in a textbook, kernels
 * that the test writes in Java. What is enqueued runs at once, or is noted if it is captured.
 */
public final class PlayedGpu implements AutoCloseable {
  /** What a kernel does. */
  public interface Kernel {
    /** All threads of all blocks. */
    void run(Arguments arguments, int blocks);
  }

  /** Elements of a buffer, from a pointer on. */
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

  /** A kernel's arguments as they were at the launch. */
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

  private static final class Graph extends CUgraphExec {
    private final List<Runnable> steps = new ArrayList<>();
  }

  private final TreeMap<Long, ByteBuffer> memory = new TreeMap<>();
  private final Map<String, Kernel> kernels = new HashMap<>();
  private final List<String> enqueued = new ArrayList<>();
  private final CudaDevice device;
  private long next = 1L << 32;
  private Graph capturing;

  public PlayedGpu() {
    CudaApi api =
        (CudaApi)
            Proxy.newProxyInstance(
                PlayedGpu.class.getClassLoader(),
                new Class<?>[] {CudaApi.class},
                (proxy, method, arguments) -> answer(method, arguments));
    device = new CudaDevice(api, 0);
    enqueued.clear();
  }

  public CudaDevice device() {
    return device;
  }

  /** cuBLAS, played too. */
  public CudaBlas blas() {
    return new CudaBlas(device, new Blas());
  }

  /** Teaches it a kernel. */
  public void kernel(String name, Kernel body) {
    kernels.put(name, body);
  }

  /** What was enqueued since this was called the last time: products, kernels, graphs. */
  public List<String> takeEnqueued() {
    List<String> taken = List.copyOf(enqueued);
    enqueued.clear();
    return taken;
  }

  @Override
  public void close() {
    device.close();
  }

  private Object answer(Method method, Object[] a) {
    switch (method.getName()) {
      case "deviceName", "pciAddress":
        return "played";
      case "multiprocessors":
        return 2;
      case "capability":
        return 90;
      case "retainContext":
        return new CUcontext();
      case "createStream", "createUrgentStream":
        return new CUstream();
      case "createEvent":
        return new CUevent();
      case "isDone":
        return true;
      case "loadModule":
        return new CUmodule();
      case "function":
        return new Function((String) a[1]);
      case "allocate":
        return allocate((long) a[0]);
      case "free":
        memory.remove((Long) a[0]);
        return null;
      case "fillZero":
        enqueue(
            "fillZero",
            () -> {
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
        capturing = new Graph();
        return null;
      case "isCapturing":
        return capturing != null;
      case "endCapture":
        return new CUgraph();
      case "nodes":
        return (long) capturing.steps.size();
      case "instantiate":
        Graph captured = capturing;
        capturing = null;
        return captured;
      default:
        if (method.getReturnType() == void.class) {
          return null;
        }
        throw new UnsupportedOperationException(method.toString());
    }
  }

  private long allocate(long bytes) {
    long address = next;
    next += (bytes + (1 << 20)) >> 9 << 9;
    memory.put(address, ByteBuffer.allocate((int) bytes).order(ByteOrder.nativeOrder()));
    return address;
  }

  private Floats at(long address) {
    Map.Entry<Long, ByteBuffer> allocation = memory.floorEntry(address);
    return new Floats(allocation.getValue(), (int) (address - allocation.getKey()));
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
    enqueue(name, () -> kernels.get(name).run(own, blocks));
  }

  private void enqueue(String name, Runnable work) {
    if (capturing != null) {
      capturing.steps.add(work);
    } else {
      enqueued.add(name);
      work.run();
    }
  }

  /** BLAS as its specification has it: matrices lie column by column. */
  private final class Blas implements BlasApi {
    @Override
    public cublasHandle create() {
      return new cublasHandle();
    }

    @Override
    public void destroy(cublasHandle handle) {}

    @Override
    public void useStream(cublasHandle handle, CUstream stream) {}

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
        throw new CudaException("cublasSgemm failed: CUBLAS_STATUS_INVALID_VALUE (7)", 7);
      }
      enqueue(
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
