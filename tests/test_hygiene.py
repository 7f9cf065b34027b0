"""What the source must never contain, who may import whom, and documents that keep their word."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from airworthy import ROOMS

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "src" / "airworthy"
SOURCES = sorted(PACKAGE.rglob("*.py"))
DOCUMENTS = [REPOSITORY / "README.md", REPOSITORY / "CHANGELOG.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
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
NUMPY_RANDOM = {"default_rng", "Generator", "BitGenerator", "Philox", "PCG64", "PCG64DXSM", "SFC64", "SeedSequence"}


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
    tree = ast.parse(source)
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
    tree = ast.parse(source)
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
    found = {path: violations(path.read_text(encoding="utf-8")) for path in SOURCES}
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
    inside = [path for path in SOURCES if path.parent != PACKAGE]
    found = {path: room_violations(path.read_text(encoding="utf-8"), path.relative_to(PACKAGE).parts[0]) for path in inside}
    assert not any(found.values()), report(found)


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


SNIPPETS = [(document, index) for document in DOCUMENTS for index in range(len(snippets(document)))]


@pytest.mark.parametrize(("document", "index"), SNIPPETS, ids=[f"{d.name}-{i}" for d, i in SNIPPETS])
def test_snippets_compile(document: Path, index: int) -> None:
    compile(snippets(document)[index], f"{document.name}:{index}", "exec")


@pytest.mark.parametrize("index", range(len(snippets(REPOSITORY / "docs" / "conventions.md"))))
def test_snippets_of_the_conventions_hold(index: int) -> None:
    exec(compile(snippets(REPOSITORY / "docs" / "conventions.md")[index], "conventions.md", "exec"), {})


def test_the_make_targets_of_the_readme_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    named = set(
        re.findall(
            r"\bmake ([a-z-]+)", " ".join(re.findall(r"`[^`]+`|```sh.*?```", (REPOSITORY / "README.md").read_text(), re.DOTALL))
        )
    )
    assert named <= targets
    assert {"demo", "test", "test-slow", "test-gpu", "bench", "validate", "lint", "format"} <= targets
