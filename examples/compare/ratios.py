#!/usr/bin/env python3
"""Draws how this library's time compares with the best rival's, by collective and size, as SVG.

  python3 ratios.py FILE [RANKS...] > ratios.svg

The file has tables of table.py; there is a panel for each number of ranks, 2 and 4 if none are given. Below 1 this library
is faster. Needs nothing but Python.
"""
import re
import sys

COLORS = {
    "all-reduce": "#000000",
    "all-gather": "#0072b2",
    "reduce-scatter": "#009e73",
    "broadcast": "#d55e00",
    "all-to-all": "#cc79a7",
    "grouped": "#e69f00",
}
MOST = 1.2
WIDTH, HEIGHT, LEFT, TOP, GAP = 400, 260, 50, 70, 40
HEAD = re.compile(r"^## (\d+) ranks(?:, (\S+))?$")


def read(lines):
    """The ratios by number of ranks and collective: lists of a size and a ratio."""
    ratios, current, column = {}, None, None
    for line in lines:
        head = HEAD.match(line)
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if head:
            column = None
            current = ratios.setdefault(int(head[1]), {}).setdefault(head[2] or "all-reduce", [])
        elif "ratio (ours / best)" in cells:
            column = cells.index("ratio (ours / best)")
        elif column is not None and line.startswith("|") and re.match(r"[\d.]+$", cells[column]):
            current.append((cells[0], float(cells[column])))
    return ratios


def text(x, y, content, anchor="middle", size=12, color="#000000"):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-size="{size}" fill="{color}">{content}</text>'


def panel(ranks, ratios, left):
    def y(ratio):
        return TOP + HEIGHT * (1 - min(ratio, MOST) / MOST)

    longest = sorted(ratios.values(), key=len, reverse=True)
    sizes = list(dict.fromkeys(size for line in longest for size, _ in line))
    step = WIDTH / max(1, len(sizes) - 1)
    parts = [text(left + WIDTH / 2, TOP - 8, f"{ranks} GPUs", size=14)]
    for tick in range(7):
        at = y(tick * 0.2)
        style = 'stroke="#000000" stroke-dasharray="6 3"' if tick == 5 else 'stroke="#dddddd"'
        parts.append(f'<line x1="{left}" y1="{at:.0f}" x2="{left + WIDTH}" y2="{at:.0f}" {style}/>')
        parts.append(text(left - 6, at + 4, f"{tick * 0.2:.1f}", "end"))
    for i, size in enumerate(sizes):
        if i % 2 == 0:
            parts.append(text(left + i * step, TOP + HEIGHT + 18, size))
    for name, line in ratios.items():
        points = " ".join(f"{left + sizes.index(size) * step:.1f},{y(ratio):.1f}" for size, ratio in line)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{COLORS[name]}" stroke-width="2"/>')
    return parts


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        ratios = read(file.read().splitlines())
    wanted = [int(ranks) for ranks in sys.argv[2:]] or [2, 4]
    missing = [ranks for ranks in wanted if not any(ratios.get(ranks, {}).values())]
    if missing:
        sys.exit(f"ratios.py: the file has no ratios of these numbers of ranks: ranks={missing}, file={sys.argv[1]}")
    width = LEFT + len(wanted) * (WIDTH + GAP)
    height = TOP + HEIGHT + 35
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        text(LEFT, 20, "Time divided by that of the fastest rival, by size; below 1 this library is faster", "start", 14),
    ]
    for i, (name, color) in enumerate(COLORS.items()):
        parts.append(f'<rect x="{LEFT + i * 145}" y="32" width="18" height="4" fill="{color}"/>')
        parts.append(text(LEFT + 24 + i * 145, 40, name, "start"))
    for i, ranks in enumerate(wanted):
        parts += panel(ranks, ratios[ranks], LEFT + i * (WIDTH + GAP))
    print("\n".join(parts) + "\n</svg>")


if __name__ == "__main__":
    main()
