"""What a conversion must not write over: the flight itself, and a mapping of the user's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.logs.small_files import CSV_MAPPING, csv_table, tum_text, ulog_file

from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.logs import ReadOptions, read_log, write_log


def test_the_flight_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By its name, another spelling of it, a link, or a second name of the same file."""
    flight = tmp_path / "a.ulg"
    flight.write_bytes(ulog_file())
    os.link(flight, tmp_path / "hard.csv")
    (tmp_path / "soft.csv").symlink_to(flight)
    for out in (flight, tmp_path / ".." / tmp_path.name / "a.ulg", tmp_path / "hard.csv", tmp_path / "soft.csv"):
        assert main(["logs", "convert", str(flight), "--out", str(out), "--to", "csv"]) == 2
        assert "would be written over" in capsys.readouterr().err
    assert flight.read_bytes() == ulog_file()
    with pytest.raises(AirworthyError, match="is the log that is read"):
        write_log(read_log(flight), tmp_path / "hard.csv")


def test_no_file_of_a_folder_that_is_read(tmp_path: Path) -> None:
    (tmp_path / "imu0.csv").write_text("#timestamp [ns],w_RS_S_x,w_RS_S_y,w_RS_S_z\n1,0,0,0\n2,0,0,0\n")
    log = read_log(tmp_path)
    with pytest.raises(AirworthyError, match="a file of the log that is read"):
        write_log(log, tmp_path / "imu0.csv")
    assert write_log(log, tmp_path / "new.npz")[0].is_file()


def test_a_table_is_not_mapped_over_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "t.csv"
    table.write_bytes(csv_table())
    assert main(["logs", "map", str(table), "--out", str(table)]) == 2
    assert "is the table that is read" in capsys.readouterr().err
    assert table.read_bytes() == csv_table()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_mapping_of_the_user_stays(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_bytes(tum_text())
    (tmp_path / "b.mapping.toml").write_text(CSV_MAPPING)
    assert main(["logs", "convert", str(tmp_path / "a.txt"), "--out", str(tmp_path / f"b.{kind}")]) == 2
    assert "holds another mapping than this table needs: move or delete it" in capsys.readouterr().err
    assert (tmp_path / "b.mapping.toml").read_text() == CSV_MAPPING
    assert not (tmp_path / f"b.{kind}").exists()


def test_the_mapping_that_is_used_is_no_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_bytes(csv_table())
    (tmp_path / "m.toml").write_text(CSV_MAPPING)
    arguments = ["logs", "convert", str(tmp_path / "t.csv"), "--map", str(tmp_path / "m.toml"), "--out"]
    assert main([*arguments, str(tmp_path / "m.toml"), "--to", "npz"]) == 2
    assert "is the mapping that is read" in capsys.readouterr().err
    assert (tmp_path / "m.toml").read_text() == CSV_MAPPING


def test_writing_twice_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(tum_text())
    log = read_log(tmp_path / "a.txt")
    first = [path.read_bytes() for path in write_log(log, tmp_path / "b.csv")]
    paths = write_log(log, tmp_path / "b.csv")
    assert [path.read_bytes() for path in paths] == first
    # The table and its mapping are a log of their own, which is not written over either.
    again = read_log(paths[0], ReadOptions(mapping=paths[1]))
    with pytest.raises(AirworthyError, match="is the log that is read"):
        write_log(again, paths[0])
