"""The study of coverage: what it counts, that it carries on, and that its flights are those of the vehicles that it drew."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.vehicles import identify
from airworthy.verification.identification import coverage as identify_coverage
from airworthy.verification.identification import flights as identify_flights
from airworthy.verification.identification.coverage import coverage_rows, coverage_table, main, read_records
from airworthy.verification.identification.flights import drawn_quads, fly_quads


def record(error: float, sd: float = 1.0, share: float = 0.9) -> dict[str, Any]:
    return {"values": {"lag": [error, sd, share]}}


def test_intervals_are_counted() -> None:
    (row,) = coverage_rows([record(1.6), record(-1.6), record(1.7), record(3.0, 2.0), record(9.0, share=0.2), {"refused": "x"}])
    assert (row.name, row.fits, row.inside) == ("lag", 4, 0.75)
    assert row.bias == pytest.approx((1.6 - 1.6 + 1.7 + 1.5) / 4)
    assert row.spread == pytest.approx(np.sqrt((1.6**2 + 1.6**2 + 1.7**2 + 1.5**2) / 4))
    assert row.error == pytest.approx(np.sqrt(0.75 * 0.25 / 4))
    text = coverage_table([record(1.6), record(1.7), {"refused": "x"}])
    assert text.startswith("2 fits, 1 refused")
    assert "50 +- 35 %" in text


def test_the_study_carries_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked = []

    def fits(batch: int, skip: Sequence[int] = ()) -> Iterator[dict[str, Any]]:
        asked.append((batch, list(skip)))
        for index in range(3):
            if index not in skip:
                yield {"batch": batch, "vehicle": index, "fit": identify_coverage.FIT} | (
                    record(0.1) if index else {"refused": "it turned over"}
                )

    monkeypatch.setattr(identify_coverage, "fit_flights", fits)
    monkeypatch.setattr(identify_coverage, "BATCH", 3)
    out = tmp_path / "coverage.jsonl"
    assert main(["--out", str(out), "--fits", "1"]) == 0
    # A program that was stopped within a line.
    out.write_text(out.read_text() + '{"batch": 0, "veh')
    assert main(["--out", str(out), "--fits", "3"]) == 0
    assert asked == [(0, []), (0, [0, 1]), (1, [])]
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(r["batch"], r["vehicle"]) for r in lines] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert "3 fits, 2 refused" in capsys.readouterr().out
    # A run of no time adds nothing; what another method fitted is not counted.
    with out.open("a") as file:
        file.write(json.dumps({"batch": 9, "vehicle": 0, "fit": 1} | record(0.1)) + "\n")
    assert main(["--out", str(out), "--fits", "9", "--minutes", "0"]) == 0
    said = capsys.readouterr().out
    assert "1 of 6 records are of another method" in said
    assert "3 fits, 2 refused" in said
    assert len(asked) == 3
    out.write_text("rubbish\n" + out.read_text())
    with pytest.raises(AirworthyError, match=r"Line 1 of .* is no record of this study"):
        read_records(out)


def test_a_fit_is_compared_with_all_that_its_vehicle_was_drawn_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """As short as tells anything; that there are values that these flights have not, such as drag, is no matter."""
    monkeypatch.setattr(identify_coverage, "BATCH", 1)
    monkeypatch.setattr(identify_coverage, "SECONDS", 3.0)
    (row,) = identify_coverage.fit_flights(3)
    truth = drawn_quads(1, 3).truth(0, 0.5)
    assert (row["batch"], row["vehicle"]) == (3, 0)
    assert set(row["values"]) <= set(truth) - {"mass"}
    assert {"thrust", "lag", "inertia_xx", "inertia_yy", "command_delay"} <= set(row["values"])
    for name, (error, sd, share) in row["values"].items():
        assert abs(error) < 5.0 * sd, name
        assert 0.0 <= share <= 1.0, name


@pytest.mark.slow
def test_flights_are_of_the_drawn_vehicles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pushes the truth is found: what is studied is the pushes' effect."""
    for name in ("PUSH", "PUSH_YAW", "PUSH_FORCE"):
        monkeypatch.setattr(identify_flights, name, 0.0)
    quads = drawn_quads(3, 5)
    logs = fly_quads(quads, 8.0, 5)
    index, log = next((k, log) for k, log in enumerate(logs) if log is not None)
    found = identify([log], quads.known(index), quick=True, use=[(0.0, 20.0)], holdout=[log])
    truth = quads.truth(index, found.fit.problem.parameters.state / found.vehicle.rotors[0].speed_max)
    assert found.value("lag").value == pytest.approx(truth["lag"], rel=0.02)
    assert found.value("command_delay").value == pytest.approx(truth["command_delay"], abs=0.0005)
    for name in ("inertia_xx", "inertia_yy", "thrust"):
        assert found.value(name).value == pytest.approx(truth[name], rel=0.03), name
    ratio = found.value("torque_ratio").value / found.value("inertia_zz_ratio").value
    assert ratio == pytest.approx(truth["torque_ratio"] / truth["inertia_zz_ratio"], rel=0.03)


def test_the_same_seed_flies_the_same() -> None:
    first, again = (fly_quads(drawn_quads(2, 1), 0.5, 1) for _ in range(2))
    other = fly_quads(drawn_quads(2, 1), 0.5, 2)
    for a, b, c in zip(first, again, other, strict=True):
        assert a is not None
        assert b is not None
        assert c is not None
        assert np.array_equal(a.stream("gyro").values, b.stream("gyro").values)
        assert not np.array_equal(a.stream("gyro").values, c.stream("gyro").values)


def test_no_body_is_drawn_that_cannot_be() -> None:
    xx, yy, zz = drawn_quads(500, 0).inertia.T
    assert np.all(zz <= xx + yy)
    assert np.all(np.abs(xx - yy) <= zz)
