"""Drag by air speed and commands that go with the supply: recovered, refused, saved, drawn (identify 4, 5, 11.4, 11.7)."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.vehicles.flown_logs import Craft, Excitation, changed, fly, quad

from airworthy.benchmarks.validation.open_loop.flights import ready_flights
from airworthy.cli.vehicle_identify import _print
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import rotate
from airworthy.logs import Log, flight_segments
from airworthy.simulation import Randomization, Simulator, SimulatorConfig
from airworthy.vehicles import (
    Drag,
    Identified,
    Known,
    Rotor,
    check,
    frame_vehicle,
    identify,
    read_vehicle,
    watch,
    write_vehicle,
)
from airworthy.vehicles.identification.air_speed.drag import AirDrag, with_drag
from airworthy.vehicles.identification.air_speed.motion import FlightMotion, flight_motion, moved_spans
from airworthy.vehicles.identification.air_speed.problem import FlownAir, air_errors
from airworthy.vehicles.identification.prediction.plant import plant_of
from airworthy.vehicles.identification.prediction.signals import FlightSignals, flight_signals
from airworthy.vehicles.identification.supply import refuse_unlike_supplied, supply_range, with_supply
from airworthy.vehicles.identification.thrust_drift import drift_cause

TRUTH = quad(
    inertia=(1.5e-5, 1.5e-5, 2.8e-5),
    posed=True,
    drag=0.35,
    drag_z=0.25,
    wind=(2.0, -1.0, 0.0),
    sag=0.8,
    volts=(4.15, 3.5),
)
"""In a wind of 2.2 m/s, on a battery that falls by 15 %."""


def known(craft: Craft) -> Known:
    return Known(mass=(craft.mass, 0.002 * craft.mass), vehicle=craft.known())


def signals_of(log: Log) -> FlightSignals:
    return flight_signals(log, flight_segments(log))


@pytest.fixture(scope="module")
def flown() -> Log:
    return fly(TRUTH, 10.0)


@pytest.fixture(scope="module")
def found(flown: Log) -> Identified:
    return identify([flown], known(TRUTH), quick=True)


@pytest.fixture(scope="module")
def signals(flown: Log) -> FlightSignals:
    return signals_of(flown)


# ---- Drag --------------------------------------------------------------------------------------------------------------------


def test_drag_and_wind_are_recovered_11_4(found: Identified) -> None:
    assert found.value("drag_x").value == pytest.approx(0.35, rel=0.03)
    assert found.value("drag_y").value == pytest.approx(0.35, rel=0.03)
    assert found.value("drag_z").value == pytest.approx(0.25, rel=0.1)
    assert {found.value(f"drag_{axis}").word for axis in "xyz"} == {"identified"}
    assert found.value("wind_x[flown]").value == pytest.approx(2.0, abs=0.1)
    assert found.value("wind_y[flown]").value == pytest.approx(-1.0, abs=0.1)
    for name, truth in (("drag_x", 0.35), ("drag_z", 0.25), ("wind_x[flown]", 2.0)):
        assert abs(found.value(name).value - truth) < 4.0 * found.value(name).sd


def test_winds_are_printed(found: Identified, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = found.winds
    assert row == ("flown", found.value("wind_x[flown]"), found.value("wind_y[flown]"))
    _print(found)
    said = capsys.readouterr().out
    assert "Mean wind of each flight [m/s], gusts not counted" in said
    assert f"{row[1].value:.4g}" in said
    assert replace(found, air=None).winds == ()


def test_drag_is_in_the_record_and_its_uncertainty(found: Identified, tmp_path: Path) -> None:
    made = found.vehicle
    assert made.drag.linear == pytest.approx(tuple(made.mass * found.value(f"drag_{axis}").value for axis in "xyz"))
    assert made.drag.quadratic_norm == (0.0, 0.0, 0.0)
    assert made.uncertainty is not None
    assert made.uncertainty.names[-4:] == ("drag_x", "drag_y", "drag_z", "sag")
    assert made.uncertainty.share[-4] == pytest.approx(found.value("drag_x").share, abs=1e-5)
    assert made.sources["drag"].startswith("drag of the body: flown[01234567]")
    assert "velocity:capture; x identified" in made.sources["drag"]
    assert "; damping " in made.sources["drag"]
    write_vehicle(made, tmp_path / "mine.toml")
    back = read_vehicle(tmp_path / "mine.toml")
    assert back == made
    assert back.uncertainty == made.uncertainty
    assert found.record()["air"]["told"] == ["drag_x", "drag_y", "drag_z"]
    assert found.prior("drag_x").sd == 1.0


def test_velocity_of_what_was_held_out_is_foretold(found: Identified) -> None:
    assert found.air is not None
    held = found.air.velocity
    assert held["fitted"][-1] < 0.2 * held["without"][-1] < 0.2 * held["hold"][-1]
    assert not found.air.square
    assert any("differences" not in note and "without drag" in note for note in found.notes)


def test_thrust_is_not_bent_by_drag(found: Identified) -> None:
    """What a fast climb loses to the air is none of the rotors'; at the middle of what the battery gave."""
    assert found.vehicle.command_sag is not None
    ratio = (found.vehicle.command_sag[1] / (0.5 * sum(TRUTH.volts or ()))) ** TRUTH.sag
    for command, thrust, _ in found.curve:
        acting = command * ratio
        assert thrust == pytest.approx(0.02 * acting + 0.12 * acting**2, rel=0.01)
    assert found.value("lag").value == pytest.approx(0.058, rel=0.02)


def test_hovering_tells_no_drag_and_changes_nothing_else() -> None:
    log = fly(replace(TRUTH, volts=None), 6.0, excitation=Excitation(collective=0.3, tilt=0.1, yaw=0.1), speed=0.2)
    told = identify([log], known(TRUTH), quick=True)
    assert [told.value(f"drag_{axis}").word for axis in "xyz"] == ["prior"] * 3
    assert told.vehicle.sources["drag"].split("; ", 2)[-1].startswith("prior: no log told drag of the body, it flies at up to")
    plain = replace(log, streams=tuple(s for s in log.streams if s.kind not in ("velocity", "position", "attitude")))
    blind = identify([plain], known(TRUTH), quick=True)
    assert blind.vehicle == told.vehicle
    assert blind.vehicle.sources["drag"].endswith("; no log told drag of the body")
    assert np.array_equal(blind.fit.theta, told.fit.theta)


@pytest.mark.slow
def test_square_drag_is_told_from_linear_by_left_out_flight() -> None:
    craft = replace(TRUTH, drag=0.2, drag_z=0.2, drag_square=0.1, wind=(0.0, 0.0, 0.0), volts=None)
    told = identify([fly(craft, 20.0)], known(craft), quick=True)
    assert told.air is not None
    assert told.air.square
    assert told.air.score < -10.0 * told.air.error
    assert told.value("drag_square").value == pytest.approx(0.1, rel=0.05)
    assert told.value("drag_x").value == pytest.approx(0.2, rel=0.1)
    mass = told.vehicle.mass
    assert told.vehicle.drag.quadratic_norm == pytest.approx((0.1 * mass,) * 3, rel=0.05)


def without_velocities(log: Log, noise: float) -> Log:
    """The same with positions alone, of a noise [m] that is at least theirs, 1 mm."""
    stream, draw = log.stream("position"), np.random.default_rng(5)
    noisy = stream.values + np.sqrt(max(noise**2 - 1e-6, 0.0)) * draw.standard_normal(stream.values.shape)
    noisy_log = changed(log, "position", values=noisy)
    return replace(noisy_log, streams=tuple(s for s in noisy_log.streams if s.kind != "velocity"))


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.001, 0.005, 0.01])
def test_positions_tell_drag_without_velocities(flown: Log, noise: float) -> None:
    """Differences of positions of 1 cm had the drag of an outsider's simulator at a tenth of the truth."""
    told = identify([without_velocities(flown, noise)], known(TRUTH), quick=True)
    assert "position:capture and accelerometer" in told.vehicle.sources["drag"]
    for name, true in (("drag_x", 0.35), ("drag_y", 0.35), ("drag_z", 0.25)):
        value = told.value(name)
        assert value.word == "identified"
        assert abs(value.value - true) < 3.0 * value.sd
        assert value.value == pytest.approx(true, rel=0.06)


def still_air(force: float, speed: float, steps: int = 100) -> FlownAir:
    """A level vehicle that is pushed along x, and held by drag of 0.5 1/s and 0.1 1/m, exactly."""
    h, v = 0.005, [speed]
    for _ in range(steps):
        x = v[-1]
        for _ in range(50):
            x += h / 50.0 * (force - 0.5 * x - 0.1 * x * abs(x))
        v.append(x)
    row = np.array(v)
    velocity = np.stack([row, 0.0 * row, 0.0 * row], axis=-1)[None]
    push = np.broadcast_to([force, 0.0, 9.81], velocity.shape)
    felt = push - (0.5 + 0.1 * np.linalg.norm(velocity, axis=-1, keepdims=True)) * velocity
    attitude = np.broadcast_to([0.0, 0.0, 0.0, 1.0], (*velocity.shape[:2], 4))
    return FlownAir(push, felt, attitude, velocity, velocity, h, 9.81)


def named(**changes: float) -> dict[str, np.ndarray]:
    names = ("drag_x", "drag_y", "drag_z", "wind_x", "wind_y", "lean_x", "lean_y", "lift", "late", "bias_x", "bias_y", "bias_z")
    return {name: np.array([0.0]) for name in names} | {name: np.array([v]) for name, v in changes.items()}


def test_predicted_velocity_and_force_are_those_of_the_equation() -> None:
    flown = still_air(1.0, 3.0)
    errors = air_errors(flown, named(drag_x=0.5, drag_square=0.1))
    # The trapezoidal rule at 5 ms, and Euler's at 0.1 ms.
    np.testing.assert_allclose(errors, 0.0, atol=2e-4)
    less = air_errors(flown, named(drag_x=0.4, drag_square=0.1))[0, 0]
    assert less[-1, 0] == pytest.approx(0.1 * flown.velocity[0, :, 0].mean() * 0.5, rel=0.02)
    assert less[0, 3] == pytest.approx(0.3)
    windy = air_errors(flown, named(drag_x=0.5, wind_x=1.0))[0, 0, 0]
    assert windy[3] == pytest.approx(-0.5 * 2.0 + (0.5 + 0.3) * 3.0)
    # A lean of 10 mrad about y lets a part of the lift push forward.
    leant = air_errors(flown, named(drag_x=0.5, drag_square=0.1, lean_y=0.01))[0, 0]
    assert leant[-1, 0] == pytest.approx(0.01 * 9.81 * 0.5, rel=0.01)
    late = air_errors(flown, named(drag_x=0.5, drag_square=0.1, late=0.02))[0, 0]
    slope = flown.felt[0, :, 0]
    np.testing.assert_allclose(late[:, 0], -0.02 * (slope - slope[0]), atol=2e-4)


# ---- Motion ------------------------------------------------------------------------------------------------------------------


def test_attitudes_between_few_measured_ones_are_the_gyros(flown: Log, signals: FlightSignals) -> None:
    dense = flight_motion(flown, signals)
    slow = flown.stream("attitude")
    few = flight_motion(changed(flown, "attitude", slow.time[::10], slow.values[::10]), signals)
    assert isinstance(dense, FlightMotion)
    assert isinstance(few, FlightMotion)
    time = np.linspace(3.0, 11.0, 400)
    up = np.array([0.0, 0.0, 1.0])
    # Noise of 4 mrad, averaged over five attitudes.
    assert float(np.abs(rotate(few.attitudes(time), up) - rotate(dense.attitudes(time), up)).max()) < 0.015
    turned = changed(flown, "attitude", values=-slow.values)
    other = flight_motion(turned, signals)
    assert isinstance(other, FlightMotion)
    np.testing.assert_allclose(rotate(other.attitudes(time), up), rotate(dense.attitudes(time), up), atol=1e-12)


@pytest.mark.parametrize("noise", [0.001, 0.01])
def test_velocities_of_positions_are_as_exact_as_they_say(flown: Log, signals: FlightSignals, noise: float) -> None:
    """Differences of positions of 1 cm over a twentieth of a second are off by 0.28 m/s."""
    found, true = flight_motion(without_velocities(flown, noise), signals), flight_motion(flown, signals)
    assert isinstance(found, FlightMotion)
    assert isinstance(true, FlightMotion)
    time = np.linspace(3.0, 11.0, 200)
    off = float(np.std(found.velocity.mean(time, 0.05) - true.velocity.mean(time, 0.05)))
    # Six samples of 0.02 m/s are in the other one.
    assert off < np.hypot(0.02 / np.sqrt(6.0), 1.5 * found.noise)
    assert 0.002 < found.noise < 0.02


def test_positions_that_slip_and_pause_do_not_bend_velocities(flown: Log, signals: FlightSignals) -> None:
    only = without_velocities(flown, 0.001)
    stream = only.stream("position")
    values, kept = stream.values.copy(), (stream.time < 5.0) | (stream.time > 6.0)
    values[::97] += 1e3
    slipped = flight_motion(changed(only, "position", stream.time[kept], values[kept]), signals)
    clean = flight_motion(only, signals)
    assert isinstance(slipped, FlightMotion)
    assert isinstance(clean, FlightMotion)
    assert "m/s" in slipped.notes[0]
    time = np.concatenate([np.linspace(3.0, 4.8, 50), np.linspace(6.2, 11.0, 100)])
    assert np.abs(slipped.velocity.mean(time, 0.05) - clean.velocity.mean(time, 0.05)).max() < 0.05
    np.testing.assert_allclose(moved_spans(slipped, ((3.0, 9.0),)), [(3.0, 5.0), (6.0, 9.0)], atol=0.021)


def test_gaps_of_poses_are_left_out(flown: Log, signals: FlightSignals) -> None:
    stream = flown.stream("velocity")
    kept = (stream.time < 5.0) | (stream.time > 6.0)
    motion = flight_motion(changed(flown, "velocity", stream.time[kept], stream.values[kept]), signals)
    assert isinstance(motion, FlightMotion)
    spans = moved_spans(motion, ((3.0, 9.0),))
    np.testing.assert_allclose(spans, [(3.0, 5.0), (6.0, 9.0)], atol=0.011)


def test_why_there_is_no_motion(flown: Log, signals: FlightSignals) -> None:
    def without(*kinds: str) -> Log:
        return replace(flown, streams=tuple(s for s in flown.streams if s.kind not in kinds))

    assert flight_motion(without("attitude"), signals) == "there is no attitude"
    assert flight_motion(without("velocity", "position"), signals) == "there is neither velocity nor position"
    stream = flown.stream("attitude")
    rare = changed(flown, "attitude", stream.time[::100], stream.values[::100])
    assert flight_motion(rare, signals) == "attitude:capture comes at 1.0 Hz, and 4 Hz are needed"


# ---- Supply ------------------------------------------------------------------------------------------------------------------


def test_sag_is_recovered_11_4(found: Identified) -> None:
    value = found.value("sag")
    assert value.value == pytest.approx(0.8, abs=0.03)
    assert value.word == "identified"
    assert found.vehicle.command_sag is not None
    assert found.vehicle.command_sag[0] == value.value
    assert found.vehicle.sources["command_sag"].startswith("identified: flown")
    # A battery is no other vehicle.
    assert not any("Lift at like commands" in note for note in found.notes)


def test_a_voltage_that_stays_tells_no_sag_11_7(flown: Log, signals: FlightSignals) -> None:
    stream = flown.stream("voltage")
    assert signals.supply is not None
    assert supply_range([signals]) is not None
    constant = signals_of(changed(flown, "voltage", values=np.full_like(stream.values, 3.7)))
    assert constant.supply is None
    assert supply_range([signals, constant]) is None
    little = changed(flown, "voltage", values=3.7 + 0.05 * (stream.values - 3.8))
    told = {"sag": True}
    base, said = with_supply(TRUTH.known(), [signals_of(little)], known(TRUTH), told, speeds=False)
    assert base.command_sag is None
    assert not told["sag"]
    where = "Over the parts of flights that are fitted, what is held out left aside,"
    assert said == [f"{where} the voltage falls by 0.8 % only (4 are needed): no sag is told."]
    assert with_supply(TRUTH.known(), [constant], known(TRUTH), told, speeds=False) == (TRUTH.known(), [])
    held = replace(known(TRUTH), fixed={"sag": 1.0})
    with pytest.raises(AirworthyError, match="has no voltage that was measured"):
        with_supply(TRUTH.known(), [constant], held, told, speeds=False)
    base, _ = with_supply(TRUTH.known(), [signals_of(little)], held, told, speeds=False)
    assert base.command_sag is not None
    assert base.command_sag[0] == 1.0
    assert not told["sag"]


def test_a_voltage_that_was_measured_is_not_called_untold(signals: FlightSignals) -> None:
    assert "no voltage tells" in drift_cause(replace(signals, supply=None))
    assert "the voltage moves too little where it is fitted" in drift_cause(signals)


def test_commands_act_as_the_supply_lets_them(signals: FlightSignals) -> None:
    assert signals.supply is not None
    half = signals.supplied(1.0, 3.8)
    volts, inside = signals.supply.mean(half.middles, 0.1), slice(100, -100)
    np.testing.assert_allclose(half.values[inside], (signals.command.values * volts / 3.8)[inside], rtol=1e-12)
    # At both ends the first and the last voltage hold.
    ends = half.values[-1] / signals.command.values[-1]
    np.testing.assert_allclose(ends, signals.supply.values[-20:].mean() / 3.8, rtol=0.01)
    assert signals.supplied(0.0, 3.8) is signals.command
    # What is there just above a command of 0 is the drive's, whatever the supply.
    offset = signals.command.mapped(0.1)
    twice = offset.supplied(np.full((len(offset.values), 1), 2.0))
    going = signals.command.values > 0.0
    np.testing.assert_allclose(twice.values[going], (0.1 + 1.8 * signals.command.values)[going], rtol=1e-12)
    assert not twice.values[~going].any()


def test_full_and_empty_batteries_are_one_vehicle(flown: Log, signals: FlightSignals) -> None:
    begin, end = signals.spans[0][0], signals.spans[-1][1]
    full, empty = signals.within((begin, begin + 4.0)), signals.within((end - 4.0, end))
    # A little less lift than the battery alone explains, beside what it does.
    weak = replace(empty, force=replace(empty.force, values=0.88 * empty.force.values))
    with pytest.raises(AirworthyError):
        refuse_unlike_supplied([replace(full, supply=None), replace(weak, supply=None)])
    refuse_unlike_supplied([full, weak])
    half = replace(empty, force=replace(empty.force, values=0.5 * empty.force.values))
    with pytest.raises(AirworthyError):
        refuse_unlike_supplied([full, half])


@pytest.mark.slow
def test_validation_takes_the_supply_along(found: Identified, flown: Log) -> None:
    ready = ready_flights([flown], found.vehicle, feed="commands")[0]
    plain = ready_flights([flown], replace(found.vehicle, command_sag=None), feed="commands")[0]
    ratio = ready.signals.command.values[2000:] / plain.signals.command.values[2000:]
    # From 4.1 to 3.5 V, by the power of 0.8.
    assert ratio.max() / ratio.min() == pytest.approx((4.1 / 3.5) ** 0.8, rel=0.05)
    no_volts = replace(flown, streams=tuple(s for s in flown.streams if s.kind != "voltage"))
    notes = ready_flights([no_volts], found.vehicle, feed="commands")[0].notes
    assert any("whose voltage the log lacks" in note for note in notes)


def test_a_battery_that_empties_is_no_drift_to_who_knows_it(found: Identified, flown: Log) -> None:
    assert not watch([flown], found.vehicle).alarm
    told = watch([flown], replace(found.vehicle, command_sag=None))
    assert told.alarm
    assert "voltage fell by 1" in told.drifts[0].sentence


# ---- Records -----------------------------------------------------------------------------------------------------------------


def test_draws_have_drag_and_sag(found: Identified) -> None:
    told = found.vehicle.uncertainty
    assert told is not None
    sizes = dict.fromkeys(("drag_x", "drag_y", "drag_z"), 0.1) | {"sag": 0.05}
    wide = replace(told, sd=tuple(sizes.get(name, sd) for name, sd in zip(told.names, told.sd, strict=True)))
    made = replace(found.vehicle, uncertainty=wide)
    drawn = made.draw(600, 3)
    drags = np.log([v.drag.linear[0] / v.mass for v in drawn.vehicles])
    assert drags.std() == pytest.approx(0.1, rel=0.1)
    assert drags.mean() == pytest.approx(math.log(found.value("drag_x").value), abs=0.015)
    assert np.std([v.command_sag[0] for v in drawn.vehicles if v.command_sag]) == pytest.approx(0.05, rel=0.1)
    config = SimulatorConfig(physics_rate=500.0, control_rate=500.0, randomization=Randomization(posterior=True))
    simulator = Simulator(made, config, env_count=300, seed=1)
    rows = simulator.parameter("drag_linear") / simulator.parameter("mass").reshape(-1, 1)
    np.testing.assert_allclose(np.log(rows).std(axis=0), 0.1, rtol=0.15)
    with pytest.raises(AirworthyError, match="'drag_linear' is drawn anew"):
        simulator.set_parameter("drag_linear", [0.0, 0.0, 0.0])


def test_what_no_supply_does_is_refused() -> None:
    good = frame_vehicle("quad_x:0.1", 1.0)
    check(replace(good, command_sag=(1.0, 15.2)))
    with pytest.raises(AirworthyError, match="a power of the supply of up to 4"):
        check(replace(good, command_sag=(9.0, 15.2)))
    with pytest.raises(AirworthyError, match="at a voltage above 0"):
        check(replace(good, command_sag=(1.0, 0.0)))
    assert plant_of(replace(good, command_sag=(0.7, 15.2))).supply.tolist() == [[0.7, 15.2]]


def test_fitted_drag_is_all_of_it(found: Identified) -> None:
    assert isinstance(found.air, AirDrag)
    base = found.vehicle
    rotors: tuple[Rotor, ...] = tuple(replace(r, hub_drag=(1e-5, 1e-5)) for r in base.rotors)
    other = replace(base, rotors=rotors, drag=Drag(linear=(9.0, 9.0, 9.0), rotor_speed=(1.0, 1.0, 1.0)))
    made = with_drag(other, found.air)
    assert made.drag.linear == pytest.approx(base.drag.linear)
    assert made.drag.rotor_speed == (0.0, 0.0, 0.0)
    assert {r.hub_drag for r in made.rotors} == {(0.0, 0.0)}
