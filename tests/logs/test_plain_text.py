"""Tables as spreadsheets of several countries and machines write them: the same numbers out of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.logs import ReadOptions, read_log, table_of
from airworthy.logs.mapping import ColumnMapping

ROWS = [[0.0, 1.5, -2.25], [0.1, 3.0, 0.125], [0.2, -4.5, 1e-3]]
MAPPING = {kind: ColumnMapping((name,), time="t") for kind, name in (("voltage", "v"), ("current", "i"))}


def text(separator: str = ",", decimal: str = ".", end: str = "\n", head: str = "t,v,i", before: str = "") -> str:
    lines = [head.replace(",", separator)] if head else []
    lines += [separator.join(f"{cell:g}".replace(".", decimal) for cell in row) for row in ROWS]
    return before + end.join(lines) + end


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (text().encode(), ""),
        (text(";", ",").encode(), "Columns are separated by semicolons, decimals by commas."),
        (text(";").encode(), "Columns are separated by semicolons, decimals by points."),
        (text("\t").encode(), "Columns are separated by tabs, decimals by points."),
        (text("\t", ",").encode(), "Columns are separated by tabs, decimals by commas."),
        (text(" ").encode(), "Columns are separated by blanks, decimals by points."),
        (text(end="\r\n").encode(), ""),
        (text(end="\r").encode(), "Lines end with carriage returns alone."),
        (text().encode("utf-8-sig"), ""),
        (text(";", ",", "\r\n").encode("utf-8-sig"), "Columns are separated by semicolons, decimals by commas."),
        (text().encode("utf-16"), "The text is UTF-16-LE."),
        (b"\xfe\xff" + text().encode("utf-16-be"), "The text is UTF-16-BE."),
        (text(before="# flown by me\n# windy, cold\n").encode(), "2 lines of comments above the table were passed over."),
        (text(head="# t,v,i", before="# a comment\n").encode(), "1 lines of comments above the table were passed over."),
        (text(head="# t,v,i").encode(), ""),
        (text(before="# Höhe\n").encode("latin-1"), "The text is no UTF-8 (byte 3); it is taken for Latin-1."),
    ],
)
def test_ways_to_write_a_table(tmp_path: Path, data: bytes, told: str) -> None:
    (tmp_path / "a.csv").write_bytes(data)
    log = read_log(tmp_path / "a.csv", ReadOptions(mapping=MAPPING))
    read = np.hstack([log.stream("voltage").time[:, None], log.stream("voltage").values, log.stream("current").values])
    assert np.allclose(read, ROWS, rtol=1e-12, atol=1e-12)
    assert told in log.notes if told else not log.notes
    assert set(table_of(tmp_path / "a.csv")[0]) == {"t", "v", "i"}


def test_commas_in_names_are_no_decimals(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t;speed, measured\n0;1.5\n1;2.5\n")
    columns, draft = table_of(tmp_path / "a.csv")
    assert columns["speed  measured"].tolist() == [1.5, 2.5]
    assert draft.notes == ["Columns are separated by semicolons, decimals by points."]


def test_thousands_are_no_numbers(tmp_path: Path) -> None:
    """1.234,5 is not taken for anything: it is missing, and counted."""
    (tmp_path / "a.csv").write_text("t;v\n0;1,5\n1;1.234,5\n2;2,5\n")
    columns, draft = table_of(tmp_path / "a.csv")
    assert np.array_equal(columns["v"], [1.5, np.nan, 2.5], equal_nan=True)
    assert "Column 'v' holds 1 cells that are no numbers; they count as missing." in draft.notes


def test_map_tells_how_a_table_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text(text(";", ","))
    assert main(["logs", "map", str(tmp_path / "a.csv"), "--out", str(tmp_path / "m.toml")]) == 0
    assert "separated by semicolons, decimals by commas" in capsys.readouterr().out


def test_a_table_without_a_row_is_refused_with_advice(tmp_path: Path) -> None:
    (tmp_path / "head.csv").write_text("t,gx,gy\n")
    with pytest.raises(AirworthyError, match=r"names 3 columns and no line of numbers: .* give the whole file\.$"):
        read_log(tmp_path / "head.csv")
    (tmp_path / "empty.csv").write_text("\n\n")
    with pytest.raises(AirworthyError, match=r"give|empty"):
        read_log(tmp_path / "empty.csv")
