#!/usr/bin/env python3
"""Puts the figures of allreduce.py and of allreduce-perf side by side: a table for each number of ranks.

  python3 table.py [--reducer peer] FILE...

The files are what the two programs wrote with --json, in any order; one that is missing leaves its columns empty.
Times are microseconds for one all-reduce; ratio is this library's time divided by the best rival's, so below 1 it is
faster; busbw, in GB/s, is this library's bytes / time * 2 (n - 1) / n for n ranks. Needs nothing but Python.
"""
import argparse
import json
import sys

RIVALS = ("nccl", "nccl-symm", "one-shot", "two-shot")
NONE = "-"


class Figures:
    """What was measured with one number of ranks."""

    def __init__(self):
        self.rivals = {}  # (name, bytes) -> microseconds
        self.own = {}  # bytes -> microseconds
        self.wrong = set()  # bytes at which this library's result was wrong
        self.rival_notes = []
        self.own_notes = []

    def sizes(self):
        return sorted({size for _, size in self.rivals} | set(self.own))

    def best(self, size):
        times = [(self.rivals[name, size], name) for name in RIVALS if (name, size) in self.rivals]
        return min(times, default=None)


def read(paths, reducer):
    """Figures by number of ranks."""
    by_ranks = {}
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
        except (OSError, ValueError) as error:
            print(f"table.py: left out: file={path}, {error}", file=sys.stderr)
            continue
        figures = by_ranks.setdefault(document["ranks"], Figures())
        add(figures, document, reducer)
    return by_ranks


def add(figures, document, reducer):
    launched = "replayed from CUDA graphs" if document.get("graph") else "each launched"
    if document["program"] == "allreduce.py":
        figures.rival_notes.append(
            f"rivals: PyTorch {document['torch']}, NCCL {document['nccl']}, {document['device']}, {launched}"
        )
        for name, reason in document.get("unavailable", {}).items():
            figures.rival_notes.append(f"{name} is not available: {reason}")
        for result in document["results"]:
            figures.rivals[result["name"], result["bytes"]] = result["microseconds"]
        return
    figures.own_notes.append(f"gradient-sync: reducer {reducer}, {document.get('device')}, {launched}")
    for result in document["results"]:
        if result["reducer"] == reducer and result.get("placement", "in-place") == "in-place":
            figures.own[result["bytes"]] = result["microseconds"]
            if result.get("wrong"):
                figures.wrong.add(result["bytes"])


def human(size):
    for unit in ("B", "KB", "MB"):
        if size < 1024 or size % 1024:
            return f"{size} {unit}"
        size //= 1024
    return f"{size} GB"


def row(figures, ranks, size):
    cells = [human(size)]
    for name in RIVALS:
        time = figures.rivals.get((name, size))
        cells.append(NONE if time is None else f"{time:.1f}")
    best, own = figures.best(size), figures.own.get(size)
    cells.append(NONE if best is None else f"{best[0]:.1f} ({best[1]})")
    if size in figures.wrong:
        return cells + ["wrong result", NONE, NONE]
    cells.append(NONE if own is None else f"{own:.1f}")
    cells.append(NONE if own is None or best is None else f"{own / best[0]:.2f}")
    cells.append(NONE if own is None else f"{size / own / 1e3 * 2 * (ranks - 1) / ranks:.1f}")
    return cells


def table(figures, ranks, reducer):
    head = ["bytes", *RIVALS, "best rival", f"gradient-sync {reducer}", "ratio (ours / best)", "busbw"]
    rows = [head, *(row(figures, ranks, size) for size in figures.sizes())]
    widths = [max(len(line[i]) for line in rows) for i in range(len(head))]
    rows.insert(1, ["-" * width for width in widths])
    lines = [f"## {ranks} ranks", ""]
    for line in rows:
        lines.append("| " + " | ".join(cell.rjust(width) for cell, width in zip(line, widths)) + " |")
    return lines + [""] + figures.rival_notes + figures.own_notes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reducer", default="peer", help="whose figures are compared, peer if not given")
    parser.add_argument("files", nargs="+", metavar="FILE")
    options = parser.parse_args()
    by_ranks = read(options.files, options.reducer)
    tables = ["\n".join(table(by_ranks[ranks], ranks, options.reducer)) for ranks in sorted(by_ranks)]
    print("\n\n".join(tables) if tables else "nothing was measured")


if __name__ == "__main__":
    main()
