"""Whether a reconstruction is one place: two rooms that look alike are easily put into one, and each still fits by itself.

What tells them apart is what one part sees through the other. Where a picture sees a point, nothing lies on the way there;
if a point of other pictures lies on it, both are true only of different rooms, or of things that were moved. Such
contradictions happen by chance everywhere (edges, wrong points, a rolling shutter), so those between two parts of the
pictures are held against those within each part, and the parts are the ones for which the difference is greatest: the scan
statistic of M. Kulldorff, "A spatial scan statistic", Communications in Statistics 26 (1997), section 4, with the pairs of
pictures in place of the zones.

A part may also hang on the rest by so few points that nobody can tell how it lies; that is the thinnest cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayInt

__all__ = [
    "Contradictions",
    "SplitByContradictions",
    "ThinCut",
    "consistency_record",
    "contradictions",
    "split_by_contradictions",
    "thinnest_cut",
]

_NEAR = 0.008
"""Of the width: a ray this close to a point passes it by what the point's own surface covers. Ours."""
_FRONT = 1.15
"""How much further what is seen must lie than the point that is looked through. Ours: ten times the error of depths."""
_ALIKE_COS = float(np.cos(np.radians(15.0)))
"""Pictures that look at a point from directions this close see the same side of it, and SIFT finds it again."""
_ALIKE_SCALE = 1.5
"""Ratio of distances up to which that holds."""
_OBSERVED = 3
"""Pictures that must have seen a point: those of two are too often wrong."""
_NEIGHBOURS = 4
_PART = 0.05
"""Share of the pictures that is a part; at least three."""
_POINTS, _SHARE, _RATIO = 60, 0.03, 4.0
"""Points looked through, their share of what both parts could see, and how many times the share within the parts; all three
are needed. Ours: nine good reconstructions at 480 and 640 px have 41 points or fewer (rows over 30 ms; others 21) and 1.4 %;
two arrangements of one hall in one film have 221 points, 4.2 %, and 20 times the share within."""
_MIXED = 1.2
"""Excess of parts in any order over that of a run, from where on they are believed: cuts of films are rare. Ours."""
_THIN, _PART_POINTS = 0.02, 50
"""Share of the smaller part's points that both see, below which a cut is thin; good films of halls have 0.12 and more."""


@dataclass(frozen=True, eq=False)
class Contradictions:
    """What pictures see of each other's points. Picture i looks at a point that picture j saw from about the same side."""

    seen: Array
    """How many of them i saw too, (pictures, pictures)."""
    through: Array
    """How many of them i saw through, (pictures, pictures)."""
    events: ArrayInt
    """The latter one by one: i, j, point, (n, 3)."""


@dataclass(frozen=True, eq=False)
class SplitByContradictions:
    """Two parts of the pictures that contradict each other most."""

    first: ArrayBool
    """Which pictures are of the first part, (pictures,)."""
    points: int
    """That one part looks through and only the other has."""
    across: float
    """Share of looks at the other part's points that go through them."""
    within: float
    """The same of the own part's."""

    @property
    def contradictory(self) -> bool:
        """Whether the parts can hardly be one place."""
        return self.points >= _POINTS and self.across >= max(_SHARE, _RATIO * self.within)


@dataclass(frozen=True, eq=False)
class ThinCut:
    """Two parts of the pictures that share fewest points."""

    first: ArrayBool
    """Which pictures are of the first part, (pictures,)."""
    shared: int
    """Points that both parts see."""
    fewest: int
    """Points of the part that has fewer."""

    @property
    def thin(self) -> bool:
        """Whether hardly anything says how the parts lie to each other."""
        return self.shared < _THIN * self.fewest


def contradictions(
    centres: Array, points: Array, picture: ArrayInt, point: ArrayInt, project: Callable[[int], tuple[Array, Array]]
) -> Contradictions:
    """Count what pictures see of each other's points, and what they see through.

    Args:
        centres: Of the cameras, (pictures, 3), in any unit.
        points: That were reconstructed, (points, 3).
        picture: Of each observation, (observations,).
        point: Of each observation, (observations,).
        project: From a picture's number to where it has all points: in shares of its width, (points, 2), NaN where it does not
            show them, and their depths, (points,).
    """
    count = len(centres)
    often = np.bincount(point, minlength=len(points)) >= _OBSERVED
    way = points[point] - centres[picture]
    far = np.linalg.norm(way, axis=1)
    way = way / np.maximum(far, 1e-12)[:, None]
    seen, through, events = np.zeros((count, count)), np.zeros((count, count)), []
    for i in range(count):
        pixels, depth = project(i)
        own = np.zeros(len(points), bool)
        own[point[picture == i]] = True
        shown = np.isfinite(pixels).all(axis=1)
        passed = _seen_through(pixels, depth, own & shown, shown & ~own & often)
        asked = ((own & shown & often) | passed)[point] & (picture != i)
        which, other = point[asked], picture[asked]
        look = points[which] - centres[i]
        length = np.maximum(np.linalg.norm(look, axis=1), 1e-12)
        alike = np.einsum("ij,ij->i", look, way[asked]) > _ALIKE_COS * length
        alike &= np.abs(np.log(length / np.maximum(far[asked], 1e-12))) < np.log(_ALIKE_SCALE)
        which, other = which[alike], other[alike]
        seen[i] = np.bincount(other[~passed[which]], minlength=count)
        through[i] = np.bincount(other[passed[which]], minlength=count)
        found = passed[which]
        events.append(np.stack((np.full(int(found.sum()), i), other[found], which[found]), axis=1))
    return Contradictions(seen, through, np.concatenate(events) if events else np.zeros((0, 3), np.int64))


def _seen_through(pixels: Array, depth: Array, own: ArrayBool, asked: ArrayBool) -> ArrayBool:
    """Which of the points asked for lie before everything that is seen about them, (points,)."""
    passed = np.zeros(len(depth), bool)
    if not own.any() or not asked.any():
        return passed
    gap, nearest = cKDTree(pixels[own]).query(pixels[asked], k=_NEIGHBOURS, distance_upper_bound=_NEAR)
    # Where there are fewer neighbours their number is one past the last.
    behind = np.append(depth[own], np.inf)[nearest]
    passed[asked] = np.isfinite(gap[:, 0]) & (behind.min(axis=1) > _FRONT * depth[asked])
    return passed


def split_by_contradictions(found: Contradictions) -> SplitByContradictions | None:
    """Return the two parts between which contradictions are most in excess; None: there are no parts to speak of.

    Parts are a run of pictures and the rest, or, for pictures in any order, what the least eigenvector of the excess tells.

    Args:
        found: With pictures in the order in which they were taken.
    """
    count, least = len(found.seen), _part(len(found.seen))
    if count < 2 * least or found.through.sum() == 0:
        return None
    seen, through = found.seen + found.seen.T, found.through + found.through.T
    first, any_order = _best_run(seen, through, least), _best_in_any_order(seen, through)
    excess, other = (_excess(*_sums(side, seen, through)) for side in (first, any_order))
    if least <= any_order.sum() <= count - least and other > _MIXED * excess:
        first = any_order
    if not first[0]:
        first = ~first
    across_seen, across_through, all_seen, all_through = _sums(first, seen, through)
    i, j, which = found.events.T
    crossing = first[i] != first[j]
    # A point that the looking part has as well is not the other part's alone.
    inside = {(bool(first[a]), int(q)) for a, q in zip(j[~crossing], which[~crossing], strict=True)}
    points = {int(q) for a, q in zip(i[crossing], which[crossing], strict=True) if (bool(first[a]), int(q)) not in inside}
    return SplitByContradictions(
        first,
        len(points),
        float(across_through / max(across_seen + across_through, 1.0)),
        float((all_through - across_through) / max(all_seen + all_through - across_seen - across_through, 1.0)),
    )


def _part(count: int) -> int:
    return max(3, int(np.ceil(_PART * count)))


def _sums(first: ArrayBool, seen: Array, through: Array) -> tuple[Any, Any, Any, Any]:
    """Seen and seen through across the cut, and altogether."""
    across = first[:, None] != first[None, :]
    return seen[across].sum(), through[across].sum(), seen.sum(), through.sum()


def _excess(across_seen: Any, across_through: Any, all_seen: Any, all_through: Any) -> Any:
    """Logarithm of how much likelier two rates are than one, 0 where that across the cut is not the larger one."""

    def entropy(a: Any, b: Any) -> Any:
        total = np.maximum(a + b, 1e-12)
        return a * np.log(np.maximum(a, 1e-12) / total) + b * np.log(np.maximum(b, 1e-12) / total)

    within_seen, within_through = all_seen - across_seen, all_through - across_through
    gain = entropy(across_seen, across_through) + entropy(within_seen, within_through) - entropy(all_seen, all_through)
    return np.where(across_through * within_seen > within_through * across_seen, gain, 0.0)


def _best_run(seen: Array, through: Array, least: int) -> ArrayBool:
    """Return the run of pictures with the greatest excess across its ends."""
    count = len(seen)
    sums = [np.pad(table.cumsum(0).cumsum(1), ((1, 0), (1, 0))) for table in (seen, through)]
    begin, end = np.nonzero(np.triu(np.ones((count + 1, count + 1), bool), least))
    short = end - begin <= count - least
    begin, end = begin[short], end[short]
    # A run's rows, less its own block, twice: the tables are symmetric.
    across = [
        2.0 * ((t[end, -1] - t[begin, -1]) - (t[end, end] - t[begin, end] - t[end, begin] + t[begin, begin])) for t in sums
    ]
    k = int(np.argmax(_excess(across[0], across[1], seen.sum(), through.sum())))
    side = np.zeros(count, bool)
    side[begin[k] : end[k]] = True
    return side


def _best_in_any_order(seen: Array, through: Array) -> ArrayBool:
    """Return parts with a great excess, whatever their order: by the least eigenvector of it, then a picture at a time."""
    rate = through.sum() / (through.sum() + seen.sum())
    _, vectors = np.linalg.eigh(through - rate * (through + seen))
    sign = np.where(vectors[:, 0] > 0.0, 1.0, -1.0)
    best = 0.0
    for _ in range(len(sign)):
        # Of x' M x with signs x; each table's diagonal is zero.
        across = [0.5 * (table.sum() - sign @ table @ sign) + 2.0 * sign * (table @ sign) for table in (seen, through)]
        gains = _excess(across[0], across[1], seen.sum(), through.sum())
        k = int(np.argmax(gains))
        if gains[k] <= max(best, float(_excess(*_sums(sign > 0.0, seen, through)))):
            break
        best, sign[k] = float(gains[k]), -sign[k]
    return sign > 0.0


def thinnest_cut(count: int, picture: ArrayInt, point: ArrayInt) -> ThinCut | None:
    """Return the two parts that share fewest points for what they have; None: there are no parts to speak of.

    Looked for along the order of the pictures, and along the second eigenvector of the graph of shared points (M. Fiedler,
    "Algebraic connectivity of graphs", 1973), as for normalised cuts (J. Shi and J. Malik, PAMI 22 (2000), eq. 7).

    Args:
        count: Of pictures.
        picture: Of each observation, (observations,), in the order in which they were taken.
        point: Of each observation, (observations,).
    """
    if count < 2 * _part(count) or not len(point):
        return None
    seen = np.zeros((count, int(point.max()) + 1), np.float32)
    seen[picture, point] = 1.0
    shared = (seen @ seen.T).astype(np.float64)
    np.fill_diagonal(shared, 0.0)
    root = np.sqrt(np.maximum(shared.sum(axis=1), 1e-12))
    _, vectors = np.linalg.eigh(np.eye(count) - shared / root[:, None] / root[None, :])
    orders = [np.arange(count), np.argsort(vectors[:, 1] / root, kind="stable")]
    cuts = [cut for order in orders if (cut := _thinnest_along(order, seen > 0.0)) is not None]
    return min(cuts, key=lambda cut: cut.shared / cut.fewest, default=None)


def _thinnest_along(order: ArrayInt, seen: ArrayBool) -> ThinCut | None:
    """Return the thinnest cut into the first pictures of an order and the rest."""
    count = len(order)
    least = _part(count)
    before = seen[order].astype(np.int32).cumsum(axis=0)
    after = before[-1] - before
    shared = ((before > 0) & (after > 0)).sum(axis=1)
    fewest = np.minimum((before > 1).sum(axis=1), (after > 1).sum(axis=1))
    fair = fewest >= _PART_POINTS
    fair[: least - 1], fair[count - least :] = False, False
    if not fair.any():
        return None
    k = int(np.argmin(np.where(fair, shared / np.maximum(fewest, 1), np.inf)))
    first = np.zeros(count, bool)
    first[order[: k + 1]] = True
    return ThinCut(first if first[0] else ~first, int(shared[k]), int(fewest[k]))


def consistency_record(
    names: Sequence[str], split: SplitByContradictions | None, cut: ThinCut | None
) -> dict[str, dict[str, Any] | None]:
    """Return what reconstruction.json keeps: pictures of the first part by name, and figures.

    Args:
        names: Of the pictures with a pose, in their order.
        split: Between contradictory parts.
        cut: The thinnest.
    """

    def first(side: ArrayAny) -> list[str]:
        return [name for name, one in zip(names, side, strict=True) if one]

    return {
        "split": None
        if split is None
        else {
            "first": first(split.first), "points": split.points, "across": split.across, "within": split.within,
            "contradictory": split.contradictory,
        },
        "cut": None
        if cut is None
        else {"first": first(cut.first), "shared": cut.shared, "fewest": cut.fewest, "thin": cut.thin},
    }  # fmt: skip
