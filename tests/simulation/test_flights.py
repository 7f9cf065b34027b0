"""Flight tables in memory, on disk and under attack; the recorder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import sha256_file
from airworthy.simulation.flights import FlightTable, flight_columns, read_flight, write_flight
from airworthy.simulation.recorder import Recorder

META = {"version": "0.1.0", "vehicle": ["carl"], "course": "hover", "pilot": "geometric", "seed": 3, "command": "airworthy fly"}


def columns(envs: int = 3, steps: int = 20, rotors: int = 4, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    values: dict[str, np.ndarray] = {"env": np.repeat(np.arange(envs), steps), "t": np.tile(np.arange(steps) / 100.0, envs)}
    for name in flight_columns(rotors):
        values.setdefault(name, rng.normal(size=envs * steps))
    values["saturated"] = rng.integers(0, 2, envs * steps)
    values["status"] = np.zeros(envs * steps)
    return values


def same(a: FlightTable, b: FlightTable) -> bool:
    return list(a.columns) == list(b.columns) and all(
        a.columns[n].dtype == b.columns[n].dtype and np.array_equal(a.columns[n], b.columns[n], equal_nan=True)
        for n in a.columns
    )


def test_columns_and_types() -> None:
    table = FlightTable.from_columns(columns())
    assert list(table.columns) == list(flight_columns(4))
    types = {name: str(values.dtype) for name, values in table.columns.items()}
    assert (types.pop("env"), types.pop("t"), types.pop("status"), types.pop("saturated")) == (
        "int32",
        "float64",
        "int8",
        "int8",
    )
    assert set(types.values()) == {"float32"}
    assert (table.env_count, table.rotor_count, table.row_count) == (3, 4, 60)
    assert table.vector("attitude").shape == (60, 4)
    assert table.rotors("rotor_command").shape == (60, 4)


def test_rows_are_ordered_by_environment_then_time() -> None:
    plain = columns()
    order = np.random.default_rng(1).permutation(60)
    assert same(FlightTable.from_columns({n: v[order] for n, v in plain.items()}), FlightTable.from_columns(plain))


def test_flight_and_select() -> None:
    table = FlightTable.from_columns(columns())
    assert table.flight(1).envs.tolist() == [1]
    assert np.shares_memory(table.flight(1).t, table.t)
    assert same(table.select([2, 0]).flight(2), table.flight(2))
    with pytest.raises(AirworthyError, match="no environment 9"):
        table.flight(9)
    with pytest.raises(AirworthyError, match="no vector 'colour'"):
        table.vector("colour")


def test_round_trip_with_not_a_number_and_extra_columns(tmp_path: Path) -> None:
    values = columns()
    values["position_x_m"][30:] = np.nan
    values["clearance_m"] = np.full(60, np.inf)
    table = FlightTable.from_columns(values)
    write_flight(tmp_path / "new" / "flight", table, META)
    read, meta = read_flight(tmp_path / "new" / "flight")
    assert same(read, table)
    assert meta.items() >= META.items()
    assert (meta["rows"], meta["environments"]) == (60, 3)


def test_empty_table_round_trip(tmp_path: Path) -> None:
    table = FlightTable.from_columns({name: values[:0] for name, values in columns().items()})
    read, meta = read_flight(write_flight(tmp_path, table, META))
    assert same(read, table)
    assert (read.env_count, meta["rows"]) == (0, 0)


def test_same_table_same_bytes(tmp_path: Path) -> None:
    table = FlightTable.from_columns(columns())
    for name in ("a", "b"):
        write_flight(tmp_path / name, table, META)
    for file in ("flight.parquet", "meta.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("status"), "needs the column 'status'"),
        (lambda c: c.update(t=c["t"][:-1]), "'t' has shape"),
        (lambda c: c.update(t=np.full(60, np.nan)), "not finite"),
        (lambda c: c.pop("reference_position_y_m"), "needs all of"),
    ],
)
def test_columns_that_are_no_table_are_refused(change: Any, message: str) -> None:
    values = columns()
    change(values)
    with pytest.raises(AirworthyError, match=message):
        FlightTable.from_columns(values)


def write_parquet(folder: Path, values: dict[str, Any], **meta: Any) -> None:
    """A flight folder by hand: any columns, and a meta.json that fits the file unless told otherwise."""
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table(values), folder / "flight.parquet")
    facts = {"format_version": 1, "rows": len(next(iter(values.values()))), "sha256": sha256_file(folder / "flight.parquet")}
    (folder / "meta.json").write_text(json.dumps(facts | meta))


def test_missing_and_broken_files(tmp_path: Path) -> None:
    table = FlightTable.from_columns(columns())
    with pytest.raises(AssetError, match="no file"):
        read_flight(tmp_path)
    write_flight(tmp_path, table, META)
    (tmp_path / "flight.parquet").unlink()
    with pytest.raises(AssetError, match="no file"):
        read_flight(tmp_path)
    (tmp_path / "flight.parquet").mkdir()
    with pytest.raises(AssetError, match="no file"):
        read_flight(tmp_path)


def test_table_of_another_run_is_refused(tmp_path: Path) -> None:
    write_flight(tmp_path / "a", FlightTable.from_columns(columns()), META)
    write_flight(tmp_path / "b", FlightTable.from_columns(columns(seed=1)), META)
    (tmp_path / "a" / "flight.parquet").write_bytes((tmp_path / "b" / "flight.parquet").read_bytes())
    with pytest.raises(AssetError, match="SHA-256"):
        read_flight(tmp_path / "a")


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ("[]", "no table of keys"),
        ("{}", "format_version None"),
        ('{"format_version": 2}', "reads 1"),
        ('{"format_version": 1, "rows": -1, "sha256": ""}', "row count"),
        ('{"format_version": 1, "rows": true, "sha256": ""}', "row count"),
        ('{"format_version": 1, "rows": NaN}', "not valid JSON"),
        ("[" * 100_000, "nested|JSON"),
        ("\x00", "JSON"),
    ],
)
def test_hostile_meta(tmp_path: Path, meta: str, message: str) -> None:
    write_flight(tmp_path, FlightTable.from_columns(columns()), META)
    (tmp_path / "meta.json").write_text(meta)
    with pytest.raises(AssetError, match=message):
        read_flight(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("attitude_w"), "'attitude_w' is missing"),
        (lambda c: c.update(env=c["env"].astype(np.float64)), "'env' is double, expected int32"),
        (lambda c: c.update(note=["x"] * 60), "'note' is string"),
        (lambda c: c.update(t=np.full(60, np.inf)), "not finite"),
    ],
)
def test_wrong_schema(tmp_path: Path, change: Any, message: str) -> None:
    values: dict[str, Any] = dict(FlightTable.from_columns(columns()).columns)
    change(values)
    write_parquet(tmp_path, values)
    with pytest.raises(AssetError, match=message):
        read_flight(tmp_path)


def test_row_count_and_size_are_checked_before_reading(tmp_path: Path) -> None:
    values = dict(FlightTable.from_columns(columns()).columns)
    write_parquet(tmp_path, values, rows=61)
    with pytest.raises(AssetError, match="61"):
        read_flight(tmp_path)
    write_parquet(tmp_path, values)
    with pytest.raises(AssetError, match="at most 100 are accepted"):
        read_flight(tmp_path, limit_bytes=100)
    # 20 million equal rows are a few kilobytes of file: refused by what they would take in memory.
    many = 2_000_000
    bomb = {name: np.zeros(many, dtype=column.dtype) for name, column in values.items()}
    write_parquet(tmp_path, bomb)
    assert (tmp_path / "flight.parquet").stat().st_size < 4_000_000
    with pytest.raises(AssetError, match="of memory"):
        read_flight(tmp_path, limit_bytes=100_000_000)


def refusal(folder: Path) -> str:
    """Why a folder is not read; empty where it is."""
    try:
        read_flight(folder)
    except AssetError as error:
        return str(error)
    return ""


@settings(max_examples=60)
@given(data=st.data())
def test_damaged_parquet_is_refused_in_one_sentence(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    write_flight(folder, FlightTable.from_columns(columns()), META)
    content = bytearray((folder / "flight.parquet").read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        for place in data.draw(st.sets(st.integers(0, len(content) - 1), min_size=1, max_size=6)):
            content[place] ^= data.draw(st.integers(1, 255))
    (folder / "flight.parquet").write_bytes(content)
    with pytest.raises(AssetError, match="SHA-256"):
        read_flight(folder)
    # One who writes the hash too reaches the parser: refused, or read as some table.
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps(meta | {"sha256": sha256_file(folder / "flight.parquet")}))
    assert "\n" not in refusal(folder)


STATE = ("position_x_m", "position_y_m", "position_z_m", "velocity_x_m_s", "velocity_y_m_s", "velocity_z_m_s")
STATE += ("attitude_x", "attitude_y", "attitude_z", "attitude_w", "rate_x_rad_s", "rate_y_rad_s", "rate_z_rad_s")
STATE += ("saturated", "status")


def record(recorder: Recorder, steps: int, envs: int) -> np.ndarray:
    """Feed random states in two blocks and a single row; returns them, shape (steps, rows, envs)."""
    states = np.random.default_rng(5).normal(size=(steps, len(STATE), envs)).astype(np.float32)
    states[:, -2] = states[:, -2] > 0.5
    states[:, -1] = 0.0
    for k in range(steps):
        recorder.record(0.01 * k, states[k, :10], states[k, 10:14], states[k, 14])
    return states


def test_recorder_keeps_every_nth_step_of_some_environments() -> None:
    recorder = Recorder(STATE, 5, 10, every=3, envs=[4, 1])
    states = record(recorder, 10, 5)
    table = recorder.table()
    assert recorder.step_count == 4
    assert table.envs.tolist() == [1, 4]
    np.testing.assert_allclose(table.flight(4).t, [0.0, 0.03, 0.06, 0.09])
    np.testing.assert_array_equal(table.flight(4).columns["velocity_y_m_s"], states[::3, 4, 4])
    np.testing.assert_array_equal(table.flight(1).columns["saturated"], states[::3, 13, 1])


def test_recorder_writes_what_its_table_holds_and_keeps_lengths(tmp_path: Path) -> None:
    recorder = Recorder(STATE, 4, 50)
    record(recorder, 50, 4)
    lengths = [50, 0, 20, 1]
    table = recorder.table(lengths)
    assert np.diff(table.starts).tolist() == [50, 20, 1]
    recorder.write(tmp_path / "a", META, lengths)
    write_flight(tmp_path / "b", table, META)
    assert same(read_flight(tmp_path / "a")[0], table)
    assert (tmp_path / "a" / "flight.parquet").read_bytes() == (tmp_path / "b" / "flight.parquet").read_bytes()


def test_recorder_spills_or_says_why_not(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="record every n-th step"):
        Recorder(STATE, 1000, 1_000_000)
    spilling = Recorder(STATE, 5, 10, memory_limit_bytes=100, spill_folder=tmp_path)
    plain = Recorder(STATE, 5, 10)
    record(spilling, 10, 5)
    record(plain, 10, 5)
    assert same(spilling.table(), plain.table())


def test_recorder_refuses_what_does_not_fit() -> None:
    recorder = Recorder(STATE, 5, 1)
    with pytest.raises(AirworthyError, match=r"shape \(15, 4\)"):
        recorder.record(0.0, np.zeros((15, 4)))
    with pytest.raises(AirworthyError, match="got 14 rows"):
        Recorder(STATE, 5, 1).record(0.0, np.zeros((14, 5)))
    full = Recorder(STATE, 5, 1)
    full.record(0.0, np.zeros((15, 5)))
    with pytest.raises(AirworthyError, match="full after 1"):
        full.record(0.0, np.zeros((15, 5)))
    with pytest.raises(AirworthyError, match="positive"):
        Recorder(STATE, 5, 0)
    with pytest.raises(AirworthyError, match="0 to 4"):
        Recorder(STATE, 5, 1, envs=[5])
    with pytest.raises(AirworthyError, match="differ"):
        Recorder(("t", *STATE), 5, 1)


def test_an_unrecorded_table_is_empty() -> None:
    assert Recorder(STATE, 5, 1).table().row_count == 0


def test_a_status_that_is_not_a_number_reads_as_diverged() -> None:
    recorder = Recorder(STATE, 1, 1)
    recorder.record(0.0, np.full((15, 1), np.nan))
    assert recorder.table().status.tolist() == [1]
