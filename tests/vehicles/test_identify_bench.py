"""Benches, names of motors, pendulums and CAD models beside flights: what joins a fit, and what its record says of it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.vehicles.flown_logs import Craft, fly, quad
from tests.vehicles.test_bench import write_csv

from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.logs import Log, write_log
from airworthy.vehicles import (
    BenchFit,
    Identified,
    Known,
    MeasuredValue,
    cad_inertia,
    fit_bench,
    frame_vehicle,
    identify,
    motor_prior,
    two_wire_inertia,
    write_vehicle,
)
from airworthy.vehicles.bench.information import ValueInformation, bench_information, bench_speeds, combined_sd
from airworthy.vehicles.bench.steps import BenchLag
from airworthy.vehicles.bench.table import bench_table
from airworthy.vehicles.identification.fitting.parameters import believed_parameters
from airworthy.vehicles.identification.from_bench import BenchScale, bench_notes
from airworthy.vehicles.identification.known import refuse_impossible
from airworthy.verification.identification.bench import StandTruth, simulated_stand, swing_period

FULL = 2300.0
"""Speed of a rotor at full command [rad/s]."""


def stand(craft: Craft) -> StandTruth:
    """Return a stand with one of the vehicle's motors."""
    c1, c2 = craft.thrust
    return StandTruth(
        thrust=(c1 / FULL, c2 / FULL**2), torque_ratio=craft.torque_ratio, offset=0.0, slope=FULL, sag=0.0, lag=0.02,
        tare=0.002, drift=0.002, noise=0.0005,
    )  # fmt: skip


@pytest.fixture(scope="module")
def bench() -> BenchFit:
    return fit_bench(bench_table(simulated_stand(stand(quad()), rate=40.0, held=1.0), name="stand.csv"))


@pytest.fixture(scope="module")
def flight() -> Log:
    return fly(quad(), 14.0)


@pytest.fixture(scope="module")
def found(bench: BenchFit, flight: Log) -> Identified:
    return identify([flight], Known(None, frame_vehicle("quad_x:0.028", 1.0), bench=bench), quick=True)


def test_a_bench_weighs_a_vehicle_that_hovers(found: Identified) -> None:
    mass = found.value("mass")
    assert mass.word == "identified"
    # 3 % from stand to vehicle, and what the stand itself leaves open.
    assert mass.sd / mass.value == pytest.approx(0.031, abs=0.004)
    assert mass.value == pytest.approx(0.027, abs=0.3 * mass.sd)
    assert found.vehicle.sources["mass"].startswith("identified: what rotors carried in ")
    assert "bench: stand.csv" in found.vehicle.sources["mass"]
    # Thrust over mass is the flight's, however wide both are.
    names = found.vehicle.uncertainty.names
    related = found.correlation[names.index("mass")][names.index("thrust")]
    assert related > 0.98


def test_states_are_speeds_by_the_bench(found: Identified) -> None:
    made = found.vehicle
    assert made.rotors[0].speed_max == pytest.approx(FULL, rel=0.005)
    assert made.command_map is not None
    assert made.command_map[1] == pytest.approx(FULL, rel=0.01)
    assert made.sources["command_map"].startswith("bench: stand.csv")
    assert "gauge" not in made.sources["rotors.speed_max"]
    assert made.rotors[0].thrust[2] == pytest.approx(0.12 / FULL**2, rel=0.05)


def test_what_was_taken_of_the_bench_is_told(found: Identified) -> None:
    assert any("Columns are guessed" in note for note in found.notes)
    assert any("rotor states are speeds by its map, at its own supply, no log having any" in note for note in found.notes)
    assert not any("one of them is wrong" in note for note in found.notes)


def test_a_flight_that_contradicts_the_bench_is_told(bench: BenchFit, found: Identified) -> None:
    item = found.fit.problem.parameters.information[0]
    other = replace(item, mean=item.mean + np.where(np.array(item.names) == "torque_ratio", math.log(1.25), 0.0))
    parameters = replace(found.fit.problem.parameters, information=(other,))
    fit = replace(found.fit, problem=replace(found.fit.problem, parameters=parameters))
    known = Known(None, frame_vehicle("quad_x:0.028", 1.0), bench=bench)
    said = [note for note in bench_notes(known, BenchScale(0.6), fit, False) if "one of them is wrong" in note]
    assert len(said) == 1
    assert said[0].startswith("With the flights, torque_ratio is 0.8 times what bench: stand.csv")


def _said(found: Identified, bench: BenchFit, at: float, laplace: float, sandwich: float) -> list[str]:
    """What is said where the fit's lag lies so many of the bench's deviations (3 %) off, and is so sure in these."""
    item = ValueInformation(("lag",), np.array([math.log(0.057)]), np.array([[0.03**2]]), "bench: stand.csv")
    place = found.fit.problem.parameters.place("lag")
    here = np.arange(len(found.fit.theta)) == place
    fit = replace(
        found.fit,
        theta=np.where(here, math.log(0.057) + 0.03 * at, found.fit.theta),
        laplace=np.where(here, 0.03 * laplace, found.fit.laplace),
        sandwich=np.where(here, 0.03 * sandwich, found.fit.sandwich),
        problem=replace(found.fit.problem, parameters=replace(found.fit.problem.parameters, information=(item,))),
    )
    known = Known(None, frame_vehicle("quad_x:0.028", 1.0), bench=bench)
    return [note for note in bench_notes(known, BenchScale(0.6), fit, False) if "one of them is wrong" in note]


def test_a_bench_that_is_surer_than_flights_hides_no_contradiction(found: Identified, bench: BenchFit) -> None:
    # Flights that know the lag to 6 % say 45 ms, the bench 57 to 3 %: together a fifth of the way, 1.6 deviations.
    flights = math.log(45.0 / 57.0) / 0.03
    laplace = math.sqrt(0.8)
    said = _said(found, bench, 0.2 * flights, laplace, 0.2 * 2.0)
    assert len(said) == 1
    assert "flights would have lag at 0.789 times what it says, 4 deviations of both: one of them is wrong." in said[0]
    assert _said(found, bench, 0.2 * 0.5 * flights, laplace, 0.2 * 2.0) == []
    # Flights whose windows scatter more than their curvature says are less sure.
    assert _said(found, bench, 0.2 * flights, laplace, 0.2 * 4.0) == []
    # What flights do not tell at all contradicts nothing.
    assert _said(found, bench, 0.01, 1.0, 0.0) == []


def test_measured_speeds_are_held_against_the_lag_of_a_bench(found: Identified, bench: BenchFit) -> None:
    known = Known(None, frame_vehicle("quad_x:0.028", 1.0), bench=bench)
    for lag, count in ((found.value("lag").value, 0), (0.045, 1)):
        told = replace(known, bench=replace(bench, lag=BenchLag(lag, 0.001, lag, 0.001, 0.0, 10, "speed")))
        said = [note for note in bench_notes(told, BenchScale(0.6), found.fit, True) if note.startswith("By measured speeds")]
        assert len(said) == count


def test_a_supply_that_nobody_measured_is_known_to_5_percent(bench: BenchFit) -> None:
    assert bench.speed is not None
    base = frame_vehicle("quad_x:0.028", 0.027)
    speed = replace(bench.speed, voltage=3.7, sag=0.8)
    at = speed.at(0.6)
    own = math.hypot(speed.sd(0.6), speed.rms) / at
    assert bench_speeds(base, replace(bench, speed=speed), 0.6, 3.7)[1] == pytest.approx(own)
    assert bench_speeds(base, replace(bench, speed=speed), 0.6, 0.0)[1] == pytest.approx(math.hypot(own, 0.8 * 0.05))


def test_information_without_a_covariance_is_refused() -> None:
    with pytest.raises(AirworthyError, match="has no covariance"):
        ValueInformation(("lag", "thrust"), np.zeros(2), np.array([[1.0, 2.0], [2.0, 1.0]]), "bench: a")


def test_moments_of_inertia_that_no_vehicle_of_its_size_has() -> None:
    base = frame_vehicle("quad_x:0.2", 1.52)
    reach = 0.2 * math.sqrt(2.0)
    refuse_impossible(base, {"inertia.zz": MeasuredValue(1.52 * (1.4 * reach) ** 2, 0.01)})
    for value in (89.0, 1.52 * (1.6 * reach) ** 2):
        with pytest.raises(AirworthyError, match=r"inertia.zz was measured as .* give it in kg m"):
            refuse_impossible(base, {"inertia.zz": MeasuredValue(value, 0.01)})


def test_torque_of_the_bench_tells_izz(found: Identified) -> None:
    # A flight tells torque over Izz alone; the frame's guess of Izz is 10 % wide, the bench's torque 2 %.
    assert found.value("torque_ratio").value == pytest.approx(0.006, rel=0.02)
    assert found.vehicle.inertia[2] == pytest.approx(2.8e-5, rel=0.05)
    izz = found.value("inertia_zz_ratio")
    assert izz.word in ("supported", "identified")
    assert "with bench: stand.csv" in found.vehicle.sources["rotors.torque"]


@pytest.mark.slow
def test_a_weighed_mass_and_a_bench_that_disagree_meet_by_their_errors(bench: BenchFit, flight: Log) -> None:
    lighter = (0.0265, 0.0008)
    merged = identify([flight], Known(lighter, frame_vehicle("quad_x:0.028", 0.0265), bench=bench), quick=True).value("mass")
    precision = np.array([lighter[1] ** -2, (0.0305 * 0.027) ** -2])
    expected = float(precision @ [lighter[0], 0.027] / precision.sum())
    assert merged.value == pytest.approx(expected, rel=0.003)
    assert merged.sd == pytest.approx(precision.sum() ** -0.5, rel=0.1)


def test_hover_outside_the_bench_is_refused(bench: BenchFit) -> None:
    with pytest.raises(AirworthyError, match="and the vehicle hovers at"):
        bench_information(bench, 3.0 * FULL, 0.5, True)


def test_information_merges_as_normal_distributions_do() -> None:
    item = ValueInformation(("lag", "thrust"), np.zeros(2), np.array([[0.04, 0.01], [0.01, 0.09]]), "bench: a")
    names = ["mass", "thrust", "lag"]
    sd = np.array([0.5, 0.3, 0.7])
    full = np.diag(1.0 / sd**2)
    order = np.ix_([2, 1], [2, 1])
    full[order] += np.linalg.inv(item.covariance)
    assert combined_sd(sd, names, [item]) == pytest.approx(np.sqrt(np.diag(np.linalg.inv(full))))
    errors = np.random.default_rng(0).multivariate_normal(item.mean, item.covariance, 20_000) @ item.root.T
    # Of 20,000 draws a covariance is known to 1 %.
    assert np.cov(errors.T) == pytest.approx(np.eye(2), abs=0.05)


@pytest.mark.slow
def test_a_bench_over_commands_tells_thrust_and_leaves_the_gauge(flight: Log) -> None:
    table = simulated_stand(stand(quad()), rate=40.0, held=1.0)
    kept = {k: v for k, v in table.items() if k in ("ESC signal (µs)", "Thrust (gf)")}
    scale = fit_bench(bench_table(kept, name="kitchen.csv"))
    made = identify([flight], Known(None, frame_vehicle("quad_x:0.028", 1.0), bench=scale), quick=True)
    mass = made.value("mass")
    assert mass.value == pytest.approx(0.027, abs=mass.sd)
    # Nobody measured the supply, neither here nor there: 5 % of it are 10 % of thrust.
    assert 0.06 < mass.sd / mass.value < 0.16
    assert made.vehicle.sources["rotors.speed_max"].startswith("gauge")


@pytest.mark.slow
def test_names_of_motor_and_propeller_are_priors(flight: Log) -> None:
    prior = replace(motor_prior("11000KV", "1.8x1", 2.5), thrust=0.14 / FULL**2, speed_max=FULL, torque_ratio=0.0055)
    known = Known((0.027, 0.0001), frame_vehicle("quad_x:0.028", 0.027), motor=prior)
    made = identify([flight], known, quick=True)
    assert made.vehicle.rotors[0].speed_max == pytest.approx(FULL)
    assert made.vehicle.sources["rotors.speed_max"].startswith("gauge: believed: 11000KV with 1.8x1 at 2.5 V")
    assert "with believed" in made.vehicle.sources["rotors.torque"]
    # They move nothing that a flight tells.
    assert made.hover == pytest.approx(quad().hover, rel=0.01)
    assert made.value("mass").word == "weighed"


def test_a_pendulum_is_the_body_of_its_equation_of_motion() -> None:
    mass, distance, length, inertia = 1.5, 0.2, 0.9, 0.022
    for twist in (0.02, 0.08):
        period = swing_period(mass, distance, length, inertia, twist)
        hung = two_wire_inertia((mass, 0.002), (distance, 0.0005), (length, 0.001), [10.0 * period] * 5, 10)
        # Of twists under 5 degrees the period grows by a sixteenth of the squared twist.
        assert hung.value == pytest.approx(inertia, rel=0.15 * twist**2 + 1e-4)


def test_errors_of_a_pendulum_are_those_of_its_numbers() -> None:
    draw = np.random.default_rng(1)
    known, sds = np.array([1.5, 0.2, 0.9]), np.array([0.01, 0.001, 0.004])
    period = 4.0 * math.pi * math.sqrt(0.022 * known[2] / (known[0] * 9.81)) / known[1]
    found, promised = [], []
    for _ in range(400):
        m, b, length = known + draw.normal(0.0, sds)
        times = 10.0 * period + draw.normal(0.0, 0.15, 6)
        hung = two_wire_inertia((m, sds[0]), (b, sds[1]), (length, sds[2]), times.tolist(), 10)
        found.append(hung.value)
        promised.append(hung.sd)
    assert np.mean(found) == pytest.approx(0.022, rel=0.003)
    # Of 400 a deviation is known to 4 %; so are its three sigmas, a tenth.
    assert np.std(found) == pytest.approx(float(np.mean(promised)), rel=0.12)


def test_few_times_that_agree_by_chance_are_as_sure_as_a_hand() -> None:
    def sd(*times: float) -> float:
        return two_wire_inertia((1.5, 0.002), (0.2, 0.0005), (0.9, 0.001), times, 10).period_sd

    # A hand stops a watch to 0.1 s: of ten swings, 0.01 s of a period.
    assert sd(14.6) == pytest.approx(0.01)
    assert sd(14.6, 14.6, 14.6) == pytest.approx(0.01 / math.sqrt(3.0))
    assert sd(14.2, 14.6, 15.0) == pytest.approx(0.04 / math.sqrt(3.0))
    assert sd(14.59, 14.60, 14.61, 14.60, 14.60) == pytest.approx(math.sqrt(0.5) * 1e-3 / math.sqrt(5.0))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"mass": (0.0, 0.1)}, "The mass is 0"),
        ({"distance": (200.0, 1.0)}, "The distance is 200"),
        ({"length": (0.05, 0.001)}, "expected lengths of 0.5 to 20 distances"),
        ({"times": []}, "No times above 0 s are given"),
        ({"times": [12.0, 12.1, 24.0]}, "over 10 % off the median"),
        ({"swings": 0}, "Each time counts 0 swings"),
        ({"swings": 1}, "expected 3 distances at most: are the times of several swings"),
        ({"times": [0.1, 0.1], "swings": 1}, "is too short for its own error"),
    ],
)
def test_pendulums_that_cannot_be(changed: dict[str, object], said: str) -> None:
    given = {"mass": (1.5, 0.01), "distance": (0.2, 0.001), "length": (0.9, 0.002), "times": [12.0, 12.1], "swings": 10}
    with pytest.raises(AirworthyError, match=said):
        two_wire_inertia(**(given | changed))  # type: ignore[arg-type]


def test_a_cad_model_is_a_prior_of_15_percent(tmp_path: Path) -> None:
    model = frame_vehicle("quad_x:0.028", 0.025)
    model = replace(model, inertia=(1.4e-5, 1.5e-5, 2.6e-5, 0.0, 0.0, 0.0))
    path = tmp_path / "model.toml"
    write_vehicle(replace(model, name="model"), path)
    numbers = cad_inertia(path, (0.027, 0.0001))
    assert numbers["inertia.xx"].value == pytest.approx(1.4e-5 * 0.027 / 0.025)
    assert numbers["inertia.zz"].sd == pytest.approx(0.15 * numbers["inertia.zz"].value)
    with pytest.raises(AirworthyError, match="is it the same vehicle"):
        cad_inertia(path, (0.27, 0.001))
    # Two balls of 10 g on a rod along y, 40 mm from the middle: parallel axes (Steiner).
    ball = '<inertial><mass value="0.010"/><inertia ixx="1e-6" iyy="1e-6" izz="1e-6" ixy="0" ixz="0" iyz="0"/></inertial>'
    arms = "".join(
        f'<link name="{n}">{ball}</link><joint name="to_{n}" type="fixed"><parent link="base"/><child link="{n}"/>'
        f'<origin xyz="0 {y} 0"/></joint>'
        for n, y in (("left", 0.04), ("right", -0.04))
    )
    urdf = tmp_path / "frame.urdf"
    urdf.write_text(f'<robot name="frame"><link name="base">{ball}</link>{arms}</robot>')
    found = cad_inertia(urdf, (0.027, 0.0001))
    assert found["inertia.yy"].value == pytest.approx(0.9 * 3e-6)
    assert found["inertia.xx"].value == pytest.approx(0.9 * (3e-6 + 2.0 * 0.010 * 0.04**2))


def test_any_number_with_an_error_may_be_measured() -> None:
    numbers = {name: MeasuredValue(value, sd) for name, value, sd in (
        ("imu.x", 0.004, 0.0005), ("thrust_linear", 0.25, 0.02), ("fall_ratio", 1.3, 0.1), ("inertia.xx", 1.4e-5, 1e-6),
    )}  # fmt: skip
    base = frame_vehicle("quad_x:0.028", 0.027)
    made = believed_parameters(base, Known((0.027, 0.0001), base, numbers), [True], 0.6, {})
    items = {item.label: (item.mean, item.sd) for item in made.items}
    assert items["imu_x"] == (0.004, 0.0005)
    assert items["thrust_linear"] == (0.25, 0.02)
    assert items["fall_ratio"] == pytest.approx((math.log(1.3), 0.1 / 1.3))
    assert items["inertia_xx"] == pytest.approx((math.log(1.4e-5), 1.0 / 14.0))
    with pytest.raises(AirworthyError, match=r"inertia.xx was measured as -1e-05; expected a number above 0"):
        Known((1.0, 0.1), measured={"inertia.xx": MeasuredValue(-1e-5, 1e-6)})


# ---- Commands ----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_commands_lead_from_a_stand_to_a_vehicle(tmp_path: Path, flight: Log, capsys: pytest.CaptureFixture[str]) -> None:
    table = write_csv(tmp_path / "stand.csv", simulated_stand(stand(quad()), rate=40.0, held=1.0))
    curves, report, log, out = (tmp_path / name for name in ("curves.json", "report", "log.npz", "mine.toml"))
    assert main(["vehicles", "bench", str(table), "--out", str(curves), "--report", str(report)]) == 0
    said = capsys.readouterr().out
    assert "Columns are guessed" in said
    assert "Thrust of a motor:" in said
    page = (report / "report.html").read_text()
    assert page.count("<svg") == 5
    assert "http://" not in page.replace("http://www.w3.org", "")
    write_log(flight, log)
    write_vehicle(replace(frame_vehicle("quad_x:0.028", 0.027), name="model"), tmp_path / "model.toml")
    argv = ["vehicles", "identify", str(log), "--frame", "quad_x:0.028", "--bench", str(curves), "--quick", "--out", str(out)]
    assert main([*argv, "--inertia-from", str(tmp_path / "model.toml"), "--json"]) == 0
    kept = json.loads(capsys.readouterr().out)
    assert next(v for v in kept["values"] if v["name"] == "mass")["word"] == "identified"
    assert next(v for v in kept["values"] if v["name"] == "inertia_xx")["beside"] == "CAD: model.toml"
    assert "bench: stand.csv" in out.read_text()


def test_what_is_printed_of_a_pendulum_is_what_identify_takes(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["vehicles", "pendulum", "--mass", "1.5+-0.002", "--distance", "0.2+-0.0005", "--length", "0.9+-0.001"]
    assert main([*argv, "--periods", "14.58", "14.61", "14.55", "--swings", "10"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    name, value = line.removeprefix("--measured ").split("=")
    assert name == "inertia.zz"
    found, sd = map(float, value.split("+-"))
    assert found == pytest.approx(1.5 * 9.81 * 0.04 * 1.458**2 / (16.0 * math.pi**2 * 0.9), rel=1e-3)
    assert 0.003 < sd / found < 0.03


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["bench"], "No table is given, and no --propeller"),
        (["bench", "--rotor", "2212-980"], "--rotor is given without --propeller"),
        (["bench", "--propeller", "10x4.5", "--out", "a.json"], "without one leave them out"),
        (["bench", "missing.csv"], "There is no file 'missing.csv'"),
        (["bench", "missing.csv", "--out", "a.toml"], "expected a file of curves, NAME.json"),
        (
            ["pendulum", "--mass", "1.5", "--distance", "1+-1", "--length", "1+-1", "--periods", "1"],
            "--mass is '1.5'; expected",
        ),
        (
            ["identify", "missing.ulg", "--mass", "1+-0.1", "--rotor", "980KV"],
            "--rotor 980KV changes nothing without a propeller",
        ),
        (["identify", "missing.ulg", "--mass", "1+-0.1"], "There is no file 'missing.ulg'"),
        (
            ["identify", "a.ulg", "--mass", "1+-0.1", "--bench-map", "m.toml"],
            "--bench-map m.toml changes nothing without a thrust",
        ),
        (
            ["identify", "a.ulg", "--mass", "1+-0.1", "--propeller", "10x4.5", "--voltage", "11"],
            "changes nothing without a motor",
        ),
        (["identify", "a.ulg", "--mass", "1+-0.1", "--propeller-table", "no.txt"], "changes nothing without a propeller"),
        (
            ["identify", "a.ulg", "--mass", "1+-0.1", "--measured", "lag=0.05+-0.01", "--measured", "lag=0.06+-0.01"],
            "lag is measured twice, the second time by --measured lag=0.06+-0.01",
        ),
        (["identify", "a.ulg", "--mass", "1+-0.1", "--measured", "mass=2+-0.1"], "mass is measured twice"),
        (["bench", "missing.csv", "--propeller-table", "no.txt"], "changes nothing without a propeller"),
        (["bench", "missing.csv", "--voltage", "11"], "--voltage 11 changes nothing without a motor"),
        (["bench", "--propeller", "10x4.5", "--voltage", "11"], "--voltage 11 changes nothing without a motor"),
        (["bench", "--propeller", "10x4.5", "--motors", "4"], "--motors 4 changes nothing without a thrust stand's table"),
        (["bench", "--propeller", "10x4.5", "--map", "m.toml"], "changes nothing without a thrust stand's table"),
        (["identify", "missing.ulg", "--bench", "missing.csv"], "There is no file 'missing.csv'"),
    ],
)
def test_mistakes(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["vehicles", *argv]) == 2
    error = capsys.readouterr().err.strip()
    assert said in error
    assert "Traceback" not in error
