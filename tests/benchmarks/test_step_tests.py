"""Step tests against closed forms and the published table; the flight check's reasons; both from the command line."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from airworthy.benchmarks import step_tests
from airworthy.benchmarks.step_tests import flight_check, flight_checks, measured_indicators
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.vehicles import (
    Disturbance,
    Drag,
    Indicators,
    RotorResponse,
    Vehicle,
    hover_speed,
    indicators,
    vehicle,
    vehicle_names,
    write_vehicle,
)

NAMES = list(asdict(Indicators(0.0, 0.0, 0.0)))
# Their rotors idle at 36 to 44 % of full speed, that is at 13 to 19 % of full thrust, and cannot rest as the formulas assume.
IDLE_FAST = {"cf2x_L250", "cf2x_P250", "cf2x_scg_iros2022", "tinyprop"}


def deviations(found: Indicators, expected: Indicators) -> np.ndarray:
    return np.array([getattr(found, name) / getattr(expected, name) - 1.0 for name in NAMES])


def with_lag(airframe: Vehicle, lag: float) -> Vehicle:
    response = RotorResponse.first_order(lag)
    return replace(airframe, rotors=tuple(replace(rotor, response=response) for rotor in airframe.rotors))


def test_measured_is_computed_for_the_whole_catalogue() -> None:
    fleet = [vehicle(name) for name in vehicle_names()]
    for airframe, found in zip(fleet, measured_indicators(fleet), strict=True):
        # A hundredth of the 2 % asked for covers 2 ms of coupled rotation of the most irregular airframe (0.03 %, base_random).
        limit = 1e-3 if airframe.name == "base_random" else 1e-5
        assert np.abs(deviations(found, indicators(airframe, from_rest=False))).max() < limit, airframe.name
        near = np.abs(deviations(found, indicators(airframe))).max() < 0.02
        assert near == (airframe.name not in IDLE_FAST), airframe.name


def test_measured_is_published() -> None:
    fleet = [airframe for airframe in map(vehicle, vehicle_names()) if "published_alpha_z_max" in airframe.extra]
    assert len(fleet) == 36
    for airframe, found in zip(fleet, measured_indicators(fleet), strict=True):
        printed = Indicators(*(float(airframe.extra[f"published_{name}"]) for name in NAMES))
        assert np.abs(deviations(found, printed)).max() < 0.02, airframe.name


def test_drag_noise_and_disturbances_are_off() -> None:
    airframe = vehicle("virt_05")
    ragged = replace(
        airframe,
        drag=Drag(linear=(9.0, 9.0, 9.0), angular_linear=(0.1, 0.1, 0.1)),
        disturbance=Disturbance(1.0, (9.0,) * 3, (9.0,) * 3),
    )
    assert measured_indicators([ragged]) == measured_indicators([airframe])


def test_motor_lag_averages_the_rise_from_hover() -> None:
    lag, window = 0.03, 0.05
    airframe = with_lag(replace(vehicle("virt_05"), drag=Drag()), lag)
    (found,) = measured_indicators([airframe], motor_lag=True, window=window)
    # w = full - gap exp(-t / lag), and thrust follows w^2: its mean over the window in closed form.
    full, hover = airframe.rotors[0].speed_max, float(hover_speed(airframe)[0])
    gap, n = full - hover, window / lag
    mean_square = full**2 - 2.0 * full * gap * (1.0 - math.exp(-n)) / n + gap**2 * (1.0 - math.exp(-2.0 * n)) / (2.0 * n)
    expected = mean_square / full**2 * indicators(airframe).thrust_to_weight
    # float32 sums 500 steps; symmetric collective leaves the body level, so nothing else differs.
    assert found.thrust_to_weight == pytest.approx(expected, rel=1e-4)
    assert found.alpha_xy_max < indicators(airframe).alpha_xy_max


def test_no_vehicles_and_bad_windows() -> None:
    assert measured_indicators([]) == []
    for window in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(AirworthyError, match="window of a step test"):
            measured_indicators([vehicle("carl")], window=window)


def test_every_catalogue_vehicle_passes_the_flight_check() -> None:
    fleet = [vehicle(name) for name in vehicle_names()]
    assert {airframe.name: faults for airframe, faults in zip(fleet, flight_checks(fleet), strict=True) if faults} == {}


def test_reasons_name_the_manoeuvre_and_stay_with_their_vehicle() -> None:
    good = vehicle("real_09")
    thrusts_only = tuple(replace(rotor, torque=(0.0, 0.0, 0.05 * rotor.torque[2])) for rotor in good.rotors)
    batch = [
        with_lag(good, 1.5),
        good,
        replace(good, rotors=thrusts_only),
        replace(good, mass=10.0),
        replace(good, disturbance=Disturbance(1.0, (1e6,) * 3)),
    ]
    slow, fine, turns_badly, heavy, kicked = flight_checks(batch)
    assert any("2 m step along x has not settled after 5 s" in reason for reason in slow)
    assert fine == []
    assert len(turns_badly) == 1
    assert turns_badly[0].startswith("the 90 degree yaw step has not settled after 5 s")
    assert len(heavy) == 1
    assert "cannot hover" in heavy[0]
    assert kicked[0] == "the hover ends out of control."
    assert flight_check(batch[2]) == turns_badly  # alone or in a batch
    assert flight_checks([]) == []


def test_limits_of_drift_and_tilt(monkeypatch: pytest.MonkeyPatch) -> None:
    # The default controller inclines no further than 60 degrees: lower limits show that both are watched.
    monkeypatch.setattr(step_tests, "TILT_MAX", math.radians(20.0))
    monkeypatch.setattr(step_tests, "HOVER_DRIFT", 1e-4)
    reasons = flight_check(vehicle("flightgoggles"))  # has wrench noise of its own
    assert reasons[0].startswith("in hover it strays 0.00")
    tilted = [reason for reason in reasons if "degrees, and 20 is the limit" in reason]
    assert [reason.split(" tilts")[0] for reason in tilted] == ["the 2 m step along x", "the 2 m step along y"]


def test_measure_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vehicles", "measure", "real_01", "tinyprop", "--json"]) == 0
    known, unknown = json.loads(capsys.readouterr().out)
    assert known["printed"] == {"thrust_to_weight": 2.2, "alpha_xy_max": 114.7, "alpha_z_max": 8.4}
    assert known["measured"].keys() == known["computed"].keys() == set(NAMES)
    # One rotor idles at 5 % of full speed, hence at 0.25 % of full thrust, where the published figure lets it rest.
    assert known["deviation_percent"]["from_printed"]["alpha_z_max"] == pytest.approx(-0.25, abs=0.01)
    assert unknown["printed"] is None
    assert max(map(abs, unknown["deviation_percent"]["from_computed"].values())) < 0.001
    assert main(["vehicles", "measure", "real_01"]) == 0
    assert "114.4" in capsys.readouterr().out
    assert main(["vehicles", "measure", "real_1"]) == 2


def test_synthesize_flies_what_it_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_vehicle(replace(with_lag(vehicle("virt_05"), 2.0), name="lazy"), tmp_path / "lazy.toml")
    options = ["--base", str(tmp_path / "lazy.toml"), "--mass", "1.2", "--arm", "0.25", "--out", str(tmp_path / "made.toml")]
    assert main(["vehicles", "synthesize", *options]) == 2
    error = capsys.readouterr().err
    assert error.startswith("made is rejected: the 2 m step along x has not settled after 5 s")
    assert not (tmp_path / "made.toml").exists()
    assert main(["vehicles", "synthesize", *options, "--no-fly"]) == 0
    assert (tmp_path / "made.toml").exists()
