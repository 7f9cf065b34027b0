"""Atomic writing under failure at every system call, bounded reading of hostile files, and one run per folder."""

from __future__ import annotations

import dataclasses
import enum
import errno
import hashlib
import json
import math
import os
import signal
import stat
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airworthy.core import files
from airworthy.core.errors import AirworthyError, AssetError

CALLS = ("open", "write", "fsync", "replace", "chmod", "close")
OLD, NEW = b"old " * 5000, b"new " * 9000


class FailingCall:
    """Stands in for functions of `os` and lets the n-th call of any of them fail."""

    def __init__(self, patch: pytest.MonkeyPatch, fail_at: int, code: int) -> None:
        self.count, self.fail_at, self.code = 0, fail_at, code
        for name in CALLS:
            patch.setattr(os, name, self.wrap(name, getattr(os, name)))

    def wrap(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            self.count += 1
            fails = self.count == self.fail_at
            if fails and name != "close":
                raise OSError(self.code, os.strerror(self.code))
            if name == "write":  # a short write, as on a nearly full disk: the caller must go on
                return original(arguments[0], arguments[1][:10_000])
            result = original(*arguments, **keywords)
            if fails:  # the descriptor is gone also where close reports an error
                raise OSError(self.code, os.strerror(self.code))
            return result

        return call


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def calls_of_one_write(folder: Path, existing: bool) -> int:
    folder.mkdir()
    if existing:
        (folder / "f.bin").write_bytes(OLD)
    with pytest.MonkeyPatch.context() as patch:
        counter = FailingCall(patch, -1, errno.EIO)
        files.write_bytes(folder / "f.bin", NEW)
        return counter.count


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("existing", [True, False])
def test_failure_at_any_call_leaves_old_or_new_and_no_litter(tmp_path: Path, code: int, existing: bool) -> None:
    before = {"f.bin": OLD} if existing else {}
    calls = calls_of_one_write(tmp_path / "probe", existing)
    assert calls >= 10  # open, close, open, 4 writes, close, open, fsync, close, replace, ...
    outcomes = set()
    for n in range(1, calls + 2):
        folder = tmp_path / f"{n}"
        folder.mkdir()
        if existing:
            (folder / "f.bin").write_bytes(OLD)
        with pytest.MonkeyPatch.context() as patch:
            failing = FailingCall(patch, n, code)
            if n > calls:
                files.write_bytes(folder / "f.bin", NEW)
            else:
                with pytest.raises(AirworthyError, match=r"Could not write '.*f\.bin': "):
                    files.write_bytes(folder / "f.bin", NEW)
                assert failing.count >= n
        after = content(folder)
        assert after in (before, {"f.bin": NEW})
        outcomes.add(after == before)
    assert outcomes == {True, False}


class Disk:
    """Which inodes a power cut would keep: records what is forced to the disk, and what each rename found forced."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.events: list[tuple[str, int]] = []
        for name in ("write", "fsync", "replace"):
            patch.setattr(os, name, self.noted(name, getattr(os, name)))

    def noted(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            status = os.fstat(arguments[0]) if isinstance(arguments[0], int) else os.stat(arguments[0])
            self.events.append((name, status.st_ino))
            return original(*arguments, **keywords)

        return call


@pytest.mark.parametrize("existing", [True, False])
def test_a_file_is_on_the_disk_before_its_name_and_the_name_before_the_end(tmp_path: Path, existing: bool) -> None:
    """Or a power cut would leave the new name with no content, or the old file after it was said to be written."""
    path = tmp_path / "f.bin"
    if existing:
        path.write_bytes(OLD)
    with pytest.MonkeyPatch.context() as patch:
        disk = Disk(patch)
        files.write_bytes(path, NEW)
    file, folder = path.stat().st_ino, tmp_path.stat().st_ino
    kept = [event for k, event in enumerate(disk.events) if k == 0 or event != disk.events[k - 1]]
    assert kept == [("write", file), ("fsync", file), ("replace", file), ("fsync", folder)]


def test_an_interrupt_or_an_error_of_the_writer_leaves_the_old_file(tmp_path: Path) -> None:
    path = files.write_bytes(tmp_path / "f.bin", OLD)

    def interrupted(temporary: Path) -> None:
        temporary.write_bytes(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.write_atomic(path, interrupted)
    with pytest.raises(ZeroDivisionError):
        files.write_atomic(path, lambda temporary: 1 // 0)
    assert content(tmp_path) == {"f.bin": OLD}


def test_kill_at_random_times_leaves_a_whole_file(tmp_path: Path) -> None:
    program = (
        "import sys; from airworthy.core import files\n"
        "print('ready', flush=True)\n"
        "while True:\n    for c in b'ab': files.write_bytes(sys.argv[1], bytes([c]) * 300_000)\n"
    )
    path = tmp_path / "f.bin"
    rng = np.random.default_rng(0)
    for _ in range(10):
        process = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.005 + rng.uniform(0.0, 0.02))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        data = path.read_bytes() if path.exists() else b""
        assert data in (b"", b"a" * 300_000, b"b" * 300_000)


def test_the_callback_gets_a_path_in_the_same_folder_with_the_same_suffix(tmp_path: Path) -> None:
    temporaries: list[Path] = []

    def write(temporary: Path) -> None:
        temporaries.append(temporary)
        np.savez(temporary, a=np.arange(3))

    path = files.write_atomic(tmp_path / ("x" * 200 + ".npz"), write)
    assert temporaries[0].parent == tmp_path.resolve()
    assert temporaries[0].suffix == ".npz"
    with np.load(path) as loaded:
        np.testing.assert_array_equal(loaded["a"], [0, 1, 2])


def test_permissions_are_kept_and_links_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(OLD)
    target.chmod(0o640)
    link.symlink_to(target)
    files.write_bytes(link, NEW)
    assert link.is_symlink()
    assert target.read_bytes() == NEW
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    umask = os.umask(0o027)
    try:
        fresh = files.write_text(tmp_path / "fresh", "x")
    finally:
        os.umask(umask)
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o640


def test_devices_folders_and_missing_folders_are_refused(tmp_path: Path) -> None:
    for path in (Path(os.devnull), tmp_path, tmp_path / "missing" / "f"):
        with pytest.raises(AirworthyError, match="Could not write"):
            files.write_bytes(path, NEW)
    assert not Path(os.devnull).is_file()
    assert content(tmp_path) == {}


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: float
    tags: tuple[str, ...]


def test_json_is_the_same_bytes_for_the_same_value_and_plain(tmp_path: Path) -> None:
    value = {
        "b": np.float64(0.1),
        "a": np.arange(3, dtype=np.int32),
        "point": Point(1.0, ("é", "b")),
        "nan": [math.nan, math.inf, np.float32(0.5)],
        "flag": np.bool_(True),
        "colour": Colour.RED,
        "path": Path("x/y"),
        "none": None,
        "view": MappingProxyType({"b": (1,), "a": Colour.RED}),
        3: np.int64(7),
    }
    text = files.json_text(value)
    assert text == files.write_json(tmp_path / "f.json", value).read_text(encoding="utf-8")
    assert json.loads(text) == {
        "b": 0.1,
        "a": [0, 1, 2],
        "point": {"x": 1.0, "tags": ["é", "b"]},
        "nan": [None, None, 0.5],
        "flag": True,
        "colour": "red",
        "path": "x/y",
        "none": None,
        "view": {"b": [1], "a": "red"},
        "3": 7,
    }
    assert text.startswith('{\n  "b": 0.1,\n  "a": [\n')
    assert text.endswith("}\n")


def test_json_of_a_broken_file_name_and_of_things_without_a_form(tmp_path: Path) -> None:
    path = files.write_json(tmp_path / "f.json", {"name": "bad\udc80"})
    assert json.loads(path.read_bytes()) == {"name": "bad\udc80"}
    with pytest.raises(TypeError, match="object has no JSON form"):
        files.json_text({"a": object()})
    with pytest.raises(TypeError, match="cannot be a key"):
        files.json_text({1.5: 1})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_json_round_trip(value: Any) -> None:
    assert files.parse_json(files.json_text(value), "value") == value


def expect_asset_error(read: Callable[..., Any], path: Path, message: str, **keywords: Any) -> None:
    with pytest.raises(AssetError, match=message) as caught:
        read(path, **keywords)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


READERS = [files.read_bytes, files.read_text, files.read_json, files.read_toml]


@pytest.mark.parametrize("read", READERS)
def test_what_is_no_readable_file_is_said_in_one_sentence(tmp_path: Path, read: Callable[..., Any]) -> None:
    expect_asset_error(read, tmp_path / "missing", "There is no file")
    expect_asset_error(read, tmp_path, "is a folder")
    os.mkfifo(tmp_path / "pipe")
    expect_asset_error(read, tmp_path / "pipe", "not a regular file")  # and does not wait for a writer
    expect_asset_error(read, Path("/dev/zero"), "not a regular file")
    expect_asset_error(read, Path("nul\0byte"), "Could not read")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    expect_asset_error(read, tmp_path / "loop", "Could not read")
    (tmp_path / "large").write_bytes(b"1" * 101)
    expect_asset_error(read, tmp_path / "large", "has 101 bytes or more; at most 100", limit_bytes=100)


def test_a_huge_sparse_file_costs_nothing(tmp_path: Path) -> None:
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(1 << 40)
    expect_asset_error(files.read_bytes, tmp_path / "huge", "at most")


def test_a_file_that_reports_no_size_is_bounded_too() -> None:
    path = Path("/proc/self/maps")
    if not path.exists():
        pytest.skip("no /proc on this system")
    assert files.read_bytes(path)
    expect_asset_error(files.read_bytes, path, "at most 10 ", limit_bytes=10)


@pytest.mark.parametrize("read", READERS[1:])
def test_text_must_be_utf8_and_may_start_with_a_mark(tmp_path: Path, read: Callable[..., Any]) -> None:
    (tmp_path / "f").write_bytes(b"ab\xff")
    expect_asset_error(read, tmp_path / "f", "is not UTF-8 text: byte 2 is 0xff")
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbf" + (b"[1]" if read is files.read_json else b"a = 1"))
    assert read(tmp_path / "f") in ([1], "a = 1", {"a": 1})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expecting value"),
        ("{'a': 1}", "property name enclosed in double quotes"),
        ("[1] x", "extra data"),
        ("NaN", "NaN is not a JSON number"),
        ("[1, -Infinity]", "-Infinity is not a JSON number"),
        ("9" * 5000, "limit"),
        ("[" * 100 + "]" * 100, "nested deeper than 64 levels"),
        ('{"a":' * 100 + "1" + "}" * 100, "nested deeper than 64 levels"),
        ("[" * 1_000_000, "nested deeper than 64 levels"),
    ],
)
def test_bad_json(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "f.json").write_text(text)
    expect_asset_error(files.read_json, tmp_path / "f.json", message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = ", "invalid value"),
        ("a = 1\na = 2", "overwrite"),
        ("a = " + "[" * 100 + "]" * 100, "nested deeper than 64 levels"),
        ("a = " + "[" * 100_000, "nested deeper than 64 levels"),
        ("a" + ".a" * 100 + " = 1", "nested deeper than 64 levels"),
        ("a = " + "9" * 5000, "limit"),
    ],
)
def test_bad_toml(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "f.toml").write_text(text)
    expect_asset_error(files.read_toml, tmp_path / "f.toml", message)


def test_nesting_up_to_the_limit_is_accepted() -> None:
    assert files.parse_json("[" * 64 + "]" * 64, "f") is not None
    with pytest.raises(AssetError, match="deeper"):
        files.parse_json("[" * 65 + "]" * 65, "f")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(st.binary(max_size=200) | st.text(alphabet='{}[]",:.=#\n1ae-+T\\u', max_size=80).map(str.encode))
def test_any_bytes_load_or_raise_asset_error(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "f"
    path.write_bytes(data)
    for read, plain in ((files.read_json, json.loads), (files.read_toml, tomllib.loads)):
        try:
            value = read(path)
        except AssetError as error:
            message = str(error)
        else:
            message = ""
            assert value == plain(data.decode("utf-8-sig"))
        assert "\n" not in message


def test_sha256_of_bytes_text_and_files(tmp_path: Path) -> None:
    expected = hashlib.sha256(b"abc").hexdigest()
    assert expected.startswith("ba7816bf")  # the test vector of FIPS 180-4
    assert files.sha256(b"abc") == files.sha256("abc") == expected
    (tmp_path / "f").write_bytes(b"abc")
    assert files.sha256_file(tmp_path / "f") == expected
    with pytest.raises(AssetError, match="Could not read"):
        files.sha256_file(tmp_path / "missing")


def test_data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRWORTHY_DATA", raising=False)
    assert files.data_dir() is None
    monkeypatch.setenv("AIRWORTHY_DATA", "")
    assert files.data_dir() is None
    monkeypatch.setenv("AIRWORTHY_DATA", str(tmp_path))
    assert files.data_dir() == tmp_path
    monkeypatch.setenv("AIRWORTHY_DATA", str(tmp_path / "missing"))
    with pytest.raises(AirworthyError, match="is not a folder: unset it"):
        files.data_dir()


def test_one_run_per_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with files.lock_folder(folder) as held:
        assert held == folder
        message = rf"Another run \(process {os.getpid()}\) is writing in '.*b': wait for it or choose another folder\."
        with pytest.raises(AirworthyError, match=message), files.lock_folder(folder):
            pass
    assert content(folder) == {}
    with files.lock_folder(folder):  # free again
        pass


def test_the_lock_of_a_killed_run_is_free(tmp_path: Path) -> None:
    program = (
        "import sys, time; from airworthy.core import files\n"
        "with files.lock_folder(sys.argv[1]):\n    print('held', flush=True); time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with pytest.raises(AirworthyError, match=f"process {process.pid}"), files.lock_folder(tmp_path):
        pass
    process.kill()
    process.communicate()
    with files.lock_folder(tmp_path):
        pass


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(AirworthyError, match="Could not make the folder"), files.lock_folder(path):
            pass


@pytest.mark.parametrize(
    "text",
    [
        "a" + ".a" * 19_999 + " = 1",
        "a" + ' . "b.c"' * 100 + " = 1",
        "['a'" + ".b" * 100 + "]",
        "x = { y = 1, a" + ".a" * 100 + " = 1 }",
        'x = "[]"\na = ' + "[" * 65 + "]" * 65,
        "x = '''\n'''\na = " + "{a=" * 65 + "1" + "}" * 65,
    ],
)
def test_deep_toml_never_meets_the_parser(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty thousand dots took the parser 40 s and 1.6 GB."""
    monkeypatch.setattr("tomllib.loads", lambda _: pytest.fail("it was parsed"))
    with pytest.raises(AssetError, match="nested deeper than 64 levels"):
        files.parse_toml(text, "f.toml")


def test_deep_json_never_meets_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("json.loads", lambda *_, **__: pytest.fail("it was parsed"))
    with pytest.raises(AssetError, match="nested deeper than 64 levels"):
        files.parse_json('{"a\\"[": ' + "[" * 65 + "]" * 65 + "}", "f.json")


DOTS, BRACKETS = "a" + ".a" * 200, "[{" * 200


@pytest.mark.parametrize(
    "text",
    [
        f'a = "{DOTS}"',
        f"a = '{BRACKETS}'  # {BRACKETS} {DOTS}",
        f'a = """\n{BRACKETS}\n{DOTS} \\""" "" {BRACKETS}"""""\nb = 1',
        f"a = '''{BRACKETS} '' {DOTS}'''''\nb = 1",
        f'"{DOTS}" = 1\n["{BRACKETS}".b]\nc = 2',
        'a = ""\nb = \'\'\nc = """"""\nd = """a"\n"b"""\n' + f"e = '{DOTS}'",
        "a = [" + "1.5, " * 500 + "]",
        "\n".join(f"a{k} = {k}.25" for k in range(500)),
        f'a = "\\\\"\nb = "\\"{BRACKETS}"',
    ],
)
def test_what_stands_in_strings_and_comments_is_not_nesting(text: str) -> None:
    import tomllib

    assert files.parse_toml(text, "f.toml") == tomllib.loads(text)
    assert files.parse_json(json.dumps({text: text}), "f.json") == {text: text}


def test_all_toml_of_the_package_reads_as_ever() -> None:
    import tomllib

    found = list((Path(__file__).parents[2] / "src").rglob("*.toml"))
    assert len(found) > 50
    for path in found:
        assert files.read_toml(path) == tomllib.loads(path.read_text())


def test_a_file_of_the_package_that_is_gone_is_one_sentence() -> None:
    assert files.packaged_toml("airworthy.sensors", "devices.toml")
    with pytest.raises(AssetError, match=r"^The file 'no\.toml' of airworthy\.sensors is missing from the installation"):
        files.packaged_toml("airworthy.sensors", "no.toml")


def test_what_goes_wrong_with_a_copy_is_told_of_the_file_that_it_is_of(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    source, target = tmp_path / "source.bin", tmp_path / "target.bin"
    with pytest.raises(AssetError, match=r"There is no file '.*source\.bin'"):
        files.copy_file(source, target)
    source.write_bytes(NEW)
    target.write_bytes(OLD)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # As `ulimit -f` sets it: writing beyond it fails as on a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, limits[1]))
    try:
        with pytest.raises(AirworthyError, match=r"Could not write '.*target\.bin': File too large\."):
            files.copy_file(source, target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (target.read_bytes(), sorted(tmp_path.iterdir())) == (OLD, [source, target])
    assert files.copy_file(source, target) == target
    assert target.read_bytes() == source.read_bytes()


def test_what_cannot_be_written_is_refused_before_it_is_made(tmp_path: Path) -> None:
    files.refuse_unwritable(tmp_path / "new.json")
    kept = tmp_path / "old.json"
    kept.write_text("old")
    files.refuse_unwritable(kept)
    assert [item.name for item in tmp_path.iterdir()] == ["old.json"]
    assert kept.read_text() == "old"
    for path, said in ((tmp_path, "it is a folder"), (tmp_path / "no" / "x.json", "No such file"), (kept / "x", "Not a dir")):
        with pytest.raises(AirworthyError, match=f"Could not write .*: {said}"):
            files.refuse_unwritable(path)


def test_a_folder_that_is_a_file_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("")
    with pytest.raises(AirworthyError, match=r"Could not make the folder .*mine.py': a file is there; choose another name"):
        files.make_folder(tmp_path / "mine.py")


def test_words_from_elsewhere_are_harmless() -> None:
    assert files.harmless("a\x1b[31mred\x07 b\n\u202ec\x9b") == "a?[31mred? b??c?"
    assert files.harmless("Größe 5 °") == "Größe 5 °"
