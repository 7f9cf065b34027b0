"""SV-Net in flight: what reaches it, in which units it commands, when, and that nothing else makes a difference."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.pilots.svnet_cases import contract, weights

from airworthy.core.arrays import Array, ArrayU8
from airworthy.core.errors import AirworthyError, AssetWarning, UnknownNameError
from airworthy.core.frames import multiply
from airworthy.optics.tone import to_8bit
from airworthy.pilots import FlightPlan, fly
from airworthy.pilots.catalogue import pilot_for, pilot_level, pilot_names, pilot_sensors
from airworthy.pilots.pilot import Observation, observe
from airworthy.pilots.svnet.contract import PolicyContract, PolicyImage, policy_folder, write_policy
from airworthy.pilots.svnet.features import HISTORY_TICKS, from_command, history_features
from airworthy.pilots.svnet.network import Decision, Reading, SvNetwork
from airworthy.pilots.svnet.pilot import SvNetPilot, check_camera, objective_of, policy_camera, policy_images, svnet_pilot
from airworthy.pilots.svnet.setting import policy_setting
from airworthy.pilots.trackers import HoverFrame
from airworthy.scenes import SceneBatch, scene
from airworthy.sensors.devices import device
from airworthy.simulation import MountedSensor, MountedSensors, Simulator, SimulatorConfig
from airworthy.simulation.sensor_state import Sample
from airworthy.splats.policy_view import PolicyView
from airworthy.trajectories import course
from airworthy.vehicles import hover_trim, vehicle

CARL = vehicle("carl")
OBJECTIVE = objective_of(course("robustness").trajectory())
SIDE = 24
FULL = 27.6
"""Thrust of the reference drone at full command [N]."""


class Shown:
    """Mounted sensors that show every flight the same film, wherever it is."""

    names = ("camera",)

    def __init__(self, env_count: int, valid: Callable[[float], bool] = lambda _: True):
        self.count, self.valid, self.time = env_count, valid, 0.0

    def latest(self, name: str) -> Sample:
        frame = np.random.default_rng(round(20 * self.time)).integers(0, 256, (1, SIDE, SIDE, 3), np.uint8)
        numbers, known = np.zeros(self.count, np.int64), np.full(self.count, self.valid(self.time))
        data = {"rgb": np.repeat(frame, self.count, axis=0)}
        return Sample(np.zeros(self.count), numbers, numbers, known, np.zeros((self.count, 3)), np.zeros((self.count, 4)), data)


def simulator(count: int, control_rate: float = 20.0, **start: Any) -> Simulator:
    config = SimulatorConfig(dynamics="semi_kinematic", level="rate_thrust", physics_rate=100, control_rate=control_rate)
    made = Simulator(CARL, config, count)
    made.reset(**{"position": (0.0, 0.0, 1.0), "velocity": (0.3, -0.2, 0.1), **start})
    return made


def pilot(count: int, name: str = "sv_net", **options: Any) -> SvNetPilot:
    """A random policy near hover, whose commands differ from tick to tick."""
    made = contract(name, SIDE)
    return SvNetPilot(made, SvNetwork(made, weights(name)), OBJECTIVE, np.full(count, FULL), **options)


def flown(who: Any, sim: Simulator, ticks: int = 12, shown: Shown | None = None) -> Array:
    """Commands (ticks, env, 4)."""
    shown, given = shown or Shown(sim.env_count), []
    for _ in range(ticks):
        shown.time = float(sim.time[0])
        given.append(np.array(who.command(observe(sim, who.observes, shown))))  # type: ignore[arg-type]
        sim.step(given[-1])
    return np.stack(given)


# ---- what reaches it --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sv_net", "no_rma", "no_pretrain", "no_latent"])
def test_lateral_position_cannot_reach_it(name: str) -> None:
    """Acceptance 12.7: from elsewhere, with the same images, the same bytes end to end."""
    here, there = pilot(3, name), pilot(3, name)
    assert "position" not in here.observes
    sims = simulator(3), simulator(3, position=[(512.0, -64.0, 1.0), (-3.25, 0.5, 1.0), (0.0, 1024.0, 1.0)])
    commands = [flown(who, sim) for who, sim in zip((here, there), sims, strict=True)]
    assert commands[0].tobytes() == commands[1].tobytes()
    assert here.history.features().tobytes() == there.history.features().tobytes()
    assert np.abs(sims[0].position[:, :2] - sims[1].position[:, :2]).max() > 100.0
    assert np.ptp(commands[0][:, 0, 1]) > 1e-3  # it does decide


def test_an_observation_without_position_holds_none() -> None:
    given = observe(simulator(2), ("height", "velocity", "attitude"))
    np.testing.assert_array_equal(given["height"], [1.0, 1.0])
    with pytest.raises(AirworthyError, match="does not declare"):
        given["position"]


def test_height_velocity_attitude_and_image_do_reach_it() -> None:
    plain = flown(pilot(1), simulator(1), 6)
    tilted = (0.0, np.sin(0.1), 0.0, np.cos(0.1))
    for start in ({"position": (0.0, 0.0, 1.3)}, {"velocity": (0.3, -0.2, 0.3)}, {"attitude": tilted}):
        assert np.abs(flown(pilot(1), simulator(1, **start), 6) - plain).max() > 1e-5
    dark = Shown(1)
    dark.latest = lambda name: _with(Shown.latest(dark, name), np.zeros((1, SIDE, SIDE, 3), np.uint8))  # type: ignore[method-assign]
    assert np.abs(flown(pilot(1), simulator(1), 6, dark) - plain).max() > 1e-5


@pytest.mark.parametrize("name", ["sv_net", "hp_net"])
def test_both_signs_of_an_attitude_are_one(name: str) -> None:
    """Quaternions that change sign from tick to tick, flight by flight: the same commands and history as without."""
    plain, changing = pilot(2, name), pilot(2, name)
    sim, shown = simulator(2, attitude=(0.05, -0.1, 0.2, 0.97)), Shown(2)
    for k in range(6):
        shown.time = float(sim.time[0])
        seen = observe(sim, plain.observes, shown)  # type: ignore[arg-type]
        signs = np.array([[(-1.0) ** k], [1.0 if k < 3 else -1.0]])
        turned = Observation(seen.time, {**seen.fields, "attitude": signs * seen["attitude"]}, seen.samples)
        command = plain.command(seen)
        np.testing.assert_array_equal(changing.command(turned), command)
        sim.step(command)
    np.testing.assert_array_equal(changing.history.features(), plain.history.features())


def test_of_a_vehicle_that_leans_it_is_told_the_frame_that_is_level_in_hover() -> None:
    """Rotors tilted by 6 degrees: what it is told of attitude is that of level rotors, and its commands are turned back."""
    c, s = np.cos(0.1), np.sin(0.1)
    leaning = replace(CARL, rotors=tuple(replace(rotor, axis=(s, 0.0, c)) for rotor in CARL.rotors))
    frame, turn = HoverFrame([leaning]), np.array(hover_trim(leaning).attitude)
    level, corrected = pilot(1), pilot(1, frame=frame)
    sim, shown = simulator(1), Shown(1)
    for _ in range(6):
        shown.time = float(sim.time[0])
        observation = observe(sim, level.observes, shown)  # type: ignore[arg-type]
        body = multiply(observation["attitude"].astype(float), turn)
        expected = level.command(observation)
        given = corrected.command(Observation(observation.time, {**observation.fields, "attitude": body}, observation.samples))
        np.testing.assert_allclose(given, frame.to_body(expected), atol=1e-5)
        assert abs(given[0, 0] / expected[0, 0] - c) < 1e-6
        sim.step(expected)
    made = Simulator(leaning, SimulatorConfig(level="rate_thrust"))
    assert svnet_pilot(policy_folder(""), made, course("robustness"))._frame is not None
    assert svnet_pilot(policy_folder(""), Simulator(CARL, made.config), course("robustness"))._frame is None


def _with(sample: Sample, rgb: ArrayU8) -> Sample:
    sample.data["rgb"] = rgb
    return sample


def test_its_history_is_that_of_training() -> None:
    """What it keeps as it flies is what `history_features` makes of the finished flight."""
    who, sim = pilot(2), simulator(2)
    times, states, features, shown = [], [], [], Shown(2)
    given = []
    for _ in range(9):
        shown.time = float(sim.time[0])
        observation = observe(sim, who.observes, shown)  # type: ignore[arg-type]
        times.append(sim.time)
        states.append(np.concatenate([sim.position, sim.velocity, sim.attitude], axis=1))
        command = who.command(observation)
        features.append(who.history.features())
        given.append(np.concatenate([command[:, :1] / FULL, command[:, 1:]], axis=1))
        sim.step(command)
    wanted = history_features(np.stack(times, 1), np.stack(states, 1), np.stack(given, 1))
    # Equal but for the way of a command to newtons and back.
    np.testing.assert_allclose(np.stack(features, 1), wanted, atol=1e-15)
    assert np.abs(wanted[:, -1]).reshape(2, 15, HISTORY_TICKS).min(axis=(0, 1)).shape == (HISTORY_TICKS,)


def test_the_sign_of_a_quaternion_means_nothing_after_the_first_tick() -> None:
    """An estimator may flip it: the pilot keeps to the sign of the tick before."""

    class Flipping:
        def __init__(self, who: SvNetPilot):
            self.who, self.observes, self.odd = who, who.observes, False

        def command(self, observation: Observation) -> Array:
            fields = dict(observation.fields)
            if self.odd:
                fields["attitude"] = -fields["attitude"]
            self.odd = not self.odd
            return self.who.command(Observation(observation.time, fields, observation.samples))

    np.testing.assert_array_equal(flown(Flipping(pilot(1)), simulator(1)), flown(pilot(1), simulator(1)))


# ---- what it commands -------------------------------------------------------------------------------------------------------


class Fixed:
    """A network that always says the same, in the frames of the specification."""

    def __init__(self, command: tuple[float, ...], name: str = "hp_net"):
        from airworthy.pilots.svnet.variants import variant

        self.kind, self.says = variant(name), np.array(command, np.float32)

    def __call__(self, reading: Reading) -> Decision:
        return Decision(np.tile(self.says, (len(reading.state), 1)), None)


def fixed(command: tuple[float, ...], full: Any = (FULL,)) -> SvNetPilot:
    return SvNetPilot(PolicyContract("hp_net", None), Fixed(command), OBJECTIVE, full)  # type: ignore[arg-type]


def test_units_and_frames() -> None:
    """z down to z up: thrust positive, pitch and yaw rates reversed; a share of what the vehicle believes to be full thrust."""
    commands = flown(fixed((-0.5, 1.0, 2.0, -3.0), (FULL, 10.0)), simulator(2), 1)[0]
    np.testing.assert_allclose(commands, [[0.5 * FULL, 1.0, -2.0, 3.0], [5.0, 1.0, -2.0, 3.0]], rtol=1e-6)


def test_what_leaves_the_bounds_is_clipped_and_counted() -> None:
    who = fixed((0.2, 7.0, -5.0, -9.0))
    commands = flown(who, simulator(1), 4)
    np.testing.assert_array_equal(commands[:, 0], np.tile([0.0, 5.0, 5.0, 5.0], (4, 1)))
    np.testing.assert_allclose(who.raw, [[-0.2, 7.0, 5.0, 9.0]], rtol=1e-6)
    assert (who.clipped.tolist(), who.decisions.tolist()) == ([4], [4])
    inside = fixed((-0.4, 5.0, -5.0, 0.0))
    flown(inside, simulator(1), 4)
    assert inside.clipped.tolist() == [0]


def test_the_history_tells_of_the_command_that_acted_and_not_of_what_was_wished() -> None:
    who = fixed((0.2, 7.0, -5.0, -9.0))
    flown(who, simulator(1), 3)
    newest = who.history.features()[0].reshape(15, HISTORY_TICKS)[11:, 0]
    np.testing.assert_array_equal(newest, from_command([0.0, 5.0, 5.0, 5.0]))


def test_the_history_tells_of_what_another_commanded_instead() -> None:
    """Of the flights that it is told of, in the network's own frame: a share of full thrust, z down."""
    who, sim = fixed((-0.5, 1.0, 2.0, -3.0), (FULL, FULL)), simulator(2)
    flown(who, sim, 1)
    who.note_applied(np.array([[0.25 * FULL, 0.1, 0.2, 0.3], [9.0, 9.0, 9.0, 9.0]]), np.array([True, False]))
    flown(who, sim, 2)
    second = who.history.features().reshape(2, 15, HISTORY_TICKS)[:, 11:, 1]
    np.testing.assert_allclose(second, [[-0.25, 0.1, -0.2, -0.3], [-0.5, 1.0, 2.0, -3.0]], rtol=1e-6)


def test_a_tick_that_rounding_puts_a_hair_early_is_due() -> None:
    """0.05 s added up thrice is less than 0.15 by a bit, and a clock of its own may be off by nanoseconds."""
    who, sim = fixed((-0.5, 0.0, 0.0, 0.0)), simulator(1)
    seen = observe(sim, who.observes, Shown(1))  # type: ignore[arg-type]
    for time in (0.0, 0.05 - 1e-9, 0.1 - 1e-9, 0.15 - 1e-9):
        who.command(Observation(np.array([time]), seen.fields, seen.samples))
    assert who.decisions.tolist() == [4]


def test_it_decides_at_its_own_rate_and_holds_in_between() -> None:
    who = pilot(2)
    commands = flown(who, simulator(2, control_rate=100.0), 20)
    assert who.decisions.tolist() == [4, 4]
    held = commands.reshape(4, 5, 2, 4)
    np.testing.assert_array_equal(held, held[:, :1].repeat(5, axis=1))
    assert (np.abs(np.diff(held[:, 0], axis=0)) > 0.0).any(axis=(1, 2)).all()


def test_until_the_first_image_it_idles() -> None:
    who = pilot(1, idle=11.2)
    commands = flown(who, simulator(1), 4, Shown(1, lambda time: time > 0.07))
    np.testing.assert_allclose(commands[:2, 0], [[11.2, 0, 0, 0]] * 2)
    assert who.decisions.tolist() == [2]
    assert commands[2, 0, 0] != 11.2
    # The idle command is in the history, as a share of full thrust, z down.
    newest = who.history.features()[0].reshape(15, HISTORY_TICKS)[11:]
    np.testing.assert_allclose(newest[:, 2], from_command([11.2 / FULL, 0, 0, 0]), atol=1e-12)


def test_a_new_flight_remembers_nothing() -> None:
    who, sim = pilot(2), simulator(2)
    first = flown(who, sim, 6)
    sim.reset(position=(0.0, 0.0, 1.0), velocity=(0.3, -0.2, 0.1))
    np.testing.assert_array_equal(flown(who, sim, 6), first)
    assert who.decisions.tolist() == [6, 6]


def test_a_flight_is_flown_alike_alone_and_among_others() -> None:
    starts = np.random.default_rng(2).normal(size=(9, 3))
    among = flown(pilot(9), simulator(9, velocity=starts), 8)
    alone = flown(pilot(1), simulator(1, velocity=starts[5]), 8)
    np.testing.assert_array_equal(among[:, 5], alone[:, 0])


def test_a_flight_that_is_lost_disturbs_no_other() -> None:
    who, sims = pilot(3), simulator(3)
    observation = observe(sims, who.observes, Shown(3))  # type: ignore[arg-type]
    velocity = np.array(observation["velocity"])
    clean = pilot(3).command(observation)
    velocity[1] = np.nan
    command = who.command(Observation(observation.time, {**observation.fields, "velocity": velocity}, observation.samples))
    assert not np.isfinite(command[1]).all()
    np.testing.assert_array_equal(command[[0, 2]], clean[[0, 2]])


def test_the_variant_that_does_not_see_is_told_where_it_is() -> None:
    who = pilot(1, "hp_net")
    assert who.observes == ("position", "velocity", "attitude")
    moved = flown(pilot(1, "hp_net"), simulator(1, position=(1.0, 0.0, 1.0)), 3)
    assert np.abs(flown(who, simulator(1), 3) - moved).max() > 1e-5


# ---- latency ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("latency", [0.0, 0.03, 0.05, 0.07, 0.12])
def test_a_command_acts_after_its_latency(latency: float) -> None:
    """Flown, and stepped by hand with the command of the tick before t - latency, physics step by physics step."""
    rates = np.random.default_rng(3).uniform(-2, 2, (20, 3))

    class Scripted:
        name, level, observes = "scripted", "rate_thrust", ()

        def command(self, observation: Observation) -> Array:
            return np.array([11.22, *rates[int(20 * observation.time[0] + 1e-6)]])

    found = fly(simulator(1), Scripted(), FlightPlan(0.8, latency=latency)).table.vector("attitude")
    sim = simulator(1)
    for step in range(80):
        if step % 5 == 0:
            np.testing.assert_allclose(found[step // 5], sim.attitude[0], atol=1e-6)  # launches are cut elsewhere
        tick = max((step - round(100 * latency)) // 5, 0)
        sim.advance(1, [11.22, *rates[tick]])


def test_latencies_that_cannot_be_flown() -> None:
    who = fixed((-0.4, 0.0, 0.0, 0.0))
    for latency in (-0.1, 3.0, float("nan")):
        with pytest.raises(AirworthyError, match="latency"):
            fly(simulator(1), who, FlightPlan(0.1, latency=latency))
    config = SimulatorConfig(dynamics="semi_kinematic", level="rate_thrust", physics_rate=100, control_rate=30)
    with pytest.raises(AirworthyError, match="multiple of the control_rate"):
        fly(Simulator(CARL, config, 1), who, FlightPlan(0.1, latency=0.05))


# ---- what it sees -----------------------------------------------------------------------------------------------------------


def test_images_are_brought_to_the_policys_view() -> None:
    rng = np.random.default_rng(4)
    whole = rng.integers(0, 256, (2, 90, 160, 3), np.uint8)
    view = PolicyImage.of_side(56)
    np.testing.assert_array_equal(policy_images(view, whole), PolicyView((64, 64), (56, 56)).of(whole))
    linear = rng.uniform(0, 2, (2, 56, 56, 3)).astype(np.float32)
    np.testing.assert_array_equal(policy_images(view, linear), to_8bit(linear))
    with pytest.raises(AirworthyError, match="own view"):
        policy_images(PolicyImage.of_side(56), whole[:, :40])
    with pytest.raises(AirworthyError, match="own view"):
        policy_images(PolicyImage.of_side(50), whole)


def test_cameras_that_show_something_else_are_refused() -> None:
    made = contract(side=SIDE)
    check_camera(made, policy_camera(CARL, made))
    check_camera(PolicyContract(), device("d435"))  # whole images, resized and cut
    with pytest.raises(AirworthyError, match="fx, fy, cx, cy"):
        check_camera(
            made,
            policy_camera(CARL, PolicyContract()).variant(projection=device("d435").projection.__class__(24, 24, 9, 9, 12, 12)),
        )
    with pytest.raises(AirworthyError, match="samples at 10 Hz"):
        check_camera(made, policy_camera(CARL, made).variant(rate=10.0))
    with pytest.raises(AirworthyError, match="colours of a pinhole"):
        check_camera(made, device("base_depth_camera"))
    with pytest.raises(UnknownNameError, match="camera"):
        policy_camera(CARL, made, "eye")
    with pytest.raises(AirworthyError, match="does not see"):
        policy_camera(CARL, PolicyContract("hp_net", None))


# ---- from a folder, in a scene ----------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_policy(tmp_path / "policy", contract(side=SIDE), weights())


@pytest.mark.parametrize("dynamics", ["semi_kinematic", "rigid"])
def test_flown_in_a_scene_by_name(folder: Path, dynamics: Any) -> None:
    word = f"svnet:{folder}"
    config = SimulatorConfig(dynamics=dynamics, level=pilot_level(word), physics_rate=100, control_rate=20)
    sim = Simulator(CARL, config, 2)
    sim.reset(position=(-4.5, 0.0, 1.0))
    mounted = MountedSensors(sim, SceneBatch(scene("mid_gate"), 2), pilot_sensors(word, CARL))
    who = pilot_for(word, sim, course("robustness"), mounted)
    assert isinstance(who, SvNetPilot)
    result = fly(sim, who, FlightPlan(0.5), mounted=mounted)
    assert result.pilot_error == ""
    assert who.decisions.tolist() == [10, 10]
    assert np.isfinite(who.estimate).all()
    np.testing.assert_array_equal(who.raw[0], who.raw[1])
    # It falls from a little too much or too little thrust, no further.
    assert np.abs(sim.position[:, 2] - 1.0).max() < 1.0


def test_a_camera_of_another_view_is_refused_before_the_flight(folder: Path) -> None:
    sim = simulator(1)
    other = policy_camera(CARL, PolicyContract()).variant(projection=device("base_depth_camera").projection)
    mounted = MountedSensors(sim, SceneBatch(scene("mid_gate"), 1), {"camera": MountedSensor(other)})
    with pytest.raises(AirworthyError, match="own view"):
        svnet_pilot(folder, sim, course("robustness"), "camera", mounted)


def test_commands_must_be_taken_as_often_as_it_decides(folder: Path) -> None:
    with pytest.raises(AirworthyError, match="takes commands at 10 Hz"):
        svnet_pilot(folder, simulator(1, control_rate=10.0), course("robustness"))


def test_a_course_that_a_policy_never_learnt_is_told(tmp_path: Path) -> None:
    setting = policy_setting(CARL, None, {"robustness": OBJECTIVE})
    folder = tmp_path / "policy"
    write_policy(folder, replace(contract("hp_net"), setting=setting), weights("hp_net"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svnet_pilot(folder, simulator(1), course("robustness"))
    with pytest.warns(AssetWarning, match="learnt of the courses robustness, and the one that it is told of is none of them"):
        svnet_pilot(folder, simulator(1), course("sigmoid"))


def test_pilots_by_name() -> None:
    assert {"geometric", "mpc", "svnet"} <= set(pilot_names())
    assert pilot_level("mpc") == pilot_level("svnet") == pilot_level("svnet:somewhere") == "rate_thrust"
    assert pilot_level("geometric") == "tracking"
    sim = simulator(2)
    assert pilot_for("mpc", sim, course("hover")).name == "mpc"
    assert pilot_for("position", sim, course("hover")).name == "position"
    with pytest.raises(UnknownNameError, match="Unknown pilot"):
        pilot_level("mpcc")
    for word in ("svnet:", "svnet:nowhere", "mpc:x", "mpc:"):
        with pytest.raises(AirworthyError, match="svnet:FOLDER"):
            pilot_sensors(word, CARL)
