"""The faces of packages: what they say they have, where it comes from, and that it is there."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import airworthy
from airworthy import ROOMS

PACKAGE = Path(airworthy.__file__).parent
FACES = sorted(path for path in PACKAGE.rglob("__init__.py") if "lazy_names(" in path.read_text(encoding="utf-8"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FACES}
NAMED = pytest.mark.parametrize("path", FACES, ids=lambda path: path.parent.name)


def lazy(tree: ast.Module) -> dict[str, tuple[str, ...]]:
    """The table given to `lazy_names`: module to names; what is computed (`*ROOMS`) is left out."""
    call = next(n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "lazy_names")
    table = call.args[1]
    assert isinstance(table, ast.Dict)
    found = {}
    for key, value in zip(table.keys, table.values, strict=True):
        assert isinstance(key, ast.Constant)
        assert isinstance(value, ast.Tuple)
        found[str(key.value)] = tuple(str(item.value) for item in value.elts if isinstance(item, ast.Constant))
    return found


def for_types(tree: ast.Module, package: str) -> dict[str, tuple[str, ...]]:
    """The imports under `if TYPE_CHECKING:` as module to names, modules relative to the package."""
    block = next(n for n in tree.body if isinstance(n, ast.If) and getattr(n.test, "id", "") == "TYPE_CHECKING")
    statements = [n for n in block.body if isinstance(n, ast.ImportFrom)]
    return {(n.module or "").removeprefix(package).lstrip("."): tuple(a.asname or a.name for a in n.names) for n in statements}


def listed(tree: ast.Module) -> list[str]:
    """`__all__` of a module, [] where it has none or computes it."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def defined(path: Path) -> Iterator[str]:
    """Names that a module has at its top, imported ones also."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (t.id for t in targets if isinstance(t, ast.Name))
        elif isinstance(node, ast.ImportFrom):
            yield from (a.asname or a.name for a in node.names)


@NAMED
def test_table_types_and_list_agree(path: Path) -> None:
    tree = TREES[path]
    table = lazy(tree)
    package = ".".join(("airworthy", *path.parent.relative_to(PACKAGE).parts))
    assert {k: set(v) for k, v in for_types(tree, package).items()} == {k: set(v) for k, v in table.items()}
    names = [name for names in table.values() for name in names]
    assert len(names) == len(set(names))
    assert set(names) <= set(listed(tree))


@NAMED
def test_every_name_is_where_the_table_says(path: Path) -> None:
    for module, names in lazy(TREES[path]).items():
        stem = path.parent.joinpath(*module.split(".")) if module else path.parent
        if module == "":
            assert all((stem / f"{name}.py").exists() for name in names)
            continue
        home = stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")
        assert set(names) <= set(defined(home)), f"{home} lacks {set(names) - set(defined(home))}"
        beside = {entry.stem for entry in path.parent.iterdir() if entry.suffix == ".py" or entry.is_dir()}
        assert not beside & set(names), "importing the module would take the name's place"


@pytest.mark.parametrize("room", [room for room in ROOMS if (PACKAGE / room).is_dir() and room != "cli"])
def test_every_room_lists_its_face(room: str) -> None:
    tree = ast.parse((PACKAGE / room / "__init__.py").read_text(encoding="utf-8"))
    assert len(ast.get_docstring(tree) or "") > 40
    assert listed(tree)


def test_names_load_when_asked_for_and_are_listed_before() -> None:
    optics = importlib.import_module("airworthy.optics")
    assert {"Pinhole", "to_8bit"} <= set(dir(optics))
    assert optics.to_8bit is importlib.import_module("airworthy.optics.tone").to_8bit
    with pytest.raises(AttributeError, match=r"module 'airworthy\.optics' has no attribute 'telescope'"):
        _ = optics.telescope
