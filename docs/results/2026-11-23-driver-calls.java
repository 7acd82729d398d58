// What calls of the driver cost the host, from Java through JCuda: java -cp CLASSES:JCUDA_JARS Probe k.ptx, where k.ptx is
// made by nvcc -ptx -arch=compute_75 (then .version 7.8) of
//
//   struct A { unsigned long long *flag; unsigned long long mode; char pad[272]; };
//   extern "C" __global__ void k(A a) {
//     if (threadIdx.x == 0 && blockIdx.x == 0) {
//       if (a.mode == 1) atomicAdd(a.flag, 1ULL);
//       if (a.mode == 2) { *(volatile unsigned long long*)a.flag = 1; __threadfence(); }
//     }
//   }
import jcuda.*; import jcuda.driver.*; import java.nio.*; import java.nio.file.*; import java.util.*;
import static jcuda.driver.JCudaDriver.*;
public class Probe {
  interface Op { void run(int i); }
  static CUstream s1, s2; static final int N = 200, ROUNDS = 400;
  static java.lang.management.ThreadMXBean mx = java.lang.management.ManagementFactory.getThreadMXBean();
  static void time(String name, Op op) { time(name, op, N); }
  static void time(String name, Op op, int n) {
    double[] t = new double[ROUNDS]; int i = 0;
    for (int r = 0; r < ROUNDS; r++) {
      long a = System.nanoTime();
      for (int j = 0; j < n; j++) op.run(i++);
      t[r] = (System.nanoTime() - a) / (double) n;
      ck(cuStreamSynchronize(s1)); ck(cuStreamSynchronize(s2));
    }
    double[] last = Arrays.copyOfRange(t, ROUNDS / 2, ROUNDS); Arrays.sort(last);
    double first = t[0];
    System.out.printf("%-50s median %.0f ns  min %.0f  p90 %.0f  first round %.0f%n", name, last[last.length/2], last[0], last[last.length*9/10], first);
  }
  static void ck(int r) { if (r != 0) throw new RuntimeException("cuda " + r); }
  static CUfunction f;
  static Pointer args(ByteBuffer b) { return Pointer.to(new Pointer[] {Pointer.to(b)}); }
  static ByteBuffer buf(CUdeviceptr p, long mode) {
    ByteBuffer b = ByteBuffer.allocateDirect(288).order(ByteOrder.nativeOrder());
    b.putLong(0, addr(p)); b.putLong(8, mode); return b; }
  static class Dp extends CUdeviceptr { long v() { return getNativePointer(); } }
  static long addr(CUdeviceptr p) { return ((Dp) p).v(); }
  static CUgraphExec graph(CUstream s, Runnable what) {
    ck(cuStreamBeginCapture(s, CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED));
    try { what.run(); } catch (RuntimeException e) { CUgraph x = new CUgraph(); cuStreamEndCapture(s, x); throw e; }
    CUgraph g = new CUgraph(); ck(cuStreamEndCapture(s, g));
    CUgraphExec e = new CUgraphExec(); ck(cuGraphInstantiate(e, g, 0L)); return e;
  }
  static void launch(CUstream s, Pointer a) { ck(cuLaunchKernel(f, 1,1,1, 64,1,1, 0, s, a, null)); }
  public static void main(String[] x) throws Exception {
    ck(cuInit(0)); CUdevice d = new CUdevice(); ck(cuDeviceGet(d, 0)); CUcontext c = new CUcontext();
    ck(cuDevicePrimaryCtxRetain(c, d)); ck(cuCtxSetCurrent(c));
    s1 = new CUstream(); s2 = new CUstream();
    ck(cuStreamCreateWithPriority(s1, 1, -5)); ck(cuStreamCreateWithPriority(s2, 1, -5));
    CUmodule m = new CUmodule(); ck(cuModuleLoadData(m, Files.readString(Path.of(x[0]))));
    f = new CUfunction(); ck(cuModuleGetFunction(f, m, "k"));
    Dp flag = new Dp(); ck(cuMemAlloc(flag, 64)); ck(cuMemsetD8(flag, (byte)0, 64));
    Dp ctr = new Dp(); ck(cuMemAlloc(ctr, 64)); ck(cuMemsetD8(ctr, (byte)0, 64));
    CUevent ev = new CUevent(); ck(cuEventCreate(ev, 2));
    int[] st = new int[1];
    Pointer plain = args(buf(flag, 0)), count = args(buf(ctr, 1)), set = args(buf(flag, 2));
    for (int rep = 0; rep < 2; rep++) {
      time("cuCtxSetCurrent", i -> ck(cuCtxSetCurrent(c)));
      time("cuStreamIsCapturing", i -> ck(cuStreamIsCapturing(s1, st)));
      time("cuEventRecord", i -> ck(cuEventRecord(ev, s1)));
      time("cuStreamWaitEvent other stream", i -> ck(cuStreamWaitEvent(s2, ev, 0)));
      time("cuLaunchKernel", i -> launch(s1, plain));
      CUgraphExec g = graph(s1, () -> launch(s1, plain));
      time("graph of a kernel", i -> ck(cuGraphLaunch(g, s1)));
      time("graph of a kernel, by turns", i -> ck(cuGraphLaunch(g, i % 2 == 0 ? s1 : s2)));
      time("cuStreamWaitValue64 of 0", i -> ck(cuStreamWaitValue64(s1, ctr, 0, 0)));
      try { time("cuStreamWriteValue64", i -> ck(cuStreamWriteValue64(s1, flag, 0, 0))); } catch (Throwable t) { System.out.println(t); }
      time("setCurrent, isCapturing, graph", i -> { ck(cuCtxSetCurrent(c)); ck(cuStreamIsCapturing(s1, st)); ck(cuGraphLaunch(g, s1)); });
      // now
      ck(cuMemsetD8(ctr, (byte)0, 64));
      CUgraphExec gc = graph(s1, () -> launch(s1, count));
      long[] n = {0};
      time("NOW: wait value, graph, by turns", i -> { CUstream s = i % 2 == 0 ? s1 : s2; ck(cuStreamWaitValue64(s, ctr, n[0]++, 0)); ck(cuGraphLaunch(gc, s)); });
      time("NOW all: setCurrent, isCapturing, wait value, graph", i -> { CUstream s = i % 2 == 0 ? s1 : s2; ck(cuCtxSetCurrent(c)); ck(cuStreamIsCapturing(s, st)); ck(cuStreamWaitValue64(s, ctr, n[0]++, 0)); ck(cuGraphLaunch(gc, s)); });
      time("event: record, wait, graph, by turns", i -> { CUstream s = i % 2 == 0 ? s1 : s2; ck(cuEventRecord(ev, i % 2 == 0 ? s2 : s1)); ck(cuStreamWaitEvent(s, ev, 0)); ck(cuGraphLaunch(g, s)); });
      // wait in the graph
      try {
        CUgraphExec gw = graph(s1, () -> { ck(cuStreamWaitValue64(s1, flag, 0, 0)); launch(s1, plain); });
        time("graph of [wait, kernel]", i -> ck(cuGraphLaunch(gw, s1)));
        time("graph of [wait, kernel], by turns", i -> ck(cuGraphLaunch(gw, i % 2 == 0 ? s1 : s2)));
      } catch (Throwable t) { System.out.println("wait in graph: " + t); }
      try {
        ck(cuMemsetD8(flag, (byte)0, 64));
        CUgraphExec gw = graph(s1, () -> { ck(cuStreamWaitValue64(s1, flag, 1, 1)); ck(cuStreamWriteValue64(s1, flag, 0, 0)); launch(s1, set); });
        CUgraphExec gs = graph(s1, () -> launch(s1, set));
        ck(cuGraphLaunch(gs, s2)); ck(cuStreamSynchronize(s2));
        time("graph of [wait, write, kernel], by turns", i -> ck(cuGraphLaunch(gw, i % 2 == 0 ? s1 : s2)));
      } catch (Throwable t) { System.out.println("wait/write in graph: " + t); }
      System.out.println();
    }
  }
}
