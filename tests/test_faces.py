"""The faces of packages: what they say they have, where it comes from, and that it is there."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import airworthy
from airworthy import ROOMS

PACKAGE = Path(airworthy.__file__).parent
FACES = sorted(path for path in PACKAGE.rglob("__init__.py") if "lazy_names(" in path.read_text(encoding="utf-8"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FACES}
NAMED = pytest.mark.parametrize("path", FACES, ids=lambda path: path.parent.name)


def for_types(tree: ast.Module, package: str) -> dict[str, list[str]]:
    """The imports under `if TYPE_CHECKING:` as module to names; modules relative to the package, "" for its own ones."""
    block = next(n for n in tree.body if isinstance(n, ast.If) and getattr(n.test, "id", "") == "TYPE_CHECKING")
    assert all(isinstance(node, ast.ImportFrom) for node in block.body)
    statements = [n for n in block.body if isinstance(n, ast.ImportFrom)]
    return {(n.module or "").removeprefix(package).lstrip("."): [a.asname or a.name for a in n.names] for n in statements}


def package_of(path: Path) -> str:
    return ".".join(("airworthy", *path.parent.relative_to(PACKAGE).parts))


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
def test_imports_and_list_agree(path: Path) -> None:
    names = [name for names in for_types(TREES[path], package_of(path)).values() for name in names]
    assert len(names) == len(set(names))
    assert set(names) <= set(listed(TREES[path]))


@NAMED
def test_every_name_is_where_the_import_says(path: Path) -> None:
    for module, names in for_types(TREES[path], package_of(path)).items():
        stem = path.parent.joinpath(*module.split(".")) if module else path.parent
        if module == "":
            assert all((stem / f"{name}.py").exists() for name in names)
            continue
        home = stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")
        assert set(names) <= set(defined(home)), f"{home} lacks {set(names) - set(defined(home))}"
        modules = {entry.stem for entry in path.parent.iterdir() if entry.suffix == ".py" or entry.is_dir()}
        assert not modules & set(names), "importing the module would take the name's place"


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


def test_what_is_listed_is_there() -> None:
    """`bridges` has its place in the order of rooms and is not built yet."""
    assert "bridges" in airworthy.ROOMS
    for name in dir(airworthy):
        getattr(airworthy, name)


def test_a_package_without_its_source_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "sealed"
    folder.mkdir()
    (folder / "own.py").write_text("one = 1\n")
    text = "from airworthy.core.faces import lazy_names\n__getattr__, __dir__ = lazy_names(__name__, ('own', 'absent'))\n"
    (folder / "__init__.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    sealed = importlib.import_module("sealed")
    assert sealed.own.one == 1
    with pytest.raises(AttributeError, match="'absent'"):
        _ = sealed.absent
    for name in ("sealed", "sealed.own"):
        monkeypatch.delitem(sys.modules, name)
    sealed = importlib.import_module("sealed")
    monkeypatch.setattr(type(sealed.__spec__.loader), "get_source", lambda self, name: None)
    with pytest.raises(ImportError, match="The source of sealed is not there"):
        _ = sealed.anything
