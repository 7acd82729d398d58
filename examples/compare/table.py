#!/usr/bin/env python3
"""Puts the figures of collectives.py and of allreduce-perf or collectives-perf side by side: a table for each number of
ranks.

  python3 table.py [--collective all-reduce] [--reducer peer] FILE...

The files are what the two programs wrote with --json, in any order; one that is missing leaves its columns empty.
Times are microseconds for one collective; ratio is this library's time divided by the best rival's, so below 1 it is
faster; busbw, in GB/s, is this library's bytes / time * 2 (n - 1) / n for n ranks, without the 2 for all-gather,
reduce-scatter and all-to-all, whose bytes are those of the larger buffer, and bytes / time for broadcast. Needs nothing
but Python.
"""
import argparse
import json
import sys

RIVALS = {
    "all-reduce": ("nccl", "nccl-symm", "one-shot", "two-shot"),
    "all-gather": ("nccl", "nccl-symm"),
    "reduce-scatter": ("nccl", "nccl-symm"),
    "broadcast": ("nccl", "nccl-symm"),
    "all-to-all": ("nccl", "nccl-symm"),
    "grouped": ("nccl", "nccl-symm"),
}
NONE = "-"


class Figures:
    """What was measured with one number of ranks."""

    def __init__(self, ranks, collective):
        self.ranks, self.collective = ranks, collective
        self.names = RIVALS[collective]
        self.rivals = {}  # (name, bytes) -> microseconds
        self.own = {}  # bytes -> microseconds
        self.wrong = set()  # bytes at which this library's result was wrong
        self.rival_notes = []
        self.own_notes = []

    def sizes(self):
        return sorted({size for _, size in self.rivals} | set(self.own))

    def best(self, size):
        times = [(self.rivals[name, size], name) for name in self.names if (name, size) in self.rivals]
        return min(times, default=None)

    def busbw(self, size):
        others = (self.ranks - 1) / self.ranks
        crossings = {"all-reduce": 2 * others, "grouped": 2 * others, "broadcast": 1}.get(self.collective, others)
        return size / self.own[size] / 1e3 * crossings


def read(paths, collective, reducer):
    """Figures by number of ranks."""
    by_ranks = {}
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
        except (OSError, ValueError) as error:
            print(f"table.py: left out: file={path}, {error}", file=sys.stderr)
            continue
        if not has(document, collective):
            continue
        figures = by_ranks.setdefault(document["ranks"], Figures(document["ranks"], collective))
        add(figures, document, reducer)
    return by_ranks


def is_of_rivals(document):
    return "torch" in document


def is_of(members, collective):
    """Files from before there was a choice are of all-reduces."""
    return members.get("collective", "all-reduce") == collective


def has(document, collective):
    if is_of_rivals(document):
        return is_of(document, collective)
    return any(is_of(result, collective) for result in document["results"])


def add(figures, document, reducer):
    launched = "replayed from CUDA graphs" if document.get("graph") else "each launched"
    if is_of_rivals(document):
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
        wanted = "out-of-place" if figures.collective == "all-to-all" else "in-place"
        placed = result.get("placement", wanted) == wanted
        if is_of(result, figures.collective) and result["reducer"] == reducer and placed:
            figures.own[result["bytes"]] = result["microseconds"]
            if result.get("wrong"):
                figures.wrong.add(result["bytes"])


def human(size):
    for unit in ("B", "KB", "MB"):
        if size < 1024 or size % 1024:
            return f"{size} {unit}"
        size //= 1024
    return f"{size} GB"


def row(figures, size):
    cells = [human(size)]
    for name in figures.names:
        time = figures.rivals.get((name, size))
        cells.append(NONE if time is None else f"{time:.1f}")
    best, own = figures.best(size), figures.own.get(size)
    cells.append(NONE if best is None else f"{best[0]:.1f} ({best[1]})")
    if size in figures.wrong:
        return cells + ["wrong result", NONE, NONE]
    cells.append(NONE if own is None else f"{own:.1f}")
    cells.append(NONE if own is None or best is None else f"{own / best[0]:.2f}")
    cells.append(NONE if own is None else f"{figures.busbw(size):.1f}")
    return cells


def table(figures, reducer):
    head = ["bytes", *figures.names, "best rival", f"gradient-sync {reducer}", "ratio (ours / best)", "busbw"]
    rows = [head, *(row(figures, size) for size in figures.sizes())]
    widths = [max(len(line[i]) for line in rows) for i in range(len(head))]
    rows.insert(1, ["-" * width for width in widths])
    lines = [f"## {figures.ranks} ranks" + (f", {figures.collective}" * (figures.collective != "all-reduce")), ""]
    for line in rows:
        lines.append("| " + " | ".join(cell.rjust(width) for cell, width in zip(line, widths)) + " |")
    return lines + [""] + figures.rival_notes + figures.own_notes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collective", choices=RIVALS, default="all-reduce", help="all-reduce if not given")
    parser.add_argument("--reducer", default="peer", help="whose figures are compared, peer if not given")
    parser.add_argument("files", nargs="+", metavar="FILE")
    options = parser.parse_args()
    by_ranks = read(options.files, options.collective, options.reducer)
    tables = ["\n".join(table(by_ranks[ranks], options.reducer)) for ranks in sorted(by_ranks)]
    print("\n\n".join(tables) if tables else "nothing was measured")


if __name__ == "__main__":
    main()
