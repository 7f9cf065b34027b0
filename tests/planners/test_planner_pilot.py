"""The pilot that joins planner, maps and controller: gains, take-off, odometry, compute, containment, batches."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy.control import MODES, BodyState, geometric_control, reference_from_command, rotor_lag
from airworthy.core.arrays import Array, ArrayBool, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.pilots.pilot import observe
from airworthy.planners.common.depth_input import ComputeModel, Odometry, OdometryErrors, recorded_costs
from airworthy.planners.common.interface import MapSettings, Mission, Motion, Setpoints
from airworthy.planners.common.tracking import PlannerPilot, TakeOff
from airworthy.planners.common.tracking_backends import (
    GENTLE_SHARE,
    INERTIA,
    LAG_SHARE,
    MASS,
    Fused,
    So3State,
    backend,
    backend_names,
    so3_control,
    so3_gains,
    so3_rows,
)
from airworthy.planners.common.tracking_faults import Alone
from airworthy.planners.ego import EgoPlanner
from airworthy.planners.fast import FastPlanner
from airworthy.planners.pgo import PgoPlanner
from airworthy.planners.straight import StraightFlight
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import RotorResponse, vehicle
from airworthy.vehicles.trim import indicators

CONFIG = SimulatorConfig(physics_rate=480.0, control_rate=100.0)


def mission(count: int, flight: Any = None) -> Mission:
    start, goal = np.tile([0.0, 0.0, 1.5], (count, 1)), np.tile([12.0, 0.0, 1.5], (count, 1))
    box = np.tile([-9.0, -9.0, 0.0], (count, 1)), np.tile([30.0, 9.0, 4.0], (count, 1))
    numbers = np.arange(count) if flight is None else np.asarray(flight)
    return Mission(start, goal, np.full(count, 4.0), np.full(count, 6.0), *box, numbers, seed=5)


def flown(pilot: PlannerPilot, vehicles: Any, seconds: float, config: SimulatorConfig = CONFIG) -> ArrayF32:
    """Positions at every control step (steps, n, 3)."""
    config = pilot.configured(config)
    count = pilot.count
    simulator = Simulator(vehicles, config, env_count=count, flight_ids=pilot.mission.flight)
    simulator.reset(position=pilot.mission.start * [1.0, 1.0, 0.2])
    pilot.attach(simulator)
    out = []
    for _ in range(round(seconds * config.control_rate)):
        simulator.step(pilot.command(observe(simulator, pilot.observes)))
        out.append(np.array(simulator.position))
    return np.array(out)


class Hover:
    """Stays where it began; what it does wrong is set from outside."""

    name = "hover"
    settings = None

    def __init__(self) -> None:
        self.wrong: dict[int, str] = {}
        self.calls = 0
        self.delays: list[Array] = []

    def reset(self, mission: Mission) -> None:
        self.mission = mission

    def update(self, motion: Motion, maps: Any, active: ArrayBool) -> dict[str, Any]:
        self.calls += 1
        for flight in np.flatnonzero(active):
            if self.wrong.get(int(self.mission.flight[flight])) == "raises":
                raise RuntimeError("no idea")
        slow = [1e9 if self.wrong.get(int(f)) == "slow" else 1.0 for f in self.mission.flight]
        return {"work": {"evaluations": np.array(slow)}, "replans": active.astype(int), "state": active.astype(int)}

    def adopt(self, delay: Array) -> None:
        self.delays.append(delay)

    def setpoints(self, time: Array) -> Setpoints:
        position = self.mission.start.copy()
        for row, flight in enumerate(self.mission.flight):
            if self.wrong.get(int(flight)) == "nan":
                position[row] = np.nan
        zero = np.zeros_like(position)
        return Setpoints(position, zero, zero, np.zeros(len(time)), np.zeros(len(time)))


# ---- gains and the law ----------------------------------------------------------------------------------------------------


def test_published_gains_keep_their_ratios_and_are_capped_by_the_rotors() -> None:
    fixed = so3_gains(vehicle("virt_05"), fixed=True)
    assert np.allclose(np.array(fixed.position) * MASS, (5.7, 5.7, 6.2))
    assert fixed.attitude == (1.0, 1.0, 1.0)
    assert fixed.rate == (0.07, 0.07, 0.1)
    free = so3_gains(vehicle("virt_05"))
    assert not free.capped
    # The ratios that the specification states, to their printed digits.
    assert np.allclose(np.array(free.attitude) / INERTIA, (379.0, 379.0, 202.0), rtol=2e-3)
    assert np.allclose(np.array(free.rate) / INERTIA, (26.5, 26.5, 20.0), rtol=1e-2)
    assert np.allclose(free.position[0], 5.8, rtol=1e-2)
    assert np.allclose(free.velocity[0], 3.5, rtol=1e-2)
    for name in ("real_05", "virt_02", "virt_05"):
        airframe = vehicle(name)
        lazy = type(airframe.rotors[0].response)((4.0, 0.0), (4.0, 0.0))
        slow = replace(airframe, rotors=tuple(replace(rotor, response=lazy) for rotor in airframe.rotors))
        for gains, limit in (
            (so3_gains(airframe, lag_share=GENTLE_SHARE), 0.25 / rotor_lag(airframe)),
            (so3_gains(slow), LAG_SHARE / rotor_lag(slow)),
        ):
            assert gains.capped
            assert gains.frequency[0] == pytest.approx(limit)
            damping = gains.rate[0] / np.sqrt(gains.attitude[0] * airframe.inertia[0])
            assert damping == pytest.approx(free.rate[0] / np.sqrt(free.attitude[0] * INERTIA[0]))


def test_attitude_behind_slow_rotors_rings_no_more_than_the_published_vehicle() -> None:
    """Poles of lag s^3 + s^2 + 2 zeta w s + w^2; a dead time counts as a lag of its length."""
    base = vehicle("virt_05")

    def damping(lag: float, dead: float = 0.0) -> float:
        lazy = RotorResponse.first_order(lag)
        craft = replace(base, command_delay=dead, rotors=tuple(replace(rotor, response=lazy) for rotor in base.rotors))
        gains = so3_gains(craft)
        poles = np.roots([lag + dead, 1.0, gains.rate[0] / craft.inertia[0], gains.attitude[0] / craft.inertia[0]])
        return float((-poles.real / np.abs(poles)).min())

    published = damping(1.0 / 30.0)
    assert published == pytest.approx(0.22, abs=0.005)
    assert not so3_gains(base).capped
    for lag, dead in ((0.07, 0.0), (0.15, 0.0), (0.04, 0.05)):
        assert damping(lag, dead) == pytest.approx(published, abs=0.005)


@pytest.mark.parametrize(("error", "share"), [(1.5, 0.3), (-2.0, 0.4), (3.5, 0.0)])
def test_an_error_of_acceleration_is_pulled_by_its_published_share(error: float, share: float) -> None:
    """A fifth of the errors' sum, none beyond 3: level and hovering, thrust says what is pulled upwards."""
    airframe, none = vehicle("virt_05"), (0.0, 0.0, 0.0)
    state = So3State(none, none, none, (0.0, 0.0, 0.0, 1.0), none)
    wanted = SimpleNamespace(position=none, velocity=none, acceleration=(0.0, 0.0, error), yaw=0.0)
    thrust, _ = so3_control(state, wanted, so3_gains(airframe), airframe.mass, airframe.inertia, 9.81)
    assert thrust == pytest.approx(airframe.mass * (9.81 + error + share * error))


def test_yaw_behind_slow_rotors_has_the_lags_limit_too() -> None:
    base, lag = vehicle("virt_05"), 0.15
    slow = replace(base, rotors=tuple(replace(rotor, response=RotorResponse.first_order(lag)) for rotor in base.rotors))
    assert so3_gains(slow).attitude[2] == pytest.approx(base.inertia[2] * (LAG_SHARE / lag) ** 2)
    assert so3_gains(base).attitude[2] > so3_gains(slow).attitude[2]


def test_each_common_controller_has_its_own_share_of_the_rotors_lag() -> None:
    class Recorder:
        vehicles = (vehicle("real_09"), vehicle("virt_05"))

        def __init__(self) -> None:
            self.rows: dict[str, Any] = {}

        def set_parameter(self, name: str, rows: Any) -> None:
            self.rows[name] = rows

    for name, share in (("so3", LAG_SHARE), ("so3_gentle", GENTLE_SHARE)):
        given = Recorder()
        Fused(name, name).configure(given)  # type: ignore[arg-type]
        wanted = so3_rows(Recorder.vehicles, False, share)
        assert set(given.rows) == set(wanted)
        for key, rows in wanted.items():
            np.testing.assert_array_equal(given.rows[key], rows)


@pytest.mark.parametrize("name", ["real_04", "real_09"])
def test_a_weak_vehicle_is_asked_for_no_more_than_it_has_left_beside_hovering(name: str) -> None:
    airframe = vehicle(name)
    known, gains = indicators(airframe), so3_gains(airframe)
    assert gains.capped
    hover = 1.0 / known.thrust_to_weight
    left = known.alpha_xy_max * 2.0 * min(hover, 1.0 - hover)
    assert gains.attitude[0] * 0.5 / airframe.inertia[0] == pytest.approx(left)  # an error of half a radian


def test_fused_law_is_the_published_law_where_accelerations_agree() -> None:
    """Without the term in the measured acceleration the published law is that of the fused level, to rounding."""
    rng = np.random.default_rng(3)
    count, airframe = 200, vehicle("virt_05")
    gains = so3_gains(airframe)
    state = [rng.normal(0.0, 0.5, (3, count)) for _ in range(4)]
    q = np.concatenate([0.3 * rng.normal(size=(3, count)), np.ones((1, count))])
    q = tuple(q / np.linalg.norm(q, axis=0))
    acceleration = tuple(rng.normal(0.0, 2.0, (3, count)))
    wanted = SimpleNamespace(position=tuple(state[0]), velocity=tuple(state[1]), acceleration=acceleration, yaw=0.3)
    # Errors of position and velocity sum to 0, so that the published share of the acceleration's error is 0, too.
    offset = rng.normal(0.0, 0.3, (3, count))
    at, speed = tuple(state[0] + offset), tuple(state[1] - offset)
    thrust, moment = so3_control(
        So3State(at, speed, acceleration, q, tuple(state[3])), wanted, gains, airframe.mass, airframe.inertia, airframe.gravity
    )
    zero = np.zeros(count)
    command = (*wanted.position, *wanted.velocity, *acceleration, zero, zero, zero, zero + 0.3, zero)
    own = SimpleNamespace(
        mass=airframe.mass,
        gravity=airframe.gravity,
        inertia=airframe.inertia,
        position_gain=gains.position,
        velocity_gain=gains.velocity,
        attitude_gain=gains.attitude,
        rate_gain=gains.rate,
        inclination_tangent=0.0,
        thrust_max=0.0,
        yaw_rate_max=1.0,
        pull_max=(0.0, 0.0),
    )
    out = geometric_control(
        BodyState(at, speed, q, tuple(state[3])), reference_from_command("tracking", command), MODES["tracking"], own
    )
    upright = thrust != 0.0  # more than 90 degrees off the published law lets go
    assert 0.9 < upright.mean() < 1.0
    assert np.allclose(thrust[upright], out.thrust[upright], atol=1e-12)
    assert np.allclose(moment, out.moment, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "controller", "overshoot"),
    [
        ("virt_05", "so3", 0.1),
        ("real_18", "so3", 0.3),
        ("real_09", "so3", 0.5),  # the weakest of all
        ("real_09", "so3_gentle", 0.6),  # at 7.5 rad/s the published gains overshoot by 0.4 m when braking at 6 m/s^2
        ("virt_05", "so3_gentle", 0.6),
    ],
)
def test_common_controller_flies_a_straight_line(name: str, controller: str, overshoot: float) -> None:
    pilot = PlannerPilot(StraightFlight(), mission(1), vehicle(name), controller=controller)
    end = flown(pilot, vehicle(name), 8.0)
    assert np.abs(end[:, 0, 1]).max() < 1e-3  # nothing pushes sideways
    assert end[:, 0, 0].max() < 12.0 + overshoot
    assert np.linalg.norm(end[-1, 0] - pilot.mission.goal[0]) < 0.05


def test_every_listed_controller_can_be_made() -> None:
    assert {"so3", "so3_fixed", "so3_gentle", "geometric", "mellinger"} <= set(backend_names())
    for name in backend_names():
        assert backend(name).name == name
    with pytest.raises(AirworthyError, match="Unknown controller 'so4'"):
        backend("so4")


# ---- take-off, odometry, compute ------------------------------------------------------------------------------------------


def test_goal_is_issued_to_each_flight_when_it_is_calm() -> None:
    two = replace(mission(2), start=np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 3.0]]))
    pilot = PlannerPilot(StraightFlight(), two, vehicle("virt_05"), takeoff=TakeOff(speed=1.0))
    out = flown(pilot, vehicle("virt_05"), 6.0)
    issued = pilot.issued
    assert 1.5 < issued[0] < issued[1] < 5.5
    k = round(issued[0] * 100.0)
    assert np.linalg.norm(out[k, 0] - two.start[0]) < 0.3
    assert out[k + 60, 0, 0] > 0.2 > out[k, 0, 0]
    impatient = PlannerPilot(StraightFlight(), two, vehicle("virt_05"), takeoff=TakeOff(timeout=1.0))
    flown(impatient, vehicle("virt_05"), 1.5)
    assert all("not calm at its start" in cause for cause in impatient.causes)
    assert np.isnan(impatient.issued).all()


def test_flights_do_not_depend_on_their_batch() -> None:
    airframe = [vehicle("virt_05"), vehicle("real_09"), vehicle("real_01")]
    settings: dict[str, Any] = {"takeoff": TakeOff(), "odometry": Odometry(0.02, 0.02, 0.05)}
    whole = flown(PlannerPilot(StraightFlight(), mission(3, [7, 8, 9]), airframe, **settings), airframe, 5.0)
    alone = flown(PlannerPilot(StraightFlight(), mission(1, [8]), airframe[1], **settings), airframe[1:2], 5.0)
    assert np.array_equal(whole[:, 1], alone[:, 0])


def test_maps_that_nobody_has_to_fill_need_no_camera() -> None:
    """A planner that asks for maps, over maps that know the scene from the start, flies without any sensor."""
    planner = Hover()
    planner.settings = MapSettings()  # type: ignore[assignment]
    pilot = PlannerPilot(planner, mission(1), vehicle("virt_05"), maps=SimpleNamespace())
    places = flown(pilot, [vehicle("virt_05")], 0.3)
    assert np.isfinite(places).all()
    assert planner.calls > 10


def test_odometry_errors_are_functions_of_flight_and_time() -> None:
    every = OdometryErrors(Odometry(0.1, 0.2, 0.3), 4, np.array([3, 11]))
    times = np.linspace(0.0, 10.0, 2001)
    drawn = np.array([every.at(np.full(2, t))[0] for t in times])
    late = OdometryErrors(Odometry(0.1, 0.2, 0.3), 4, np.array([11]))
    assert np.array_equal(late.at(times[-1:])[0], drawn[-1, 1:])
    still = OdometryErrors(Odometry(0.1, 0.2), 4, np.arange(400))
    position, velocity = still.at(np.full(400, 1.0))
    # 1200 draws: a standard deviation is known to 2 %, four of those here.
    assert position.std() == pytest.approx(0.1, rel=0.08)
    assert velocity.std() == pytest.approx(0.2, rel=0.08)
    walk = OdometryErrors(Odometry(drift=0.3), 4, np.arange(400))
    assert walk.at(np.full(400, 4.0))[0].std() == pytest.approx(0.3 * 2.0, rel=0.08)
    assert not OdometryErrors(Odometry(), 4, np.arange(2)).at(np.zeros(2))[0].any()
    with pytest.raises(AirworthyError, match="drift is -1"):
        Odometry(drift=-1.0)


def test_odometry_errors_move_the_vehicle_by_as_much() -> None:
    """A constant error of position is one that the vehicle flies off by: it believes to be at its set-point."""
    pilot = PlannerPilot(Hover(), mission(1), vehicle("virt_05"), odometry=Odometry(drift=1e-9))
    pilot._errors.at = lambda time: (np.full((1, 3), 0.25), np.zeros((1, 3)))  # type: ignore[method-assign]
    assert np.allclose(flown(pilot, vehicle("virt_05"), 6.0)[-1, 0], np.array([0.0, 0.0, 1.5]) - 0.25, atol=0.01)


def test_compute_models() -> None:
    work = {"evaluations": np.array([100.0, 0.0, 50.0]), "nobody knows": np.array([0.0, 10.0, 0.0])}
    active, flight = np.array([True, True, False]), np.array([4, 5, 6])
    costs = recorded_costs()
    fixed = ComputeModel("fixed").delay(work, active, flight, 9.0)
    assert fixed.tolist() == [100.0 * costs["evaluations"], 10.0 * costs["other"], 0.0]
    assert not ComputeModel("zero").delay(work, active, flight, 9.0).any()
    clock = ComputeModel("measured")
    first = clock.delay(work, active, flight, 0.3)
    assert first.sum() == pytest.approx(0.3)
    assert first[2] == 0.0
    assert sorted(clock.stored) == [4, 5]
    again = ComputeModel("measured", stored=clock.stored)
    assert np.array_equal(again.delay(work, active, flight, 77.0), first)
    assert again.stored == clock.stored
    with pytest.raises(AirworthyError, match=r"Unknown ComputeModel\.kind 'free'"):
        ComputeModel("free")  # type: ignore[arg-type]


def test_planners_hear_how_long_they_took() -> None:
    planner = Hover()
    pilot = PlannerPilot(planner, mission(2), vehicle("virt_05"))
    flown(pilot, vehicle("virt_05"), 0.1)
    assert planner.calls == 10
    assert np.allclose(planner.delays[0], recorded_costs()["evaluations"])
    assert pilot.planner_log.calls.tolist() == [10, 10]
    assert pilot.planner_log.work["evaluations"].tolist() == [10.0, 10.0]


# ---- containment ----------------------------------------------------------------------------------------------------------

CAUSES = {"raises": "RuntimeError: no idea", "nan": "not a number", "slow": "s of compute"}


@pytest.mark.parametrize("wrong", list(CAUSES))
@pytest.mark.parametrize("alone", [False, True])
def test_what_a_planner_does_wrong_ends_its_own_flight(wrong: str, alone: bool) -> None:
    def make() -> Hover:
        planner = Hover()
        planner.wrong = {21: wrong}
        return planner

    pilot = PlannerPilot(Alone(make) if alone else make(), mission(3, [20, 21, 22]), vehicle("virt_05"))
    out = flown(pilot, vehicle("virt_05"), 3.0)
    assert pilot.failed.tolist() == [False, True, False]
    assert CAUSES[wrong] in pilot.causes[1]
    assert pilot.causes[0] == pilot.causes[2] == ""
    undisturbed = flown(PlannerPilot(Hover(), mission(1, [20]), vehicle("virt_05")), vehicle("virt_05"), 3.0)
    assert np.array_equal(out[:, 0], undisturbed[:, 0])
    assert np.isfinite(out).all()


def test_wrong_shapes_and_reports_fail_with_their_cause() -> None:
    class Odd(Hover):
        def setpoints(self, time: Array) -> Setpoints:
            return replace(super().setpoints(time), yaw=np.zeros(7))

    class Vague(Hover):
        def update(self, motion: Motion, maps: Any, active: ArrayBool) -> dict[str, Any]:
            return {"work": {"evaluations": np.full(len(active), -1.0)}}

    class Early(Hover):
        def reset(self, mission: Mission) -> None:
            raise ValueError("not here")

    for planner, cause in (
        (Odd(), "yaw of shape (7,)"),
        (Vague(), "is not a count"),
        (Early(), "reset raised ValueError: not here"),
    ):
        pilot = PlannerPilot(planner, mission(2), vehicle("virt_05"))
        flown(pilot, vehicle("virt_05"), 0.1)
        assert all(cause in text for text in pilot.causes)


def test_pilots_that_do_not_fit_are_refused() -> None:
    with pytest.raises(AirworthyError, match="2 flights got 3 vehicles"):
        PlannerPilot(Hover(), mission(2), [vehicle("virt_05")] * 3)
    needy = Hover()
    needy.settings = object()  # type: ignore[assignment]
    with pytest.raises(AirworthyError, match="needs maps"):
        PlannerPilot(needy, mission(2), vehicle("virt_05"))
    pilot = PlannerPilot(Hover(), mission(2), vehicle("virt_05"))
    with pytest.raises(AirworthyError, match="simulator of 1 environments"):
        pilot.attach(Simulator(vehicle("virt_05"), pilot.configured(CONFIG), env_count=1))
    with pytest.raises(AirworthyError, match="build it with pilot"):
        pilot.attach(Simulator(vehicle("virt_05"), CONFIG, env_count=2))


@pytest.mark.parametrize("word", ["ego", "fast", "pgo"])
def test_maps_are_inflated_for_the_body_that_flies(word: str) -> None:
    """Whole cells of 0.1 m within 0.3 m, and the floor with them; nothing else changes, and what is inflated by more stays."""
    made = {"ego": EgoPlanner, "fast": FastPlanner, "pgo": PgoPlanner}[word]
    plain, fitted = made().settings, made.for_body(0.3).settings
    assert plain.inflation == 0.099
    assert np.ceil(fitted.inflation / fitted.resolution) == 3
    assert fitted.floor
    assert replace(fitted, inflation=plain.inflation, floor=False) == plain
    assert fitted.for_body(0.2) == fitted
