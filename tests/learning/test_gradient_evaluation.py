"""How hovering policies are judged: what is measured is what is defined, starts are nobody's, and losers are called so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.evaluation import wilson_interval
from airworthy.learning.gradient import GradientOptions, GradientTraining, HoverStart
from airworthy.learning.gradient.evaluation import (
    AS_IT_IS,
    HoverCondition,
    HoverFlights,
    HoverProtocol,
    _keep_thrust,
    _Measured,
    _thrust_to_weight,
    conditions,
    evaluation_starts,
    figures,
    fly_hover,
    has_drag,
    robustness,
)
from airworthy.learning.gradient.flyers import GeometricController, LearntPolicy, MpcController
from airworthy.learning.gradient.kernel import observe
from airworthy.learning.gradient.trainer import network_action
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import Drag, hover_speed, vehicle

START = HoverStart()
SHORT = HoverProtocol(flight_s=0.5, steady_s=0.2, flights=16, grid_flights=16)


class Steady:
    """Commands rotor states that stay, and notes what the rotors were told."""

    name, level, outside, rate = "steady", "rotor_speed", True, 100.0

    def __init__(self, speed: Array, hover: Array):
        self._speed, self.hover, self.told = speed, hover, []

    def begin(self, simulator: Simulator) -> None:
        self._simulator = simulator

    def command(self, simulator: Simulator, noise: Array | None) -> Array:
        self.told.append(np.array(simulator.rotors("rotor_command")))
        return np.broadcast_to(self._speed, (simulator.env_count, len(self._speed)))


def test_a_learnt_policy_holds_its_place_in_the_simulator(learnt_hover: GradientTraining) -> None:
    """Physics at 1,000 Hz instead of 100; an untrained network with the same beginnings drifts away."""
    protocol = HoverProtocol()
    found = figures(fly_hover(learnt_hover.vehicle, LearntPolicy.of(learnt_hover), protocol, START, 64))
    assert found["kept_percent"] >= 90.0
    assert found["median_error_m"] < 0.3
    raw = GradientTraining(vehicle("tinyprop"), GradientOptions(env_count=16, window=2, hidden=16))
    lost = figures(fly_hover(raw.vehicle, LearntPolicy.of(raw), protocol, START, 64))
    assert lost["kept_percent"] < 10.0
    assert lost["median_error_m"] is None  # more than half are lost: infinitely far


def test_figures_follow_their_definitions() -> None:
    """The same flights by hand, from recorded positions."""
    item, flyer = vehicle("tinyprop"), GeometricController(100.0)
    flights = fly_hover(item, flyer, SHORT, START, 16)
    simulator = Simulator(item, SimulatorConfig(level="position", physics_rate=1000.0), 16, seed=SHORT.seed)
    x = evaluation_starts(item, START, SHORT, 16).T
    simulator.reset(position=x[:, :3], velocity=x[:, 3:6], attitude=x[:, 6:10], rate=x[:, 10:13], rotor_speed=x[:, 13:])
    position, up, speeds = [np.array(simulator.position, float)], [], []
    for _ in range(50):
        simulator.step(np.zeros(4))
        position.append(np.array(simulator.position, float))
        a = np.array(simulator.attitude, float)
        up.append(1 - 2 * (a[:, 0] ** 2 + a[:, 1] ** 2))
        speeds.append(np.array(simulator.rotor_speed, float))
    track = np.array(position)
    distance = np.linalg.norm(track, axis=-1)
    np.testing.assert_allclose(flights.error, distance[-20:].mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(flights.tilt, np.arccos(np.min(up, axis=0)), rtol=1e-9)
    ahead = track[0] / distance[0][:, None]
    beyond = np.maximum(0.0, (-np.einsum("tni,ni->tn", track, ahead)).max(axis=0))
    np.testing.assert_allclose(flights.overshoot, beyond, atol=1e-12)
    # tinyprop's thrust is a pure square: thrust^1.5 is a cube.
    cubes = (np.array(speeds) ** 3).sum(axis=-1).mean(axis=0) / (hover_speed(item) ** 3).sum()
    np.testing.assert_allclose(flights.energy, cubes, rtol=1e-5)
    for k in range(16):
        far = distance[:, k] > 0.1 * distance[:, k].max()
        late = np.inf if far[-1] else (np.flatnonzero(far)[-1] + 1) / 100.0
        assert flights.settling[k] == pytest.approx(late)


@pytest.mark.parametrize("rate", [50.0, 200.0])
def test_errors_are_of_the_last_seconds_whatever_the_rate(rate: float) -> None:
    simulator = Simulator(vehicle("tinyprop"), SimulatorConfig(level="rotor_speed"), 1)
    simulator.reset()
    seen = _Measured(simulator, SHORT, rate)
    seen._distance = [np.array([float(k)]) for k in range(101)]
    last = round(SHORT.steady_s * rate)
    assert seen.result().error[0] == pytest.approx(np.arange(101 - last, 101).mean())


def test_jitter_is_the_mean_change_of_a_rotors_command() -> None:
    """Two of four rotors are told to change by a tenth of their range from one decision to the next, the others not at all."""
    item = vehicle("tinyprop")
    simulator = Simulator(item, SimulatorConfig(level="rotor_speed", physics_rate=1000.0), 2)
    low, high = (np.asarray(simulator.parameter(name), float)[0, :4] for name in ("rotor_min", "rotor_max"))
    middle = 0.5 * (low + high)
    simulator.reset(rotor_speed=np.broadcast_to(middle, (2, 4)))
    seen = _Measured(simulator, SHORT, 100.0)
    for k in range(10):
        way = 1.0 if k % 2 == 0 else 0.0
        simulator.step(middle + 0.1 * way * (high - low) * np.array([1.0, 1.0, 0.0, 0.0]))
        seen.add()
    np.testing.assert_allclose(seen.result().jitter, 0.05, rtol=1e-4)


def test_a_heavier_vehicle_is_heavier_all_over() -> None:
    assert HoverCondition(mass=1.2).factors == {"mass": 1.2, "inertia": 1.2}
    assert HoverCondition(thrust=0.9).factors == {"rotor_thrust": 0.9, "rotor_torque": 0.9}
    assert HoverCondition(lag=1.25).factors == {"rotor_rise": 0.8, "rotor_fall": 0.8}


_SOME = (0.01, 0.01, 0.01)


@pytest.mark.parametrize("drag", [{name: _SOME} for name in ("linear", "quadratic_norm", "quadratic_axis", "rotor_speed")])
def test_wind_does_something_to_whatever_has_drag(drag: dict[str, Any]) -> None:
    still = replace(vehicle("tinyprop"), drag=Drag())
    assert not has_drag(still)
    assert has_drag(replace(still, drag=Drag(**drag)))


@pytest.mark.parametrize("rotor", [{"hub_drag": (1e-5, 1e-5)}, {"flapping": 1e-6}, {"translational_lift": 1e-5}])
def test_wind_does_something_to_whatever_has_rotors_that_feel_it(rotor: dict[str, Any]) -> None:
    still = replace(vehicle("tinyprop"), drag=Drag())
    assert has_drag(replace(still, rotors=tuple(replace(item, **rotor) for item in still.rotors)))


def test_a_flight_has_settled_when_it_is_last_outside_a_tenth() -> None:
    """By the distances themselves, of flights that are long enough to settle, and of one that does not."""
    item, protocol = vehicle("tinyprop"), replace(SHORT, flight_s=4.0)
    distances: list[Array] = []

    class Watched(GeometricController):
        def command(self, simulator: Simulator, noise: Array | None) -> Array:
            distances.append(np.linalg.norm(np.array(simulator.position, float), axis=1))
            return super().command(simulator, noise)

    flights = fly_hover(item, Watched(100.0), protocol, START, 16)
    settled = np.flatnonzero(np.isfinite(flights.settling))
    assert 8 <= len(settled) < 16
    for k in settled:
        distance = np.array(distances)[:, k]
        # Seen before each command: the first one at time 0.
        outside = np.flatnonzero(distance > 0.1 * distance.max())
        assert flights.settling[k] == pytest.approx((outside[-1] + 1) / 100.0)
        assert 0.1 < flights.settling[k] < 4.0


def test_settling_is_the_last_way_in_where_a_flight_goes_out_again() -> None:
    simulator = Simulator(vehicle("tinyprop"), SimulatorConfig(level="rotor_speed"), 3)
    simulator.reset()
    seen = _Measured(simulator, SHORT, 10.0)
    # Within a tenth at once and once more outside; never outside behind the start; at the end outside.
    seen._distance = list(
        np.array([[1.0, 0.05, 0.05, 0.2, 0.05, 0.01], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 0, 0, 0, 0, 0.11]]).T
    )
    np.testing.assert_allclose(seen.result().settling, [0.4, 0.1, np.inf])


def test_drawn_vehicles_that_are_raised_keep_their_torque_over_thrust() -> None:
    """A rotor that pulls more turns the body more: else a raised vehicle would be one that no catalogue has."""
    drawn = next(c.drawn for c in conditions() if c.kind == "drawn vehicles")
    config = SimulatorConfig(level="rotor_speed", physics_rate=1000.0, randomization=drawn)
    simulator = Simulator(vehicle("tinyprop"), config, 64, seed=1)
    simulator.reset()
    before = {name: np.array(simulator.parameter(name), float) for name in ("rotor_thrust", "rotor_torque")}
    weak = _thrust_to_weight(simulator)
    assert (weak < 1.2).any()
    assert (weak > 1.2).any()
    _keep_thrust(simulator)
    raised = np.maximum(1.0, 1.2 / weak)
    for name, value in before.items():
        factor = raised.reshape(-1, *(1,) * (value.ndim - 1))
        np.testing.assert_allclose(simulator.parameter(name), value * factor, rtol=1e-6, err_msg=name)


def test_rates_have_their_interval_and_lost_flights_are_infinitely_far() -> None:
    kept = np.array([True] * 7 + [False] * 3)
    ones = np.ones(10)
    flights = HoverFlights(kept, np.arange(10.0), np.where(np.arange(10) < 6, 1.5, np.inf), ones, ones, ones, ones, 1.3)
    found = figures(flights)
    rate = wilson_interval(7, 10)
    assert found["kept_percent"] == pytest.approx(70.0)
    assert found["kept_interval_percent"] == pytest.approx([100 * rate.low, 100 * rate.high])
    assert found["median_error_m"] == 5.0  # the upper of the two in the middle: 0 1 2 3 4 5 6 inf inf inf
    assert found["p95_error_m"] is None
    assert found["median_settling_s"] == 1.5
    assert found["worst_tilt_deg"] == pytest.approx(np.degrees(1.0))
    nobody = figures(replace(flights, kept=~np.ones(10, bool)))
    assert nobody["energy_of_hover"] is None


def test_starts_are_never_those_of_a_training() -> None:
    item = vehicle("tinyprop")
    judged = evaluation_starts(item, START, HoverProtocol(), 1024)
    np.testing.assert_array_equal(judged[:, :5], evaluation_starts(item, START, HoverProtocol(), 5))
    assert (np.abs(judged[:3]) <= START.position).all()
    # Even a training of the same seed: its first flights are of another episode.
    same = GradientTraining(item, GradientOptions(seed=7919, env_count=64, window=2, hidden=16))
    assert not np.isin(np.float32(judged[0]), same.window.state[0]).any()


def test_the_policy_sees_what_it_was_trained_to_see() -> None:
    """Its actions are those of the network on the training's own observation, history included."""
    made = GradientTraining(vehicle("tinyprop"), GradientOptions(env_count=16, window=2, hidden=16, history=2))
    made.weights[-2][:] = np.random.default_rng(0).normal(size=made.weights[-2].shape)
    policy = LearntPolicy.of(made)
    simulator = Simulator(made.vehicle, SimulatorConfig(physics_rate=1000.0), 16)
    x = np.array(made.window.state, float)
    body, low, high = x[:17].T, made.vehicle.rotors[0].speed_min, made.vehicle.rotors[0].speed_max
    simulator.reset(position=body[:, :3], velocity=body[:, 3:6], attitude=body[:, 6:10], rate=body[:, 10:13])
    policy.begin(simulator)
    for _ in range(2):  # of the same state; the second time the first action is the newest of the past
        seen = np.array(np.broadcast_arrays(*observe(tuple(x), made.shape))).T
        action = network_action(made.weights, seen)
        command = policy.command(simulator, None)
        np.testing.assert_allclose(command, 0.5 * (low + high) + 0.5 * (high - low) * action, rtol=1e-5)
        x[17:] = np.concatenate([action.T, np.tile(made.hover[:, None], (1, 16))])


@pytest.mark.parametrize(("delay_ms", "at_hover"), [(10, 1), (20, 2), (25, 2)])
def test_late_commands_come_late(delay_ms: int, at_hover: int) -> None:
    item = vehicle("tinyprop")
    hover = np.asarray(hover_speed(item))
    flyer = Steady(1.05 * hover, hover)
    fly_hover(item, flyer, SHORT, START, 4, HoverCondition("command delay", delay_s=1e-3 * delay_ms))
    told = [row[0, 0] for row in flyer.told[1:]]  # what was followed at the end of each period
    np.testing.assert_allclose(told[:at_hover], hover[0], rtol=1e-6)
    np.testing.assert_allclose(told[at_hover:], 1.05 * hover[0], rtol=1e-6)


def test_conditions_do_what_they_say() -> None:
    item, hover = vehicle("tinyprop"), np.asarray(hover_speed(vehicle("tinyprop")))

    def flown(condition: HoverCondition) -> HoverFlights:
        return fly_hover(item, Steady(hover, hover), SHORT, START, 16, condition)

    nominal = flown(AS_IT_IS)
    by = {(c.kind, c.value): c for c in conditions()}
    assert flown(by["mass", "+20 %"]).thrust_to_weight == pytest.approx(nominal.thrust_to_weight / 1.2)
    assert flown(by["thrust", "-10 %"]).thrust_to_weight == pytest.approx(nominal.thrust_to_weight * 0.9)
    assert (flown(by["rotor lag", "+30 %"]).error != nominal.error).any()
    drawn = flown(by["drawn vehicles", "20 ms late"])
    assert drawn.thrust_to_weight == pytest.approx(1.2)  # raised: tinyprop has 1.31 as it is
    assert len(np.unique(drawn.energy)) == 16
    # Without drag wind does nothing, to the bit; with drag it does.
    np.testing.assert_array_equal(flown(by["wind", "5 m/s"]).error, nominal.error)
    assert not has_drag(item)
    assert has_drag(vehicle("cf2x_L250"))
    assert not any(c.wind for c in conditions(winds=False))


@pytest.mark.parametrize("wind", [1.0, 3.0, 5.0])
def test_wind_blows_along_x(wind: float) -> None:
    """A level vehicle with linear drag k at rest: x = w (t - (1 - exp(-k t / m)) m / k), and nothing aside or upwards."""
    item = vehicle("cf2x_L250")
    hover, still = np.asarray(hover_speed(item)), HoverStart(position=0.0, velocity=0.0, tilt=0.0, rate=0.0, rotors=0.0)
    track: list[Array] = []

    class Watched(Steady):
        def command(self, simulator: Simulator, noise: Array | None) -> Array:
            track.append(np.array(simulator.position, float))
            return super().command(simulator, noise)

    named = {(c.kind, c.value): c for c in conditions()}
    fly_hover(item, Watched(hover, hover), replace(SHORT, flight_s=1.0), still, 2, named["wind", f"{wind:g} m/s"])
    t, rate = np.arange(100) / 100.0, item.drag.linear[0] / item.mass
    expected = wind * (t - (1.0 - np.exp(-rate * t)) / rate)
    assert expected[-1] > 0.15
    for flight in range(2):
        np.testing.assert_allclose(np.array(track)[:, flight, 0], expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(np.array(track)[:, flight, 1:], 0.0, atol=1e-5)


def test_noise_is_of_the_policy_s_sight_and_repeats() -> None:
    learner = GradientTraining(vehicle("tinyprop"), GradientOptions(env_count=16, window=2, hidden=16))
    learner.weights[-2][:] *= 50.0
    policy = LearntPolicy.of(learner)
    noisy = [fly_hover(learner.vehicle, policy, SHORT, START, 16, HoverCondition("noise", noise=k)) for k in (5.0, 5.0, 0.0)]
    np.testing.assert_array_equal(noisy[0].error, noisy[1].error)
    assert (noisy[0].jitter > noisy[2].jitter).all()


def test_baselines_fly_the_same_starts_and_conditions_that_concern_them() -> None:
    item = vehicle("tinyprop")
    mpc = figures(fly_hover(item, MpcController(100.0, 5.0), HoverProtocol(), START, 4))
    assert mpc["kept"] == 4
    assert mpc["median_error_m"] < 0.01
    hover = np.asarray(hover_speed(item))
    with pytest.raises(AirworthyError, match="geometric controller decides inside the simulator's step"):
        fly_hover(item, GeometricController(100.0), SHORT, START, 4, HoverCondition("command delay", delay_s=0.01))
    grid = [HoverCondition("command delay", "10 ms", delay_s=0.01), HoverCondition("mass", "+20 %", mass=1.2)]
    steady: Any = Steady(hover, hover)
    rows = robustness(item, steady, GeometricController(100.0), SHORT, START, grid)
    assert [row["known"] is None for row in rows] == [True, False]


def test_a_protocol_that_cannot_be_flown_is_refused() -> None:
    with pytest.raises(AirworthyError, match="over 6 s of flights of 5 s"):
        HoverProtocol(steady_s=6.0)
    with pytest.raises(AirworthyError, match="flights"):
        HoverProtocol(flights=0)
