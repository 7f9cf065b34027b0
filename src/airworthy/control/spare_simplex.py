"""Steps of the simplex method by which rotors to spare serve attitude, force and yaw in turn; equations of one airframe.

The thrusts x of a wrench are those with V^T x = c, V an orthonormal basis of what the pseudo-inverse gives. A stage asks for
the largest share t in V^T x = c + t d with every x within its limits: a linear program in few rows, solved by the primal method
for variables between bounds (Dantzig, Linear Programming and Extensions, 1963; ties of the ratio test as Harris, Pivot
selection methods of the Devex LP code, 1973). As many rotors as rows are *basic*, and follow whatever else moves; each step
moves one other rotor until it or a basic one meets a limit.

Stages: the whole wrench, from the clipped pseudo-inverse; if that is not to be had, its groups in their order, from the
collective alone; at last, the wrench being settled, the thrusts nearest to the clipped pseudo-inverse, where distances of
rotors are weighted and summed. The weights differ, so that the nearest is one alone, and moves on steadily with what is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from airworthy.core.arrays import Scalar, Vector
from airworthy.core.ops import absolute, clip, maximum, minimum, repeat, where

ROWS = 6
"""Dimensions of wrenches."""
STEPS = 128
"""Steps at most. Of 156,000 saturated wrenches of thirteen airframes with 7 to 16 rotors none took more than 59."""

# Ours, in shares of the strongest rotor's thrust, of which float32 rounds by 1e-7.
_ROOM = 1e-6
"""Less room than this is none."""
_GAIN = 1e-5
"""What gains less per share moved gains nothing: prices are sums of a few products, so their rounding is some 1e-6."""
_PIVOT = 1e-4
"""Rows that follow by less per share moved do not bound it; a division by them would be one by rounding."""
_SLACK = 1e-7
"""By how much a step may pass the first limit, for the sake of a better pivot. Far more would show in the shares (1e-5)."""
_FAR = 1e9
"""Stands for no limit; finite in float32."""
_FIRST, _NEAREST, _DONE = 1.0, 5.0, 6.0
"""Stages: of the first group, of the nearest thrusts, and none."""


class Problem(NamedTuple):
    """What stays the same over all steps, thrusts in shares of the strongest rotor's."""

    span: tuple[Vector, ...]
    """V, a row per rotor."""
    lower: Vector
    upper: Vector
    wanted: Vector
    """The pseudo-inverse's, clipped."""
    weight: Vector
    """Of each rotor's distance to what is wanted."""
    start: Vector
    """Of the groups' first stage."""
    basis: Vector
    """The rotors that are basic first; -1 for rows without any."""
    inverse: tuple[Vector, ...]
    """Of their rows of V, transposed."""
    directions: tuple[Vector, ...]
    """Of stages 0 to 4, of length 1; the force's is that of its shift."""
    goals: Vector
    """How far to go along each."""
    shift: Scalar
    """Where the shift of force starts,"""
    shift_least: Scalar
    shift_most: Scalar
    turn: Scalar
    """and the number of the stage in which force has its turn."""


class Point(NamedTuple):
    """Where the method stands."""

    stage: Scalar
    share: Scalar
    """Along the stage's direction."""
    shift: Scalar
    """Of the force; stale while it is basic."""
    x: Vector
    """Thrusts; stale of basic rotors."""
    basic: Vector
    """Number of what is basic, per row: a rotor, then the share, then the shift."""
    value: Vector
    least: Vector
    most: Vector
    wanted: Vector
    weight: Vector
    slope: Vector
    """Cost per unit in the last stage."""
    outside: Vector
    """1 of rotors that are not basic."""
    inverse: tuple[Vector, ...]


def _sum(values: Sequence[Scalar]) -> Scalar:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def _dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    return _sum([x * y for x, y in zip(a, b, strict=True)])


def _at(index: Scalar, values: Sequence[Scalar], default: Scalar = 0.0) -> Scalar:
    """Return the value of a number that is known only when it runs."""
    found = default
    for k, value in enumerate(values):
        found = where(index == float(k), value, found)
    return found


def _each(masks: Sequence[Any], new: Any, old: Sequence[Scalar]) -> Vector:
    return tuple(where(m, new, o) for m, o in zip(masks, old, strict=True))


def _choose(mask: Any, a: Any, b: Any) -> Any:
    """Select between two points, or any tuples of one shape."""
    if isinstance(a, tuple):
        parts = [_choose(mask, x, y) for x, y in zip(a, b, strict=True)]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    return where(mask, a, b)


def _begin(p: Problem, stage: Scalar, x: Vector) -> Point:
    def of(values: Vector) -> Vector:
        return tuple(_at(b, values) for b in p.basis)

    outside = tuple(_outside(p.basis, k) for k in range(len(x)))
    none = tuple(0.0 * b for b in p.basis)
    return Point(
        stage,
        0.0 * stage,
        p.shift,
        x,
        p.basis,
        of(x),
        of(p.lower),
        of(p.upper),
        of(p.wanted),
        of(p.weight),
        none,
        outside,
        p.inverse,
    )


def _outside(basis: Vector, k: int) -> Scalar:
    outside = 1.0 + 0.0 * basis[0]
    for b in basis:
        outside = where(b == float(k), 0.0, outside)
    return outside


def nearest_thrusts(p: Problem, needed: Any) -> Vector:
    """Return thrusts that serve the stages of a problem in turn, within limits; where they are not needed, any."""
    stage = where(needed, 0.0, _DONE)
    groups = _begin(p, 0.0 * stage + _FIRST, p.start)
    end = repeat(STEPS, _step, _begin(p, stage, p.wanted), (p, groups), lambda point: point.stage < _DONE)
    x = list(end.x)
    for k in range(len(x)):
        for b, value in zip(end.basic, end.value, strict=True):
            x[k] = where(b == float(k), value, x[k])
    return tuple(x)


class _Entering(NamedTuple):
    """What is to move."""

    score: Scalar
    """Of what improves: far more than that of anything else."""
    number: Scalar
    sign: Scalar
    column: Vector
    value: Scalar
    least: Scalar
    most: Scalar
    wanted: Scalar
    weight: Scalar
    slope: Scalar
    """Of the cost, per unit upwards."""


def _step(s: Point, fixed: tuple[Problem, Point]) -> Point:
    """Move one rotor, the share or the shift as far as limits allow, and go to the next stage where nothing gains any more.

    Args:
        s: Where the method stands.
        fixed: The problem, and where its groups start.
    """
    p, groups = fixed
    n = len(p.lower)
    nearest, force = s.stage == _NEAREST, s.stage == p.turn
    direction = tuple(_at(s.stage, [d[k] for d in p.directions]) for k in range(ROWS))
    goal = _at(s.stage, p.goals)
    target = where(force, n + 1.0, float(n))
    is_target = tuple((b == target) & ~nearest for b in s.basic)
    up = where(force & (goal < _at_target(s, force)), -1.0, 1.0)
    # What each row's growth gains, and so what the growth of anything else gains.
    weights = tuple(where(m, -up, where(nearest, c, 0.0)) for m, c in zip(is_target, s.slope, strict=True))
    price = tuple(_dot(weights, [row[k] for row in s.inverse]) for k in range(ROWS))
    found = _most_gaining(s, p, price, nearest)
    # The shift, while it waits for its turn, and the stage's own share or shift come before rotors.
    column = tuple(-d for d in _shift_direction(p))
    rate = _dot(price, column)
    waits = (s.stage > 0.5) & (s.stage < p.turn) & _not(_any([b == n + 1.0 for b in s.basic]))
    room = where(rate > 0.0, p.shift_most - s.shift, s.shift - p.shift_least)
    gains = waits & (absolute(rate) > _GAIN) & (room > _ROOM)
    shift = _Entering(
        2.0 * _FAR + 0.0 * rate,
        n + 1.0 + 0.0 * rate,
        where(rate > 0.0, 1.0, -1.0),
        column,
        s.shift,
        p.shift_least,
        p.shift_most,
        *(0.0 * rate,) * 3,
    )
    found = _choose(gains, shift, found)
    begins = ~nearest & ~_any(is_target)
    value = _at_target(s, force)
    own = _Entering(
        2.0 * _FAR + 0.0 * rate,
        target,
        up,
        tuple(where(force, c, -d) for c, d in zip(column, direction, strict=True)),
        value,
        where(up > 0.0, value, goal),
        where(up > 0.0, goal, value),
        *(0.0 * rate,) * 3,
    )
    found = _choose(begins, own, found)
    better = found.score > 0.5 * _FAR
    return _moved(s, p, groups, found, better, is_target, nearest)


def _shift_direction(p: Problem) -> Vector:
    return tuple(_at(p.turn, [d[k] for d in p.directions]) for k in range(ROWS))


def _any(masks: Sequence[Any]) -> Any:
    found = masks[0]
    for m in masks[1:]:
        found = found | m
    return found


def _not(mask: Any) -> Any:
    # Of one flight in plain Python: `~` of its bool is a number, and warned of from Python 3.12 on.
    return not mask if isinstance(mask, bool) else ~mask


def _at_target(s: Point, force: Any) -> Scalar:
    """Value of what a stage wants to grow, basic or not."""
    n = len(s.x)
    value = where(force, s.shift, s.share)
    for b, v in zip(s.basic, s.value, strict=True):
        value = where(b == where(force, n + 1.0, float(n)), v, value)
    return value


def _most_gaining(s: Point, p: Problem, price: Vector, nearest: Any) -> _Entering:
    """Return the rotor that gains most over all its room; where none does, the one that the stage's share depends on most."""
    zero = 0.0 * price[0]
    best = _Entering(zero - 1.0, zero - 1.0, zero, (zero,) * ROWS, *(zero,) * 6)
    for j, (v, low, high, w, c) in enumerate(zip(p.span, p.lower, p.upper, p.wanted, p.weight, strict=True)):
        x = s.x[j]
        rate = _dot(price, v)
        below, above = nearest & (x < w - _ROOM), nearest & (x > w + _ROOM)
        cost = where(nearest, c, 0.0)
        top, bottom = where(below, w, high), where(above, w, low)
        gain_up, gain_down = rate - where(below, -cost, cost), -rate - where(above, -cost, cost)
        rises, falls = top - x, x - bottom
        score_up = where((gain_up > _GAIN) & (rises > _ROOM), gain_up * rises + _FAR, absolute(rate))
        score_down = where((gain_down > _GAIN) & (falls > _ROOM), gain_down * falls + _FAR, absolute(rate))
        upward = score_up >= score_down
        score = where(upward, score_up, score_down)
        takes = (s.outside[j] > 0.5) & (score > best.score)
        sign = where(upward, 1.0, -1.0)
        # Between its limits and what is wanted the cost is straight, on either side of it.
        middle_up, middle_down = nearest & ~below & upward, nearest & ~above & ~upward
        least, most = where(middle_up, w, bottom), where(middle_down, w, top)
        slope = where(upward, where(below, -cost, cost), where(above, cost, -cost))
        best = _choose(takes, _Entering(score, float(j) + zero, sign, v, x, least, most, w, c, slope), best)
    return best


def _moved(s: Point, p: Problem, groups: Point, e: _Entering, better: Any, is_target: Sequence[Any], nearest: Any) -> Point:
    n = len(p.lower)
    alpha = tuple(_dot(row, e.column) for row in s.inverse)
    own = where(e.sign > 0.0, e.most - e.value, e.value - e.least)
    # As far as the first limit, by a slack; then of those that are met by then the one that turns best.
    steps, sizes = [], []
    reach = own
    for a, value, least, most in zip(alpha, s.value, s.least, s.most, strict=True):
        size = absolute(a)
        real = size > _PIVOT
        room = maximum(where(a * e.sign < 0.0, most - value, value - least), 0.0)
        inverse = 1.0 / where(real, size, 1.0)
        steps.append(where(real, room * inverse, _FAR))
        sizes.append(where(real, size, 0.0))
        reach = minimum(reach, where(real, (room + _SLACK) * inverse, _FAR))
    flips = (own <= reach) & better
    row: Scalar = -1.0 + 0.0 * own
    largest = 0.0 * own
    step = own
    for r, (d, size) in enumerate(zip(steps, sizes, strict=True)):
        takes = (d <= reach) & (size > largest) & better & ~flips
        row, largest, step = where(takes, float(r), row), where(takes, size, largest), where(takes, d, step)
    # Where nothing gains, what the stage was about leaves the basis for whatever it depends on, and nothing moves.
    kicked = ~better & _any(is_target)
    for r, m in enumerate(is_target):
        row = where(kicked & m, float(r), row)
    step = where(better, minimum(step, own), 0.0)
    rows = tuple(row == float(r) for r in range(ROWS))
    value = tuple(v - e.sign * step * a for v, a in zip(s.value, alpha, strict=True))
    value = tuple(clip(v, low, high) for v, low, high in zip(value, s.least, s.most, strict=True))
    entered = clip(e.value + e.sign * step, e.least, e.most)
    turned = row > -0.5
    # Out goes what stands in the row; a flip keeps the basis.
    leaves, left = -1.0 + 0.0 * row, 0.0 * row
    for m, b, v in zip(rows, s.basic, value, strict=True):
        leaves, left = where(m, b, leaves), where(m, v, left)
    # What a flip moves stays outside, as does what leaves.
    stays, rests = where(flips, e.number, leaves), where(flips, entered, left)
    comes = where(turned, e.number, -1.0)
    numbers = [stays == float(j) for j in range(n + 2)]
    x = tuple(where(m, rests, old) for m, old in zip(numbers[:n], s.x, strict=True))
    share, shift = where(numbers[n], rests, s.share), where(numbers[n + 1], rests, s.shift)
    outside = tuple(where(comes == float(j), 0.0, where(numbers[j], 1.0, old)) for j, old in enumerate(s.outside))
    pivot = 0.0 * row
    for m, a in zip(rows, alpha, strict=True):
        pivot = where(m, a, pivot)
    usable = absolute(pivot) > 0.0
    scale = where(usable, 1.0 / where(usable, pivot, 1.0), 0.0)
    head = []
    for k in range(ROWS):
        h = 0.0 * row
        for m, line in zip(rows, s.inverse, strict=True):
            h = where(m, line[k], h)
        head.append(h * scale)
    inverse = tuple(
        tuple(where(m, h, where(turned, old - a * h, old)) for old, h in zip(line, head, strict=True))
        for m, a, line in zip(rows, alpha, s.inverse, strict=True)
    )
    moved = Point(
        s.stage,
        share,
        shift,
        x,
        _each(rows, e.number, s.basic),
        _each(rows, entered, value),
        _each(rows, e.least, s.least),
        _each(rows, e.most, s.most),
        _each(rows, e.wanted, s.wanted),
        _each(rows, e.weight, s.weight),
        _each(rows, e.slope, s.slope),
        outside,
        inverse,
    )
    target = where(s.stage == p.turn, n + 1.0, float(n))
    through = kicked | (stays == target) & ~nearest
    stuck = ~better & ~_any(is_target)
    return _advanced(moved, p, groups, through, stuck)


def _advanced(s: Point, p: Problem, groups: Point, through: Any, stuck: Any) -> Point:
    """Return the point at the start of the next stage, where this one is through."""
    n = len(p.lower)
    whole = s.stage < 0.5
    got = whole & (s.share >= p.goals[0] - _ROOM)
    after = where(whole, where(got, _NEAREST, _FIRST), s.stage + 1.0)
    stage = where(through, after, where(stuck, _DONE, s.stage))
    again = through & whole & ~got
    s = s._replace(stage=stage, share=where(through, 0.0, s.share))
    s = _choose(again, groups, s)
    # The shift that has its turn goes towards its goal and no further.
    turns = through & (s.stage == p.turn)
    goal = _at(p.turn, p.goals)
    last = through & (s.stage == _NEAREST)
    least, most, slope = [], [], []
    rows = zip(s.basic, s.value, s.least, s.most, s.wanted, s.weight, s.slope, strict=True)
    for b, v, low, high, wanted, weight, old in rows:
        is_shift = turns & (b == n + 1.0)
        low, high = where(is_shift, minimum(v, goal), low), where(is_shift, maximum(v, goal), high)
        above = v >= wanted
        real = last & (b < n - 0.5) & (b > -0.5)
        least.append(where(real & above, wanted, low))
        most.append(where(real & ~above, wanted, high))
        slope.append(where(real, where(above, weight, -weight), where(last, 0.0, old)))
    return s._replace(least=tuple(least), most=tuple(most), slope=tuple(slope))
