"""From expert roll-outs to the numbers and images that SV-Net reads. NumPy alone.

Everything passes through `airworthy.pilots.svnet.features`, as it does in flight: the lateral position ends there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayInt, ArrayLike, ArrayU8, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.pilots.svnet.features import Form, from_command, history_features, observable, to_objective, z_down
from airworthy.pilots.svnet.setting import PolicySetting, policy_setting
from airworthy.pilots.svnet.variants import FULL_STATE_SIZE, Variant
from airworthy.sensors.carried import POLICY_SIDE, policy_cut
from airworthy.splats.policy_view import PolicyView

__all__ = ["ExpertPairs", "SizedImages", "TrainingData", "batch_order", "training_data"]


class Stack(Protocol):
    """Images (k, H, W, 3) of 8 bits that are read where they are asked for."""

    shape: tuple[int, ...]

    def take(self, which: ArrayInt) -> ArrayU8:
        """Return images (n, H, W, 3) by their numbers (n,)."""


class ExpertPairs(Protocol):
    """What training reads of a data set: `airworthy.learning.datasets.ExpertDataset`, or whatever has these."""

    sensed: Array
    """(pairs, 11) time, position, velocity, quaternion; z up."""
    command: Array
    """(pairs, 4) share of full thrust, body rates."""
    rollout: ArrayInt
    """(pairs,) index into what is per roll-out."""
    parameters: Array
    """(rollouts, 2) mass [kg], force of one rotor [N]."""
    objective: Array
    """(rollouts, 18)"""
    course: NDArray[np.str_]
    """(rollouts,)"""

    @property
    def digest(self) -> str:
        """Of everything its bytes depend on."""

    @property
    def camera(self) -> Mapping[str, Any] | None:
        """Size, intrinsics, view; None: there are no images."""

    @property
    def images(self) -> Stack | None:
        """None: there are none."""

    def split(self, course: str | None = None) -> tuple[ArrayInt, ArrayInt]:
        """Return indices of pairs to train on, and held out."""

    def of_rollouts(self, values: ArrayLike) -> ArrayAny:
        """Return (pairs, ...) as (rollouts, ticks, ...)."""


class SizedImages:
    """Images of a data set at the size that the network sees.

    Args:
        stack: Of the data set.
        camera: Of them.
        side: Wanted [px]; 0: as they are, whole images at the published view.

    Raises:
        AirworthyError: The view cannot be made of these images.
    """

    def __init__(self, stack: Stack, camera: Mapping[str, Any], side: int = 0):
        self._stack, self._whole = stack, camera["view"] == "full"
        height, width = stack.shape[1:3]
        # Whole images are cut as in flight; smaller ones were cut when they were rendered.
        self.side = side or (POLICY_SIDE if self._whole else height)
        if not self._whole and self.side > height:
            raise AirworthyError(
                f"The view is to have a side of {self.side} px, but the data's images have {height}: choose a smaller one, or"
                " render the data again."
            )
        self._view = self._sized(height, width)
        self.intrinsics = self._intrinsics(camera, (width, height))
        """fx, fy, cx, cy [px]"""

    def __len__(self) -> int:
        return int(self._stack.shape[0])

    def take(self, which: ArrayInt) -> ArrayU8:
        """Return images (n, side, side, 3) by their numbers (n,)."""
        found = self._stack.take(which)
        return found if self._view is None else np.asarray(self._view.of(found), np.uint8)

    def _sized(self, height: int, width: int) -> PolicyView | None:
        """Return how images are resized and cut; None: they are as wanted."""
        if not self._whole:
            return None if self.side == height == width else PolicyView((self.side, self.side), (self.side, self.side))
        cut = policy_cut(self.side, self.side)
        if cut is None:
            raise AirworthyError(f"A view of {self.side} px cannot be cut from whole images; choose a multiple of 7.")
        return cut

    def _intrinsics(self, camera: Mapping[str, Any], size: tuple[int, int]) -> Array:
        numbers = np.array([camera[name] for name in ("fx", "fy", "cx", "cy")], np.float64)
        # Cutting moves the principal point and resizing scales all four: the contract must hold those of what is seen.
        return numbers if self._view is None else self._view.intrinsics(numbers, size)


@dataclass(frozen=True, eq=False)
class TrainingData:
    """k pairs as the network reads them: world z down, float32."""

    state: ArrayF32
    """(k, 8) observable, or (k, 11) for the network that is told everything."""
    objective: ArrayF32
    """(k, 18)"""
    history: ArrayF32
    """(k, 75)"""
    command: ArrayF32
    """(k, 4) of the expert: thrust in [-1, 0], body rates."""
    parameters: ArrayF32
    """(k, 2) mass [kg], force of one rotor [N]."""
    train: ArrayInt
    """Pairs to learn from."""
    held_out: ArrayInt
    """Pairs to judge by."""
    course: NDArray[np.str_]
    """(k,) name of the course."""
    ticks: ArrayInt
    """(k,) ticks flown before, of which the history knows."""
    images: SizedImages | None
    digest: str
    """Of the data set."""
    setting: PolicySetting | None = None
    """Vehicle, camera and courses of the data; None: the data set does not tell."""


def training_data(pairs: ExpertPairs, kind: Variant, form: Form = "paper", side: int = 0) -> TrainingData:
    """Return what a variant reads of a data set.

    Args:
        pairs: The data set.
        kind: The variant.
        form: Of the history's position rows.
        side: Of the images [px]; 0: as they are.

    Raises:
        AirworthyError: There is nothing to train on, nothing held out, or no images for a network that sees.
    """
    train, held_out = pairs.split()
    # Without held-out pairs the best epoch could not be told from the last.
    if not len(train) or not len(held_out):
        raise AirworthyError(
            f"The data set has {len(train)} pairs to train on and {len(held_out)} held out (the last shard of each course);"
            " expected some of both: make more roll-outs, or smaller shards."
        )
    if kind.vision and (pairs.images is None or pairs.camera is None):
        raise AirworthyError(
            f"Variant {kind.name!r} sees, but the data set has no images; make it with a view, or train the variant 'hp_net'."
        )
    # Turned and differenced in double precision, rounded once at the end.
    sensed = np.asarray(pairs.sensed, np.float64)
    state = observable(sensed[:, 1:]) if kind.vision else np.concatenate([sensed[:, :1], z_down(sensed[:, 1:])], axis=1)
    assert state.shape[1] == (kind.state_size if kind.vision else FULL_STATE_SIZE)
    flown = pairs.of_rollouts(sensed)
    history = history_features(flown[..., 0], flown[..., 1:], pairs.of_rollouts(pairs.command), form)
    # How much of a history is zeros because the flight had only begun.
    ticks = np.broadcast_to(np.arange(flown.shape[1]), flown.shape[:2])
    images = None
    if kind.vision and pairs.images is not None and pairs.camera is not None:
        images = SizedImages(pairs.images, pairs.camera, side)
    return TrainingData(
        state=state.astype(np.float32),
        objective=to_objective(pairs.objective).astype(np.float32)[pairs.rollout],
        history=history.reshape(len(sensed), -1).astype(np.float32),
        command=from_command(pairs.command).astype(np.float32),
        parameters=np.asarray(pairs.parameters, np.float32)[pairs.rollout],
        train=np.asarray(train, np.int64),
        held_out=np.asarray(held_out, np.int64),
        course=np.asarray(pairs.course)[pairs.rollout],
        ticks=ticks.reshape(-1),
        images=images,
        digest=pairs.digest,
        setting=_setting_of(pairs, images is not None),
    )


def _setting_of(pairs: ExpertPairs, seen: bool) -> PolicySetting | None:
    """Return what a contract tells of the data; None of pairs that come without vehicle and configuration."""
    vehicle, config = getattr(pairs, "vehicle", None), getattr(pairs, "config", None)
    if vehicle is None or config is None:
        return None
    names, first = np.unique(np.asarray(pairs.course), return_index=True)
    objectives = {str(name): pairs.objective[row] for name, row in zip(names, first, strict=True)}
    return policy_setting(vehicle, pairs.camera if seen else None, objectives, (config.mass, config.thrust), config.delay)


_STAGES = ("history", "command")


def batch_order(which: ArrayInt, size: int, seed: int, stage: str, epoch: int) -> Iterator[ArrayInt]:
    """Yield minibatches of an epoch: an order that depends on (seed, stage, epoch) alone; the last may be smaller.

    The pairs of a minibatch are sorted, which changes nothing but lets images be read in the order of the file.

    Args:
        which: Indices of pairs.
        size: Of a minibatch.
        seed: Of the training.
        stage: "history" or "command".
        epoch: From 0.
    """
    # A generator per epoch: a training that goes on needs no state of an earlier one.
    order = np.random.default_rng((seed, _STAGES.index(stage), epoch)).permutation(which)
    for first in range(0, len(order), size):
        yield np.sort(order[first : first + size])
