"""Measure the house: files, lines, imports, comments, who imports whom, what a flight loads, what a change touches.

    python tools/house.py            this checkout, beside the state of the rebuild's first day and beside other projects
    python tools/house.py --json     the figures of this checkout alone
    python tools/house.py --single-importers    which files have one importer, in their own folder, with lines and subject
    python tools/house.py --quick    without the figures that load the package in a process of its own

What each figure counts stands in `FIGURES`. An importer of a file is another file of the package that names it in an import
anywhere. Comments behind code count, docstrings do not.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]

FIGURES = {
    "files": "Python files of the package",
    "lines": "their lines",
    "import_share": "lines of import statements at the heads of files, % of all",
    "import_share_all": "the same with those inside functions and those that only type checkers follow",
    "comments": "comments per 1,000 lines",
    "comments_of_why": "the same in planners, control, sensors, learning",
    "comments_planners": "the same in each of the four: planners",
    "comments_control": "control",
    "comments_sensors": "sensors",
    "comments_learning": "learning",
    "longest_file": "lines of the longest file",
    "single_importer": "files that one other file imports",
    "single_importer_same_folder": "of these, those whose importer lies in the same folder",
    "large_folders": "folders with over 20 Python files side by side",
    "class_doubles": "public class names that stand for more than one class",
    "args_coverage": "public functions with three or more arguments whose docstring has `Args:`, %",
    "flight_files": "files loaded by a flight with a camera in mid_gate",
    "batch_files": 'files loaded by SceneBatch(scene("mid_gate"))',
    "script_lines": "lines of the five first scripts, longest",
    "touch_vehicle_parameter": "files naming `quadratic_norm`, a parameter of drag",
    "touch_effect": "files naming `turbulence`, an effect with state",
    "touch_sensor": "files naming `TimeOfFlight`, a kind of sensor",
    "touch_planner": "files outside its folder naming `navrl`, a planner; its own folder counts as one more",
    "touch_metric": "files naming `path_length`, a metric of flights to a goal",
    "touch_option": "files naming `record_rate`, an option of `airworthy fly`",
}
"""What each figure counts, in the order in which they are printed."""

BEFORE: dict[str, float] = {
    "files": 885,
    "lines": 112815,
    "import_share": 7.7,
    "import_share_all": 8.1,
    "comments": 9.7,
    "comments_of_why": 10.9,
    "longest_file": 568,
    "single_importer": 280,
    "single_importer_same_folder": 249,
    "large_folders": 14,
    "class_doubles": 58,
    "args_coverage": 42.8,
    "flight_files": 320,
    "batch_files": 153,
    "script_lines": 0,
    "touch_vehicle_parameter": 7,
    "touch_effect": 11,
    "touch_sensor": 3,
    "touch_planner": 8,
    "touch_metric": 2,
    "touch_option": 2,
}
"""Of commit 3650d36, by this program (`--root` on its checkout). Issue 16 states the same shares and importers; it counts 215
files that a visual flight touches and 80 for a batch, where this counts all that are loaded."""

PEERS: dict[str, tuple[float, ...]] = {
    "files": (361, 24, 125, 119, 121),
    "import_share": (1.5, 7.1, 2.5, 4.1, 2.9),
    "comments": (78, 55, 110, 53, 27),
}
"""Of newton, crazyflow, gsplat, mjlab and gymnasium, as issue 16 states them."""
PEER_NAMES = ("newton", "crazyflow", "gsplat", "mjlab", "gymnasium")

WHY_ROOMS = ("planners", "control", "sensors", "learning")
FOLDER_MAX = 20
"""Python files side by side, as the issue asks."""

EXEMPLARS = {
    "touch_vehicle_parameter": "quadratic_norm",
    "touch_effect": "turbulence",
    "touch_sensor": "TimeOfFlight",
    "touch_metric": "path_length",
    "touch_option": "record_rate",
}
"""A name that stands for one thing of its kind wherever it occurs, and that was there before."""
PLANNER = "navrl"

_FLIGHT = """
import numpy as np
from airworthy.pilots import FlightPlan, fly
from airworthy.scenes import SceneBatch
from airworthy.scenes.catalogue import scene
from airworthy.simulation import Contact, MountedSensors, Simulator, SimulatorConfig
from airworthy.vehicles import vehicle

class Hover:
    name, level, observes = "hover", "velocity", ("sensor:front",)

    def command(self, observation):
        return np.zeros((1, 4))

places = SceneBatch(scene("mid_gate"))
config = SimulatorConfig(level="velocity", contact=Contact("freeze"))
simulator = Simulator(vehicle("lmf2"), config, env_count=1, geometry=places.geometry)
simulator.reset(position=(0.0, 0.0, 1.5))
fly(simulator, Hover(), FlightPlan(0.1), mounted=MountedSensors(simulator, places, {"front": "base_depth_camera"}))
"""
_BATCH = """
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.catalogue import scene

SceneBatch(scene("mid_gate"))
"""
_COUNT = """
import sys
files = {getattr(m, "__file__", None) for name, m in list(sys.modules.items()) if name.partition(".")[0] == "airworthy"}
print("files loaded:", len({f for f in files if f}))
"""


@dataclass(frozen=True)
class Source:
    """A Python file of the package."""

    path: Path
    text: str
    module: str

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax."""
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        """Number of its lines."""
        return self.text.count("\n")

    def import_lines(self, everywhere: bool = False) -> int:
        """Lines of the import statements at its head, or everywhere: in functions and under `if TYPE_CHECKING:`, too."""
        among = ast.walk(self.tree) if everywhere else self.tree.body
        nodes = (node for node in among if isinstance(node, ast.Import | ast.ImportFrom))
        return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)

    def comments(self) -> int:
        """Comments, also those behind code; rules drawn of dashes say nothing and do not count."""
        found = (token for token in tokenize.generate_tokens(io.StringIO(self.text).readline) if token.type == tokenize.COMMENT)
        return sum(bool(token.string.strip("#- ")) for token in found)

    def imported(self) -> Iterator[str]:
        """Every dotted name that its imports may stand for: of a module, or of something in it."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


class House:
    """All sources of a checkout."""

    def __init__(self, root: Path = REPOSITORY):
        self.root, self.package = root, root / "src" / "airworthy"
        self.sources = [self._read(path) for path in sorted(self.package.rglob("*.py"))]

    def _read(self, path: Path) -> Source:
        parts = path.relative_to(self.package.parent).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        return Source(path, path.read_text(encoding="utf-8"), module)

    def figures(self, quick: bool = False) -> dict[str, float]:
        """All figures by name; `quick` leaves out those that load the package."""
        return {**self._sizes(), **self._importers(), **self._names(), **({} if quick else self._loaded()), **self._touched()}

    def _sizes(self) -> dict[str, float]:
        lines = sum(one.lines for one in self.sources)
        of_room = {
            room: [one for one in self.sources if one.path.relative_to(self.package).parts[0] == room] for room in WHY_ROOMS
        }
        folders = Counter(one.path.parent for one in self.sources)
        imports = [sum(one.import_lines(everywhere) for one in self.sources) for everywhere in (False, True)]
        return {
            "files": len(self.sources),
            "lines": lines,
            "import_share": round(100.0 * imports[0] / max(lines, 1), 1),
            "import_share_all": round(100.0 * imports[1] / max(lines, 1), 1),
            "comments": _per_thousand(self.sources),
            "comments_of_why": _per_thousand([one for some in of_room.values() for one in some]),
            **{f"comments_{room}": _per_thousand(some) for room, some in of_room.items()},
            "longest_file": max((one.lines for one in self.sources), default=0),
            "large_folders": sum(count > FOLDER_MAX for count in folders.values()),
        }

    def single_importers(self) -> list[tuple[Source, Source]]:
        """Return each file that exactly one other imports, with that other; faces of folders are left out."""
        known = {one.module: one for one in self.sources}
        importers: dict[str, list[Source]] = {}
        for one in self.sources:
            for name in {name for name in one.imported() if name in known and name != one.module}:
                importers.setdefault(name, []).append(one)
        single = [(known[name], found[0]) for name, found in importers.items() if len(found) == 1]
        return sorted(((one, by) for one, by in single if one.path.name != "__init__.py"), key=lambda pair: pair[0].path)

    def _importers(self) -> dict[str, float]:
        files = self.single_importers()
        return {
            "single_importer": len(files),
            "single_importer_same_folder": sum(one.path.parent == by.path.parent for one, by in files),
        }

    def single_importer_lines(self) -> str:
        """List the files with one importer in their own folder: path, lines, importer, first line of the docstring."""
        lines = []
        for one, by in self.single_importers():
            if one.path.parent == by.path.parent:
                subject = (ast.get_docstring(one.tree) or "").partition("\n")[0]
                lines.append(f"{one.path.relative_to(self.package)} {one.lines} <- {by.path.name}: {subject}")
        return "\n".join(lines)

    def _names(self) -> dict[str, float]:
        classes = Counter(
            node.name
            for one in self.sources
            for node in one.tree.body
            if isinstance(node, ast.ClassDef) and node.name[0] != "_"
        )
        wide = [node for one in self.sources for node in public_functions(one.tree) if len(arguments(node)) >= 3]
        documented = sum("Args:" in (ast.get_docstring(node) or "") for node in wide)
        return {
            "class_doubles": sum(count > 1 for count in classes.values()),
            "args_coverage": round(100.0 * documented / max(len(wide), 1), 1),
            "script_lines": max((len(text.splitlines()) for text in self.first_scripts()), default=0),
        }

    def first_scripts(self) -> list[str]:
        """Return the five first scripts of a user: blocks of `docs/howto/python.md`, or files of `examples/first`."""
        folder, page = self.root / "examples" / "first", self.root / "docs" / "howto" / "python.md"
        if folder.is_dir():
            return [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py"))]
        text = page.read_text(encoding="utf-8") if page.exists() else ""
        return re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)[:5]

    def _loaded(self) -> dict[str, float]:
        return {"flight_files": self._count(_FLIGHT), "batch_files": self._count(_BATCH)}

    def _count(self, program: str) -> int:
        """Files of the package that a program has loaded when it ends."""
        environment = {**os.environ, "PYTHONPATH": str(self.package.parent)}
        done = subprocess.run(
            [sys.executable, "-c", program + _COUNT], capture_output=True, text=True, env=environment, check=False
        )
        found = re.search(r"^files loaded: (\d+)$", done.stdout, flags=re.MULTILINE)
        if found is None:
            raise SystemExit(f"A flight to count files with failed:\n{done.stderr[-2000:]}")
        return int(found[1])

    def _touched(self) -> dict[str, float]:
        native = [path for ending in ("h", "cpp", "j2", "js") for path in self.package.rglob(f"*.{ending}")]
        texts = {path: path.read_text(encoding="utf-8") for path in native} | {one.path: one.text for one in self.sources}

        def naming(word: str) -> list[Path]:
            return [path for path, text in texts.items() if re.search(rf"(?i)\b{word}\b", text)]

        own = [path for path in naming(PLANNER) if PLANNER in path.relative_to(self.package).parent.parts]
        found: dict[str, float] = {name: len(naming(word)) for name, word in EXEMPLARS.items()}
        return {**found, "touch_planner": len(naming(PLANNER)) - len(own) + bool(own)}


def _per_thousand(sources: list[Source]) -> float:
    return round(1000.0 * sum(one.comments() for one in sources) / max(sum(one.lines for one in sources), 1), 1)


def public_functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Functions of a module and methods of its classes whose names, and whose class's, have no leading underscore."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name[0] != "_":
            yield node
        elif isinstance(node, ast.ClassDef) and node.name[0] != "_":
            yield from (item for item in node.body if isinstance(item, ast.FunctionDef) and item.name[0] != "_")


def arguments(node: ast.FunctionDef) -> list[str]:
    """Names of a function's arguments but `self` and `cls`."""
    listed = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    return [one.arg for one in listed if one.arg not in ("self", "cls")]


def table(now: dict[str, float]) -> str:
    """Return the figures as lines: before, now, peers, and what is counted."""
    width = max(map(len, FIGURES))
    lines = [f"{'':{width}} {'3650d36':>8} {'now':>8}  {' / '.join(PEER_NAMES)}"]
    for name, what in FIGURES.items():
        before, value = (f"{source[name]:g}" if name in source else "-" for source in (BEFORE, now))
        peers = f"  [{', '.join(f'{peer:g}' for peer in PEERS[name])}]" if name in PEERS else ""
        lines.append(f"{name:{width}} {before:>8} {value:>8}  {what}{peers}")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=REPOSITORY, help="a checkout to measure; default: this one")
    parser.add_argument("--json", action="store_true", help="print the figures alone")
    parser.add_argument("--quick", action="store_true", help="leave out what loads the package")
    parser.add_argument("--single-importers", action="store_true", help="list the files with one importer in their own folder")
    asked = parser.parse_args(argv)
    if asked.single_importers:
        sys.stdout.write(House(asked.root.resolve()).single_importer_lines() + "\n")
        return 0
    now = House(asked.root.resolve()).figures(asked.quick)
    sys.stdout.write((json.dumps(now, indent=1) if asked.json else table(now)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
