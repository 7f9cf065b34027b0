"""Whether gates leave each other's openings free: a race in which one stands in another can be judged, and not be flown."""

from __future__ import annotations

from itertools import product

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.race.gate_bars import frames_of, gate_bars
from airworthy.race.gate_geometry import GateShape, gate_shape
from airworthy.race.record import GateFrames, Race

__all__ = ["check_apart"]

_LEAST = 0.5
"""Of an opening that has to be free at least, however wide bars are: its middle half."""


def check_apart(race: Race) -> None:
    """Refuse a race whose gates stand in one another, or in its start.

    Stacked gates share a bar, which stands half in each opening; so a bar's width along the edges may be taken.

    Args:
        race: Its course. Gates of the hall stand where its scene has them, and are not looked at.

    Raises:
        AirworthyError: One sentence, with the gates.
    """
    frames = frames_of(race)
    if race.scene or frames is None:
        return
    names, shapes = [gate.name for gate in race.gates], [gate_shape(gate) for gate in race.gates]
    for name, shape in zip(names, shapes, strict=True):
        _check_start(race, name, shape, frames, [other for other in shapes if other is not shape])
    centers = np.array([shape.center for shape in shapes])
    reach = np.array([np.hypot(shape.half_width, shape.half_height) for shape in shapes]) + frames.width + frames.depth
    apart = np.linalg.norm(centers[:, None] - centers[None], axis=2)
    for a, b in np.argwhere(apart < reach[:, None] + reach[None]):
        if a != b and _closed(shapes[a], shapes[b], frames):
            raise AirworthyError(
                f"A bar of gate {names[b]!r} stands in the opening of gate {names[a]!r} (their centres are {apart[a, b]:.3g} m"
                f" apart), where who flies through {names[a]!r} hits it: move one of them, or make one smaller."
            )


def _check_start(race: Race, name: str, shape: GateShape, frames: GateFrames, others: list[GateShape]) -> None:
    start = np.array(race.start.position)
    for bar in gate_bars(shape, frames, others):
        if np.all(np.abs(bar.axes(shape) @ (start - bar.center)) < bar.half):
            raise AirworthyError(f"The start lies in the {bar.side} bar of gate {name!r}: move one of them.")


def _closed(one: GateShape, other: GateShape, frames: GateFrames) -> bool:
    """Tell whether a bar of another gate stands in the free part of an opening. Openings alone may cross: some races fly so."""
    free = _opening(one, frames)
    return any(_meet(free, (bar.center, bar.axes(other), bar.half)) for bar in gate_bars(other, frames, [one]))


_Box = tuple[Array, Array, Array]
"""Centre (3,), unit axes as rows (3, 3), and half sizes along these (3,)."""


def _opening(shape: GateShape, frames: GateFrames) -> _Box:
    size = np.array([shape.half_width, shape.half_height])
    free = np.maximum(size - frames.width, _LEAST * size)
    return shape.center, np.stack([shape.normal, shape.left, shape.up]), np.array([0.5 * frames.depth, *free])


def _meet(one: _Box, other: _Box) -> bool:
    """Tell whether two boxes overlap: no axis of theirs, and none across one of each, has them apart (Gottschalk, Lin and
    Manocha, "OBBTree", 1996)."""
    (a, axes_a, half_a), (b, axes_b, half_b) = one, other
    across = [np.cross(u, v) for u, v in product(axes_a, axes_b)]
    # Parallel axes span nothing: their product is left out.
    tried = [*axes_a, *axes_b, *(axis for axis in across if np.linalg.norm(axis) > 1e-6)]
    return all(
        abs(float((b - a) @ axis)) < float(half_a @ np.abs(axes_a @ axis) + half_b @ np.abs(axes_b @ axis)) for axis in tried
    )
