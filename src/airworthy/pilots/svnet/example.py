"""A worked example for a policy's contract: what is sensed over a few ticks, and what the policy makes of it.

Who writes the policy anew for another machine compares with it: every rule of the contract shows in its numbers. They come from
the pilot that flies here, with the network on NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayLike, ArrayU8
from airworthy.pilots.pilot import HEIGHT, Observation
from airworthy.pilots.svnet.contract import PolicyContract
from airworthy.pilots.svnet.network import Decision, Reading, svnet_twin
from airworthy.pilots.svnet.pilot import SvNetPilot
from airworthy.pilots.svnet.variants import variant
from airworthy.simulation.sensor_state import Sample

__all__ = ["PARITY", "example_image", "worked_example"]

PARITY = 1e-5
"""By as much a network elsewhere may differ, absolute."""
_FULL, _WEIGHT = 27.6, 11.22264
"""Thrusts of the example's vehicle [N]: the reference drone's."""
# Ours: a late tick, one that comes early by rounding, and as many as fill the history and drop its oldest row.
_TIMES = (0.0, 0.05, 0.1, 0.16, 0.2, 0.2499999, 0.3, 0.35)
_IMAGE = "byte (row, column, colour) of the image at tick n (from 0) is (7 row + 13 column + 29 colour + 17 n) modulo 256"
_NO_IMAGE = 1
"""Ticks before the first image arrives."""


def worked_example(contract: PolicyContract, weights: Mapping[str, ArrayF32]) -> dict[str, Any]:
    """Return the table: vehicle, objective, and of each tick what is sensed, read and commanded.

    Args:
        contract: What the policy is.
        weights: Tensors by name.
    """
    objective = _objective(contract)
    network = _TwinNetwork(contract, weights)
    # The pilot is told courses z up; a half turn about x is its own inverse.
    pilot = SvNetPilot(contract, network, _z_up(objective), [_FULL], "camera", _WEIGHT)  # type: ignore[arg-type]
    ticks = [_tick(pilot, network, number) for number in range(len(_TIMES))]
    head = {"full_thrust_n": _FULL, "weight_n": _WEIGHT, "objective": _listed(objective)}
    image = {"image": _IMAGE} if pilot.sees else {}
    return {"tolerance": PARITY, **head, **image, "ticks": ticks}


def example_image(number: int, height: int, width: int) -> ArrayU8:
    """Return the image of a tick of the example, (height, width, 3).

    Args:
        number: Of the tick, from 0.
        height: [px]
        width: [px]
    """
    row, column, colour = np.ogrid[:height, :width, :3]
    return ((7 * row + 13 * column + 29 * colour + 17 * number) % 256).astype(np.uint8)


class _TwinNetwork:
    """The NumPy network in an `SvNetwork`'s place; keeps what it last read and gave."""

    def __init__(self, contract: PolicyContract, weights: Mapping[str, ArrayF32]):
        self.contract, self.weights, self.kind = contract, weights, variant(contract.variant)
        self.last: tuple[Reading, Decision] | None = None

    def __call__(self, reading: Reading) -> Decision:
        decision = svnet_twin(self.contract, self.weights, reading)
        self.last = reading, decision
        return decision


def _tick(pilot: SvNetPilot, network: _TwinNetwork, number: int) -> dict[str, Any]:
    time, seen = _TIMES[number], pilot.sees and number >= _NO_IMAGE
    sensed = _sensed(number)
    fields = {key: np.array([value]) for key, value in sensed.items()}
    if pilot.sees:
        fields[HEIGHT] = fields.pop("position")[:, 2]
        sensed = {HEIGHT: sensed["position"][2], "velocity": sensed["velocity"], "attitude": sensed["attitude"]}
    samples = {"camera": _sample(pilot.contract, number, seen)} if pilot.sees else {}
    network.last = None
    given = pilot.command(Observation(np.array([time]), fields, samples))
    told: dict[str, Any] = {"time_s": time, "sensed": {key: _listed(value) for key, value in sensed.items()}}
    if pilot.sees:
        told["image"] = seen
    if network.last is not None:
        reading, decision = network.last
        told |= {"state": _listed(reading.state[0]), "history": _listed(reading.history[0])}
        told["command"] = _listed(decision.command[0])
        if decision.estimate is not None:
            told["estimate"] = _listed(decision.estimate[0])
    return {**told, "thrust_n": _listed(given[0, 0]), "body_rates": _listed(given[0, 1:])}


def _sensed(number: int) -> dict[str, Array]:
    """Return a tick's state, z up: it turns over, so that w passes 0, and its sign flips where it should not matter."""
    angle = 0.2 + 0.9 * number
    axis = np.array([0.36, -0.48, 0.8])
    attitude = np.concatenate([axis * np.sin(0.5 * angle), [np.cos(0.5 * angle)]])
    velocity = np.array([1.0 + 0.2 * number, 0.5 - 0.1 * number, 0.05 * number**2 - 0.2])
    position = np.array([-4.0 + 0.06 * number, 0.3, 1.2 + 0.01 * number])
    return {"position": position, "velocity": velocity, "attitude": np.round(attitude, 12) * (-1.0 if number % 3 == 2 else 1.0)}


def _sample(contract: PolicyContract, number: int, valid: bool) -> Sample:
    assert contract.view is not None
    image = example_image(number, contract.view.height, contract.view.width)
    one = np.array([number])
    return Sample(one * 0.05, one, one, np.array([valid]), np.zeros((1, 3)), np.zeros((1, 4)), {"rgb": image[None]})


def _objective(contract: PolicyContract) -> Array:
    """Return the first course's objective, network's frames; where the contract tells none, one that is made up."""
    if contract.setting is not None and contract.setting.courses:
        return np.array(contract.setting.courses[0].objective)
    return np.array([8.0, 6.0, 0.5, -0.4, 1.0, 0.0, 0.0, 0.8, 0.1, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.6, 0.8])


def _z_up(objective: Array) -> Array:
    signs = [1.0, *([1.0, -1.0, -1.0] * 3), *([1.0, -1.0, -1.0, 1.0] * 2)]
    return objective * np.array(signs)


def _listed(value: ArrayLike) -> Any:
    """Return numbers as JSON keeps them: nine digits tell float32 apart, and what is sensed is as it was."""
    array = np.asarray(value)
    # float32 by its shortest text, so that the file does not hold digits that mean nothing.
    shown = np.array([float(str(x)) for x in array.ravel()]) if array.dtype == np.float32 else array.astype(float).ravel()
    return (shown + 0.0).reshape(array.shape).tolist()
