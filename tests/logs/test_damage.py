"""Hostile logs: every damaged file of every format gives a log or one sentence, within the bounds of memory and time."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.logs.fuzzing import damaged, deep_archive, deep_mcap, fuzz, mutated
from tests.logs.small_files import (
    CSV_MAPPING,
    crazyflie_file,
    every_format,
    mcap_file,
    mcap_record,
    mcap_text,
    ulog_file,
    ulog_message,
)

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.logs import Log, LogSource, LogStream, ReadOptions, read_log, write_log

FORMATS = (
    "crazyflie",
    "log.ulg",
    "blackbox.csv",
    "euroc.csv",
    "tum.txt",
    "plain.mcap",
    "zstd.mcap",
    "lz4.mcap",
    "bag.db3",
    "events.npz",
)
FORMATS += ("table.csv", "own.npz", "table.parquet")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    pytest.importorskip("zstandard")
    pytest.importorskip("lz4.frame")
    return every_format(tmp_path_factory.mktemp("made"))


def options(name: str, folder: Path) -> ReadOptions | None:
    if not name.startswith("table."):
        return None
    (folder / "m.toml").write_text(CSV_MAPPING)
    return ReadOptions(mapping=folder / "m.toml")


def outcome(path: Path, data: bytes, given: ReadOptions | None) -> Log | str:
    """The log, or the one sentence."""
    path.write_bytes(data)
    try:
        log = read_log(path, given)
    except AirworthyError as error:
        text = str(error)
        assert "\n" not in text
        assert len(text) < 600, text
        return text
    for stream in log.streams:
        assert len(stream.time) == len(stream.values)
        assert stream.quality.count == len(stream.time)
    return log


@pytest.mark.parametrize("name", FORMATS)
def test_mutated_files(files: dict[str, bytes], tmp_path: Path, name: str) -> None:
    given, draw = options(name, tmp_path), np.random.default_rng(len(name))
    for number in range(40):
        outcome(tmp_path / name, damaged(files[name], number, draw), given)


def makers(files: dict[str, bytes]) -> dict[str, Callable[[int, np.random.Generator], bytes]]:
    """What makes damaged files: of each format, and of those with checksums also before they are packed."""
    made: dict[str, Callable[[int, np.random.Generator], bytes]] = {
        name: lambda number, draw, data=data: damaged(data, number, draw) for name, data in files.items()
    }
    for packed in ("", "zstd", "lz4"):
        made[f"deep {packed or 'plain'}.mcap"] = lambda _, draw, packed=packed: deep_mcap(10, packed, draw)
    for name in ("events.npz", "own.npz"):
        made[f"deep {name}"] = lambda _, draw, data=files[name]: deep_archive(data, draw)
    return made


DEEP = ("deep plain.mcap", "deep zstd.mcap", "deep lz4.mcap", "deep events.npz", "deep own.npz")


@pytest.mark.parametrize("name", DEEP)
def test_files_that_are_damaged_within(files: dict[str, bytes], tmp_path: Path, name: str) -> None:
    """Their checksums are right, so that readers believe what is packed."""
    report = fuzz(tmp_path / name.replace(" ", "_"), makers(files)[name], None, 60, 3)
    assert report.failures == []
    assert report.read > 0


def test_heads_of_arrays_that_are_no_literals(tmp_path: Path) -> None:
    """What NumPy's reader of heads raises at an open bracket is of `tokenize`: found by damaged files."""
    packed = io.BytesIO()
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (3, "
    head += b" " * (64 - (10 + len(head) + 1) % 64) + b"\n"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.npy", b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + bytes(24))
    text = outcome(tmp_path / "a.npz", packed.getvalue(), None)
    assert "is not a .npz archive that can be read" in str(text)


FUZZED = 100_000


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FORMATS, *DEEP])
def test_a_hundred_thousand_damaged_files(files: dict[str, bytes], tmp_path: Path, name: str) -> None:
    """Each gives a log or one sentence, and memory does not grow."""
    report = fuzz(tmp_path / name.replace(" ", "_"), makers(files)[name], options(name, tmp_path), FUZZED, len(name))
    assert [text for text, _ in report.failures] == []
    assert report.files == FUZZED
    assert report.growth < 128.0


@pytest.mark.parametrize("name", FORMATS)
def test_cut_anywhere(files: dict[str, bytes], tmp_path: Path, name: str) -> None:
    data, given = files[name], options(name, tmp_path)
    for at in sorted({*range(1, 40, 3), *np.linspace(40, len(data) - 1, 30).astype(int)}):
        outcome(tmp_path / name, data[:at], given)


@pytest.mark.parametrize("name", FORMATS)
def test_memory_stays_within_the_bound(files: dict[str, bytes], tmp_path: Path, name: str) -> None:
    """No more than 4 times the file and 64 MiB, over damaged files."""
    given, draw = options(name, tmp_path), np.random.default_rng(9)
    data = files[name]
    outcome(tmp_path / name, data, given)
    tracemalloc.start()
    try:
        for _ in range(20):
            outcome(tmp_path / name, mutated(data, draw), given)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * len(data) + (64 << 20)


@pytest.mark.parametrize(("make", "name"), [(crazyflie_file, "log"), (ulog_file, "a.ulg")])
def test_a_cut_tail_gives_what_came_before(tmp_path: Path, make: object, name: str) -> None:
    data = make()  # type: ignore[operator]
    whole = outcome(tmp_path / name, data, None)
    cut = outcome(tmp_path / name, data[: int(0.7 * len(data))], None)
    assert isinstance(whole, Log)
    assert isinstance(cut, Log)
    count = len(cut.stream("gyro").time)
    assert 5 < count < len(whole.stream("gyro").time)
    assert np.array_equal(cut.stream("gyro").values, whole.stream("gyro").values[:count])
    assert cut.notes


def test_flipped_checksum_and_zero_tail(tmp_path: Path) -> None:
    data = crazyflie_file()
    log = outcome(tmp_path / "log", data[:-1] + bytes([data[-1] ^ 1]), None)
    assert isinstance(log, Log)
    assert len(log.stream("gyro").time) == 20
    assert any("checksum" in note for note in log.notes)
    # A file that was not closed: zeros instead of the last records. No event has id 0 here.
    log = outcome(tmp_path / "log", data[:-44] + bytes(500), None)
    assert isinstance(log, Log)
    assert any("bytes from byte" in note for note in log.notes)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"\xbc\x02\x00\x01\x00\x01\x00a\0\xff\xff", "too many for the file"),
        (b"\xbc\x02\x00\x01\x00\x01\x00a\0\x01\x00acc.x\0" + bytes(8), "does not end with its type"),
        (b"\xbc\x02\x00\x01\x00\x01\x00" + b"a" * 400, "over 255 characters"),
        (b"\xbc\x02\x00\x00\x00", "declares no event type"),
    ],
)
def test_headers_of_crazyflie_that_lie(tmp_path: Path, head: bytes, said: str) -> None:
    text = outcome(tmp_path / "log", head, None)
    assert isinstance(text, str)
    assert said in text
    assert "byte" in text


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("uint64_t timestamp;float[60000] x", "larger than a message"),
        ("uint64_t timestamp;a b", "nested over 8 deep"),
        ("uint64_t timestamp;c d", "format 'c' is not declared"),
        ("uint64_t timestamp;float", "expected 'type name'"),
        ("float x", "has no timestamp"),
    ],
)
def test_formats_of_ulog_that_lie(tmp_path: Path, field: str, said: str) -> None:
    data = b"ULog\x01\x12\x35\x01" + bytes(8) + ulog_message("F", f"a:{field};".encode())
    text = outcome(tmp_path / "a.ulg", data + ulog_message("A", b"\0\0\0a"), None)
    assert isinstance(text, str)
    assert said in text
    assert "byte" in text


def test_bombs_are_not_unpacked(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    bomb = zstandard.ZstdCompressor().compress(bytes(100 << 20))
    # The chunk declares 1 MB, its frame 100 MB.
    chunk = bytes(16) + (1 << 20).to_bytes(8, "little") + bytes(4) + mcap_text("zstd") + len(bomb).to_bytes(8, "little") + bomb
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", bytes(300 << 20))
    tracemalloc.start()
    try:
        text = outcome(tmp_path / "a.mcap", b"\x89MCAP0\r\n" + mcap_record(6, chunk), None)
        assert "none of its topics" in str(text)
        assert "at most" in str(outcome(tmp_path / "a.npz", packed.getvalue(), None))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 << 20


@pytest.mark.parametrize("place", ["topic", "size", "channel"])
def test_a_damaged_first_chunk_costs_itself_alone(tmp_path: Path, place: str) -> None:
    """It held the only schemas and channels but for those of the summary."""
    time = np.arange(8000) * 0.001
    streams = (LogStream("gyro", time, np.stack([time] * 3, axis=1)),)
    (path,) = write_log(Log("a", streams, LogSource("a", "", "test")), tmp_path / "a.mcap")
    data = bytearray(path.read_bytes())
    # In the chunk's records; in its uncompressed size; in the number of its channel, the checksum taken away.
    chunk = data.index(b"\x06", 8 + 9)
    at = {"topic": data.index(b"/imu") + 1, "size": chunk + 9 + 16, "channel": data.index(b"/imu") - 8}[place]
    if place == "channel":
        data[chunk + 9 + 24 : chunk + 9 + 28] = bytes(4)
    data[at] ^= 0x40
    log = outcome(path, bytes(data), None)
    assert isinstance(log, Log)
    count = len(log.stream("gyro").time)
    assert count == 8000 if place == "channel" else 4000 < count < 8000
    assert np.array_equal(log.stream("gyro").values, streams[0].values[-count:])
    assert place == "channel" or any("chunk" in note for note in log.notes)
    assert log.stream("gyro").origin == "/imu"


def test_messages_that_nothing_describes_are_counted(tmp_path: Path) -> None:
    stray = mcap_record(5, (77).to_bytes(2, "little") + bytes(20) + b"?")
    data = mcap_file()
    log = outcome(tmp_path / "a.mcap", data[:8] + stray * 3 + data[8:], None)
    assert isinstance(log, Log)
    assert "3 messages are of 1 channels that nothing describes, and were left out." in log.notes


def test_missing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AssetError):
        read_log(tmp_path / "none.ulg")
