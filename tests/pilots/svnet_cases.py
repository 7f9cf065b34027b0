"""Random policies and readings, for the tests of SV-Net."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import ArrayF32
from airworthy.pilots.svnet.contract import PolicyContract, PolicyImage
from airworthy.pilots.svnet.features import HISTORY_SIZE, OBJECTIVE_SIZE
from airworthy.pilots.svnet.network import Reading
from airworthy.pilots.svnet.variants import tensor_shapes, variant

Weights = dict[str, ArrayF32]


def contract(name: str = "sv_net", side: int = 32) -> PolicyContract:
    return PolicyContract(name, PolicyImage.of_side(side) if variant(name).vision else None)


def weights(name: str = "sv_net", seed: int = 0) -> Weights:
    """As torch would draw them, commands of order 0.1 around hover; biases larger, so that they count."""
    rng = np.random.default_rng(seed)

    def drawn(key: str, shape: tuple[int, ...]) -> ArrayF32:
        if len(shape) == 1:
            return rng.uniform(-0.1, 0.1, shape).astype(np.float32)
        gain = 6.0 if "backbone" in key else 1.0
        return (rng.uniform(-1.0, 1.0, shape) * np.sqrt(gain / np.prod(shape[1:]))).astype(np.float32)

    found = {key: drawn(key, shape) for key, shape in tensor_shapes(name).items()}
    found["command.2.bias"] = np.array([-0.41, 0.0, 0.0, 0.0], np.float32)
    return found


def reading(name: str = "sv_net", count: int = 3, side: int = 32, seed: int = 1) -> Reading:
    rng, kind = np.random.default_rng(seed), variant(name)
    images = rng.integers(0, 256, (count, side, side, 3), np.uint8) if kind.vision else None
    state = rng.normal(size=(count, kind.state_size))
    return Reading(state, rng.normal(size=(count, OBJECTIVE_SIZE)), rng.normal(size=(count, HISTORY_SIZE)), images)


def part(of: Reading, which: slice) -> Reading:
    """Some flights of it."""
    images = None if of.images is None else of.images[which]
    return Reading(of.state[which], of.objective[which], of.history[which], images)
