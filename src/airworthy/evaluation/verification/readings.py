"""What sensors make of true values and when: noise, instants of samples, memory of images."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from airworthy.evaluation.verification.figure import Figure, below, within, zero
from airworthy.geometry import Box
from airworthy.scenes import Instance, Scene, SceneBatch, scene
from airworthy.sensors import Draw, RangeLimits, SampleClock, device, ranger
from airworthy.sensors.noise import measure
from airworthy.sensors.quality import memory, profile
from airworthy.simulation import MountedSensors, Simulator, SimulatorConfig
from airworthy.simulation.mounted import Capture
from airworthy.vehicles import vehicle

ODD_RATES = (7.0, 14.5, 24.0, 400.0 / 3.0, 59.94)
"""None of them divides the physics' rate."""
PHYSICS = 960.0
"""[Hz]"""


def reading_figures(draws: int) -> Iterator[Figure]:
    """Run the checks one after the other.

    Args:
        draws: Of each statistic.
    """
    yield from _noise(draws)
    yield from _stamps()
    yield _memory()


def _noise(count: int) -> Iterator[Figure]:
    lidar = device("ouster_os0_128").noise
    for r in (5.0, 30.0):
        reading = measure(np.full((10, count // 10), r, np.float32), lidar, RangeLimits(), Draw.of(10, seed=1)).astype(float)
        sigma = 3.36239104e-05 * r * r - 0.000317199061 * r + 0.0096190386
        yield within(f"Noise of the OS0-128 at {r:g} m, standard deviation", float(reading.std()), sigma, 0.01, "m")
        off, bound = abs(float(reading.mean()) - r - 0.05), 5.0 * sigma / math.sqrt(count)
        yield below(f"Noise of the OS0-128 at {r:g} m, mean off", off, bound, "m")
    noise, limits = device("realsense_d455").noise, RangeLimits(0.2, 15.0, -15.0, 15.0)
    reading = measure(np.full((100, count // 100), 4.0, np.float32), noise, limits, Draw.of(100, seed=1))
    lost = reading == -15.0
    yield within("Noise of the D455 at 4 m, standard deviation", float(reading[~lost].astype(float).std()), 0.04, 0.01, "m")
    yield within("Noise of the D455, share of pixels lost", 100.0 * float(lost.mean()), 1.0, 0.12, "%")


def _stamps() -> Iterator[Figure]:
    """Sample k on step ceil(k f_physics / f): of clocks over a million samples, and of sensors on a vehicle in flight."""
    number = np.concatenate([np.arange(2000), np.arange(10**6, 10**6 + 2000)])
    worst = 0
    for rate in ODD_RATES:
        true = [exact_step(int(k), rate, PHYSICS) for k in number]
        worst = max(worst, int(np.abs(SampleClock(rate, PHYSICS).step_of(number) - true).max()))
    rates = f"{len(ODD_RATES)} odd rates"
    yield zero(f"Instants of samples at {rates}, up to the millionth, worst error in steps", worst)
    yield zero(f"Instants of samples in flight at {rates}, worst error in steps", _flown_stamps(200))


def exact_step(sample: int, rate: float, physics: float) -> int:
    """Physics step of a sample, in whole numbers."""
    ratio = Fraction(physics) / Fraction(rate).limit_denominator(10**6)
    return math.ceil(sample * ratio)


def _flown_stamps(steps: int) -> int:
    place = Scene("floor", {"floor": Box((50.0, 50.0, 0.5))}, instances=(Instance("floor", (0.0, 0.0, -5.0)),))
    simulator = Simulator(vehicle("flightgoggles"), SimulatorConfig(physics_rate=PHYSICS), env_count=2)
    names = {f"down{k}": ranger(noise_enabled=False).variant(rate=rate) for k, rate in enumerate(ODD_RATES)}
    mounted = MountedSensors(simulator, SceneBatch(place, 2), names)
    heard: dict[str, list[int]] = {name: [] for name in names}

    def listen(capture: Capture) -> None:
        heard[capture.name] += [int(step) for env, step in zip(capture.envs, capture.step, strict=True) if env == 0]

    mounted.listen(listen)
    for _ in range(steps):
        simulator.step()
    end, worst = int(simulator.flight_step[0]), 0
    for name, rate in zip(names, ODD_RATES, strict=True):
        expected = [s for s in (exact_step(k, rate, PHYSICS) for k in range(steps * 10)) if s <= end]
        if len(expected) != len(heard[name]):
            return end
        worst = max(worst, int(np.abs(np.subtract(expected, heard[name])).max()))
    return worst


def _memory() -> Figure:
    """Everything that a 1024 x 768 image of the race hall takes."""
    taken = sum(memory(SceneBatch(scene("alphapilot")), profile("VeryLow2GB")).values())
    return below("FlightGoggles 15: memory of VeryLow2GB, one camera in the race hall", taken / 1e9, 2.0, "GB")
