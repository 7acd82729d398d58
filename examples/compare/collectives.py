#!/usr/bin/env python3
"""Times the fastest collectives that Python has on one node, for script/measure/compare to put beside this library's.

  python3 collectives.py --ranks 4 --json FILE [--collective all-reduce] [--max-bytes 1G] [--rounds 5] [--plain]

COLLECTIVE is all-reduce, all-gather, reduce-scatter, broadcast, all-to-all, or grouped: 64 all-reduces in one. Float32
from 1 KB on, each size four times the one before; it is that of the larger buffer. One process for each GPU. A figure is
the time of one collective in microseconds on rank 0's GPU, the median of the rounds:

  nccl       torch.distributed with NCCL (all_reduce, all_gather_into_tensor, reduce_scatter_tensor, broadcast,
             all_to_all_single; grouped: all_reduce in a coalescing manager), AVG, in place but for
             all_to_all_single
  nccl-symm  the same, SUM, on memory registered as a symmetric window
  one-shot   torch.ops.symm_mem.one_shot_all_reduce, into other memory; up to 16 MB; all-reduce only
  two-shot   torch.ops.symm_mem.two_shot_all_reduce_, in place; all-reduce only

They are replayed from CUDA graphs of ten; with --plain each one is launched. What this PyTorch does not have is left
out, and the file says why. Exit code 3: there is no PyTorch, or there are not enough GPUs.
"""
import argparse
import datetime
import json
import math
import os
import socket
import statistics
import sys

# No NVLink multicast: not every machine allows it, and this library does not use it either. Before torch is imported,
# and in every process.
os.environ["NCCL_NVLS_ENABLE"] = "0"
os.environ["TORCH_SYMM_MEM_DISABLE_MULTICAST"] = "1"
os.environ["NVSHMEM_DISABLE_NVLS"] = "1"

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
except ImportError as error:
    print(f"collectives.py: PyTorch cannot be imported: {error}", file=sys.stderr)
    sys.exit(3)

PER_GRAPH = 10
GROUP = 64  # as in collectives-perf
ONE_SHOT_LIMIT = 16 << 20
TIMEOUT = datetime.timedelta(seconds=120)


def byte_count(text):
    units = {"K": 10, "M": 20, "G": 30}
    unit = units.get(text[-1:].upper())
    return int(text) if unit is None else int(text[:-1]) << unit


def sizes(most, collective, ranks):
    """Collectives of blocks have equal parts, of whole 16 bytes if they can: as in nccl-tests."""
    size = 1 << 10
    while size <= most:
        part = size // 4 // ranks
        yield size if collective in ("all-reduce", "broadcast", "grouped") else (part & -4 or part or 1) * ranks * 4
        size *= 4


def batches(size):
    """How many times ten calls are timed in one round."""
    return 20 if size <= 1 << 20 else 4 if size <= 64 << 20 else 1


class Nccl:
    """A rival: memory, a call, and the first and the last element that the call must return."""

    op = dist.ReduceOp.AVG

    def __init__(self, size, device):
        self.x = torch.ones(size // 4, device=device)
        self.expected = (self.reduced(1, dist.get_world_size()),) * 2

    def reduced(self, mean, ranks):
        return mean if self.op == dist.ReduceOp.AVG else mean * ranks

    def call(self):
        dist.all_reduce(self.x, op=self.op)
        return self.x

    def release(self):
        self.x = None


class InParts(Nccl):
    """Each rank has a part of the memory, which is that of the other buffer."""

    def __init__(self, size, device):
        super().__init__(size, device)
        self.x.fill_(dist.get_rank() + 1)
        self.part = self.x.view(dist.get_world_size(), -1)[dist.get_rank()]

    def release(self):
        self.x = self.part = None


class AllGather(InParts):
    def __init__(self, size, device):
        super().__init__(size, device)
        self.expected = 1, dist.get_world_size()

    def call(self):
        dist.all_gather_into_tensor(self.x, self.part)
        return self.x


class ReduceScatter(InParts):
    def __init__(self, size, device):
        super().__init__(size, device)
        ranks = dist.get_world_size()
        self.expected = (self.reduced((ranks + 1) / 2, ranks),) * 2

    def call(self):
        dist.reduce_scatter_tensor(self.part, self.x, op=self.op)
        return self.part


class Broadcast(Nccl):
    def __init__(self, size, device):
        super().__init__(size, device)
        self.x.fill_(dist.get_rank() + 1)
        self.expected = 1, 1

    def call(self):
        dist.broadcast(self.x, 0)
        return self.x


class AllToAll(Nccl):
    def __init__(self, size, device):
        super().__init__(size, device)
        self.x.fill_(dist.get_rank() + 1)
        self.out = torch.zeros_like(self.x)
        self.expected = 1, dist.get_world_size()

    def call(self):
        dist.all_to_all_single(self.out, self.x)
        return self.out

    def release(self):
        self.x = self.out = None


class Grouped(Nccl):
    def __init__(self, size, device):
        super().__init__(size, device)
        self.device = device
        self.parts = self.x.tensor_split(GROUP)

    def call(self):
        with dist.distributed_c10d._coalescing_manager(device=self.device):
            for part in self.parts:
                dist.all_reduce(part, op=self.op)
        return self.x

    def release(self):
        self.x = self.parts = None


class Symmetric:
    """What NCCL's rivals get that are on a symmetric window."""

    op = dist.ReduceOp.SUM

    def __init__(self, size, device):
        self.backend = dist.group.WORLD._get_backend(device)
        self.pool = torch.cuda.MemPool(self.backend.mem_allocator)
        with torch.cuda.use_mem_pool(self.pool):
            super().__init__(size, device)
        self.registered = False
        try:
            self.backend.register_mem_pool(self.pool, symm=True)
            self.registered = True
        finally:
            if not self.registered:
                self.release()

    def release(self):
        if self.registered:
            self.backend.deregister_mem_pool(self.pool)
        super().release()  # before the pool that the memory lies in
        self.pool = None


class NcclSymmetric(Symmetric, Nccl):
    pass


class SymmetricAllGather(Symmetric, AllGather):
    pass


class SymmetricReduceScatter(Symmetric, ReduceScatter):
    pass


class SymmetricBroadcast(Symmetric, Broadcast):
    pass


class SymmetricAllToAll(Symmetric, AllToAll):
    pass


class SymmetricGrouped(Symmetric, Grouped):
    pass


class OneShot(Nccl):
    def __init__(self, size, device):
        import torch.distributed._symmetric_memory as symm_mem

        self.group = dist.group.WORLD.group_name
        self.x = symm_mem.empty(size // 4, dtype=torch.float32, device=device)
        symm_mem.rendezvous(self.x, self.group)
        self.x.fill_(1)
        self.expected = (dist.get_world_size(),) * 2

    def call(self):
        return torch.ops.symm_mem.one_shot_all_reduce(self.x, "sum", self.group)


class TwoShot(OneShot):
    def call(self):
        torch.ops.symm_mem.two_shot_all_reduce_(self.x, "sum", self.group)
        return self.x


RIVALS = {
    "all-reduce": {"nccl": Nccl, "nccl-symm": NcclSymmetric, "one-shot": OneShot, "two-shot": TwoShot},
    "all-gather": {"nccl": AllGather, "nccl-symm": SymmetricAllGather},
    "reduce-scatter": {"nccl": ReduceScatter, "nccl-symm": SymmetricReduceScatter},
    "broadcast": {"nccl": Broadcast, "nccl-symm": SymmetricBroadcast},
    "all-to-all": {"nccl": AllToAll, "nccl-symm": SymmetricAllToAll},
    "grouped": {"nccl": Grouped, "nccl-symm": SymmetricGrouped},
}


def meet():
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()


def check(rival):
    """A fast wrong answer is no rival."""
    meet()
    result = rival.call()
    torch.cuda.synchronize()
    ends = result[0].item(), result[-1].item()
    if not all(math.isclose(end, expected, rel_tol=1e-6) for end, expected in zip(ends, rival.expected)):
        raise RuntimeError(f"wrong result: is={ends}, expected={rival.expected}")
    meet()
    rival.x.fill_(0)  # sums that are summed up again would run into infinity


def replayable(call, plain):
    """Ten calls as one."""

    def calls():
        for _ in range(PER_GRAPH):
            call()

    if plain:
        return calls
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.Stream()):
        calls()
    return graph.replay


def time_rounds(call, size, options):
    for _ in range(3):
        call()
    meet()
    replay = replayable(call, options.plain)
    meet()
    rounds = []
    for _ in range(options.rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        replay()  # not timed: the ranks' GPUs come to the start together
        start.record()
        for _ in range(batches(size)):
            replay()
        end.record()
        torch.cuda.synchronize()
        rounds.append(start.elapsed_time(end) * 1e3 / (batches(size) * PER_GRAPH))
    return rounds


def measure(name, size, device, options):
    rival = RIVALS[options.collective][name](size, device)
    try:
        check(rival)
        rounds = time_rounds(rival.call, size, options)
        meet()
    finally:
        rival.release()
    return rounds


class Agreement:
    """All ranks learn what failed on any of them, so that they go on with the same rival."""

    def __init__(self, store, rank, ranks):
        self.store, self.rank, self.ranks, self.step = store, rank, ranks, 0

    def first_failure(self, failure):
        self.step += 1
        self.store.set(f"compare/{self.step}/{self.rank}", failure)
        for rank in range(self.ranks):
            text = self.store.get(f"compare/{self.step}/{rank}").decode()
            if text:
                return text
        return ""


def write(document, path):
    """After each figure, so that what was measured is not lost if a later rival ends the process."""
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    os.replace(path + ".part", path)


def rank_main(rank, port, options):
    ranks = options.ranks
    torch.cuda.set_device(rank)
    device = torch.device("cuda", rank)
    store = dist.TCPStore("127.0.0.1", port, ranks, is_master=rank == 0, timeout=TIMEOUT)
    dist.init_process_group(
        "nccl", store=store, rank=rank, world_size=ranks, device_id=device, timeout=TIMEOUT
    )
    agreement = Agreement(store, rank, ranks)
    document = {
        "program": "collectives.py",
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "collective": options.collective,
        "ranks": ranks,
        "device": torch.cuda.get_device_name(device),
        "graph": not options.plain,
        "torch": torch.__version__,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())),
        "unavailable": {},
        "results": [],
    }
    for size in sizes(options.max_bytes, options.collective, ranks):
        for name in RIVALS[options.collective]:
            if name in document["unavailable"] or name == "one-shot" and size > ONE_SHOT_LIMIT:
                continue
            rounds, failure = [], ""
            try:
                rounds = measure(name, size, device, options)
            except Exception as error:  # a rival that this PyTorch lacks is a gap in the table, not a failed run
                failure = f"{type(error).__name__}: {error}".splitlines()[0][:300]
            failure = agreement.first_failure(failure)
            if failure:
                document["unavailable"][name] = f"bytes={size}, {failure}"
            else:
                document["results"].append(
                    {
                        "name": name,
                        "ranks": ranks,
                        "bytes": size,
                        "microseconds": round(statistics.median(rounds), 3),
                        "rounds": [round(each, 3) for each in rounds],
                    }
                )
            if rank == 0:
                figure = failure or f"{statistics.median(rounds):.1f} us"
                what = f"{options.collective} by {name}, ranks={ranks}, bytes={size}"
                print(f"collectives.py: {what}: {figure}", file=sys.stderr, flush=True)
                write(document, options.json)
    meet()
    dist.destroy_process_group()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, required=True, help="processes, each with a GPU of its own")
    parser.add_argument("--json", required=True, metavar="FILE", help="where the figures go")
    parser.add_argument("--collective", choices=RIVALS, default="all-reduce", help="all-reduce if not given")
    parser.add_argument("--max-bytes", type=byte_count, default=1 << 30, help="the largest size, 1G if not given")
    parser.add_argument("--rounds", type=int, default=5, help="5 if not given")
    parser.add_argument("--plain", action="store_true", help="no CUDA graphs")
    options = parser.parse_args()
    if options.ranks < 1 or options.rounds < 1:
        parser.error("--ranks and --rounds must be 1 or more")
    gpus = torch.cuda.device_count()
    if gpus < options.ranks:
        print(f"collectives.py: not enough GPUs: ranks={options.ranks}, gpus={gpus}", file=sys.stderr)
        sys.exit(3)
    mp.spawn(rank_main, (free_port(), options), nprocs=options.ranks)


if __name__ == "__main__":
    main()
