"""Instants to learn from: what a student saw and knew, what the expert would have done, and how near things truly were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayF32, ArrayInt, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.planners.agile_autonomy.layers import STATE
from airworthy.planners.agile_autonomy.level import COLUMNS, ROWS
from airworthy.planners.mapping.maps import trilinear
from airworthy.planners.sampling_expert.sampling import TIMES

__all__ = ["FARTHEST", "FIELD_CELL", "FIELD_STEP", "FIELD_ZERO", "LABELS", "Instants", "joined", "stored_field"]

# Source: spec/planners 8.1: the three best of the expert.
LABELS = 3
FIELD_STEP, FIELD_ZERO = 0.008, 96
"""Of stored distances [m], and the byte of none: from 0.77 m within things, so that a way out is known, to 1.27 m off them."""
FARTHEST = (255 - FIELD_ZERO) * FIELD_STEP
"""[m]"""
# Ours: every second cell of the maps along each axis, an eighth of them; what lies between is interpolated.
_EVERY = 2
FIELD_CELL = 0.2
"""Edge of a stored cell [m]."""
_PLAIN = ("views", "state", "expert", "position", "place", "corners")


def stored_field(away: Array, corner: Array, resolution: float) -> tuple[ArrayU8, Array]:
    """Return what is kept of a field of distances, and the lower corner of its first cell [m].

    Args:
        away: (nx, ny, nz) signed distances [m].
        corner: (3,) lower corner of the first cell, world [m].
        resolution: Edge of a cell [m].
    """
    steps = np.rint(away[::_EVERY, ::_EVERY, ::_EVERY] / FIELD_STEP) + FIELD_ZERO
    # The cells that are kept stay where they are in the middle of larger ones.
    return np.clip(steps, 0, 255).astype(np.uint8), np.asarray(corner, np.float64) - 0.5 * (_EVERY - 1) * resolution


@dataclass(frozen=True, eq=False)
class Instants:
    """k instants, and the places that they are in."""

    views: ArrayU8
    """(k, 48, 96) as the student sees them; `planners.agile_autonomy.level`."""
    state: ArrayF32
    """(k, 18)"""
    expert: ArrayF32
    """(k, 3, 10, 3) best first, from the vehicle in its body frame [m]; the first again where the expert found fewer."""
    position: ArrayF32
    """(k, 3) of the vehicle, world [m]."""
    place: ArrayInt
    """(k,) number of its place."""
    fields: tuple[ArrayU8, ...]
    """Of each place signed distances (nx, ny, nz) to the nearest thing, in steps of `FIELD_STEP` from `FIELD_ZERO` on."""
    corners: Array
    """(places, 3) lower corners of the first cells, world [m]."""
    figures: dict[str, Any] = field(default_factory=dict)
    """Flights, successes, decisions without a sample, share of decisions flown by the expert."""

    def __len__(self) -> int:
        return len(self.state)

    @cached_property
    def _cells(self) -> tuple[ArrayU8, ArrayInt, ArrayInt]:
        """All fields one after the other, where each begins, and their shapes (places, 3)."""
        sizes = [cells.size for cells in self.fields]
        flat = np.concatenate([cells.reshape(-1) for cells in self.fields])
        return flat, np.concatenate([[0], np.cumsum(sizes[:-1])]).astype(np.int64), np.array([c.shape for c in self.fields])

    def distances(self, rows: ArrayInt, points: Array) -> tuple[Array, Array]:
        """Return how far points (m, ..., 3) of instants (m,), body frame [m], are from the nearest thing [m], and the gradient.

        Interpolated between cells; outside of the mapped box nothing is known to be near.

        Args:
            rows: Instants.
            points: Any number of each.

        Returns:
            Distances (m, ...), negative inside of things, and their gradients (m, ..., 3) in the body frame.
        """
        turn = self.state[rows, :9].astype(np.float64).reshape(-1, 3, 3)
        local = points.reshape(len(rows), -1, 3).astype(np.float64)
        world = np.einsum("nij,nmj->nmi", turn, local) + self.position[rows, None].astype(np.float64)
        flat, begins, shapes = self._cells
        place = self.place[rows]
        scaled = (world - self.corners[place][:, None]) / FIELD_CELL - 0.5
        base = np.floor(scaled).astype(np.int64)
        shape = shapes[place][:, None]
        inside = ((base >= -1) & (base < shape)).all(axis=-1)
        corner = np.empty((*inside.shape, 2, 2, 2))
        for offset in product((0, 1), repeat=3):
            x, y, z = np.moveaxis(np.clip(base + np.array(offset), 0, shape - 1), -1, 0)
            corner[..., offset[0], offset[1], offset[2]] = flat[
                begins[place][:, None] + (x * shape[..., 1] + y) * shape[..., 2] + z
            ]
        value, slope = trilinear((corner - FIELD_ZERO) * FIELD_STEP, scaled - base, FIELD_CELL)
        value = np.where(inside, value, FARTHEST)
        slope = np.einsum("nji,nmj->nmi", turn, np.where(inside[..., None], slope, 0.0))
        return value.reshape(points.shape[:-1]), slope.reshape(points.shape)

    def none(self) -> Instants:
        """Return none of them, in the same places."""
        return replace(self, **{name: getattr(self, name)[:0] for name in _PLAIN if name != "corners"})

    def arrays(self) -> dict[str, ArrayAny]:
        """Return all of it by name, for a file."""
        return {name: getattr(self, name) for name in _PLAIN} | {f"field.{k}": cells for k, cells in enumerate(self.fields)}

    @classmethod
    def of_arrays(cls, arrays: dict[str, Any], figures: dict[str, Any]) -> Instants:
        """Return what `arrays` gave.

        Raises:
            AirworthyError: They are no instants.
        """
        try:
            cells = tuple(arrays[f"field.{k}"] for k in range(len(arrays["corners"])))
            made = cls(**{name: arrays[name] for name in _PLAIN}, fields=cells)
        except KeyError as error:
            raise AirworthyError(f"Instants to learn from lack {error}.") from None
        k, shapes = (
            len(made),
            {"views": (ROWS, COLUMNS), "state": (STATE,), "expert": (LABELS, len(TIMES), 3), "position": (3,)},
        )
        wrong = [name for name, shape in shapes.items() if arrays[name].shape != (k, *shape)]
        if wrong or made.place.shape != (k,) or (k and not 0 <= made.place.min() <= made.place.max() < len(cells)):
            raise AirworthyError(f"Instants to learn from do not fit together: {', '.join(wrong) or 'their places'}.")
        return replace(made, figures=figures)


def joined(parts: Sequence[Instants]) -> Instants:
    """Return the instants of some batches one after the other, each in its own places."""
    found: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in _PLAIN if name != "place"
    }
    first = np.cumsum([0, *(len(part.fields) for part in parts[:-1])])
    place = np.concatenate([part.place + begin for part, begin in zip(parts, first, strict=True)])
    return Instants(**found, place=place, fields=tuple(cells for part in parts for cells in part.fields))
