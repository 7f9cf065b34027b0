"""What the source must never contain, who may import whom, and documents that keep their word."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import airworthy
from airworthy import ROOMS

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "src" / "airworthy"
SOURCES = sorted(PACKAGE.rglob("*.py"))
DOCUMENTS = [*sorted(REPOSITORY.glob("*.md")), *sorted((REPOSITORY / "docs").rglob("*.md"))]
DOCUMENTS += sorted(PACKAGE.rglob("*.md"))

BANNED_MODULES = {
    "cloudpickle": "runs code on loading",
    "dill": "runs code on loading",
    "imp": "is gone",
    "joblib": "pickles",
    "marshal": "crashes on hostile input",
    "pickle": "runs code on loading",
    "random": "is one global state: use numpy's default_rng(seed) or the counter-based numbers of core",
    "shelve": "pickles",
    "telnetlib": "is gone",
}
BANNED_CALLS = {
    "eval": "runs code",
    "exec": "runs code",
    "__import__": "use importlib",
    "builtins.eval": "runs code",
    "builtins.exec": "runs code",
    "os.popen": "runs a shell",
    "os.system": "runs a shell",
    "subprocess.getoutput": "runs a shell",
    "tempfile.mktemp": "is a race",
    "yaml.load": "runs code: use safe_load",
    "yaml.unsafe_load": "runs code",
}
ALLOWED = [("core/native_kernel.py", "exec")]
"""Warp reads signatures from Python source: the kit writes it from lists of arguments, like `dataclasses` does."""
NUMPY_RANDOM = {"default_rng", "Generator", "BitGenerator", "Philox", "PCG64", "PCG64DXSM", "SFC64", "SeedSequence"}


@functools.lru_cache(maxsize=1)
def parsed(source: str) -> ast.Module:
    """The tree of a text; the last one is kept, since all checks of a file follow one another."""
    return ast.parse(source)


@functools.cache
def source_findings() -> dict[str, dict[Path, Any]]:
    """What each check says of each file of the package: every file is parsed once for all of them."""
    checks: dict[str, Callable[[str], Any]] = {
        "violations": violations,
        "public_classes": public_classes,
        "undocumented": undocumented,
        "misnamed": misnamed,
        "noun_docstrings": noun_docstrings,
    }
    found: dict[str, dict[Path, Any]] = {name: {} for name in (*checks, "room_violations")}
    for path in SOURCES:
        source = path.read_text(encoding="utf-8")
        for name, check in checks.items():
            found[name][path] = check(source)
        if path.parent != PACKAGE:
            found["room_violations"][path] = room_violations(source, path.relative_to(PACKAGE).parts[0])
    return found


def dotted(node: ast.AST) -> str:
    """`a.b.c` of an attribute chain, empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def imported_names(tree: ast.AST) -> Iterator[tuple[ast.stmt, str, str]]:
    """(statement, name in this file, full dotted name) of every import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (
                    node,
                    alias.asname or alias.name.partition(".")[0],
                    alias.name if alias.asname else alias.name.partition(".")[0],
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield node, alias.asname or alias.name, f"{node.module}.{alias.name}"


def constant_keyword(call: ast.Call, name: str) -> object:
    """Value of a constant keyword argument, None where absent, ... where it is not a constant."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value.value if isinstance(keyword.value, ast.Constant) else ...
    return None


def banned_call(name: str, call: ast.Call) -> str | None:
    if name in BANNED_CALLS:
        return BANNED_CALLS[name]
    if constant_keyword(call, "shell") not in (None, False):
        return "runs a shell"
    if constant_keyword(call, "allow_pickle") not in (None, False):
        return "loads pickles"
    if name == "torch.load" and constant_keyword(call, "weights_only") is not True:
        return "runs code on loading: say weights_only=True"
    return None


def violations(source: str) -> list[str]:
    """`line: what` for everything banned in a source text."""
    tree = parsed(source)
    aliases = {name: full for _, name, full in imported_names(tree)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            found += [
                f"{node.lineno}: {m} {BANNED_MODULES[m]}"
                for m in modules
                if m in BANNED_MODULES and not getattr(node, "level", 0)
            ]
            for _, _, full in imported_names(ast.Module([node], [])):
                if full.startswith("numpy.random.") and full.split(".")[2] not in NUMPY_RANDOM:
                    found.append(f"{node.lineno}: {full} draws from the global state")
        if isinstance(node, ast.Attribute):
            head, _, rest = dotted(node).partition(".")
            full = f"{aliases.get(head, head)}.{rest}"
            if full.startswith("numpy.random.") and full.split(".")[2] not in NUMPY_RANDOM:
                found.append(f"{node.lineno}: {full} draws from the global state")
        if isinstance(node, ast.Call):
            head, dot, rest = dotted(node.func).partition(".")
            name = aliases.get(head, head) + dot + rest
            reason = banned_call(name, node)
            if reason:
                found.append(f"{node.lineno}: {name or 'a call'} {reason}")
    return found


def room_of(module: str) -> str | None:
    """Room of a dotted module name, None for the package itself and for others' packages."""
    parts = module.split(".")
    return parts[1] if parts[0] == "airworthy" and len(parts) > 1 and parts[1] in ROOMS else None


def room_violations(source: str, room: str) -> list[str]:
    """Imports of a file that lead upstairs, or into the private files or names of another room."""
    tree = parsed(source)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            found.append(f"{node.lineno}: a relative import")
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            other = room_of(name)
            if other is None or other == room:
                continue
            if ROOMS.index(other) > ROOMS.index(room):
                found.append(f"{node.lineno}: {room} imports {name} from upstairs")
            if any(part.startswith("_") for part in name.split(".")[2:]):
                found.append(f"{node.lineno}: {room} imports the private {name}")
    return found


def report(found: dict[Path, list[str]]) -> str:
    return "\n".join(f"{path.relative_to(REPOSITORY)}:{line}" for path, lines in found.items() for line in lines)


def test_nothing_banned_in_the_source() -> None:
    found = dict(source_findings()["violations"])
    for path, name in ALLOWED:
        (line,) = [line for line in found[PACKAGE / path] if f": {name} " in line]  # once, or the exception goes
        found[PACKAGE / path] = [other for other in found[PACKAGE / path] if other != line]
    assert not any(found.values()), report(found)


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "import random",
        "from random import choice",
        "eval('1')",
        "exec('1')",
        "import os\nos.system('ls')",
        "from os import system\nsystem('ls')",
        "import subprocess\nsubprocess.run('ls', shell=True)",
        "import subprocess\nsubprocess.run('ls', shell=flag)",
        "import yaml\nyaml.load(f)",
        "import numpy as np\nnp.load(f, allow_pickle=True)",
        "import torch\ntorch.load(f)",
        "import torch as t\nt.load(f, weights_only=False)",
        "import tempfile\ntempfile.mktemp()",
        "from tempfile import mktemp as m\nm()",
        "import numpy as np\nnp.random.seed(0)",
        "import numpy\nnumpy.random.normal()",
        "from numpy import random\nrandom.rand()",
        "from numpy.random import normal",
        "import numpy as np\nf = np.random.normal",
    ],
)
def test_the_ban_finds(source: str) -> None:
    assert violations(source)


@pytest.mark.parametrize(
    "source",
    [
        "import numpy as np\nnp.random.default_rng(0).normal()\nx: np.random.Generator",
        "from numpy.random import Philox",
        "from airworthy.core import random\nrandom.normal(1)",
        "import torch\ntorch.load(f, weights_only=True)",
        "model.eval()",
        "import numpy as np\nnp.load(f, allow_pickle=False)\nnp.load(f)",
        "import subprocess\nsubprocess.run(['ls'], shell=False)",
    ],
)
def test_the_ban_lets_pass(source: str) -> None:
    assert violations(source) == []


def test_rooms_import_from_lower_floors_only() -> None:
    found = source_findings()["room_violations"]
    assert not any(found.values()), report(found)


def public_classes(source: str) -> list[str]:
    """Names of the public classes of a text, at whatever depth."""
    return [node.name for node in ast.walk(parsed(source)) if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]


def doubled_classes(classes: dict[str, Iterable[str]]) -> dict[str, list[str]]:
    """Public class names that more than one file of `classes` (file: names) defines, or one file twice, with the files."""
    found: dict[str, list[str]] = {}
    for file, names in classes.items():
        for name in names:
            found.setdefault(name, []).append(file)
    return {name: files for name, files in found.items() if len(files) > 1}


def test_public_class_names_stand_for_one_class() -> None:
    """A name that a message or a trace shows leads to one place."""
    doubled = doubled_classes(
        {str(path.relative_to(PACKAGE)): names for path, names in source_findings()["public_classes"].items()}
    )
    assert doubled == {}


def test_doubled_class_names_are_found() -> None:
    sources = {"a.py": "class Block: ...\nclass _Own: ...", "b.py": "class Block: ...\nclass _Own: ...\nclass Other: ..."}
    assert doubled_classes({name: public_classes(source) for name, source in sources.items()}) == {"Block": ["a.py", "b.py"]}


DOCUMENTED = (
    "control",
    "gates",
    "learning",
    "planners",
    "race",
    "rendering",
    "sensors",
    "simulation",
    "splats",
    "trajectories",
)
"""Rooms whose public functions of three or more arguments say what each is."""


def undocumented(source: str) -> list[str]:
    """Return public functions with a docstring and three or more arguments that has no section of them."""
    found: list[str] = []

    def visit(node: ast.Module | ast.ClassDef) -> None:
        for item in node.body:
            if isinstance(item, ast.ClassDef) and not item.name.startswith("_"):
                visit(item)
            elif isinstance(item, ast.FunctionDef) and not item.name.startswith("_"):
                a = item.args
                count = sum(one.arg not in ("self", "cls") for one in (*a.posonlyargs, *a.args, *a.kwonlyargs))
                text = ast.get_docstring(item)
                if count >= 3 and text is not None and "Args:" not in text:
                    found.append(item.name)

    visit(parsed(source))
    return found


def test_undocumented_arguments_are_found() -> None:
    text = 'def f(a, b, c):\n    """Return a sum."""\nclass A:\n    def g(self, a, b):\n        """Return a sum."""\n'
    assert undocumented(text) == ["f"]
    assert undocumented('def f(a, b, c):\n    """Return a sum.\n\n    Args:\n        a: One.\n    """\n') == []


def test_arguments_of_public_functions_are_documented() -> None:
    found = source_findings()["undocumented"]
    assert not {path: names for path, names in found.items() if names and path.relative_to(PACKAGE).parts[0] in DOCUMENTED}


def misnamed(source: str) -> dict[str, set[str]]:
    """Return arguments that a section `Args:` names and the function has not, or the other way round, by function."""
    found = {}
    for node in ast.walk(parsed(source)):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        begins = [x for x in getattr(node, "body", []) if isinstance(x, ast.FunctionDef) and x.name == "__init__"]
        function = node if isinstance(node, ast.FunctionDef) else begins[0] if begins else None
        section = re.search(r"^Args:\n((?:    .*\n?|\n)+)", ast.get_docstring(node) or "", re.MULTILINE)
        if function is None or section is None:
            continue
        a = function.args
        has = {x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if x} - {"self", "cls"}
        lines = re.findall(r"^    (\**\w+(?:, \**\w+)*):", section.group(1), re.MULTILINE)
        if wrong := has ^ {name.strip("* ") for line in lines for name in line.split(",")}:
            found[node.name] = wrong
    return found


def test_arguments_are_documented_by_their_names() -> None:
    text = 'def f(a, b, *c):\n    """Return a sum.\n\n    Args:\n        %s: One.\n        *c: Others.\n    """\n'
    assert misnamed(text % "a, b") == {}
    assert misnamed(text % "a, word") == {"f": {"b", "word"}}
    assert {path: names for path, names in source_findings()["misnamed"].items() if names} == {}


NO_VERBS = frozenset(
    re.findall(
        r"\w+",
        """
    A An The This That These Those Its Our Ours One Two Three Four Any All Each Every Both Several Some Only Per Everything
    Nothing What When Where Whether Which Who Whose Why How About After Along Around As At Before Between By For From If In
    Of On Over Until With Within Without Past First Last Next Nearest Least Largest Greatest Lowest Shortest Fastest Slowest
    Mean Median Root Exact Actions Angle Attitude Attitudes Body Box Boxes Bytes Cells Cloud Clouds Coefficients Colour
    Colours Columns Command Commands Content Contract Coordinates Corners Cosine Cost Depth Direction Directions Distance
    Distances Environments Equation Errors Fields Figure Figures Flights Folder Force Frames Gains Gates Gaussians Gradient
    Heading Headings Height Image Images Index Inverse Items Labels Length Lengths Limits Linear Loss Masks Mass Matrices
    Matrix Memory Moment Motion Names Native Noise Numbers Outcome Pairs Parameters Path Paths Pixels Points Poses Position
    Positions Power Quaternion Quaternions Radius Random Range Rate Rates Rays Reward Rotation Rotations Rotor Rows Shares
    Signed Situations Size Speed Splats State States Statistics Success Tables Tensors Text Thrust Thrusts Time Torque
    Trajectories Trajectory True Uniform Value Values Vector Vectors Vehicle Vehicles Velocities Velocity Weights Windows
    Words World Yaw
    """,
    )
)
"""First words of a docstring that names what comes back instead of saying what the function does; nouns that are verbs as well
(`Model`, `Name`, `Place`, `Pose`) are not among them."""
NO_FUNCTIONS = ("property", "cached_property", "setter", "getter")


def noun_docstrings(source: str) -> list[str]:
    """Return `name: first word` of public functions, properties aside, whose docstring begins with no verb."""
    found: list[str] = []

    def visit(node: ast.Module | ast.ClassDef) -> None:
        for item in node.body:
            if isinstance(item, ast.ClassDef) and not item.name.startswith("_"):
                visit(item)
            elif isinstance(item, ast.FunctionDef) and not item.name.startswith("_"):
                if any(dotted(one).rpartition(".")[2] in NO_FUNCTIONS for one in item.decorator_list):
                    continue
                word = ((ast.get_docstring(item) or "").split() or ["Return"])[0]
                if not re.match(r"[A-Z][a-z]+(?!\w)", word) or word.strip(".,:;") in NO_VERBS:
                    found.append(f"{item.name}: {word}")

    visit(parsed(source))
    return found


@pytest.mark.parametrize(
    "text", ["The sum.", "Rows of a table.", "(n, 3) points.", "`x`, held.", "How far.", "RMS error.", "a sum"]
)
def test_docstrings_without_a_verb_are_found(text: str) -> None:
    assert noun_docstrings(f'class A:\n    def f(self):\n        """{text}"""') == [f"f: {text.partition(' ')[0]}"]
    assert noun_docstrings(f'def f():\n    """Return {text}"""') == []
    assert noun_docstrings(f'class A:\n    @property\n    def f(self):\n        """{text}"""') == []


def test_docstrings_of_public_functions_say_what_they_do() -> None:
    """An imperative sentence; ruff's D401 knows wrong forms of verbs, and lets a noun pass for one."""
    assert not {path: names for path, names in source_findings()["noun_docstrings"].items() if names}


def test_every_folder_is_a_room_and_says_what_it_is_for() -> None:
    folders = {path.relative_to(PACKAGE).parts[0] for path in SOURCES if path.parent != PACKAGE}
    assert folders <= set(ROOMS)
    for folder in folders:
        door = PACKAGE / folder / "__init__.py"
        assert door.exists(), f"{folder} has no __init__.py"
        assert ast.get_docstring(ast.parse(door.read_text(encoding="utf-8"))), f"{folder}/__init__.py has no docstring"


@pytest.mark.parametrize(
    ("source", "allowed"),
    [
        ("from airworthy.core import frames", True),
        ("from airworthy.dynamics import _private", True),
        ("from airworthy import __version__", True),
        ("import numpy as np", True),
        ("from airworthy.control import rate", False),
        ("import airworthy.cli.main", False),
        ("from airworthy import simulation", False),
        ("from airworthy.core._atomic import write_atomic", False),
        ("from airworthy.vehicles import _schema", False),
        ("from airworthy.core.frames import _hidden", False),
        ("def f():\n    from airworthy.viewer import show", False),
        ("from . import sibling", False),
    ],
)
def test_the_room_check(source: str, allowed: bool) -> None:
    assert (room_violations(source, "dynamics") == []) is allowed


def test_nothing_names_a_machine() -> None:
    pattern = re.compile("|".join(("/" + "work/", "/" + r"home/[a-z]", "/" + "root/", "/" + "Users/")))
    texts = [*SOURCES, *DOCUMENTS, REPOSITORY / "Makefile", REPOSITORY / "pyproject.toml", REPOSITORY / ".ci" / "run"]
    texts += [path for folder in ("tests", "benchmarks") for path in sorted((REPOSITORY / folder).rglob("*.py"))]
    texts += [path for ending in ("*.toml", "*.json", "*.h", "*.cpp", "*.j2") for path in sorted(PACKAGE.rglob(ending))]
    found = {
        path: [
            f"{n}: {line.strip()[:80]}"
            for n, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
            if pattern.search(line)
        ]
        for path in texts
    }
    assert not any(found.values()), report(found)


def anchors(text: str) -> set[str]:
    """Anchors that the headings of a Markdown text get."""
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_links_lead_somewhere(document: Path) -> None:
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)", text) + re.findall(r"<img[^>]+src=\"([^\"]+)\"", text)
    for target in targets:
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (document.parent / name) if name else document
        assert path.exists(), f"{document.name} links to {target}, which does not exist"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path.read_text(encoding="utf-8")), f"{document.name}: no heading for {target}"


def snippets(document: Path) -> list[str]:
    """Python blocks of a document."""
    return re.findall(r"^```python\n(.*?)^```", document.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


EXAMPLES = sorted((REPOSITORY / "examples").glob("*.py"))


def past_the_face(source: str) -> list[str]:
    """Imports of a text that reach past the faces: `__all__` of `airworthy` and of `airworthy.ROOM`."""
    found = []
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.startswith("airworthy.") and a.name.count(".") > 1]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "airworthy":
            module = importlib.import_module(str(node.module))
            face = () if str(node.module).count(".") > 1 else (*module.__all__, *(ROOMS if module is airworthy else ()))
            found += [f"{node.module}.{a.name}" for a in node.names if a.name not in face]
    return found


def test_what_reaches_past_a_face_is_found() -> None:
    text = "import airworthy.optics\nfrom airworthy import fly, scenes\nfrom airworthy.optics import Pinhole\n"
    assert past_the_face(text) == []
    text = "import airworthy.optics.tone\nfrom airworthy.optics.tone import filmic\nfrom airworthy.optics import tone"
    assert past_the_face(text) == ["airworthy.optics.tone", "airworthy.optics.tone.filmic", "airworthy.optics.tone"]


def test_examples_and_documents_import_faces_only() -> None:
    texts = {str(path.relative_to(REPOSITORY)): [path.read_text(encoding="utf-8")] for path in EXAMPLES}
    texts |= {str(path.relative_to(REPOSITORY)): snippets(path) for path in DOCUMENTS}
    found = {name: [past for part in parts for past in past_the_face(part)] for name, parts in texts.items()}
    assert {name: past for name, past in found.items() if past} == {}


SNIPPETS = [(document, index) for document in DOCUMENTS for index in range(len(snippets(document)))]


@pytest.mark.parametrize(("document", "index"), SNIPPETS, ids=[f"{d.name}-{i}" for d, i in SNIPPETS])
def test_snippets_compile(document: Path, index: int) -> None:
    compile(snippets(document)[index], f"{document.name}:{index}", "exec")


@pytest.mark.parametrize("index", range(len(snippets(REPOSITORY / "docs" / "concepts" / "conventions.md"))))
def test_snippets_of_the_conventions_hold(index: int) -> None:
    exec(compile(snippets(REPOSITORY / "docs" / "concepts" / "conventions.md")[index], "conventions.md", "exec"), {})


def test_the_make_targets_of_the_readme_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    named = set(
        re.findall(
            r"\bmake ([a-z-]+)", " ".join(re.findall(r"`[^`]+`|```sh.*?```", (REPOSITORY / "README.md").read_text(), re.DOTALL))
        )
    )
    assert named <= targets
    assert {"demo", "test", "test-slow", "test-gpu", "bench", "validate", "lint", "format"} <= targets


CLOCKS = {
    "monotonic",
    "monotonic_ns",
    "perf_counter",
    "perf_counter_ns",
    "process_time",
    "process_time_ns",
    "thread_time",
    "time_ns",
}
CLOCKS_READ_BY = {
    "bridges/test_failures.py": "waits for a packet, and gives up",
    "bridges/test_pose_watch.py": "asks whether an abort was told before anybody read it, however long that took",
    "capture/test_training.py": "waits for a checkpoint, and gives up",
    "core/process_ends.py": "waits for a process to end, and gives up",
    "core/test_threads.py": "waits for a thread to end, and gives up",
    "cli/test_signals.py": "waits for a lock, and gives up",
    "learning/test_synthesis_command.py": "waits for a shard, and gives up",
    "learning/test_visuomotor_stopping.py": "waits for a step, and gives up",
    "scenes/formats/fuzzing.py": "a program that prints the slowest input",
    "viewer/chromium.py": "waits for a browser, and gives up",
}


def clocks_read(source: str) -> list[int]:
    """Lines of a text that read a clock: `time.perf_counter()`, also under other names."""
    if not re.search(r"\btime\b", source):
        return []
    tree = parsed(source)
    aliases = {name: full for _, name, full in imported_names(tree)}
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            head, dot, rest = dotted(node.func).partition(".")
            module, _, name = (aliases.get(head, head) + dot + rest).partition(".")
            if module == "time" and (name in CLOCKS or name == "time"):
                lines.append(node.lineno)
    return lines


def test_clocks_are_found() -> None:
    assert clocks_read("import time\nfrom time import perf_counter as now\nnow()\ntime.time()\ntime.sleep(1)") == [3, 4]


def test_no_test_asserts_a_time() -> None:
    """A test that reads no clock cannot fail on a busy machine; speed is printed by `benchmarks/`."""
    found = {
        str(path.relative_to(REPOSITORY / "tests")): lines
        for path in sorted((REPOSITORY / "tests").rglob("*.py"))
        if (lines := clocks_read(path.read_text()))
    }
    assert set(found) == set(CLOCKS_READ_BY), found


def pinned(name: str) -> dict[str, str]:
    """Version by distribution of a file of exact versions; names as PyPI writes them."""
    lines = (REPOSITORY / name).read_text().splitlines()
    pairs = [line.split(";")[0].rstrip(" \\").split("==") for line in lines if re.match(r"[A-Za-z]", line)]
    return {re.sub(r"[-_.]+", "-", left).lower(): right.strip() for left, right in pairs}


def test_the_lock_holds_the_tested_versions_with_hashes() -> None:
    locked, tested = pinned("requirements.lock"), pinned("constraints.txt")
    torch_alone = {"torch", "filelock", "fsspec", "mpmath", "networkx", "sympy"}
    assert {name: version for name, version in tested.items() if locked.get(name) != version and name not in torch_alone} == {}
    entries = re.split(r"\n(?=[A-Za-z])", (REPOSITORY / "requirements.lock").read_text().strip())
    assert len(entries) == len(locked)
    assert [entry.partition("=")[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_actions_are_pinned_by_commit() -> None:
    for path in (REPOSITORY / ".github" / "workflows").glob("*.yml"):
        uses = re.findall(r"uses: *(\S+)", path.read_text())
        assert uses
        assert [name for name in uses if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", name)] == []


PROGRAMS = [path for folder in ("benchmarks", "examples", "tools") for path in sorted((REPOSITORY / folder).rglob("*.py"))]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_what_programs_import_exists(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also inside functions: most of these programs take minutes, so that no other test runs them."""
    for folder in (REPOSITORY, REPOSITORY / "tools"):
        monkeypatch.syspath_prepend(str(folder))
    for _, _, name in imported_names(ast.parse(path.read_text(encoding="utf-8"))):
        room, _, rest = name.rpartition(".")
        if name.partition(".")[0] not in ("airworthy", "benchmarks") or not room:
            continue
        try:
            module = importlib.import_module(room)
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            pytest.skip("torch is not installed")
        assert hasattr(module, rest) or importlib.util.find_spec(name), name
