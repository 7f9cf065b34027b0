"""What the documentation promises about repetition and containment, measured."""

from __future__ import annotations

import hashlib
import resource
import subprocess
import sys
from collections.abc import Iterator

import numpy as np

from airworthy.simulation import Ground, Imu, Simulator, SimulatorConfig, Wind
from airworthy.vehicles import vehicle, vehicle_names
from airworthy.verification.published import Figure, below, zero

_CONFIG = SimulatorConfig(
    level="rate_thrust:flightgoggles",
    control_rate=96.0,
    imu=Imu.named("flightgoggles"),
    gyro_feedback=True,
    wind=Wind(mean=(1.0, 0.5, 0.0), turbulence=(0.5, 0.5, 0.5)),
)
_COUNT = 1024
_MIXED = ("flightgoggles", "real_05", "cf2x_L250", "carl", "tinyprop", "virt_01", "rotorpy_crazyflie", "lmf2")


def promise_figures() -> Iterator[Figure]:
    """Run the checks one after the other."""
    digests = {_digest_in_fresh_process() for _ in range(2)}
    yield zero("FlightGoggles 14: two fresh processes that differ", len(digests) - 1)
    batch = _flown(range(_COUNT))
    alone = [k for k in (0, 1, 17, 500, 1023) if _flown([k]).tobytes() != batch[[k]].tobytes()]
    yield zero("Flights that differ alone and among 1,024", len(alone))
    order = np.random.default_rng(0).permutation(_COUNT)
    yield zero("Flights that differ in another order", int(np.any(_flown(order) != batch[order], axis=1).sum()))
    yield zero("Save and restore points, of 100, that change the future", _restore_failures())
    yield from _containment(batch)
    yield zero("Vehicles that fly otherwise alone and in a mixed batch", _mixed_failures())
    yield from _soak()


def final_states(flight_ids: np.ndarray | range | list[int], steps: int = 40) -> np.ndarray:
    """Return state rows of flights after some control steps, (env, rows)."""
    ids = np.asarray(flight_ids, dtype=np.int64)
    sim = Simulator(vehicle("flightgoggles"), _CONFIG, env_count=len(ids), seed=7, flight_ids=ids)
    command = np.tile([9.81, 0.5, -0.3, 0.2], (len(ids), 1)) * (1.0 + 0.1 * np.sin(ids))[:, None]
    for _ in range(steps):
        sim.step(command)
    return sim.save().state[:, : len(ids)].T.copy()


_flown = final_states


def _digest_in_fresh_process() -> str:
    code = (
        "import hashlib; from airworthy.verification.promises import final_states;"
        "print(hashlib.sha256(final_states(range(64)).tobytes()).hexdigest())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _restore_failures(count: int = 100) -> int:
    sim = Simulator(vehicle("flightgoggles"), _CONFIG, env_count=48, seed=3)
    command = [9.81, 0.4, 0.2, -0.1]
    points = [sim.save()]
    for _ in range(count):
        sim.step(command)
        points.append(sim.save())
    end = hashlib.sha256(points[-1].state.tobytes()).digest()
    failures = 0
    for k in np.random.default_rng(1).permutation(count):
        sim.restore(points[k])
        for _ in range(count - k):
            sim.step(command)
        failures += hashlib.sha256(sim.save().state.tobytes()).digest() != end
    return failures


def _containment(clean: np.ndarray) -> Iterator[Figure]:
    """8 of 1,024 environments get NaN, infinity or 1e30 in their state or command; the others must not notice."""
    spoiled = np.arange(8) * 128 + 5
    sim = Simulator(vehicle("flightgoggles"), _CONFIG, env_count=_COUNT, seed=7)
    command = np.tile([9.81, 0.5, -0.3, 0.2], (_COUNT, 1)) * (1.0 + 0.1 * np.sin(np.arange(_COUNT)))[:, None]
    fields, values = ("position", "velocity", "attitude", "rate", "rotor_speed"), (np.nan, np.inf, 1e30)
    for k, env in enumerate(spoiled[:5]):
        sim.field(fields[k])[env, 0] = values[k % 3]
    command[spoiled[5:]] = [[np.nan] * 4, [np.inf] * 4, [1e30] * 4]
    for _ in range(40):
        sim.step(command)
    final = sim.save().state[:, :_COUNT].T
    others = np.setdiff1d(np.arange(_COUNT), spoiled)
    yield zero("Neighbours of 8 spoiled environments that changed", int(np.any(final[others] != clean[others], axis=1).sum()))
    unlabelled = int(np.sum(~sim.diverged[spoiled[:7]])) + int(np.sum(sim.diverged[others]))
    yield zero("Spoiled environments not labelled, or sound ones labelled", unlabelled)


def _mixed_failures() -> int:
    config = SimulatorConfig(level="position", control_rate=96.0)
    vehicles = [vehicle(name) for name in _MIXED]

    def fly(which: list[int]) -> np.ndarray:
        sim = Simulator([vehicles[k] for k in which], config, seed=5, flight_ids=np.array(which))
        for _ in range(40):
            sim.step([0.5, -0.2, 0.3, 0.1])
        return np.concatenate([sim.position, sim.velocity, sim.attitude, sim.rate, sim.rotor_speed], axis=1)

    together = fly(list(range(len(vehicles))))
    return sum(fly([k])[0].tobytes() != together[k].tobytes() for k in range(len(vehicles)))


def _soak(steps: float = 1e7) -> Iterator[Figure]:
    """Random commands over the whole catalogue; a flight that diverges is labelled and started again."""
    vehicles = [vehicle(name) for name in vehicle_names()] * 20
    config = SimulatorConfig(control_rate=96.0, ground=Ground(-50.0))
    sim = Simulator(vehicles, config, seed=11)
    low, high = sim.parameter("rotor_min")[:, : sim.rotor_count], sim.parameter("rotor_max")[:, : sim.rotor_count]
    rng = np.random.default_rng(0)
    launches = int(np.ceil(steps / (10 * len(vehicles))))
    escapes, memory = 0, 0
    for k in range(launches):
        sim.step(low + (high - low) * rng.random(low.shape, dtype=np.float32))
        if k == launches // 4:
            memory = _resident()
        diverged = sim.diverged
        rows = sim.save().state[:, : sim.env_count] if k % 50 == 0 else sim.position.T
        escapes += int(np.sum(~np.isfinite(rows[:, ~diverged])))
        if diverged.any():
            sim.reset(diverged)
    yield zero(
        f"Numbers that are not, in {launches * 10 * len(vehicles):.3g} random steps of {len(vehicles) // 20} vehicles", escapes
    )
    grown = 100.0 * max(_resident() - memory, 0) / memory
    yield below("Memory growth over the last three quarters of them", grown, 1.0, "%")


def _resident() -> int:
    """Peak memory of this process so far, in the system's unit."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
