"""One bad environment never touches the rest: NaN, infinities and 1e30 put into state, command and parameters."""

from __future__ import annotations

import resource
from functools import cache

import numpy as np
import pytest

from airworthy.control.kernel import LEVELS
from airworthy.core.errors import AirworthyError
from airworthy.simulation import parameters
from airworthy.simulation import simulator as simulator_module
from airworthy.simulation.config import Ground, Imu, Randomization, SimulatorConfig, Wind
from airworthy.simulation.simulator import Simulator
from airworthy.vehicles import vehicle, vehicle_names

COUNT = 1024
BAD = np.array([0, 1, 15, 16, 333, 512, 1000, 1023])
GOOD = np.setdiff1d(np.arange(COUNT), BAD)
VALUES = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf, "1e30": 1e30}
COMMANDS = {"rotor_speed": [1135.0] * 4, "position": [0.3, 0.0, 1.0, 0.1], "rate_thrust:flightgoggles": [9.9, 0.1, 0.1, 0.1]}


def build(level: str = "rotor_speed") -> Simulator:
    imu = Imu((0.01,) * 3, (0.01,) * 3, (0.001,) * 3, (0.001,) * 3)
    config = SimulatorConfig(
        level=level,
        imu=imu,
        gyro_feedback=level == "rate_thrust:flightgoggles",
        wind=Wind(turbulence=(0.3,) * 3),
        ground=Ground(),
        control_rate=96.0,
    )
    simulator = Simulator(vehicle("flightgoggles"), config, COUNT, seed=3)
    simulator.reset(position=(0.0, 0.0, 1.0))
    return simulator


def states(simulator: Simulator, ids: np.ndarray) -> dict[str, bytes]:
    return {name: np.array(simulator.field(name))[ids].tobytes() for name in simulator.layout.fields}


@cache
def clean(level: str) -> dict[str, bytes]:
    simulator = build(level)
    for _ in range(8):
        simulator.step(np.tile(COMMANDS[level], (COUNT, 1)))
    return states(simulator, GOOD)


def finish(simulator: Simulator, level: str, steps: int, command: np.ndarray | None = None) -> None:
    for _ in range(steps):
        simulator.step(np.tile(COMMANDS[level], (COUNT, 1)) if command is None else command)


def assert_contained(simulator: Simulator, level: str, diverged: bool = True) -> None:
    """The other 1,016 have equal bytes; the bad ones are labelled, or, where their numbers were usable, finite."""
    assert states(simulator, GOOD) == clean(level)
    assert not simulator.diverged[GOOD].any()
    if diverged:
        assert simulator.diverged[BAD].all()
    flying = simulator.field("status") == 0.0
    for name in simulator.layout.fields:
        assert np.isfinite(np.array(simulator.field(name))[flying]).all(), name


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("level", COMMANDS)
def test_bad_command(level: str, value: str) -> None:
    """In one number of the command. NaN and infinity end a flight, 1e30 is merely far beyond every limit."""
    simulator = build(level)
    finish(simulator, level, 4)
    command = np.tile(COMMANDS[level], (COUNT, 1))
    command[BAD, 1] = VALUES[value]
    finish(simulator, level, 4, command)
    assert_contained(simulator, level, diverged=value != "1e30")


STATE_FIELDS = ["position", "velocity", "attitude", "rate", "rotor_speed", "position_residual", "turbulence"]
STATE_FIELDS += ["accelerometer_bias", "gyroscope_bias", "status"]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("field", STATE_FIELDS)
def test_bad_state(field: str, value: str) -> None:
    level = "rotor_speed"
    simulator = build(level)
    finish(simulator, level, 4)
    view = simulator.field(field)
    if view.ndim == 1:
        view[BAD] = VALUES[value]
    else:
        view[BAD, 1] = VALUES[value]
    finish(simulator, level, 4)
    # A rotor at 1e30 is held to its limit, a bias or a gust of 1e30 is a number: these fly on.
    # A status that is not a code freezes a flight without being the code for divergence.
    survives = value == "1e30" and field in ("accelerometer_bias", "gyroscope_bias", "turbulence", "rotor_speed", "status")
    assert_contained(simulator, level, diverged=not survives)
    if field != "status":
        assert (np.array(simulator.field("status"))[GOOD] == 0.0).all()


@pytest.mark.parametrize("field", ["rate_filtered", "rate_slope", "rate_integral"])
@pytest.mark.parametrize("value", ["nan", "inf"])
def test_bad_controller_memory(field: str, value: str) -> None:
    level = "rate_thrust:flightgoggles"
    simulator = build(level)
    finish(simulator, level, 4)
    simulator.field(field)[BAD, 0] = VALUES[value]
    finish(simulator, level, 4)
    # Its clamp makes the integral a number again.
    assert_contained(simulator, level, diverged=field != "rate_integral")


PARAMETERS = [
    "mass",
    "mass_inverse",
    "inertia",
    "gravity",
    "rotor_thrust",
    "rotor_torque",
    "rotor_lever",
    "rotor_rise",
    "rotor_max",
]
PARAMETERS += ["drag_norm", "angular_norm", "force_noise", "wind", "dryden_gain", "imu_noise", "imu_rotation", "contact_point"]
PARAMETERS += ["ground_height", "limit", "control_mass", "control_inverse"]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", PARAMETERS)
def test_bad_parameter(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a parameter does to its own flight, no other changes; and no reading of a live flight is not finite.

    `set_parameter` refuses such values and leaves all as it was; the kernel must contain them all the same.
    """
    level = "position" if name.startswith("control") else "rotor_speed"
    simulator = build(level)
    finish(simulator, level, 4)
    rows = np.array(simulator.parameter(name))
    with np.errstate(all="ignore"):
        rows.reshape(COUNT, -1)[BAD, 0] = VALUES[value]
        if (name, value) != ("limit", "inf"):  # where a flight has no limit
            before = simulator.rows.tobytes()
            with pytest.raises(AirworthyError, match=f"Parameter '{name}' got"):
                simulator.set_parameter(name, rows)
            assert simulator.rows.tobytes() == before
        monkeypatch.setattr(parameters, "check_values", lambda name, array: None)
        monkeypatch.setattr(parameters, "check_rows", lambda rows, layout, name: None)
        monkeypatch.setattr(simulator_module, "check_steps", lambda *args: None)
        simulator.set_parameter(name, rows)
    finish(simulator, level, 4)
    assert_contained(simulator, level, diverged=False)
    if value == "nan" and name in (
        "mass_inverse",
        "inertia",
        "gravity",
        "rotor_thrust",
        "wind",
        "imu_noise",
        "drag_norm",
        "limit",
    ):
        assert simulator.diverged[BAD].all()


def test_frozen_labelled_and_cured() -> None:
    """A diverged flight keeps its last good state, ignores further commands, and a reset gives a flight like any other."""
    level = "position"
    simulator = build(level)
    finish(simulator, level, 4)
    command = np.tile(COMMANDS[level], (COUNT, 1))
    command[BAD, 2] = np.nan
    before = {n: np.array(simulator.field(n))[BAD] for n in ("position", "velocity", "attitude", "rate", "rotor_speed")}
    finish(simulator, level, 1, command)
    finish(simulator, level, 3)
    for name, value in before.items():
        assert np.array_equal(np.array(simulator.field(name))[BAD], value), name
    assert simulator.diverged[BAD].all()
    simulator.reset(env_ids=simulator.diverged)
    assert not simulator.diverged.any()
    finish(simulator, level, 4)
    assert not simulator.diverged.any()
    fresh = build(level)
    fresh.reset(env_ids=BAD)
    finish(fresh, level, 4)
    assert states(simulator, BAD) == states(fresh, BAD)


@pytest.mark.parametrize("level", ["rate_thrust", "tracking"])
def test_semi_kinematic_flights(level: str) -> None:
    """The other family contains a NaN too."""
    command = np.zeros((64, LEVELS[level].width(4)))
    command[:, 0] = 11.2 if level == "rate_thrust" else 0.1
    ends = []
    for bad in (False, True):
        simulator = Simulator(vehicle("carl"), SimulatorConfig(dynamics="semi_kinematic", level=level), env_count=64)
        simulator.step(command)
        simulator.step(np.where((np.arange(64) == 17)[:, None] & bad, np.nan, command))
        simulator.step(command)
        others = np.arange(64) != 17
        ends.append(states(simulator, others))
        assert simulator.diverged[17] == bad
        assert not simulator.diverged[others].any()
        assert np.isfinite(simulator.position).all()
    assert ends[0] == ends[1]


def test_divergence_is_seen_in_the_step_that_it_happens_in() -> None:
    """Too fast, too far, spinning too fast: each bound freezes the state of the step before."""
    simulator = Simulator(vehicle("flightgoggles"), env_count=3)
    simulator.set_parameter("limit", (100.0, 20.0, 50.0))
    simulator.reset(
        position=[(99.995, 0, 0), (0, 0, 0), (0, 0, 0)],
        velocity=[(10.0, 0, 0), (19.99, 0, 0), (0, 0, 0)],
        rate=[(0, 0, 0), (0, 0, 0), (49.99, 0, 0)],
    )
    simulator.set_external([(0, 0, 0), (50.0, 0, 0), (0, 0, 0)], [(0, 0, 0), (0, 0, 0), (20.0, 0, 0)])
    simulator.advance(30, np.full(4, 1133.0))
    assert simulator.diverged.all()
    assert np.linalg.norm(simulator.position, axis=1).max() <= 100.0
    assert np.linalg.norm(simulator.velocity, axis=1).max() <= 20.0
    assert np.linalg.norm(simulator.rate, axis=1).max() <= 50.0


def soak(env_steps: int, seed: int) -> None:
    """Random commands of several levels over the whole catalogue, one in 10,000 not a number; who diverged starts again."""
    vehicles = [vehicle(name) for name in vehicle_names()] * 19
    rng = np.random.default_rng(seed)
    levels = ["rotor_speed", "rate_thrust", "position", "wrench", "velocity"]
    per_level, taken = env_steps // len(levels), 0  # counts steps of live flights only
    for level in levels:
        memory: list[int] = []
        config = SimulatorConfig(level=level, ground=Ground(), imu=Imu((0.01,) * 3), wind=Wind(turbulence=(1, 1, 1)))
        simulator = Simulator(vehicles, config, seed=seed)
        simulator.reset(position=(0, 0, 1.0))
        width = LEVELS[level].width(simulator.rotor_count)
        goal = taken + per_level
        while taken < goal:
            command = 10.0 ** rng.uniform(-2, 5, (len(vehicles), 1)) * rng.normal(size=(len(vehicles), width))
            command[rng.random(command.shape) < 1e-4] = np.nan
            simulator.advance(10, command)
            flying = simulator.field("status") == 0.0
            taken += 10 * int(flying.sum())
            for name in simulator.layout.fields:
                assert np.isfinite(np.array(simulator.field(name))[flying]).all(), (level, name)
            simulator.reset(env_ids=np.where(simulator.diverged, True, rng.random(len(vehicles)) < 1e-3))
            memory.append(resident())
        # After the first quarter of each level (its kernel, caches, buffers) memory does not grow.
        quarter = len(memory) // 4
        assert max(memory[quarter:]) <= 1.02 * memory[quarter] + 4e6, level
    assert taken >= env_steps


def resident() -> int:
    """Resident memory of this process [bytes]."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


@pytest.mark.slow
def test_soak() -> None:
    """1e7 random-command environment-steps."""
    soak(10_000_000, 1)


@pytest.mark.slow
def test_soak_long() -> None:
    """1e8 random-command environment-steps."""
    soak(100_000_000, 2)


def test_flights_that_are_taken_later_leave_the_parameters_of_those_before() -> None:
    """A batch whose flights differ, copied two at a time and in another order: each has its own column, twice over."""
    config = SimulatorConfig(randomization=Randomization(mass=0.2, inertia=0.2))
    whole = Simulator(vehicle("lmf2"), config, 6, seed=3)
    memory = whole._make_arrays(6)
    for ids, slots in (([4, 1], [0, 3]), ([2, 5], [1, 2]), ([1, 4], [0, 3])):
        memory.take_columns(whole._arrays, np.array(ids), np.array(slots))
    held = memory._host["params"].reshape(-1, memory.stride)
    rows = np.array(whole.rows, np.float32)
    np.testing.assert_array_equal(held[: len(rows), [0, 1, 2, 3]], rows[:, [1, 2, 5, 4]])


def test_arrays_are_lent_where_they_lie() -> None:
    """No copy for a kernel on the same device: what it writes is there at once."""
    arrays = Simulator(vehicle("lmf2"), SimulatorConfig(), 3)._arrays
    for name in ("state", "keys"):
        assert arrays.lent(name, "cpu") is arrays._warp[name]
        arrays.give_back(name, arrays._warp[name])


def test_a_start_keeps_the_sign_of_its_attitude_where_w_is_not_negative() -> None:
    simulator = Simulator(vehicle("lmf2"), SimulatorConfig(), 4)
    given = np.array([[0.6, 0.0, 0.0, 0.8], [0.6, 0.0, 0.0, -0.8], [1.0, 0.0, 0.0, 0.0], [0.0, -2.0, 0.0, 2.0]])
    simulator.reset(attitude=given)
    half = np.sqrt(0.5)
    expected = [[0.6, 0.0, 0.0, 0.8], [-0.6, 0.0, 0.0, 0.8], [1.0, 0.0, 0.0, 0.0], [0.0, -half, 0.0, half]]
    np.testing.assert_allclose(simulator.attitude, expected, atol=1e-7)
