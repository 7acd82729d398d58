"""What a step of 8 x 4096 with 1024 rows loses while blocks hold processors beside its backward pass: cuBLAS through PyTorch.

One GPU. Deltas are on a stream of their own, as in train-mlp. Needs libheld.so, see the .cu of the same name, and pynvml.
"""
import ctypes
import threading
import time

import pynvml
import torch

H = ctypes.CDLL("./libheld.so")
torch.backends.cuda.matmul.allow_tf32 = True
pynvml.nvmlInit()
nv = pynvml.nvmlDeviceGetHandleByIndex(0)
d, rows, L = 4096, 1024, 8
T = lambda *s: torch.randn(*s, device="cuda") * 0.02
W, G = [T(d, d) for _ in range(L)], [T(d, d) for _ in range(L)]
X, D = [T(rows, d) for _ in range(L + 1)], [T(rows, d) for _ in range(L + 1)]
M = [(torch.rand(rows, d, device="cuda") > 0.5).float() for _ in range(L)]
S0, S1 = torch.empty(d, d, device="cuda"), torch.empty(d, d, device="cuda")
A, B, C = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.Stream(priority=-3)
p = lambda t: ctypes.c_void_p(t.data_ptr())


def hold(k, us, traffic, cluster=1):
    H.hold(k, cluster, 200 * 1024, ctypes.c_longlong(int(us * 1000)), traffic, p(S0), p(S1), ctypes.c_longlong(d * d // 4),
           ctypes.c_void_p(C.cuda_stream))


def many(n, k=0, us=200, traffic=1):
    """n steps one after the other, as training does; ms for a step"""
    t0, t1 = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    t0.record(B)
    done = []
    for i in range(n):
        with torch.cuda.stream(B):
            for l in range(L):
                torch.mm(X[l], W[l].t(), out=X[l + 1])
                X[l + 1].relu_()
        ready = torch.cuda.Event()
        ready.record(B)
        A.wait_event(ready)
        averages = []
        for l in reversed(range(L)):
            mine = ready
            if l > 0:
                with torch.cuda.stream(A):
                    torch.mm(D[l + 1], W[l], out=D[l])
                    D[l].mul_(M[l])
                ready = torch.cuda.Event()
                ready.record(A)
            B.wait_event(mine)
            with torch.cuda.stream(B):
                torch.mm(D[l + 1].t(), X[l], out=G[l])
            if k:
                e = torch.cuda.Event()
                e.record(B)
                C.wait_event(e)
                hold(k, us, traffic)
                averages.append(torch.cuda.Event())
                averages[-1].record(C)
        with torch.cuda.stream(B):
            for l in reversed(range(L)):
                if averages:
                    B.wait_event(averages[L - 1 - l])
                W[l].add_(G[l], alpha=-1e-9)
        b = torch.cuda.Event()
        b.record(B)
        A.wait_event(b)
        done.append(b)
        if i >= 8:
            done[i - 8].synchronize()
    t1.record(B)
    torch.cuda.synchronize()
    return t0.elapsed_time(t1) / n


def sample(stop, out):
    while not stop.is_set():
        out.append(pynvml.nvmlDeviceGetClockInfo(nv, pynvml.NVML_CLOCK_SM))
        time.sleep(0.01)


many(5)
for name, kw in (("alone", {}), ("24 for 200 us", dict(k=24, traffic=0)), ("24 for 200 us, copying", dict(k=24)),
                 ("24 for 300 us", dict(k=24, us=300, traffic=0)), ("24 for 300 us, copying", dict(k=24, us=300)),
                 ("8 for 200 us", dict(k=8, traffic=0)), ("8 for 200 us, copying", dict(k=8))):
    time.sleep(2)
    cold = many(12, **kw)
    many(250, **kw)
    stop, out = threading.Event(), []
    thread = threading.Thread(target=sample, args=(stop, out))
    thread.start()
    warm = many(250, **kw)
    stop.set()
    thread.join()
    print("%s: first steps %.3f ms, after 250 steps %.3f ms, SM clock %.0f MHz" % (name, cold, warm, sum(out) / len(out)), flush=True)

forward = lambda: [torch.mm(X[l], W[l].t(), out=X[l + 1]) for l in range(L)]
host, device = torch.zeros(1, dtype=torch.int32).pin_memory(), torch.zeros(1, dtype=torch.int32, device="cuda")
for where, go in (("device", device), ("host", host)):
    for ns in (1000000, 300000, 100000, 30000, 10000, 5000, 2000):
        go.zero_()
        torch.cuda.synchronize()
        H.look(24, 200 * 1024, p(go), ctypes.c_longlong(ns), ctypes.c_void_p(C.cuda_stream))
        time.sleep(0.002)
        t0, t1 = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        with torch.cuda.stream(B):
            forward()
            t0.record(B)
            for _ in range(8):
                forward()
            t1.record(B)
        B.synchronize()
        with torch.cuda.stream(A):
            go.fill_(1) if where == "device" else host.fill_(1)
        torch.cuda.synchronize()
        print("24 look into the %s's memory every %d ns: forward products %.3f ms" % (where, ns, t0.elapsed_time(t1) / 8), flush=True)
