"""Logs as files for other programs: one table (CSV, Parquet), an archive of ours (.npz), poses as TUM writes them."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.errors import AirworthyError, AssetWarning, unknown_name
from airworthy.core.files import write_bytes
from airworthy.core.table_schema import toml_key, toml_string
from airworthy.logs.clocks.clock import NS
from airworthy.logs.readers.own import GEOMETRY_ARRAYS, NPZ_HEAD
from airworthy.logs.reading import ReadOptions, read_log
from airworthy.logs.record import KINDS, Log, LogStream
from airworthy.logs.writing.mcap_writer import mcap_bytes
from airworthy.logs.writing.outputs import refuse_input, refuse_other_mapping
from airworthy.logs.writing.pairing import beside

FORMATS = ("mcap", "csv", "parquet", "npz", "tum")
"""What logs are written as."""


def write_log(log: Log, path: str | Path, kind: str = "") -> list[Path]:
    """Write a log in another format.

    CSV and Parquet hold one table of all stamps, blank where a stream has none, and a `mapping.toml` beside it, with which
    `read_log` reads it back; .npz holds every stream to the bit; MCAP holds messages of ROS 2; TUM the first stream of poses.
    What a format has no place for (kinds of streams, samples, events, parameters) is told in a warning.

    Args:
        log: The log.
        path: File to write.
        kind: One of `FORMATS`; empty: by the ending of the name.

    Returns:
        The files that were written.

    Raises:
        AirworthyError: The format is unknown, the log holds nothing that it can hold, the file is the log itself, or another
            mapping lies where this table's would be written.
    """
    path = Path(path)
    ending = path.suffix.lower().removeprefix(".")
    kind = kind or {"txt": "tum"}.get(ending, ending)
    if kind not in FORMATS:
        raise unknown_name("format of logs", kind, FORMATS, "Name it with --to, or by the ending of the file.")
    if not any(len(stream.time) for stream in log.streams):
        raise AirworthyError(f"Log {log.name!r} holds no stream that could be written.")
    write: dict[str, Callable[[Log], bytes]] = {
        "mcap": mcap_bytes,
        "csv": _csv,
        "parquet": _parquet,
        "npz": _npz,
        "tum": _tum,
    }
    refuse_input(path, [log.source.path], "log")
    mapping = path.with_name(f"{path.stem}.mapping.toml")
    meaning = _mapping(log).encode()
    if kind != "npz":
        _tell_sorted(log, path)
    if kind in ("csv", "parquet"):
        refuse_input(mapping, [log.source.path], "log")
        refuse_other_mapping(mapping, meaning)
    write_bytes(path, write[kind](log))
    table = kind in ("csv", "parquet")
    if table:
        write_bytes(mapping, meaning)
    _tell_left_out(log, read_log(path, ReadOptions(mapping=mapping if table else None)), path, kind)
    return [path, mapping] if table else [path]


def _tell_left_out(log: Log, back: Log, path: Path, kind: str) -> None:
    """Warn of what a format has no place for: what cannot be read back was not written."""
    kept = {name: sum(_samples(s) for s in back.of_kind(name)) for name in KINDS}
    had = {name: sum(_samples(s) for s in log.of_kind(name)) for name in KINDS}
    left = [name for name in KINDS if had[name] and not kept[name]]
    told = [] if not left else [f"no place for {', '.join(left)}, which {'is' if len(left) == 1 else 'are'} left out"]
    fewer = [f"{kept[n]:,} of {had[n]:,} samples of {n}" for n in KINDS if 0 < kept[n] < had[n]]
    told += [f"{', '.join(fewer)}"] if fewer else []
    there = _besides(back)
    lost = [f"{count:,} {name}" for name, count in _besides(log).items() if count > there[name]]
    lost += ["geometry of rotors"] if log.geometry is not None and back.geometry is None else []
    told += [f"no {', '.join(lost)}"] if lost else []
    if told:
        better = "" if kind == "npz" else ": .npz holds every stream, with events and parameters"
        warnings.warn(f"{path.name}: {kind} has {', and '.join(told)}{better}.", AssetWarning, stacklevel=3)


def _besides(log: Log) -> dict[str, int]:
    return {"events": len(log.events), "parameters": len(log.parameters)}


def _samples(stream: LogStream) -> int:
    """Count samples that hold a value: a row that is missing altogether says nothing."""
    return int((~np.isnan(stream.values)).any(axis=1).sum())


def _tell_sorted(log: Log, path: Path) -> None:
    """Warn of streams whose stamps go back: all formats but .npz have samples in the order of their stamps."""
    back = [stream.name for stream in log.streams if stream.quality.backward]
    if back:
        warnings.warn(
            f"{path.name}: stamps of {', '.join(back)} go back, and samples are written in the order of their stamps: .npz"
            " keeps the file's order.",
            AssetWarning,
            stacklevel=3,
        )


def _names(stream: LogStream) -> list[str]:
    """Columns of a stream in a table."""
    parts = {3: "xyz", 4: "xyzw"}.get(stream.values.shape[1], "") if stream.frame else ""
    head = stream.name.replace(":", "_")
    if stream.values.shape[1] == 1:
        return [head]
    return [f"{head}_{part}" for part in parts or map(str, range(stream.values.shape[1]))]


def _table(log: Log) -> dict[str, ArrayAny]:
    """Return all streams side by side: `time_ns` and their columns, NaN where a stream has no sample."""
    stamps = [np.rint(stream.time * NS).astype(np.int64) for stream in log.streams]
    # A stamp that a stream holds twice needs two rows: the second one comes after the first.
    keyed = []
    for stamp in stamps:
        order = np.argsort(stamp, kind="stable")
        first = np.searchsorted(stamp[order], stamp[order], side="left")
        number = np.empty(len(stamp), np.int64)
        number[order] = np.arange(len(stamp)) - first
        keyed.append(np.stack([stamp, number], axis=1))
    rows = np.unique(np.concatenate(keyed), axis=0)
    columns: dict[str, ArrayAny] = {"time_ns": rows[:, 0]}
    marks = np.ascontiguousarray(rows).view([("", np.int64)] * 2)[:, 0]
    for stream, keys in zip(log.streams, keyed, strict=True):
        index = np.searchsorted(marks, np.ascontiguousarray(keys).view(marks.dtype)[:, 0])
        for name, values in zip(_names(stream), stream.values.T, strict=True):
            column = np.full(len(rows), np.nan)
            column[index] = values
            columns[name] = column
    return columns


def _arrow(log: Log) -> Any:
    import pyarrow as pa

    return pa.table({name: pa.array(values, from_pandas=True) for name, values in _table(log).items()})


def _csv(log: Log) -> bytes:
    from pyarrow import csv

    out = io.BytesIO()
    csv.write_csv(_arrow(log), out, csv.WriteOptions(quoting_style="none"))
    return out.getvalue()


def _parquet(log: Log) -> bytes:
    from pyarrow import parquet

    out = io.BytesIO()
    parquet.write_table(_arrow(log), out)
    return out.getvalue()


def _mapping(log: Log) -> str:
    """Return the mapping of a table of ours."""
    lines = [f"# Columns of a table that was written of {log.source.path!r}: SI units, FLU and ENU."]
    for stream in log.streams:
        columns = ", ".join(toml_string(name) for name in _names(stream))
        rest = f'time = "time_ns", time_unit = "ns", stamp = "{stream.stamp}"'
        lines.append(f"{toml_key(stream.name)} = {{ columns = [{columns}], {rest} }}")
    return "\n".join(lines) + "\n"


def _npz(log: Log) -> bytes:
    """Every stream to the bit, and a description as JSON in an array of bytes."""
    streams: list[dict[str, Any]] = []
    arrays: dict[str, ArrayAny] = {}
    for k, stream in enumerate(log.streams):
        low = None if stream.filter is None else [stream.filter.order, stream.filter.cutoff]
        streams.append(
            {"kind": stream.kind, "label": stream.label, "stamp": stream.stamp, "filter": low, "origin": stream.origin}
            | {"clock_offset": stream.clock_offset, "clock_scale": stream.clock_scale}
        )
        arrays |= {f"stream_{k}/time": stream.time, f"stream_{k}/values": stream.values}
    finite = {k: v for k, v in log.parameters.items() if isinstance(v, str) or np.isfinite(v)}
    head: dict[str, Any] = {"version": 1, "start_ns": log.source.start_ns, "streams": streams, "parameters": finite}
    head["events"] = [[event.time, event.kind, event.detail] for event in log.events]
    if (found := log.geometry) is not None:
        head["linearised"] = found.linearised
        arrays |= {f"geometry/{name}": getattr(found, name) for name in GEOMETRY_ARRAYS}
    out = io.BytesIO()
    arrays[NPZ_HEAD] = np.frombuffer(json.dumps(head).encode(), np.uint8)
    np.savez_compressed(out, **arrays)  # type: ignore[arg-type]
    return out.getvalue()


def poses(log: Log) -> tuple[Array, Array, Array]:
    """Return times (n,), positions (n, 3) and attitudes (n, 4) of the first position stream with attitudes beside it.

    Raises:
        AirworthyError: There is none.
    """
    for place in log.of_kind("position"):
        turn = beside(log, place, "attitude")
        if turn is not None:
            known = np.isfinite(place.values).all(axis=1) & np.isfinite(turn.values).all(axis=1)
            if known.any():
                return place.time[known], place.values[known], turn.values[known]
    raise AirworthyError(f"Log {log.name!r} has no positions with attitudes at the same stamps, which poses need.")


def _tum(log: Log) -> bytes:
    time, places, turns = poses(log)
    order = np.argsort(time, kind="stable")
    time, places, turns = time[order], places[order], turns[order]
    stamps = np.rint(time * NS).astype(np.int64) + log.source.start_ns
    lines = ["# stamp [s], position [m], attitude x y z w, body FLU in world ENU"]
    for stamp, place, turn in zip(stamps.tolist(), places.tolist(), turns.tolist(), strict=True):
        numbers = " ".join(f"{v:.9g}" for v in (*place, *turn))
        lines.append(f"{stamp // NS}.{stamp % NS:09d} {numbers}")
    return ("\n".join(lines) + "\n").encode()
