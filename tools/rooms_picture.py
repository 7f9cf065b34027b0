"""Draw rooms and what each rests on, from the imports: `python tools/rooms_picture.py docs/images/rooms.svg`.

A room stands on the lowest floor that is above all rooms it imports from. Lines are the imports that no others imply: where A
imports B and C, and B imports C, only A to B is drawn. `--check` compares with the file instead of writing it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "airworthy"
FONT = 'font-family="system-ui, sans-serif" font-size="14"'
BOX, GAP, ROW = (118, 34), 22, 74
"""Width and height of a room, space between two, height of a floor [px]."""
COLUMNS = {
    "cli": 3.0, "verification": 4.0, "gates": 3.2, "race": 5.2, "viewer": 2.2, "learning": 3.2, "benchmarks": 3.0,
    "bridges": 0.0, "capture": 5.2, "planners": 2.8, "reports": 4.0, "pilots": 2.8, "evaluation": 4.0, "simulation": 1.8,
    "sensors": 1.3, "rendering": 0.8, "trajectories": 4.0, "splats": 0.9, "control": 3.0, "optics": 0.5, "scenes": 1.55,
    "dynamics": 3.0, "geometry": 1.2, "logs": 0.0, "vehicles": 2.6, "tasks": 5.2, "core": 2.0,
}  # fmt: skip
"""Where a room stands from left to right, in boxes, chosen so that lines pass between boxes; floors come from the imports."""


def rooms() -> tuple[str, ...]:
    """Give the rooms that exist, ground floor first, as `ROOMS` of the package says, without importing it."""
    for node in ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "ROOMS":
            return tuple(room for room in ast.literal_eval(node.value) if (PACKAGE / room / "__init__.py").exists())
    raise SystemExit("src/airworthy/__init__.py: expected an assignment of ROOMS; the rooms are read there.")


def imported_rooms(room: str) -> set[str]:
    """Give the other rooms that any file of a room imports from, inside functions too."""
    found: set[str] = set()
    for file in (PACKAGE / room).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            found |= {name.split(".")[1] for name in names if name.startswith("airworthy.")}
    return found & set(rooms()) - {room}


def floors(graph: Mapping[str, set[str]]) -> dict[str, int]:
    """Give the floor of every room: one above the highest of those it imports from, 0 where it imports from none."""
    found: dict[str, int] = {}
    for room in graph:  # in the rooms' order, so that what lies below is known
        found[room] = 1 + max((found.get(below, -1) for below in graph[room]), default=-1)
    return found


def direct(graph: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """Give the imports that are not implied by others: pairs of room and room below."""
    under: dict[str, set[str]] = {}
    for room in graph:
        under[room] = graph[room].union(*(under.get(below, set()) for below in graph[room]))
    return [
        (room, below)
        for room in graph
        for below in sorted(graph[room])
        if not any(below in under.get(other, set()) for other in graph[room] if other != below)
    ]


def positions(level: Mapping[str, int]) -> dict[str, tuple[float, float]]:
    """Place rooms: middle of each box [px], ground floor at the bottom, columns from `COLUMNS`."""
    top, step = max(level.values()), BOX[0] + GAP
    return {room: ((COLUMNS.get(room, 0.0) + 0.5) * step, (top - level[room] + 0.5) * ROW) for room in level}


def picture(graph: Mapping[str, set[str]]) -> str:
    """Write the SVG: one box per room, one line per direct import, readable on light and dark pages."""
    level, lines = floors(graph), direct(graph)
    middle = positions(level)
    width = max(x for x, _ in middle.values()) + BOX[0] / 2 + GAP
    height = (max(level.values()) + 1) * ROW
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" {FONT}>',
        "<title>The rooms of the package: each rests on those that its lines lead down to</title>",
        f'<rect width="{width:.0f}" height="{height:.0f}" rx="8" fill="#f6f7f9"/>',
    ]
    for room, below in lines:
        (x0, y0), (x1, y1) = middle[room], middle[below]
        y0, y1 = y0 + BOX[1] / 2, y1 - BOX[1] / 2
        bend = (y1 - y0) / 2
        parts.append(
            f'<path d="M{x0:.0f} {y0:.0f}C{x0:.0f} {y0 + bend:.0f} {x1:.0f} {y1 - bend:.0f} {x1:.0f} {y1:.0f}" '
            'fill="none" stroke="#8a97a8" stroke-width="1.3"/>'
        )
    for room, (x, y) in middle.items():
        parts.append(
            f'<rect x="{x - BOX[0] / 2:.0f}" y="{y - BOX[1] / 2:.0f}" width="{BOX[0]}" height="{BOX[1]}" rx="5" '
            'fill="#ffffff" stroke="#2f6fb3" stroke-width="1.4"/>'
        )
        parts.append(f'<text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle" fill="#1d2733">{room}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def main(arguments: list[str]) -> int:
    """Write the picture, or say with `--check` whether the file still shows the code."""
    check, files = "--check" in arguments, [argument for argument in arguments if argument != "--check"]
    if len(files) != 1:
        raise SystemExit("python tools/rooms_picture.py [--check] FILE.svg")
    text = picture({room: imported_rooms(room) for room in rooms()})
    file = Path(files[0])
    if check:
        same = file.exists() and file.read_text(encoding="utf-8") == text
        print(f"{file}: {'shows the code' if same else 'the imports have changed; write it anew without --check'}")
        return 0 if same else 1
    file.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
