"""Messages that tell the fix: their text is part of the interface."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from airworthy.core.errors import (
    AirworthyError,
    AssetError,
    UnknownNameError,
    no_file,
    telling_broken,
    telling_refusals,
    unknown_name,
)


def test_unknown_name_says_what_is_close_what_is_known_and_what_to_do() -> None:
    error = unknown_name("vehicle", "crazyfile", ["racer250", "crazyflie2", "hummingbird"], "See docs to add one.")
    assert str(error) == (
        "Unknown vehicle 'crazyfile'. Closest: 'crazyflie2'. Known: crazyflie2, hummingbird, racer250. See docs to add one."
    )


def test_a_missing_file_is_told_with_its_folder_or_with_names_like_its_own(tmp_path: Path) -> None:
    (tmp_path / "heavy.toml").touch()
    (tmp_path / "heavy\n.toml").touch()
    (tmp_path / "light.csv").touch()
    file = tmp_path / "heavvy.toml"
    assert no_file(file) == f"There is no file {str(file)!r}. There is {str(tmp_path / 'heavy.toml')!r}."
    assert no_file(tmp_path / "other.png") == f"There is no file {str(tmp_path / 'other.png')!r}."
    lost = tmp_path / "run" / "meta.json"
    assert no_file(lost) == f"There is no file {str(lost)!r}. There is no folder {str(lost.parent)!r} either."


def test_unknown_name_without_anything_close_leaves_that_sentence_out() -> None:
    assert str(unknown_name("course", "zzz", ["robustness"])) == "Unknown course 'zzz'. Known: robustness."


def test_a_long_catalogue_is_cut_and_counted() -> None:
    message = str(unknown_name("vehicle", "zzz", [f"v{i:02}" for i in range(40)]))
    assert message.endswith("v10, v11, ... (40 in all).")


def test_every_error_is_caught_as_airworthy_error_and_names_as_key_error() -> None:
    assert issubclass(AssetError, AirworthyError)
    assert issubclass(UnknownNameError, AirworthyError)
    with pytest.raises(KeyError):
        raise unknown_name("vehicle", "x", [])


# ---- what the file system refuses --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("é" * 150, "A part of a path, 'éééééééééééééééééééééééé...', has 300 bytes; expected at most 255: choose a"),
        ("ab/" * 2000, "'ab/ab/ab/ab/ab/ab/ab/ab/...' is a path of 5,999 bytes, too long: choose a shorter one."),
    ],
)
def test_a_path_that_is_too_long_says_what_of_it(path: str, said: str) -> None:
    with pytest.raises(AirworthyError) as caught, telling_refusals():
        os.stat(Path(path))
    assert str(caught.value).startswith(said)


def test_a_refusal_without_a_path_and_one_with_say_the_systems_reason() -> None:
    for error, said in [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device."),
        (PermissionError(errno.EACCES, "Permission denied", "/kept"), "'/kept': Permission denied."),
    ]:
        with pytest.raises(AirworthyError) as caught, telling_refusals():
            raise error
        assert str(caught.value) == said


def test_a_fault_of_ours_stays_what_it_is() -> None:
    with pytest.raises(FileNotFoundError), telling_refusals():
        os.stat("/nowhere/at/all")


# ---- packages that are installed and cannot be loaded ------------------------------------------------------------------------

OPTIONAL = ("half_installed", "its_own_need", "upon_it")
_BROKEN = [
    ("raise ImportError('libhalf.so.9: cannot open shared object file')", "libhalf.so.9: cannot open shared object file"),
    ("raise OSError('libhalf.so.9: no such file\\nlooked in /lib')", "libhalf.so.9: no such file"),
    ("import ctypes; ctypes.CDLL('/nowhere/libhalf.so')", "/nowhere/libhalf.so: cannot open"),
    ("from half_installed import _C", "cannot import name '_C'"),
    ("import half_installed._C", "No module named 'half_installed._C'"),
    ("import a_need_that_nobody_knows", "No module named 'a_need_that_nobody_knows'"),
    ("raise ImportError", "ImportError"),
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder from which packages are loaded."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "half_installed").mkdir()
    (tmp_path / "upon_it.py").write_text("import half_installed\n")
    yield tmp_path
    for name in OPTIONAL:
        sys.modules.pop(name, None)


@pytest.mark.parametrize(("code", "reason"), _BROKEN)
@pytest.mark.parametrize("asked", ["half_installed", "upon_it"])
def test_a_package_that_is_installed_and_fails_as_it_loads_is_one_sentence(
    code: str, reason: str, asked: str, place: Path
) -> None:
    (place / "half_installed/__init__.py").write_text(f"{code}\n")
    with pytest.raises(AirworthyError) as caught, telling_broken(OPTIONAL):
        importlib.import_module(asked)
    # The innermost is named, whatever needed it.
    assert str(caught.value).startswith(f"The package 'half_installed' is installed but cannot be loaded ({reason}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "asked"),
    [
        ("", "nowhere_to_be_found"),
        ("import its_own_need", "half_installed"),
        ("import its_own_need.part", "upon_it"),
    ],
)
def test_a_package_that_is_missing_is_told_as_ever(code: str, asked: str, place: Path) -> None:
    (place / "half_installed/__init__.py").write_text(f"{code}\n")
    with pytest.raises(ModuleNotFoundError), telling_broken((*OPTIONAL, "nowhere_to_be_found")):
        importlib.import_module(asked)


def test_errors_of_what_is_loaded_are_not_of_its_installation(place: Path) -> None:
    (place / "half_installed/__init__.py").write_text(
        "def read():\n    open('/nowhere/x')\n\n\ndef part():\n    import no_such_part\n"
    )
    module = importlib.import_module("half_installed")
    for call, kind in ((module.read, FileNotFoundError), (module.part, ModuleNotFoundError)):
        with pytest.raises(kind), telling_broken(OPTIONAL):
            call()
    with pytest.raises(ImportError), telling_broken(["another"]):
        raise ImportError("of ours")


def test_unknown_name_of_an_empty_catalogue_shows_no_empty_list() -> None:
    assert str(unknown_name("topic", "imu", [])) == "Unknown topic 'imu'. There is none to choose from."
    assert str(unknown_name("label", "a", [""])) == "Unknown label 'a'. Known: ''."
