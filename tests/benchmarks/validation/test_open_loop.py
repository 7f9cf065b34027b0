"""Open-loop prediction of any log with any vehicle: against known truth, against today's windows, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.vehicles.flown_logs import Craft, fly, quad

import airworthy as aw
from airworthy.benchmarks import LogValidation, ValidateOptions, validate_logs
from airworthy.benchmarks.validation.errors import error_samples
from airworthy.benchmarks.validation.fits import fit
from airworthy.benchmarks.validation.open_loop.flights import ready_flights
from airworthy.benchmarks.validation.open_loop.judgement import errors_of
from airworthy.benchmarks.validation.open_loop.prediction import batch_windows, open_loop
from airworthy.benchmarks.validation.protocol import BRUSHLESS, BRUSHLESS_FLIGHTS, CASE, Experiment, Split
from airworthy.benchmarks.validation.run import flyable, load_references
from airworthy.benchmarks.validation.structure import STRUCTURES, predict
from airworthy.benchmarks.validation.windows import GYRO_DELAY, HORIZONS, cut_windows, join_windows
from airworthy.core.errors import AirworthyError
from airworthy.logs import Log, LogSource, LogStream, read_log
from airworthy.vehicles import Vehicle
from airworthy.vehicles.identification.known import frame_vehicle
from airworthy.vehicles.record import RotorResponse

TRUTH = quad()


def record(craft: Craft) -> Vehicle:
    """The truth as a vehicle: a command of 1 is its rotors' largest state."""
    known = craft.known()
    full = known.rotors[0].speed_max
    thrust = (0.0, craft.thrust[0] / full, craft.thrust[1] / full**2)
    torque = (0.0, thrust[1] * craft.torque_ratio, thrust[2] * craft.torque_ratio)
    lag = RotorResponse.first_order(craft.lag)
    rotors = tuple(replace(r, thrust=thrust, torque=torque, response=lag) for r in known.rotors)
    inertia = (*craft.inertia, 0.0, 0.0, 0.0)
    return replace(known, name="craft", inertia=inertia, rotors=rotors, command_delay=craft.delay)


@pytest.fixture(scope="module")
def flown() -> Log:
    return fly(TRUTH, 10.0)


@pytest.fixture(scope="module")
def found(flown: Log) -> LogValidation:
    return validate_logs([flown], record(TRUTH))


def ratio(found: LogValidation, quantity: str) -> float:
    return next(m.ratio.value for m in found.mismatches if m.quantity == quantity)


def test_the_truth_explains_its_log(found: LogValidation) -> None:
    assert found.word == "flyable"
    assert found.said.startswith("The vehicle explains the log.")
    row = found.row("rate", "excited", 0.5)
    assert row is not None
    assert row.rms["vehicle"].value < 0.02 * row.rms["hold"].value
    assert row.says() == "better"
    force = found.row("force", "all", 0.25)
    assert force is not None
    # What is left is the accelerometer's noise of 0.15 m/s^2, averaged over three samples.
    assert force.rms["vehicle"].value < 0.15
    for quantity in ("lift", "turn x", "turn y", "turn z"):
        assert ratio(found, quantity) == pytest.approx(1.0, abs=0.01)
    assert not any(m.matters for m in found.mismatches)


def test_what_the_log_lacks_is_told(found: LogValidation) -> None:
    assert any("has no poses" in line and "attitude, velocity and position are not judged" in line for line in found.missing)
    assert any("no rotor speed was measured" in line for line in found.notes)
    assert set(found.errors) == {"rate", "force"}


@pytest.mark.parametrize(
    ("change", "quantity", "expected", "said"),
    [
        ({"inertia": (3.0e-5, 1.6e-5, 2.8e-5)}, "turn x", 2.0, "thrust times arm over inertia is too small"),
        ({"inertia": (2.2e-5, 0.8e-5, 2.8e-5)}, "turn y", 0.5, "thrust times arm over inertia is too large"),
        ({"torque_ratio": 0.003}, "turn z", 2.0, "torque over inertia is too small"),
        ({"thrust": (0.02, 0.1)}, "lift", 1.155, "13 % too little thrust"),
    ],
)
def test_what_differs_is_named(flown: Log, change: dict[str, object], quantity: str, expected: float, said: str) -> None:
    wrong = validate_logs([flown], record(replace(TRUTH, **change)), ValidateOptions(windows=60))  # type: ignore[arg-type]
    assert ratio(wrong, quantity) == pytest.approx(expected, rel=0.03)
    assert said in wrong.said


def test_a_lift_that_is_off_is_not_trusted(flown: Log) -> None:
    wrong = validate_logs([flown], record(replace(TRUTH, thrust=(0.02, 0.1))), ValidateOptions(windows=60))
    assert wrong.word == "do not trust"


@pytest.mark.slow
def test_pushes_and_a_pilot_against_them_do_not_make_a_true_vehicle_wrong() -> None:
    pushed = fly(TRUTH, 12.0, push=6.0, gyro_noise=0.02)
    found = validate_logs([pushed], record(TRUTH))
    assert not any(m.matters for m in found.mismatches)
    row = found.row("rate", "excited", 0.25)
    assert row is not None
    assert row.rms["vehicle, trimmed"].value < row.rms["vehicle"].value


def test_spins_that_are_turned_round_are_named(flown: Log) -> None:
    vehicle = record(TRUTH)
    wrong = replace(vehicle, rotors=tuple(replace(r, spin=-1 if r.spin > 0 else 1) for r in vehicle.rotors))
    found = validate_logs([flown], wrong, ValidateOptions(windows=60))
    assert "it turns the other way" in found.said
    assert any("TURN THE OTHER WAY ROUND" in line for line in found.notes)


def test_the_same_log_gives_the_same_numbers(flown: Log, found: LogValidation) -> None:
    assert validate_logs([flown], record(TRUTH)).record() == found.record()


def test_a_log_that_the_vehicle_was_fitted_to_is_named(flown: Log) -> None:
    vehicle = replace(record(TRUTH), sources={"inertia": "identified: flown[01234567] 2-11 s, other[8] 1-2 s; joint"})
    found = validate_logs([flown], vehicle, ValidateOptions(windows=20))
    assert any("was fitted to 2-11 s of this log" in line for line in found.notes)


# ---- With poses --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def captured(synthetic):  # type: ignore[no-untyped-def]
    """A log with measured rotor speeds and a capture system, and the vehicle that flew it."""
    log, model = synthetic.log, synthetic.model
    streams = (
        LogStream("gyro", log.time, log.gyro),
        LogStream("accelerometer", log.time, log.accelerometer),
        LogStream("motor_speed", log.time, log.rotor_speed),
        LogStream("attitude", log.pose_time, log.attitude, label="capture"),
        LogStream("position", log.pose_time, log.position, label="capture"),
    )
    vehicle = replace(model.vehicle, drag=replace(model.vehicle.drag, center=model.drag_center))
    return Log("captured", streams, LogSource("captured", "", "test")), vehicle


def test_speeds_and_poses_are_used_where_they_are(captured) -> None:  # type: ignore[no-untyped-def]
    log, vehicle = captured
    found = validate_logs([log], vehicle, ValidateOptions(windows=40, sensor_delay=GYRO_DELAY))
    assert set(found.errors) == {"rate", "force", "attitude", "velocity", "position"}
    assert any("Rotors turn as they were measured" in line for line in found.notes)
    position = found.row("position", "all", 0.5)
    assert position is not None
    assert position.rms["vehicle"].value < 0.01
    assert position.rms["hold"].value > 5.0 * position.rms["vehicle"].value
    assert position.rms["constant acceleration"].value != position.rms["hold"].value
    assert found.word == "flyable"


def test_without_an_accelerometer_force_is_not_judged(captured) -> None:  # type: ignore[no-untyped-def]
    log, vehicle = captured
    bare = replace(log, streams=tuple(s for s in log.streams if s.kind != "accelerometer"))
    found = validate_logs([bare], vehicle, ValidateOptions(windows=20, sensor_delay=GYRO_DELAY))
    assert set(found.errors) == {"rate"}
    assert any("has no accelerometer: specific force is not judged" in line for line in found.missing)


def test_measured_speeds_may_be_left_aside(captured) -> None:  # type: ignore[no-untyped-def]
    log, vehicle = captured
    with pytest.raises(AirworthyError, match="holds neither motor commands nor measured rotor speeds"):
        validate_logs([log], vehicle, ValidateOptions(feed="commands"))


@pytest.mark.slow
def test_real_flights_by_the_general_path_11_10(data_dir: Path) -> None:
    """Acceptance 10: a fit's record, by the general path, predicts a held-out flight as today's protocol does, within 2 %."""
    folder = data_dir / "flights" / CASE.folder
    references = load_references(folder)
    cut = {name: cut_windows(references[name]) for name in BRUSHLESS_FLIGHTS}
    judged = BRUSHLESS_FLIGHTS[1]
    train, test = join_windows([w for name, w in cut.items() if name != judged]), cut[judged]
    fitted = fit(BRUSHLESS, train, STRUCTURES["damping"])
    vehicle = flyable(Experiment("", "", BRUSHLESS, [Split(judged, train, test)], True), fitted)
    today = error_samples(predict(test, [fitted.model()]), test).rms()
    logs = [read_log(folder / f"{name}.npz") for name in BRUSHLESS_FLIGHTS]
    ready = ready_flights(logs, vehicle, pose_rate=CASE.pose_rate)[1]
    windows = batch_windows([ready], 1, HORIZONS, starts=[test.time])
    errors = errors_of(windows, {"vehicle": open_loop(vehicle, windows, sensor_delay=GYRO_DELAY)})
    factors = {"position": 1.0, "velocity": 1.0, "attitude": 180.0 / np.pi, "rate": 1.0}
    for row, (channel, factor) in enumerate(factors.items()):
        rms = factor * np.sqrt(np.nanmean(errors[channel]["vehicle"] ** 2, axis=0))
        assert np.all(rms <= 1.02 * today[row]), channel
        np.testing.assert_allclose(rms, today[row], rtol=0.02, err_msg=channel)


# ---- Files and calls ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_call_from_python_writes_a_page(flown: Log, tmp_path: Path) -> None:
    done = aw.validate(flown, record(TRUTH), out=tmp_path / "out", windows=40)
    page = done.report().read_text("utf-8")
    assert "Does craft explain flown?" in page
    assert "airworthy.validate([&#39;flown&#39;], &#39;craft&#39;, windows=40)" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")
    assert done.summary["verdict"] == "flyable"
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"report.html", "validation.json"}
    with pytest.raises(AirworthyError, match="Unknown option of validate 'window'"):
        aw.validate(flown, "cf2x_L250", out=tmp_path / "out", window=3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"windows": 0}, "windows is 0; expected 1 to 2000"),
        ({"sensor_delay": 1.0}, "sensor_delay is 1 s; expected -0.1 to 0.1"),
        ({"pose_rate": -5.0}, "pose_rate is -5 Hz; expected 1 to 10000"),
        ({"feed": "hope"}, "'hope'"),
        ({"use": ((5.0, 4.0),)}, "ends before it begins"),
    ],
)
def test_options_that_cannot_be(flown: Log, options: dict[str, object], said: str) -> None:
    with pytest.raises(AirworthyError, match=said):
        validate_logs([flown], record(TRUTH), ValidateOptions(**options))  # type: ignore[arg-type]


def test_vehicles_that_do_not_fit(flown: Log) -> None:
    with pytest.raises(AirworthyError, match="is of 4 motors, and hexa_x has 6 rotors"):
        validate_logs([flown], frame_vehicle("hexa_x:0.2", 1.0))
    with pytest.raises(AirworthyError, match="No log was given"):
        validate_logs([], record(TRUTH))
