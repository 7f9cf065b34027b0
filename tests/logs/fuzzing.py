"""Damaged and random files, made without end, and what reading them took."""

from __future__ import annotations

import io
import resource
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tests.logs.small_files import mcap_record, mcap_records, mcap_text

from airworthy.core.errors import AirworthyError
from airworthy.logs import ReadOptions, flight_segments, log_checks, log_findings, read_log


@dataclass
class FuzzReport:
    """What came of many files."""

    files: int = 0
    read: int = 0
    """Files that gave a log."""
    growth: float = 0.0
    """By how much the most memory of the process grew [MB]."""
    failures: list[tuple[str, bytes]] = field(default_factory=list)
    """What was raised that is no sentence, and the file."""


def mutated(data: bytes, draw: np.random.Generator) -> bytes:
    """Cut, flipped, overwritten, doubled or spread with zeros."""
    made = bytearray(data)
    for _ in range(int(draw.integers(1, 4))):
        at = int(draw.integers(0, len(made)))
        match int(draw.integers(0, 5)):
            case 0:
                made[at] ^= 1 << int(draw.integers(0, 8))
            case 1:
                made[at : at + 8] = b"\xff" * 8
            case 2:
                made[at : at + 16] = bytes(16)
            case 3:
                made[at:at] = made[at : at + 40]
            case _:
                del made[at : at + int(draw.integers(1, 64))]
        if not made:
            return b"\0"
    return bytes(made)


def random_tail(data: bytes, draw: np.random.Generator) -> bytes:
    """The beginning of a file, of any length, and random bytes: of a text, of letters that texts have."""
    kept = data[: int(draw.integers(0, len(data)))]
    count = int(draw.integers(1, 400))
    letters = np.frombuffer(b"0123456789.,-+eE \n\r\t\"'naif[]#;:\xff\x00", np.uint8)
    tail = draw.choice(letters, count) if data.isascii() else draw.integers(0, 256, count, np.uint8)
    return kept + tail.astype(np.uint8).tobytes()


def deep_mcap(messages: int, compression: str, draw: np.random.Generator) -> bytes:
    """A file of MCAP whose records were damaged before they were packed, without checksum: what the checksum keeps away."""
    inner = mutated(mcap_records(messages), draw)
    packed = inner
    if compression == "zstd":
        import zstandard

        packed = zstandard.ZstdCompressor(level=1).compress(inner)
    elif compression == "lz4":
        import lz4.frame

        packed = lz4.frame.compress(inner)
    chunk = struct.pack("<QQQI", 0, 0, len(inner), 0) + mcap_text(compression) + struct.pack("<Q", len(packed)) + packed
    head = b"\x89MCAP0\r\n" + mcap_record(1, mcap_text("ros2") + mcap_text("test"))
    return head + mcap_record(6, chunk) + mcap_record(15, struct.pack("<I", 0)) + b"\x89MCAP0\r\n"


def deep_archive(data: bytes, draw: np.random.Generator) -> bytes:
    """An .npz archive, one of whose arrays was damaged before it was packed: its checksums are right."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    names = sorted(members)
    chosen = names[int(draw.integers(0, len(names)))]
    members[chosen] = mutated(members[chosen], draw)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in names:
            archive.writestr(name, members[name])
    return packed.getvalue()


def damaged(data: bytes, number: int, draw: np.random.Generator) -> bytes:
    """Four of five files are mutated, one has a random tail."""
    return random_tail(data, draw) if number % 5 == 4 else mutated(data, draw)


def fuzz(
    path: Path,
    make: Callable[[int, np.random.Generator], bytes],
    given: ReadOptions | None,
    count: int,
    seed: int,
    looked_at: int = 20,
) -> FuzzReport:
    """Read many files.

    Args:
        path: Where each is written.
        make: Makes the file of a number.
        given: Options of reading.
        count: Files.
        seed: Of what is done to them.
        looked_at: Of so many logs one is also looked through, as `logs show` does.
    """
    draw = np.random.default_rng(seed)
    report = FuzzReport()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(count):
        made = make(number, draw)
        path.write_bytes(made)
        _read(path, given, report, number % looked_at == 0, made)
        report.files += 1
        if len(report.failures) >= 20:
            break
    report.growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3
    return report


def _read(path: Path, given: ReadOptions | None, report: FuzzReport, looked_at: bool, made: bytes) -> None:
    """Read one file, and count what came of it."""
    try:
        log = read_log(path, given)
        for stream in log.streams:
            assert len(stream.time) == len(stream.values) == stream.quality.count
        report.read += 1
        if looked_at:
            segments = flight_segments(log)
            log_checks(log)
            log_findings(log, segments)
    except AirworthyError as error:
        text = str(error)
        if "\n" in text or len(text) >= 600:
            report.failures.append((f"no sentence: {text[:200]}", made))
    except Exception as error:  # what a reader must never let through, whatever it is
        report.failures.append((f"{type(error).__name__}: {str(error)[:200]}", made))
