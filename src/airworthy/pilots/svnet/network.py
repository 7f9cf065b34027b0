"""SV-Net and its variants without torch: what they read in, a command out, for many flights at once.

Natively on a CPU or, the images' part, on a GPU (`SvNetwork`), and on NumPy as the specification writes it (`svnet_twin`).
A flight's command has the same bits whatever flies beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.pilots.svnet.contract import Contract
from airworthy.pilots.svnet.engine import Backbone, Chain
from airworthy.pilots.svnet.features import HISTORY_SIZE, OBJECTIVE_SIZE
from airworthy.pilots.svnet.squeezenet import prepared, squeezenet
from airworthy.pilots.svnet.variants import COMMAND_HIDDEN, HEAD_HIDDEN, HISTORY_HIDDEN, variant

__all__ = ["Decision", "Reading", "SvNetwork", "normalised", "svnet_twin"]

Floats = NDArray[np.float32]
Weights = Mapping[str, Floats]


@dataclass(frozen=True, eq=False)
class Reading:
    """What the network reads of n flights; see `features` for frames and order."""

    state: NDArray[np.float64]
    """(n, 8) observable state; (n, 11) time, position, velocity, quaternion of the variant that is told everything."""
    objective: NDArray[np.float64]
    """(n, 18)"""
    history: NDArray[np.float64]
    """(n, 75)"""
    images: NDArray[np.uint8] | None = None
    """(n, H, W, 3) red, green, blue; None of a variant that does not see."""

    @property
    def vision(self) -> NDArray[np.float64]:
        """(n, 5) height and quaternion, which the feature extractor reads."""
        return np.concatenate([self.state[:, :1], self.state[:, 4:]], axis=1)


@dataclass(frozen=True, eq=False)
class Decision:
    """What it gives."""

    command: Floats
    """(n, 4) thrust in [-1, 0] and body rates [rad/s], z down, not clipped."""
    estimate: Floats | None
    """(n, 2) mass [kg] and force of one rotor at full command [N]; None without a history network."""


class SvNetwork:
    """A policy's network, ready to run.

    Args:
        contract: What its numbers mean.
        weights: Tensors of `variants.tensor_shapes`.
        device: Of the images' part; the rest is small and runs on the CPU.
        threads: Most threads of a CPU; None: as many as the machine allows.
        single: Run the form of a GPU on a CPU (tests).
    """

    def __init__(
        self, contract: Contract, weights: Weights, device: str = "cpu", threads: int | None = None, single: bool = False
    ):
        self.contract, self.kind = contract, variant(contract.variant)

        def chain(name: str, count: int, rectified: bool = False) -> Chain:
            return Chain(_linears(weights, name, count), rectified, threads, single)

        if self.kind.history != "none":
            self._body = chain("history.body", len(HISTORY_HIDDEN) + 1, rectified=True)
            self._estimate = Chain([_linear(weights, "history.estimate")], False, threads, single)
        if contract.view is not None and self.kind.vision:
            size = (contract.view.height, contract.view.width)
            tensors = _backbone(weights)
            self._backbone = Backbone(tensors, size, contract.image_mean, contract.image_std, device, threads, single)
            self._head = chain("vision.head", len(HEAD_HIDDEN) + 1)
        self._command = chain("command", len(COMMAND_HIDDEN) + 1)

    def __call__(self, reading: Reading) -> Decision:
        """Decide for n flights.

        Raises:
            AirworthyError: Shapes do not fit, or a variant that sees got no images.
        """
        _check(self, reading)
        told: list[NDArray[np.floating]] = [reading.state, reading.objective]
        estimate = None
        if self.kind.history != "none":
            latent = self._body(reading.history)
            estimate = self._estimate(latent)
            told.append(latent if self.kind.history == "latent" else estimate)
        if self.kind.vision:
            told.append(self.features(reading))
        return Decision(self._command(np.concatenate(told, axis=1)), estimate)

    def features(self, reading: Reading) -> Floats:
        """What is seen, (n, 128)."""
        assert reading.images is not None
        scores = self._backbone(reading.images)
        return self._head(np.concatenate([scores, reading.vision], axis=1))


def _check(network: SvNetwork, reading: Reading) -> None:
    kind, count = network.kind, len(reading.state)
    wanted = {"state": kind.state_size, "objective": OBJECTIVE_SIZE, "history": HISTORY_SIZE}
    for name, size in wanted.items():
        if getattr(reading, name).shape != (count, size):
            raise AirworthyError(f"SV-Net got {name} of shape {getattr(reading, name).shape}; expected ({count}, {size}).")
    if kind.vision and (reading.images is None or len(reading.images) != count):
        given = "no images" if reading.images is None else f"{len(reading.images)} images"
        raise AirworthyError(f"SV-Net got {given} for {count} flights; expected one of each.")


# ---- the readable twin ------------------------------------------------------------------------------------------------------


def svnet_twin(contract: Contract, weights: Weights, reading: Reading) -> Decision:
    """The same on NumPy, in float32."""
    kind = variant(contract.variant)
    told: list[NDArray[np.floating]] = [reading.state, reading.objective]
    estimate = None
    if kind.history != "none":
        latent = np.maximum(_chained(_linears(weights, "history.body", len(HISTORY_HIDDEN) + 1), reading.history), 0.0)
        matrix, bias = _linear(weights, "history.estimate")
        estimate = latent @ matrix.T + bias
        told.append(latent if kind.history == "latent" else estimate)
    if kind.vision:
        assert reading.images is not None
        tensors = {name: prepared(array) if array.ndim == 4 else array for name, array in _backbone(weights).items()}
        scores = squeezenet(normalised(contract, reading.images), tensors)
        seen = np.concatenate([scores, reading.vision], axis=1)
        told.append(_chained(_linears(weights, "vision.head", len(HEAD_HIDDEN) + 1), seen))
    command = _chained(_linears(weights, "command", len(COMMAND_HIDDEN) + 1), np.concatenate(told, axis=1))
    return Decision(command, estimate)


def normalised(contract: Contract, images: NDArray[np.uint8]) -> Floats:
    """8-bit images (n, H, W, 3) as the network reads them."""
    mean, std = np.asarray(contract.image_mean, np.float32), np.asarray(contract.image_std, np.float32)
    return (images.astype(np.float32) / np.float32(255.0) - mean) / std


def _chained(layers: list[tuple[Floats, Floats]], rows: NDArray[np.floating]) -> Floats:
    x = np.asarray(rows, np.float32)
    for number, (matrix, bias) in enumerate(layers):
        x = x @ matrix.T + bias
        if number < len(layers) - 1:
            x = np.maximum(x, 0.0)
    return x


def _linear(weights: Weights, name: str) -> tuple[Floats, Floats]:
    return weights[f"{name}.weight"], weights[f"{name}.bias"]


def _linears(weights: Weights, name: str, count: int) -> list[tuple[Floats, Floats]]:
    return [_linear(weights, f"{name}.{number}") for number in range(count)]


def _backbone(weights: Weights) -> dict[str, Floats]:
    first = "vision.backbone."
    return {name.removeprefix(first): array for name, array in weights.items() if name.startswith(first)}
