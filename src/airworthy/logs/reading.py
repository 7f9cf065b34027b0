"""`read_log`: a flight log of any format, found out from its content."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from airworthy.core.arrays import ArrayAny
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import harmless, read_bytes
from airworthy.logs.building import LOG_BYTES_MAX, FileContent, LogDraft, build, draft_of
from airworthy.logs.mapping import ColumnMapping, apply_mapping, read_mapping
from airworthy.logs.readers.blackbox import is_blackbox, read_blackbox
from airworthy.logs.readers.columns import bytes_allowed, flat, npz_arrays, parquet_columns, text_columns
from airworthy.logs.readers.crazyflie import is_crazyflie, read_crazyflie
from airworthy.logs.readers.mcap import is_mcap
from airworthy.logs.readers.own import (
    FLIGHT_FILE,
    NPZ_HEAD,
    is_event_archive,
    is_run,
    read_event_archive,
    read_own_archive,
    read_run,
)
from airworthy.logs.readers.packing import is_zstd, zstd_bytes
from airworthy.logs.readers.plain_text import comma_separated, legible
from airworthy.logs.readers.poses import is_euroc, is_tum, read_euroc, read_tum
from airworthy.logs.readers.ros_streams import is_rosbag, read_mcap, read_rosbag
from airworthy.logs.readers.ulog import is_ulog
from airworthy.logs.readers.ulog_streams import read_ulog
from airworthy.logs.record import Log

_BAGS = (".db3", ".mcap", ".db3.zstd", ".mcap.zstd")
"""Endings of the parts of a ROS 2 bag."""
_EUROC_FILES = (
    ("imu0.csv", "imu0"),
    ("imu0/data.csv", "imu0"),
    ("mav0/imu0/data.csv", "imu0"),
    ("groundtruth.csv", "truth"),
    ("state_groundtruth_estimate0/data.csv", "truth"),
    ("mav0/state_groundtruth_estimate0/data.csv", "truth"),
)


@dataclass(frozen=True)
class ReadOptions:
    """What a file does not say by itself."""

    mapping: str | Path | Mapping[str, ColumnMapping] | None = None
    """Meaning of a plain table's columns: a `mapping.toml`, or the mapping itself."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Header lines that a bare blackbox lacks, by name."""
    topics: Mapping[str, str] = field(default_factory=dict)
    """Topic of a bag -> label of its streams ("capture"), or "-" to leave it out."""
    env: int = 0
    """Environment of a recorded run."""


def read_log(path: str | Path, options: ReadOptions | None = None) -> Log:
    """Read a flight log, whatever its format.

    Read are ULog, the Crazyflie's micro-SD files, Betaflight's blackbox as text, MCAP, ROS 2 bags, EuRoC, TUM, recorded runs,
    and tables (CSV, Parquet, .npz) with a mapping. The content decides, not the name. A damaged tail gives what came before it,
    and a note.

    Args:
        path: File or folder.
        options: What the file does not say.

    Raises:
        AssetError: The file is missing, damaged where it cannot be, of no format that is read, or needs a mapping.
    """
    options = options or ReadOptions()
    place = Path(path)
    # Damaged numbers overflow; what comes of them is missing, which streams say.
    try:
        with np.errstate(all="ignore"):
            return build(_folder(place, options) if place.is_dir() else _file(place, options))
    except MemoryError as error:
        raise AssetError(f"Log {str(place)!r}: it takes more memory than there is; a part of it may fit.") from error


def _folder(folder: Path, options: ReadOptions) -> LogDraft:
    if is_run(folder):
        data = read_bytes(folder / FLIGHT_FILE, LOG_BYTES_MAX)
        draft = _draft(folder, data, "run", options)
        read_run(data, draft, folder, options.env)
        return draft
    bags = sorted(path for ending in _BAGS for path in folder.glob(f"*{ending}"))
    if bags:
        if len(bags) > 1:
            raise AssetError(f"Folder {str(folder)!r} holds {len(bags)} parts of a bag; name one of them: {bags[0].name}, ...")
        return _file(bags[0], options)
    parts = [(folder / name, label) for name, label in _EUROC_FILES if (folder / name).is_file()]
    if parts:
        return _euroc_folder(folder, parts, options)
    raise AssetError(
        f"Folder {str(folder)!r} is no log: expected a run of Airworthy ({FLIGHT_FILE}), a ROS 2 bag or EuRoC's imu0.csv."
    )


def _euroc_folder(folder: Path, parts: list[tuple[Path, str]], options: ReadOptions) -> LogDraft:
    contents = [read_bytes(path, LOG_BYTES_MAX) for path, _ in parts]
    whole = _draft(folder, b"".join(contents) if len(contents) > 1 else contents[0], "EuRoC", options)
    for data, (path, label) in zip(contents, parts, strict=True):
        # Each file by itself, so that a refusal names it.
        draft = LogDraft(str(path), "EuRoC", "")
        read_euroc(data, draft, label)
        whole.found += draft.found
        whole.raw |= draft.raw
        whole.notes += [note for note in draft.notes if note not in whole.notes]
    return whole


def _file(path: Path, options: ReadOptions) -> LogDraft:
    data = read_bytes(path, LOG_BYTES_MAX)
    if not data:
        raise AssetError(f"Log {str(path)!r} is empty.")
    if is_zstd(data):
        data = _unpacked(path, data)
    for found, name, read in _BINARY:
        if found(data):
            draft = _draft(path, data, name, options)
            content = FileContent(data)
            # Readers let go what they have read: of a log of hours the file would be half of what is there.
            del data
            read(content, draft, options)
            return draft
    if data[:4] in (b"PK\x03\x04", b"PAR1"):
        return _packed_table(path, data, options)
    if b"\0" in data[:4096] and data[:2] not in (BOM_UTF16_LE, BOM_UTF16_BE):
        first = data[:8].hex(" ")
        raise AssetError(f"Log {str(path)!r} begins with {first}, which no format that is read does: {FORMATS}.")
    return _text(path, data, options)


def holds_log(path: str | Path) -> bool:
    """Tell whether a file or folder is a flight log by its first bytes, or, of text and archives, by its ending.

    A run of Airworthy is not looked for: it holds more than a log.
    """
    place = Path(path)
    if place.is_dir():
        bag = any(True for ending in _BAGS for _ in place.glob(f"*{ending}"))
        return bag or any((place / name).is_file() for name, _ in _EUROC_FILES)
    try:
        with place.open("rb") as file:
            head = file.read(4096)
    except OSError:
        return False
    if is_zstd(head) or any(found(head) for found, _, _ in _BINARY) or head[:4] == b"PAR1":
        return True
    return place.suffix.lower() in (".csv", ".tum", ".txt") or (place.suffix.lower() == ".npz" and head[:2] == b"PK")


def _unpacked(path: Path, data: bytes) -> bytes:
    """Return a file that is packed as a whole, as `ros2 bag record --compression-mode file` leaves it."""
    allowed = 4 * bytes_allowed(len(data))
    try:
        whole = zstd_bytes(data, allowed + 1)
    except ValueError as error:
        raise AssetError(f"Log {str(path)!r} is packed by zstd and damaged: {harmless(str(error))[:120]}.") from error
    if not 0 < len(whole) <= min(allowed, LOG_BYTES_MAX):
        raise AssetError(
            f"Log {str(path)!r} is packed by zstd and holds {'nothing' if not whole else f'over {allowed:,} bytes'}; at most"
            f" {min(allowed, LOG_BYTES_MAX):,} are read: unpack it by `zstd -d`."
        )
    return whole


def _draft(path: Path, data: bytes, kind: str, options: ReadOptions) -> LogDraft:
    draft = draft_of(path, data, kind)
    _refuse_idle(draft, options)
    return draft


def _refuse_idle(draft: LogDraft, options: ReadOptions) -> None:
    """Refuse what a user says about a file where nothing of it would be used: a silent typo, or the wrong file."""
    given = (
        ("a mapping", "--map", options.mapping is not None, ("CSV", "Parquet", ".npz"), "plain tables"),
        ("a header line", "--set", bool(options.settings), ("Betaflight blackbox CSV",), "a blackbox as CSV"),
        ("a topic", "--topic", bool(options.topics), ("MCAP", "ROS 2 bag"), "bags"),
        ("an environment", "--env", options.env != 0, ("run",), "recorded runs"),
    )
    for what, option, used, formats, where in given:
        if used and draft.format not in formats:
            raise draft.refuse(f"{option} gives {what}, which only {where} can have, and this is {draft.format}: leave it out")


FORMATS = "ULog, Crazyflie micro-SD, blackbox CSV, MCAP, ROS 2 bag, EuRoC, TUM, a run, CSV, Parquet, .npz"
"""What `read_log` reads, for messages."""

_BINARY: tuple[tuple[Callable[[bytes], bool], str, Callable[[FileContent, LogDraft, ReadOptions], None]], ...] = (
    (is_ulog, "ULog", lambda content, draft, _: read_ulog(content, draft)),
    (is_crazyflie, "Crazyflie micro-SD", lambda content, draft, _: read_crazyflie(content, draft)),
    (is_mcap, "MCAP", lambda content, draft, options: read_mcap(content.data, draft, options.topics)),
    (is_rosbag, "ROS 2 bag", lambda content, draft, options: read_rosbag(content.data, draft, options.topics)),
)


def _text(path: Path, data: bytes, options: ReadOptions) -> LogDraft:
    text, told = legible(data)
    kind = "CSV"
    if options.mapping is None:
        kind = next((name for name, found in _TEXTS.items() if found(text)), kind)
    draft = _draft(path, data, kind, options)
    for note in told:
        draft.note(note)
    if kind == "Betaflight blackbox CSV":
        read_blackbox(text, draft, options.settings)
    elif kind == "EuRoC":
        read_euroc(text, draft)
    elif kind == "TUM":
        read_tum(text, draft)
    else:
        _mapped(text_columns(comma_separated(text, draft), draft), draft, options)
    return draft


_TEXTS: Mapping[str, Callable[[bytes], bool]] = {
    "Betaflight blackbox CSV": is_blackbox,
    "EuRoC": is_euroc,
    "TUM": is_tum,
}
"""Formats of text by what tells them, the first that fits."""


def _packed_table(path: Path, data: bytes, options: ReadOptions) -> LogDraft:
    if data[:4] == b"PAR1":
        draft = _draft(path, data, "Parquet", options)
        _mapped(parquet_columns(data, draft), draft, options)
        return draft
    draft = draft_of(path, data, ".npz")
    arrays = npz_arrays(data, draft)
    if NPZ_HEAD in arrays:
        draft.format = ".npz of Airworthy"
        _refuse_idle(draft, options)
        read_own_archive(arrays, draft)
    elif is_event_archive(arrays) and options.mapping is None:
        draft.format = "Crazyflie events, .npz"
        _refuse_idle(draft, options)
        read_event_archive(arrays, draft)
    else:
        _refuse_idle(draft, options)
        _mapped(flat(arrays), draft, options)
    return draft


def _mapped(columns: Mapping[str, ArrayAny], draft: LogDraft, options: ReadOptions) -> None:
    if options.mapping is None:
        names = ", ".join(list(columns)[:8])
        raise draft.refuse(
            f"it is a table whose columns ({names}) need a meaning: `airworthy logs map FILE --out mapping.toml` writes a first"
            " guess, `--map mapping.toml` uses it"
        )
    mapping = read_mapping(options.mapping) if isinstance(options.mapping, str | Path) else options.mapping
    apply_mapping(columns, mapping, draft)


def table_of(path: str | Path) -> tuple[dict[str, ArrayAny], LogDraft]:
    """Return the columns of a plain table, for a first guess of their meaning; raises AssetError where it is none."""
    data = read_bytes(path, LOG_BYTES_MAX)
    kind = {b"PAR1": "Parquet", b"PK\x03\x04": ".npz"}.get(data[:4], "CSV")
    draft = draft_of(path, data, kind)
    if kind == "Parquet":
        return parquet_columns(data, draft), draft
    if kind == ".npz":
        return flat(npz_arrays(data, draft)), draft
    text, told = legible(data)
    if not text or b"\0" in text[:4096] or is_blackbox(text) or is_tum(text):
        raise AirworthyError(
            f"{str(path)!r} is no plain table; `airworthy logs show` reads it without a mapping if it is a log."
        )
    for note in told:
        draft.note(note)
    return text_columns(comma_separated(text, draft), draft), draft
