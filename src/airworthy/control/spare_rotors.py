"""Rotors to spare: what more rotors than wrenches need can give beyond the proportions of the pseudo-inverse.

Thrusts u and u + N z give the same wrench; N spans the thrusts that give none. A combination g of few rotors with g N = 0 has
one value for all of them, which lies between its least and its most over all rotors' limits: these bounds say exactly which
wrenches are within reach (they are the facets of the polytope of wrenches, found by eliminating z). Where z is chosen one
element after the other, combinations that the elements still to come do not change say from where to where it may be.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from airworthy.core.arrays import Array, Scalar, Vector
from airworthy.core.ops import maximum, minimum, where

LEAST, MOST = 7, 8
"""Rotors of airframes whose spare ones are used: six leave nothing of what comes first, planar on a regular hexagon or tilted;
the bounds of nine and more are hundreds."""
# Ours: of numbers of size one, far above float64's rounding.
_NOTHING = 1e-9
# Ours: a bound that grips an element of z by less than this share bounds it by rounding alone.
_GRIP = 1e-5
_FAR = 1e9


class Spare(NamedTuple):
    """What is known of spare rotors; empty tuples where there are none. Rows beyond those that an airframe needs are zeros."""

    inverse: tuple[Vector, ...] = ()
    """Of each combination its value per unit of wrench, as `Allocation.inverse`."""
    collective: Vector = ()
    """The same per newton of collective."""
    least: Vector = ()
    """[N]"""
    most: Vector = ()
    """[N]"""
    turn: tuple[Vector, ...] = ()
    """Thrusts of all rotors per newton of each element of z."""
    bound: tuple[Vector, ...] = ()
    """Combinations (rotors,) that bound the elements of z, one element after the other, as `bounds_per_element` counts them;
    each changes by one newton per newton of its element."""
    bound_least: Vector = ()
    """[N]"""
    bound_most: Vector = ()
    """[N]"""


def bounds_per_element(rotor_count: int) -> tuple[int, ...]:
    """Return how many combinations bound each element of z at most, for wrenches of 3, 4 and 6 dimensions."""
    if not LEAST <= rotor_count <= MOST:
        return ()
    return tuple(
        1 + max(comb(rotor_count - 1 - j, d - 1) for d in (3, 4, 6) if j < rotor_count - d) for j in range(rotor_count - 3)
    )


def spare_shapes(rotor_count: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the fields of `Spare` for a padded number of rotors; none where spare rotors are not used."""
    n, rows = rotor_count, sum(bounds_per_element(rotor_count))
    if not rows:
        return {}
    k = max(comb(n, d - 1) for d in (3, 4, 6))
    return {
        "inverse": (k, 6),
        "collective": (k,),
        "least": (k,),
        "most": (k,),
        "turn": (n - 3, n),
        "bound": (rows, n),
        "bound_least": (rows,),
        "bound_most": (rows,),
    }


def spare_for(inverse: Array, collective: Array, lower: Array, upper: Array) -> Spare:
    """Return what is known of an airframe's spare rotors, padded with idle rotors as the arguments are.

    Args:
        inverse: Thrusts per unit of wrench, (n, 6).
        collective: (n,)
        lower: Least thrusts (n,) [N].
        upper: Largest thrusts (n,) [N].
    """
    if not spare_shapes(len(lower)):
        return Spare()
    columns = (np.ascontiguousarray(x, np.float64).tobytes() for x in (inverse, collective, lower, upper))
    return _spare(len(lower), *columns)


@lru_cache(maxsize=64)
def _spare(count: int, *columns: bytes) -> Spare:
    inverse, collective, lower, upper = (np.frombuffer(data) for data in columns)
    inverse = inverse.reshape(count, 6)
    # A rotor that no wrench moves stays where it is: it is none of the spare ones.
    works = np.flatnonzero(np.any(inverse != 0.0, axis=1))
    n = len(works)
    # Fewer in a kernel for more rotors get what they get alone.
    free = _no_wrench(inverse[works]) if n >= LEAST else np.zeros((n, 0))
    sums = _combinations(free)
    sums *= np.where(sums @ collective[works] < 0.0, -1.0, 1.0)[:, None]
    shares = sums @ collective[works]
    least, most = _range(sums, lower[works], upper[works])
    turn, bound = np.zeros((count, count)), []
    if free.shape[1]:
        order = _order(free)
        per_element = free @ np.linalg.inv(free[order])
        turn[: len(order), works] = per_element.T
        rest = np.ones(n, bool)
        for j, rotor in enumerate(order):
            rest[rotor] = False
            rows = np.zeros((0, n))
            if rest.any():
                found = _combinations(per_element[rest, j + 1 :])
                rows = np.zeros((len(found), n))
                rows[:, rest] = found
            rows = np.vstack([np.eye(n)[rotor], rows])
            grip = rows @ per_element[:, j]
            bound.append(rows[np.abs(grip) > _GRIP] / grip[np.abs(grip) > _GRIP, None])
    shapes = spare_shapes(count)
    fields = {name: np.zeros(shape) for name, shape in shapes.items()}
    k = len(sums)
    fields["inverse"][:k], fields["collective"][:k] = (
        sums @ inverse[works],
        np.where(shares > _NOTHING * np.abs(shares).max(initial=0.0), shares, 0.0),
    )
    fields["least"][:k], fields["most"][:k] = least, most
    fields["turn"][:] = turn[: len(fields["turn"])]
    fields["bound_least"][:], fields["bound_most"][:] = -_FAR, _FAR
    first = 0
    for size, rows in zip(bounds_per_element(count), bound, strict=False):
        here = slice(first, first + len(rows))
        fields["bound"][here, works] = rows
        fields["bound_least"][here], fields["bound_most"][here] = _range(rows, lower[works], upper[works])
        first += size
    return Spare(**{name: tuple(map(tuple, f.tolist())) if f.ndim == 2 else tuple(f.tolist()) for name, f in fields.items()})


def _range(rows: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Least and most of combinations over all thrusts within limits."""
    return np.minimum(rows * lower, rows * upper).sum(axis=1), np.maximum(rows * lower, rows * upper).sum(axis=1)


def _no_wrench(inverse: Array) -> Array:
    """Return an orthonormal basis (n, n - rank) of the thrusts that give no wrench: those across the pseudo-inverse's."""
    size = np.linalg.norm(inverse, axis=0)
    found, values, _ = np.linalg.svd(inverse / np.where(size > 0.0, size, 1.0))
    return np.asarray(found[:, int((values > 1e-6).sum()) :])


def _combinations(free: Array) -> Array:
    """Return all combinations of least support that no column of `free` (n, m, rank m) changes, the largest element 1."""
    n, m = free.shape
    if m == 0:
        return np.eye(n)
    supports = np.array(list(combinations(range(n), m + 1))).reshape(-1, m + 1)
    across, values, _ = np.linalg.svd(free[supports])
    # Where more than one combination vanishes on a support, each is found on another, filled up by other rotors.
    single = values[:, -1] > _NOTHING
    rows = np.zeros((int(single.sum()), n))
    np.put_along_axis(rows, supports[single], across[single][:, :, -1], axis=1)
    rows[np.abs(rows) < _NOTHING] = 0.0
    largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)
    rows /= largest
    sign = np.take_along_axis(rows, (rows != 0.0).argmax(axis=1)[:, None], axis=1)
    rows *= np.sign(sign)
    _, first = np.unique(np.round(rows, 7), axis=0, return_index=True)
    return np.asarray(rows[np.sort(first)])


def _order(free: Array) -> list[int]:
    """Return rotors whose thrusts stand for z: each in turn the first that is about as free of those before as any."""
    left, order = free.copy(), []
    for _ in range(free.shape[1]):
        size = np.linalg.norm(left, axis=1)
        # Equal but for rounding counts as equal: the choice must not depend on the machine.
        rotor = int(np.flatnonzero(size >= 0.999 * size.max())[0])
        order.append(rotor)
        along = left[rotor] / size[rotor]
        left = left - np.outer(left @ along, along)
    return order


def settle(thrusts: Vector, spare: Spare) -> Vector:
    """Return thrusts of the same wrench within limits, as near to those given as one element of z after the other can be.

    Args:
        thrusts: Of each rotor [N]; some thrusts within limits give the same wrench.
        spare: Of the airframe.
    """
    first = 0
    for turn, count in zip(spare.turn, bounds_per_element(len(thrusts)), strict=True):
        low: Scalar = -_FAR
        high: Scalar = _FAR
        for k in range(first, first + count):
            value = spare.bound[k][0] * thrusts[0]
            for g, u in zip(spare.bound[k][1:], thrusts[1:], strict=True):
                value = value + g * u
            low, high = maximum(low, spare.bound_least[k] - value), minimum(high, spare.bound_most[k] - value)
        # Where rounding leaves nothing in between, the middle errs least on both sides.
        z = where(low > high, 0.5 * (low + high), minimum(maximum(low, 0.0), high))
        thrusts = tuple(u + z * t for u, t in zip(thrusts, turn, strict=True))
        first += count
    return thrusts
