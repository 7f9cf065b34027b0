"""The page of an identified vehicle: what it says is what was found, and what it calls held out no fit saw."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.vehicles.flown_logs import fly, quad
from tests.vehicles.test_air_speed_parts import fitted

from airworthy.benchmarks.validation.identified.page import held_parts, write_identification
from airworthy.cli.main import main
from airworthy.logs import Log, LogSegments, Span, write_log
from airworthy.vehicles import Identified, IdentifiedValue, Known, identify

pytestmark = pytest.mark.slow
"""The identification that all of them look at takes ten seconds and more."""

TRUTH = quad()
KNOWN = Known(mass=(TRUTH.mass, 1e-4), vehicle=TRUTH.known())


@pytest.fixture(scope="module")
def flown() -> Log:
    return fly(TRUTH, 12.0)


@pytest.fixture(scope="module")
def told() -> list[str]:
    return []


@pytest.fixture(scope="module")
def found(flown: Log, told: list[str]) -> Identified:
    return identify([flown], KNOWN, quick=True, name="mine", say=told.append)


@pytest.fixture(scope="module")
def page(found: Identified, flown: Log, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = write_identification(tmp_path_factory.mktemp("page"), found, [flown], "airworthy vehicles identify flown")
    return path.read_text("utf-8")


def plain(page: str) -> str:
    text = re.sub(r"<(style|svg)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text)).replace("\N{NO-BREAK SPACE}", " ")


def test_winds_stand_there(found: Identified, flown: Log, tmp_path: Path) -> None:
    winds = tuple(IdentifiedValue(f"wind_{axis}[flown]", 1.5, 0.1, 1.0, 0.1, 0.1, "identified") for axis in "xy")
    windy = replace(found, flights=(*found.flights, *winds), air=fitted(winds=((1.5, 1.5),), names=("flown",)))
    text = plain(write_identification(tmp_path, windy, [flown], "again").read_text("utf-8"))
    assert re.search(r"Mean wind of each flight .* gusts are not counted, .* flown 1\.50 1\.34 . 1\.66 1\.50 1\.34", text)
    assert "Mean wind" not in plain(write_identification(tmp_path, found, [flown], "again").read_text("utf-8"))


def test_every_value_stands_there_with_its_source(found: Identified, page: str) -> None:
    text = plain(page)
    for value in (*found.values, *found.sensor):
        assert re.search(rf"\b{value.name}\b", text), value.name
    for source in ("inertia", "command_delay", "rotors.response"):
        assert found.vehicle.sources[source].replace("+-", "+-") in text
    assert "weighed" in text
    assert "thrust over rotor speed" in text, "what no log told"
    lag = found.value("lag")
    assert f"{1e3 * lag.value:.1f}" in text


def test_tables_figures_and_the_command_are_there(page: str) -> None:
    text = plain(page)
    for heading in ("What it is, and where each number comes from", "What no log told", "Held out", "The logs"):
        assert heading in text
    assert "airworthy vehicles identify flown" in text
    assert page.count("<svg") == 9
    assert "skill" in text
    assert "The worst windows" in text
    # It loads nothing.
    assert not re.search(r"(src|href)=\"(?!#|data:)", page)


def test_what_is_called_held_out_no_fit_saw(found: Identified, told: list[str]) -> None:
    (said,) = [line for line in told if "held out" in line]
    fitted, held = (float(x) for x in re.findall(r"([\d.]+) s (?:are fitted|held out)", said))
    part = held_parts(found.segments[0])
    assert part is not None
    lasting = sum(max(s.stop - max(s.start, part[0]), 0.0) for s in found.segments[0].usable)
    assert lasting == pytest.approx(held, abs=0.06)
    assert fitted + held < found.segments[0].usable_time


def test_short_flights_hold_nothing_out() -> None:
    assert held_parts(LogSegments((), (Span(0.0, 5.0),), ())) is None
    assert held_parts(LogSegments((), (), ())) is None
    assert held_parts(LogSegments((), (Span(0.0, 30.0),), ())) == pytest.approx((20.0, 30.0))


def test_a_page_without_anything_held_out_says_so(found: Identified, flown: Log, tmp_path: Path) -> None:
    short = replace(found, table=None, segments=(LogSegments((), (Span(2.0, 6.0),), ()),))
    text = plain(write_identification(tmp_path, short, [flown], "again").read_text("utf-8"))
    assert "Nothing was held out, so nothing judges this vehicle" in text
    assert "too short to hold anything out" in text


@pytest.mark.slow
def test_the_command_writes_it(flown: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "flown.npz"
    write_log(flown, log)
    argv = ["vehicles", "identify", str(log), "--mass", "0.027+-0.0001", "--frame", "quad_x:0.028", "--quick"]
    assert main([*argv, "--report", str(tmp_path / "report")]) == 0
    assert "report.html" in capsys.readouterr().out
    text = plain((tmp_path / "report" / "report.html").read_text("utf-8"))
    assert "airworthy vehicles identify" in text
    assert "--mass 0.027+-0.0001 --frame quad_x:0.028" in text
    assert {p.name for p in (tmp_path / "report").iterdir()} == {"identification.json", "report.html"}
