"""A damaged kernel cache is built anew: no traceback, no wrong code, the same results."""

# No postponed annotations here: Warp reads them.

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core import native_kernel
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import MODULE_OPTIONS, SEAL_FILE, Launcher, quiet_warp

GOOD = [0.0, 1.0, 4.0, 9.0]


@pytest.fixture(scope="module")
def squares() -> Any:
    """A kernel in a module of its own."""
    wp = quiet_warp()

    @wp.kernel(module="unique", module_options=MODULE_OPTIONS)
    def airworthy_squares(x: wp.array[wp.float32], first: int):  # type: ignore[valid-type]
        x[first + wp.tid()] = x[first + wp.tid()] * x[first + wp.tid()]  # type: ignore[index]

    return airworthy_squares


def run(kernel: Any, cache: Path) -> list[float]:
    """Squares of 0 to 3, by a module that is loaded as in a new process, with this cache."""
    wp = quiet_warp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wp.config, "kernel_cache_dir", str(cache))
        kernel.module.unload()
        native_kernel._LOADED.pop(kernel, None)
        x = np.arange(4, dtype=np.float32)
        Launcher(kernel, 4, [wp.array(x, device="cpu", copy=False)], "cpu").launch()
    found: list[float] = x.tolist()
    return found


@pytest.fixture(scope="module")
def whole(squares: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the one module, sealed."""
    cache = tmp_path_factory.mktemp("whole") / "cache"
    assert run(squares, cache) == GOOD
    assert (module_of(cache) / SEAL_FILE).is_file()
    return cache


def module_of(cache: Path) -> Path:
    """The only folder of a module."""
    (found,) = cache.iterdir()
    return found


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def code_of(folder: Path) -> Path:
    return next(folder.glob("*.o"))


def meta_of(folder: Path) -> Path:
    return next(folder.glob("*.meta"))


def flip(path: Path) -> None:
    """One bit of every hundredth byte, as a disk that goes bad."""
    data = bytearray(path.read_bytes())
    for index in range(64, len(data), 100):
        data[index] ^= 4
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def as_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_bytes(b"x")


def unsealed(damage: Callable[[Path], object]) -> Callable[[Path], object]:
    """The same in a cache that has no seal yet."""

    def both(folder: Path) -> None:
        (folder / SEAL_FILE).unlink()
        damage(folder)

    return both


DAMAGES: dict[str, Callable[[Path], object]] = {
    "code flipped": lambda folder: flip(code_of(folder)),
    "code empty": lambda folder: code_of(folder).write_bytes(b""),
    "code cut": lambda folder: cut(code_of(folder)),
    "code missing": lambda folder: code_of(folder).unlink(),
    "facts empty": lambda folder: meta_of(folder).write_bytes(b""),
    "facts garbage": lambda folder: meta_of(folder).write_bytes(b"\x9d\xff{"),
    "seal garbage": lambda folder: (folder / SEAL_FILE).write_bytes(b"\xff"),
    "seal of others": lambda folder: (folder / SEAL_FILE).write_text('{"../../x": "0"}'),
    "a file": as_file,
    "unsealed, code cut": unsealed(lambda folder: cut(code_of(folder))),
    "unsealed, facts empty": unsealed(lambda folder: meta_of(folder).write_bytes(b"")),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_cache_is_built_anew(
    damage: Callable[[Path], object], squares: Any, whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cache = tmp_path / "cache"
    shutil.copytree(whole, cache)
    damage(module_of(cache))
    assert run(squares, cache) == GOOD
    mended = files_of(module_of(cache))
    assert set(mended) == set(files_of(module_of(whole)))
    assert run(squares, cache) == GOOD
    assert files_of(module_of(cache)) == mended  # now it is sound, so it stays
    out, err = capfd.readouterr()
    assert out == ""
    assert err == "" or (err.count("\n") == 1 and "object file" in err)  # LLVM's own line, where no seal came first


def test_a_sound_cache_is_used_as_it_is(squares: Any, whole: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in module_of(whole).iterdir()}
    assert run(squares, whole) == GOOD
    assert {path: path.stat().st_mtime_ns for path in module_of(whole).iterdir()} == before


def test_a_build_is_announced_where_someone_asked_and_a_cached_kernel_is_not(
    squares: Any, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_kernel, "_ANNOUNCE", [])
    messages: list[str] = []
    native_kernel.announce_builds(messages.append)
    assert run(squares, whole) == GOOD
    assert messages == []
    assert run(squares, tmp_path / "cache") == GOOD
    (sentence,) = messages
    assert sentence.startswith("Compiling the kernel 'squares")
    assert run(squares, tmp_path / "cache") == GOOD
    native_kernel.announce_builds(None)
    assert run(squares, tmp_path / "other") == GOOD
    assert len(messages) == 1


def test_a_cache_that_cannot_be_made_is_one_sentence(squares: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(AirworthyError, match=r"^Could not build a kernel in .*: set WARP_CACHE_PATH to a folder that can be"):
        run(squares, tmp_path / "file" / "cache")


def test_a_mistake_in_a_kernel_keeps_its_error(tmp_path: Path) -> None:
    wp = quiet_warp()

    @wp.kernel(module="unique", module_options=MODULE_OPTIONS)
    def airworthy_mistaken(x: wp.array[wp.float32], first: int):  # type: ignore[valid-type]
        x[first] = wp.no_such_function(1.0)  # type: ignore[attr-defined]

    with pytest.raises(Exception, match="no_such_function"):
        run(airworthy_mistaken, tmp_path)
