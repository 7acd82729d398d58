#!/usr/bin/env python3
"""Puts the figures of ddp.py and train-mlp side by side, a row for each shape, number of ranks and way to average.

  python3 training_table.py FILE...

Times are milliseconds for one step; ratio is this library's by DDP's, so below 1 it is faster; efficiency is the step
alone by the synchronized step, each with its own step alone. Needs nothing but Python.
"""
import json
import sys


def read(paths):
    rivals, own = {}, []
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
        except (OSError, ValueError) as error:
            print(f"training_table.py: left out: file={path}, {error}", file=sys.stderr)
            continue
        if document["program"] == "ddp.py":
            print(f"rivals: PyTorch {document['torch']}, NCCL {document['nccl']}, {document['device']}")
            for result in document["results"]:
                rivals[document["ranks"], result["layers"], result["width"], result["rows"]] = result
        else:
            own.append(document)
    return rivals, own


def main(paths):
    rivals, own = read(paths)
    print()
    print("| ranks | layers x width, rows | wire, overlap | DDP alone | DDP | efficiency | alone | step | efficiency | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for document in own:
        widths = document["widths"]
        shape = document["ranks"], len(widths) - 1, widths[0], document["rows"]
        alone, step = document["aloneMillisecondsPerStep"], document["millisecondsPerStep"]
        way = f"{document['wire'] or 'float32'}, {'overlap' if document['overlap'] else 'at the end'}"
        line = [str(shape[0]), f"{shape[1]} x {shape[2]}, {shape[3]}", way]
        rival = rivals.get(shape)
        if rival:
            efficiency = rival["alone"] / rival["synchronized"]
            line += [f"{rival['alone']:.3f}", f"{rival['synchronized']:.3f}", f"{efficiency:.3f}"]
        else:
            line += ["-"] * 3
        line += [f"{alone:.3f}", f"{step:.3f}", f"{alone / step:.3f}"]
        line.append(f"{step / rival['synchronized']:.2f}" if rival else "-")
        print("| " + " | ".join(line) + " |")


if __name__ == "__main__":
    main(sys.argv[1:])
