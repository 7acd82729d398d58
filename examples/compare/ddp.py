#!/usr/bin/env python3
"""Times training steps of PyTorch's DistributedDataParallel, for comparison with train-mlp.

  python3 ddp.py --ranks 4 [--json FILE]

The model is train-mlp's: square layers without bias, each followed by ReLU, mean squared error, plain gradient
descent, float32 with TF32 products. Each rank has its own rows. A step is timed alone, on each GPU by itself, and with
gradients averaged by NCCL; the mean of 100 steps after 20 others, on the slowest rank.
"""
import argparse
import json
import os
import socket
import sys
import time

SHAPES = ((8, 4096, 1024), (8, 4096, 256), (24, 1024, 512))  # layers, width, rows of each rank
WARM_UP, STEPS = 20, 100


def milliseconds(model, inputs, targets):
    import torch
    import torch.distributed as dist

    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def step():
        optimizer.zero_grad(set_to_none=False)
        ((model(inputs) - targets) ** 2).mean().backward()
        optimizer.step()

    for _ in range(WARM_UP):
        step()
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    torch.cuda.synchronize()
    slowest = torch.tensor([time.perf_counter() - start], device="cuda", dtype=torch.float64)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return slowest.item() / STEPS * 1e3


def run(rank, ranks, port, results):
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.cuda.set_device(rank)
    torch.backends.cuda.matmul.allow_tf32 = True
    dist.init_process_group("nccl", rank=rank, world_size=ranks, device_id=torch.device("cuda", rank))
    for layers, width, rows in SHAPES:
        torch.manual_seed(0)
        stack = [part for _ in range(layers) for part in (nn.Linear(width, width, bias=False), nn.ReLU())]
        model = nn.Sequential(*stack).cuda()
        inputs, targets = (torch.randn(rows, width, device="cuda") for _ in range(2))
        alone = milliseconds(model, inputs, targets)
        together = DistributedDataParallel(model, device_ids=[rank], gradient_as_bucket_view=True)
        synchronized = milliseconds(together, inputs, targets)
        if rank == 0:
            results.append({"layers": layers, "width": width, "rows": rows, "alone": alone, "synchronized": synchronized})
            print(f"ddp.py: {layers} x {width}, {rows} rows: {alone:.3f} ms alone, {synchronized:.3f} ms", flush=True)
        del model, together, inputs, targets
        torch.cuda.empty_cache()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--json", help="write the figures there")
    options = parser.parse_args()
    try:
        import torch
        import torch.multiprocessing as mp
    except ImportError as error:
        sys.exit(f"ddp.py: PyTorch cannot be used here: {error}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with mp.Manager() as manager:
        results = manager.list()
        mp.spawn(run, (options.ranks, port, results), nprocs=options.ranks)
        document = {
            "program": "ddp.py",
            "ranks": options.ranks,
            "torch": torch.__version__,
            "nccl": ".".join(map(str, torch.cuda.nccl.version())),
            "device": torch.cuda.get_device_name(0),
            "results": list(results),
        }
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)


if __name__ == "__main__":
    main()
