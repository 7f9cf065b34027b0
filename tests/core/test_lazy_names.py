"""Lazy names of a package that is made for the test: found when first asked for, listed before, refused as Python does."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

FACE = '''"""A room."""
from typing import TYPE_CHECKING
from airworthy.core.faces import lazy_names
if 1 + 1 == 3:
    from lazy_room.one import hidden
if TYPE_CHECKING:
    import json
    from lazy_room import two
    from lazy_room.one import first, second
    from . import nothing
__all__ = ["first", "written"]
written = 5
__getattr__, __dir__ = lazy_names(__name__, ("three", "absent", "needy"))
'''
ONE = "print('one is loaded')\nfirst, second, hidden = 1, 2, 3\n"


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], ModuleType]]:
    """Import a room of four modules."""
    folder = tmp_path / "lazy_room"
    folder.mkdir()
    for name, text in {
        "__init__": FACE,
        "one": ONE,
        "two": "",
        "three": "",
        "needy": "import not_installed_anywhere\n",
    }.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield lambda: importlib.import_module("lazy_room")
    for name in [name for name in sys.modules if name.partition(".")[0] == "lazy_room"]:
        del sys.modules[name]


def test_a_name_is_loaded_when_it_is_first_asked_for(
    room: Callable[[], ModuleType], capsys: pytest.CaptureFixture[str]
) -> None:
    face = room()
    assert "lazy_room.one" not in sys.modules
    assert (face.first, face.second) == (1, 2)
    assert capsys.readouterr().out == "one is loaded\n"
    assert vars(face)["first"] == 1, "an ordinary attribute from now on"
    assert vars(face)["second"] == 2
    assert (face.two.__name__, face.three.__name__) == ("lazy_room.two", "lazy_room.three")


def test_what_is_listed_is_offered_and_what_is_not_built_yet_is_not(room: Callable[[], ModuleType]) -> None:
    assert dir(room()) == ["first", "needy", "second", "three", "two", "written"]
    assert "lazy_room.one" not in sys.modules


@pytest.mark.parametrize("name", ["absent", "hidden", "json", "nothing", "one_more", "__path_of_nobody__"])
def test_what_it_does_not_have_is_refused_as_of_any_module(name: str, room: Callable[[], ModuleType]) -> None:
    with pytest.raises(AttributeError, match=f"^module 'lazy_room' has no attribute '{name}'$") as caught:
        getattr(room(), name)
    assert caught.value.__cause__ is None


def test_what_a_module_needs_and_lacks_is_named(room: Callable[[], ModuleType]) -> None:
    with pytest.raises(ModuleNotFoundError, match="not_installed_anywhere"):
        _ = room().needy


def test_special_names_do_not_read_the_source(room: Callable[[], ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    face = room()
    assert face.__spec__ is not None
    monkeypatch.setattr(type(face.__spec__.loader), "get_source", lambda self, name: None)
    assert not hasattr(face, "__wrapped__")
    with pytest.raises(ImportError, match="The source of lazy_room is not there") as caught:
        _ = face.first
    assert caught.value.name == "lazy_room"
    monkeypatch.setattr(face, "__spec__", None)
    with pytest.raises(ImportError, match="The source of lazy_room is not there"):
        _ = face.first
