"""The policy: item 7 of SOUS VIDE's acceptance list (specification, sections 7 and 12), and its runner beside its twin."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import cast

import numpy as np
from numpy.typing import NDArray

from airworthy.evaluation.verification.figure import Figure, below, zero
from airworthy.pilots.pilot import observe
from airworthy.pilots.svnet.contract import Contract, View
from airworthy.pilots.svnet.features import HISTORY_SIZE, OBJECTIVE_SIZE, OBSERVABLE_SIZE
from airworthy.pilots.svnet.network import Reading, SvNetwork, svnet_twin
from airworthy.pilots.svnet.objective import objective_of
from airworthy.pilots.svnet.pilot import SvNetPilot
from airworthy.pilots.svnet.variants import VARIANTS, tensor_shapes, variant
from airworthy.simulation import MountedSensors, Simulator, SimulatorConfig
from airworthy.simulation.sensor_ring import Sample
from airworthy.trajectories import course
from airworthy.vehicles import vehicle

__all__ = ["place_figures", "random_weights", "runner_figures", "size_figures"]

Array = NDArray[np.float64]
Weights = dict[str, NDArray[np.float32]]
BLOCKS = {
    "history": ("history network", 7_226),
    "vision.backbone": ("SqueezeNet 1.1", 1_235_496),
    "vision.head": ("feature network", 679_296),
    "command": ("command network", 26_804),
    "": ("whole", 1_948_822),
}
"""Of SV-Net: what it is called, and how many numbers it learns (specification, section 7)."""
READS = {"sv_net": 162, "no_rma": 154, "no_pretrain": 162, "no_latent": 156, "hp_net": 37}
"""Inputs of each command network: those of section 7; of HP-Net state (11), objective (18) and latent (8)."""
TOTALS = {"no_rma": 1_940_796, "no_pretrain": 1_948_822, "no_latent": 1_948_222, "hp_net": 21_530}
"""Numbers of each, by the layers of section 7 with these inputs: 100 (inputs + 1) + 10,100 + 404 of the command network."""
SIDE, FLIGHTS, TICKS, FAR = 24, 3, 12, 1_024.0
FULL_FORCE = 27.6
"""Of the reference drone [N]."""
SECONDS = 0.4
"""For how long decisions are timed [s]."""


# ---- 7: sizes -----------------------------------------------------------------------------------------------------------


def size_figures() -> Iterator[Figure]:
    """Counts of all tensors by the names and shapes that policies are read and written with."""
    for block, (name, expected) in BLOCKS.items():
        yield _count(f"SOUS VIDE 7, SV-Net, {name}: numbers", _numbers("sv_net", block), expected)
    for name, expected in TOTALS.items():
        yield _count(f"SOUS VIDE 7, {name}, whole: numbers", _numbers(name), expected)
    for name, expected in READS.items():
        yield _count(
            f"SOUS VIDE 7, {name}: inputs of the command network", tensor_shapes(name)["command.0.weight"][1], expected
        )


def _numbers(name: str, block: str = "") -> int:
    return sum(int(np.prod(shape)) for key, shape in tensor_shapes(name).items() if key.startswith(block))


def _count(label: str, measured: int, expected: int) -> Figure:
    return Figure(label, measured, f"{expected:,}", measured == expected)


# ---- 7: where it is does not matter -------------------------------------------------------------------------------------


class _Film:
    """Mounted sensors that show every flight the same pictures, wherever it is."""

    names = ("camera",)

    def __init__(self, count: int):
        self.count, self.tick = count, 0

    def latest(self, name: str) -> Sample:
        """The picture of this tick."""
        picture = np.random.default_rng(self.tick).integers(0, 256, (1, SIDE, SIDE, 3), np.uint8)
        numbers = np.full(self.count, self.tick, np.int64)
        seen = {"rgb": np.repeat(picture, self.count, axis=0)}
        known, place, turn = np.ones(self.count, bool), np.zeros((self.count, 3)), np.zeros((self.count, 4))
        return Sample(numbers / 20.0, numbers, numbers, known, place, turn, seen)


def place_figures() -> Iterator[Figure]:
    """Flights here and a kilometre away, with the same pictures; and a little higher, which must matter."""
    for name in VARIANTS:
        if not variant(name).vision:
            continue
        here = _flown(name, (0.0, 0.0, 1.0))
        away = _flown(name, (FAR, -0.5 * FAR, 1.0))
        other = int((here != away).any(axis=-1).sum())
        yield zero(f"SOUS VIDE 7, {name}: of {here[..., 0].size} commands, with other bytes 1.1 km away", other)
        higher = int((here == _flown(name, (0.0, 0.0, 1.3))).all(axis=-1).sum())
        yield zero(f"SOUS VIDE 7, {name}: of {here[..., 0].size} commands, the same 0.3 m higher", higher)


def _flown(name: str, start: tuple[float, float, float]) -> Array:
    """Commands (TICKS, FLIGHTS, 4) of closed-loop flights from a place, each at its own velocity."""
    config = SimulatorConfig(dynamics="semi_kinematic", level="rate_thrust", physics_rate=100.0, control_rate=20.0)
    simulator = Simulator(vehicle("carl"), config, FLIGHTS)
    velocity = np.random.default_rng(5).uniform(-0.5, 0.5, (FLIGHTS, 3))
    simulator.reset(position=start, velocity=velocity)
    contract = Contract(name, View.of_side(SIDE))
    network = SvNetwork(contract, random_weights(name))
    pilot = SvNetPilot(contract, network, objective_of(course("robustness").trajectory()), np.full(FLIGHTS, FULL_FORCE))
    film, given = _Film(FLIGHTS), []
    for tick in range(TICKS):
        film.tick = tick
        given.append(pilot.command(observe(simulator, pilot.observes, cast(MountedSensors, film))))
        simulator.step(given[-1])
    return np.stack(given)


# ---- the runner ---------------------------------------------------------------------------------------------------------


def runner_figures() -> Iterator[Figure]:
    """The native network beside its NumPy twin, and how long one decision takes here."""
    weights = random_weights("sv_net")
    for side in (112, 224):
        contract, reading = Contract("sv_net", View.of_side(side)), _reading(2, side)
        network = SvNetwork(contract, weights, threads=1)
        found, wanted = network(reading), svnet_twin(contract, weights, reading)
        gap = float(np.abs(found.command - wanted.command).max())
        # Sums of up to 1,005 terms in float32, in another order: some 2^-23 of their largest part.
        yield below(f"SV-Net at {side} x {side}: commands off those of the NumPy twin, worst", gap, 1e-5)
        yield _told(f"SV-Net at {side} x {side}: a decision, processor time of one thread", _decision(network, side), "ms")


def _told(label: str, measured: float, unit: str) -> Figure:
    """A figure that depends on the machine, and is not judged."""
    return Figure(label, measured, "not judged; a tick is 50 ms", True, unit)


def _decision(network: SvNetwork, side: int) -> float:
    """The shortest of some decisions for one flight [ms]."""
    reading = _reading(1, side)
    spent: list[float] = []
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(spent) < 5:
        begun = time.process_time()
        network(reading)
        spent.append(time.process_time() - begun)
    return 1e3 * min(spent)


def _reading(count: int, side: int) -> Reading:
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (count, side, side, 3), np.uint8)
    state, objective, history = (rng.normal(size=(count, size)) for size in (OBSERVABLE_SIZE, OBJECTIVE_SIZE, HISTORY_SIZE))
    return Reading(state, objective, history, images)


def random_weights(name: str) -> Weights:
    """Of a variant: numbers neither fade nor grow on their way, and commands are near hover."""
    rng = np.random.default_rng(0)

    def drawn(key: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        if len(shape) == 1:
            return rng.uniform(-0.1, 0.1, shape).astype(np.float32)
        gain = 6.0 if "backbone" in key else 1.0  # He's rule: a rectifier takes half
        return (rng.uniform(-1.0, 1.0, shape) * np.sqrt(gain / np.prod(shape[1:]))).astype(np.float32)

    found: Mapping[str, NDArray[np.float32]] = {key: drawn(key, shape) for key, shape in tensor_shapes(name).items()}
    return {**found, "command.2.bias": np.array([-0.41, 0.0, 0.0, 0.0], np.float32)}
