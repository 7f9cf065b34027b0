"""Contact and the batch: a flight has the same bytes alone, in a crowd, in parts, after a restore, and next to crashes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.placement import Box, Cylinder, Mesh, Placement, Sphere
from airworthy.simulation.config import Contact, Imu, Randomization, SimulatorConfig, Wind
from airworthy.simulation.events import Schedule
from airworthy.simulation.simulator import Simulator
from airworthy.simulation.twin import Twin
from airworthy.vehicles import vehicle
from airworthy.vehicles.record import CollisionBody, Drag, WrenchNoise

IMU = Imu((0.01,) * 3, (0.002,) * 3, (0.001,) * 3, (0.0002,) * 3, bias_initial=(0.1, 0.02, 0.01), position=(0.05, 0.0, 0.02))
BOX = replace(vehicle("flightgoggles"), body=CollisionBody("box", (0.2, 0.15, 0.05)))
MODES = ["freeze", "reset", "respond"]
PYRAMID = Mesh(
    np.array([[1, 1, 0], [-1, 1, 0], [-1, -1, 0], [1, -1, 0], [0, 0, 0.8]], float) * 0.5,
    np.array([[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]]),
)


def rooms(count: int) -> GeometryBatch:
    """A floor, pillars that differ, a ball and a pyramid."""
    shapes = [Box((9.0, 9.0, 1.0)), Cylinder(0.2, 2.0), Sphere(0.3), PYRAMID]
    layouts = []
    for k in range(count):
        at = np.random.default_rng(k).uniform(-1.2, 1.2, (3, 2))
        position = [(0, 0, -1.0), (*at[0], 1.0), (*at[1], 0.5), (*at[2], 0.0)]
        layouts.append(Placement.of([0, 1, 2, 3], np.array(position)))
    return GeometryBatch(shapes, layouts)


ROOMS = rooms(7)


def config(mode: Any, **changes: Any) -> SimulatorConfig:
    base: dict[str, Any] = {
        "level": "rate_thrust", "imu": IMU, "contact": Contact(mode, 0.5, 0.4), "control_rate": 45.0,
        "wind": Wind(mean=(1.0, 0.5, 0.0), turbulence=(0.5, 0.5, 0.3)),
        "randomization": Randomization(0.1, 0.1, 0.05, 0.02, 0.2, 0.2, 1.0, 0.2, 0.5),
    }  # fmt: skip
    return SimulatorConfig(**{**base, **changes})


def fly(mode: str, ids: np.ndarray, steps: int = 12, **changes: Any) -> Simulator:
    """Flights that fall, tumble and hit things."""
    simulator = Simulator(BOX, config(mode, **changes), len(ids), 3, flight_ids=ids, geometry=ROOMS, geometry_env=ids % 7)
    begin(simulator, ids)
    for k in range(steps):
        simulator.step(commands(ids) * (1.0 + 0.01 * k))
    return simulator


def begin(simulator: Simulator, ids: np.ndarray) -> None:
    rng = [np.random.default_rng(int(k)) for k in ids]
    draw = np.array([r.uniform(-1.0, 1.0, 6) for r in rng])
    simulator.reset(position=draw[:, :3] * [1.5, 1.5, 0.3] + [0, 0, 0.9], velocity=draw[:, 3:] * 5.0 - [0.0, 0.0, 2.0])


def commands(ids: np.ndarray) -> np.ndarray:
    return np.array([8.0, 0.5, -0.3, 0.2]) * np.array([np.random.default_rng(int(k) + 99).uniform(0.8, 1.2, 4) for k in ids])


def states(simulator: Simulator) -> dict[str, np.ndarray]:
    found = {name: np.array(simulator.field(name)) for name in simulator.layout.fields}
    record = simulator.contacts
    return found | {f"contact {name}": np.array(getattr(record, name)) for name in record.__dataclass_fields__}


def assert_same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> None:
    for name, value in a.items():
        assert value.tobytes() == b[name].tobytes(), name


@pytest.mark.parametrize("mode", MODES)
def test_alone_or_in_a_crowd_in_any_order(mode: str) -> None:
    """A flight that hits things is a function of its id: its place and its company change no bit."""
    count = {"freeze": 512, "reset": 128, "respond": 128}[mode]
    together = fly(mode, np.arange(count))
    hit = together.contacts.count
    assert np.count_nonzero(hit) > count // 8
    assert np.count_nonzero(hit == 0) > 0
    order = np.random.default_rng(8).permutation(count)[: count // 4]
    whole = states(together)
    assert_same({name: value[order] for name, value in whole.items()}, states(fly(mode, order)))
    for k in [*np.flatnonzero(hit > 0)[:3], np.flatnonzero(hit == 0)[0]]:
        assert_same({name: value[[k]] for name, value in whole.items()}, states(fly(mode, np.array([k]))))


def test_no_geometry_near_means_no_difference() -> None:
    """Flights that meet nothing have the bytes of flights without contact, though some were looked at closely."""
    ids = np.arange(64)
    met = fly("freeze", ids)
    plain = Simulator(BOX, replace(config("freeze"), contact=None), len(ids), 3, flight_ids=ids)
    begin(plain, ids)
    for k in range(12):
        plain.step(commands(ids) * (1.0 + 0.01 * k))
    free = met.contacts.count == 0
    assert 3 < np.count_nonzero(free) < 60
    for name in plain.layout.fields:
        assert plain.field(name)[free].tobytes() == met.field(name)[free].tobytes(), name


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_in_parts_and_with_delays(mode: str) -> None:
    """Events that cut launches, command delays and an IMU log change no bit of flights that hit things."""

    class Ticks:
        def __init__(self) -> None:
            self.schedule = Schedule(960, 133)

        def due(self, flight_step: np.ndarray) -> np.ndarray:
            return self.schedule.due(flight_step)

        def fire(self, simulator: Simulator) -> None:
            pass

        def reset(self, env_ids: np.ndarray) -> None:
            pass

    ids, ends = np.arange(40), []
    for cut in (False, True):
        simulator = Simulator(BOX, config(mode), 40, 3, geometry=ROOMS, geometry_env=ids % 7)
        begin(simulator, ids)
        if cut:
            simulator.add_events(Ticks())
        for k in range(8):
            simulator.set_command(commands(ids) * (1.0 + 0.02 * k), delay_steps=np.arange(40) if k % 2 else None)
            simulator.step()
        log = simulator.advance(50, imu_log=True)
        assert log is not None
        assert np.isfinite(log).all()
        assert mode == "reset" or np.array_equal(log[-1], simulator.field("imu"))  # a new flight has no sample yet
        before, reading = states(simulator), simulator.imu  # of now, and nothing moves for it
        assert_same(before, states(simulator))
        again = simulator.advance(1, imu_log=True)
        assert again is not None
        assert mode == "reset" or np.array_equal(again[0], reading)
        ends.append(states(simulator) | {"log": log})
    assert np.count_nonzero(ends[0]["contact count"]) > 5
    assert_same(*ends)


@pytest.mark.parametrize(
    ("mode", "times"),
    [
        *(("freeze", 100), ("reset", 12)),
        *(pytest.param(mode, 100, marks=pytest.mark.slow) for mode in ("respond", "reset")),
    ],
)
def test_restores_to_the_same_bytes(mode: str, times: int, tmp_path: Any) -> None:
    """Saved at a random step among impacts, flown on, restored, flown again."""
    from airworthy.simulation.start_state import Snapshot

    ids, rng = np.arange(16), np.random.default_rng(1)
    simulator = Simulator(BOX, config(mode), 16, 3, geometry=ROOMS, geometry_env=ids % 7)
    begin(simulator, ids)
    other = Simulator(BOX, config(mode), 16, 3, geometry=ROOMS, geometry_env=ids % 7)
    impacts = 0
    for k in range(times):
        if k % 10 == 0:
            begin(simulator, ids)
        simulator.step(commands(ids))
        saved = simulator.save()
        if k % 20 == 0:
            saved.write(tmp_path / "saved")
            saved = Snapshot.read(tmp_path / "saved")
        for _ in range(int(rng.integers(1, 3))):
            simulator.step(commands(ids))
        after, steps = states(simulator), simulator.step_count - saved.step_count
        again = other if k % 2 else simulator
        again.restore(saved)
        for _ in range(steps):
            again.step(commands(ids))
        assert_same(after, states(again))
        simulator.restore(again.save())
        impacts += int(simulator.contacts.count.sum())
    assert impacts > 10


@pytest.mark.parametrize("mode", MODES)
def test_crashes_disturb_nobody(mode: str) -> None:
    """Flights in the air beside others that crash: the same bytes as beside others that do not."""
    ends = []
    for low in (0.3, 30.0):
        simulator = Simulator(BOX, config(mode), 16, 3, geometry=ROOMS, geometry_env=np.arange(16) % 7)
        height = np.where(np.arange(16) % 4 == 1, 20.0, low)
        simulator.reset(position=np.c_[np.zeros((16, 2)), height], velocity=(0, 0, -6.0))
        for _ in range(12):
            simulator.step([5.0, 0.1, 0.2, 0.3])
        ends.append(states(simulator))
    assert (ends[0]["contact count"] > 0).sum() > 8
    free = np.arange(16) % 4 == 1
    assert_same({n: v[free] for n, v in ends[0].items()}, {n: v[free] for n, v in ends[1].items()})


def test_partial_reset_and_moved_scene() -> None:
    """Environments that start anew elsewhere, or whose scene is exchanged, meet what is there now."""
    geometry = GeometryBatch([Box((5, 5, 1.0))], [Placement.of([0], [(0, 0, z)]) for z in (-1.0, 0.5)], [0, 0])
    simulator = Simulator(BOX, config("freeze", level="rotor_speed", randomization=Randomization()), 2, geometry=geometry)
    simulator.reset(position=(0, 0, 5.0), rotor_speed=np.zeros(4))
    simulator.advance(100, np.zeros(4))
    geometry.assign([1], [1])
    simulator.geometry_changed([1])
    simulator.advance(1500, np.zeros(4))
    assert simulator.position[:, 2] == pytest.approx([0.06, 1.56], abs=0.012)  # half the height, and a tilt
    assert simulator.field("status").tolist() == [2.0, 2.0]
    simulator.reset(env_ids=[0], position=(0, 0, 9.0))
    assert simulator.field("status").tolist() == [0.0, 2.0]
    assert simulator.contacts.count.tolist() == [0, 1]
    simulator.advance(200, np.zeros(4))
    assert simulator.position[0, 2] > 5.0


@pytest.mark.parametrize("mode", MODES)
def test_containment_still_holds(mode: str) -> None:
    """Numbers that are none end their own flight and no other, also where others hit the floor."""
    ids = np.arange(16)
    calm, sick = (Simulator(BOX, config(mode), 16, 3, geometry=ROOMS, geometry_env=ids % 7) for _ in range(2))
    for simulator in (calm, sick):
        begin(simulator, ids)
    for k in range(10):
        for simulator in (calm, sick):
            if simulator is sick and k == 2:
                simulator.field("velocity")[3] = np.nan
                simulator.field("position")[4] = np.inf
                simulator.field("rate")[5] = 1e30
            simulator.step(commands(ids))
    others = np.setdiff1d(ids, [3, 4, 5])
    a, b = states(calm), states(sick)
    assert_same({n: v[others] for n, v in a.items()}, {n: v[others] for n, v in b.items()})
    assert (sick.field("status")[[3, 4, 5]] != 0.0).all()  # stopped by contact before, or diverged


@pytest.mark.parametrize("mode", ["freeze", "respond"])
def test_twin_agrees(mode: Any) -> None:
    """The float64 twin through an impact: as far apart as float32 and float64 are, 2e-5 m and 2e-4 m/s after 0.1 s."""
    item = replace(BOX, wrench_noise=WrenchNoise(), drag=Drag())
    plain = SimulatorConfig(contact=Contact(mode, 0.6, 0.3))
    simulator = Simulator(item, plain, 4, geometry=GeometryBatch([Box((9, 9, 1.0))], [Placement.of([0], [(0, 0, -1.0)])]))
    rng = np.random.default_rng(4)
    simulator.reset(position=(0, 0, 0.4), velocity=rng.uniform(-2, 2, (4, 3)) - [0, 0, 5.0], rotor_speed=np.zeros(4))
    twin = Twin(simulator)
    simulator.advance(96, np.zeros(4))
    twin.advance(96, np.zeros(4))
    assert (simulator.contacts.count > 0).all()
    assert twin.field("position") == pytest.approx(simulator.position, abs=2e-5)
    assert twin.field("velocity") == pytest.approx(simulator.velocity, abs=2e-4)
    assert twin.field("rate") == pytest.approx(simulator.rate, abs=2e-3)
    assert twin.field("status").tolist() == simulator.field("status").tolist()
    if mode == "freeze":
        wrong = Simulator(item, SimulatorConfig(contact=Contact("reset")), geometry=ROOMS, geometry_env=[0])
        with pytest.raises(AirworthyError, match="cannot begin new flights"):
            Twin(wrong).advance(1, np.zeros(4))


@pytest.mark.parametrize("mode", MODES)
def test_semi_kinematic(mode: Any) -> None:
    """The point mass stops, starts anew, or bounces without being turned; alone as in a crowd."""
    ends = []
    for ids in (np.arange(20), np.array([4])):
        setting = SimulatorConfig(dynamics="semi_kinematic", level="rate_thrust", contact=Contact(mode, 0.5, 0.0))
        simulator = Simulator(BOX, setting, len(ids), flight_ids=ids, geometry=ROOMS, geometry_env=ids % 7)
        simulator.reset(position=(0, 0, 2.5), velocity=np.c_[0.01 * ids, 0 * ids, -6.0 + 0 * ids])
        for _ in range(40):
            simulator.step([0.0, 0.0, 0.0, 0.1])
        ends.append(states(simulator))
    assert (ends[0]["contact count"] > 0).all()
    assert (ends[0]["status"] == (2.0 if mode == "freeze" else 0.0)).all()
    assert ends[0]["position"][:, 2].min() > 0.05
    assert_same({n: v[[4]] for n, v in ends[0].items()}, ends[1])
