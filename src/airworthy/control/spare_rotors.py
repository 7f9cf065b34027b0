"""Rotors to spare: what allocation has to know of an airframe whose thrusts give a wrench in more than one way.

Thrusts u and u + N z give the same wrench, where N spans the thrusts that give none. Those across them, spanned by the pseudo-
inverse, have an orthonormal basis V: V^T u says which wrench it is, in numbers of one size whatever the airframe's own is. Some
rotors' rows of V, about as independent as any, are the basis that `spare_simplex` starts from.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from airworthy.control.spare_simplex import ROWS
from airworthy.core.arrays import Array, Scalar, Vector

LEAST = 5
"""Rotors of airframes whose spare ones are used: four have none, unless one of the four kinds of wrench is beyond them."""


class Spare(NamedTuple):
    """What is known of spare rotors; empty where a kernel has none, zeros where an airframe has none."""

    span: tuple[Vector, ...] = ()
    """V, a row per rotor (rotors, 6); of wrenches of fewer dimensions the last columns are zeros."""
    basis: Vector = ()
    """Numbers of as many rotors as wrenches have dimensions (6,); -1 behind them."""
    inverse: tuple[Vector, ...] = ()
    """Inverse of their rows of V, transposed (6, 6); the identity behind them."""
    scale: Scalar = 0.0
    """Largest thrust of any rotor [N]; 0 where there is no rotor to spare."""


def spare_shapes(rotor_count: int) -> dict[str, tuple[int, ...]]:
    """Return shapes of the fields of `Spare` for a padded number of rotors; none where spare rotors are not used."""
    if rotor_count < LEAST:
        return {}
    return {"span": (rotor_count, ROWS), "basis": (ROWS,), "inverse": (ROWS, ROWS), "scale": ()}


def spare_for(inverse: Array, lower: Array, upper: Array) -> Spare:
    """Return what is known of an airframe's spare rotors, padded with idle rotors as the arguments are.

    Args:
        inverse: Thrusts per unit of wrench, (n, 6).
        lower: Least thrusts (n,) [N].
        upper: Largest thrusts (n,) [N].
    """
    if not spare_shapes(len(lower)):
        return Spare()
    return _spare(len(lower), *(np.ascontiguousarray(x, np.float64).tobytes() for x in (inverse, lower, upper)))


@lru_cache(maxsize=64)
def _spare(count: int, *columns: bytes) -> Spare:
    inverse, lower, upper = (np.frombuffer(data) for data in columns)
    inverse = inverse.reshape(count, ROWS)
    span, basis, turned = np.zeros((count, ROWS)), np.full(ROWS, -1.0), np.eye(ROWS)
    # A rotor that no wrench moves stays where it is: it is none of the spare ones.
    works = np.flatnonzero(np.any(inverse != 0.0, axis=1))
    found = _across(inverse[works]) if len(works) >= LEAST else np.zeros((0, 0))
    rank = found.shape[1]
    scale = float(np.abs(np.stack([lower, upper])[:, works]).max(initial=0.0)) if len(works) > rank > 0 else 0.0
    if scale > 0.0:
        span[works, :rank] = found
        chosen = _independent(found)
        basis[:rank] = works[chosen]
        turned[:rank, :rank] = np.linalg.inv(found[chosen].T)
    return Spare(tuple(map(tuple, span.tolist())), tuple(basis.tolist()), tuple(map(tuple, turned.tolist())), scale)


def _across(inverse: Array) -> Array:
    """Return an orthonormal basis (n, rank) of the thrusts that the pseudo-inverse gives."""
    size = np.linalg.norm(inverse, axis=0)
    found, values, _ = np.linalg.svd(inverse / np.where(size > 0.0, size, 1.0))
    return np.asarray(found[:, : int((values > 1e-6).sum())])


def _independent(span: Array) -> list[int]:
    """Return as many rotors as there are columns: each in turn the first that is about as free of those before as any."""
    left, order = span.copy(), []
    for _ in range(span.shape[1]):
        size = np.linalg.norm(left, axis=1)
        # Equal but for rounding counts as equal: the choice must not depend on the machine.
        rotor = int(np.flatnonzero(size >= 0.999 * size.max())[0])
        order.append(rotor)
        along = left[rotor] / size[rotor]
        left = left - np.outer(left @ along, along)
    return order
