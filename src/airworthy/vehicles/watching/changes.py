"""A filter that follows deviations, and tests of whether one of them has changed (generalised likelihood ratio).

The filter believes that deviations wander slowly. A value that jumps, or begins to go steadily, leaves a signature in the
filter's innovations that is known for each time at which it may have begun; how much better innovations are explained by it,
and by which size, follows in closed form (Willsky and Jones, A generalized likelihood ratio approach to the detection and
estimation of jumps in linear systems, 1976).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from airworthy.core.arrays import Array, ArrayIndex
from airworthy.vehicles.watching.epochs import EPOCH, Epochs
from airworthy.vehicles.watching.values import Watched

__all__ = [
    "Cause",
    "ChangeEvidence",
    "ChangeTests",
    "Followed",
    "Hypothesis",
    "Stacked",
    "causes",
    "directions",
    "follow",
    "scores",
    "stacked_logs",
    "unlikely",
]

BACK = 60.0
"""So far back a change may have begun that is looked for [s]; the log's start is always looked at."""
LENGTHS, SHARE = (1, 4), 0.95
"""Epochs over whose means noise is taken, since gusts may last longer than one; and the quantile over an innovation's
numbers."""
LEAST = 1.5
"""A change counts from so long on [s]: shorter ones are gusts."""


@dataclass(frozen=True)
class Cause:
    """What may have changed."""

    name: str
    values: tuple[str, ...]
    """Of the deviations that it moves; "thrust" stands for all rotors."""
    ramp: bool = False
    """It begins and goes on steadily."""


def causes(rotors: int) -> tuple[Cause, ...]:
    """Return what is looked for on a vehicle of so many rotors."""
    return (
        Cause("mass", ("mass",)),
        Cause("thrust", ("thrust",)),
        *(Cause(f"rotor_{k + 1}", (f"rotor_{k + 1}",)) for k in range(rotors)),
        Cause("center", ("center_x", "center_y")),
        Cause("payload", ("mass", "center_x", "center_y")),
        Cause("lag", ("lag",)),
        Cause("command_delay", ("command_delay",)),
        Cause("mass", ("mass",), ramp=True),
        Cause("thrust", ("thrust",), ramp=True),
    )


@dataclass(frozen=True, eq=False)
class Stacked:
    """Epochs of one or several logs in order of time."""

    watched: Watched
    values: Array
    """(n, values)."""
    slopes: Array
    """(n, values, values)."""
    elapsed: Array
    """Seconds since the epoch before it, (n,)."""
    log: Array
    """Number of the log, (n,)."""
    time: Array
    """Of the log's clock [s], (n,)."""
    names: tuple[str, ...]
    """Of the logs."""
    noise: float = 1.0
    """Deviation of values; above 1 where neighbouring epochs differ by more than their windows say."""

    def __len__(self) -> int:
        return len(self.values)

    def without(self, epochs: slice) -> Stacked:
        """Return the same with epochs that tell nothing."""
        values, slopes = self.values.copy(), self.slopes.copy()
        values[epochs], slopes[epochs] = 0.0, 0.0
        return replace(self, values=values, slopes=slopes)


def stacked_logs(watched: Watched, logs: Sequence[Epochs]) -> Stacked:
    """Put logs behind one another."""
    elapsed, number = [], []
    for k, epochs in enumerate(logs):
        elapsed.append(np.diff(epochs.time, prepend=epochs.time[0] - EPOCH))
        number.append(np.full(len(epochs), k))
    found = Stacked(
        watched,
        np.concatenate([e.values for e in logs]),
        np.concatenate([e.slopes for e in logs]),
        np.concatenate(elapsed),
        np.concatenate(number),
        np.concatenate([e.time for e in logs]),
        tuple(e.name for e in logs),
    )
    return replace(found, noise=_noise(found))


@dataclass(frozen=True)
class Hypothesis:
    """A change that is taken as found: its filter knows that, and not how large it is."""

    cause: Cause
    begin: int
    """Epoch."""


@dataclass(frozen=True, eq=False)
class Followed:
    """The filter's run."""

    mean: Array
    """Deviations after each epoch, (n, values)."""
    covariance: Array
    """(n, values, values)."""
    innovation: Array
    """Of unit size, (n, values)."""
    gain: Array
    """What one leaves of an error of the prediction: I - K R, (n, values, values)."""
    root: Array
    """Slopes over the innovations' deviation, (n, values, values)."""


def follow(logs: Stacked, found: Sequence[Hypothesis] = ()) -> Followed:
    """Run the filter.

    Args:
        logs: Epochs.
        found: Changes that it is told of.
    """
    w, count = logs.watched, len(logs)
    size = len(w.names)
    mean, p = w.expected, w.prior + w.between + w.of_log
    means, covariances = np.empty((count, size)), np.empty((count, size, size))
    innovations, gains, roots = np.empty((count, size)), np.empty((count, size, size)), np.empty((count, size, size))
    noise, same = logs.noise**2 * np.eye(size), np.eye(size)
    own = np.diag(w.of_log) > 0.0
    for k in range(count):
        p = p + logs.elapsed[k] * w.wander
        if k and logs.log[k] != logs.log[k - 1]:
            # What a log has of its own is not that of the next.
            mean, p = np.where(own, w.expected, mean), np.where(own[:, None] | own[None, :], 0.0, p)
            p = p + w.of_log + w.between
        for change in found:
            if change.begin == k or (change.cause.ramp and change.begin < k):
                moved = directions(w, change.cause) * _wide(w, change.cause)
                share = 1.0 if change.begin == k else 0.02 * logs.elapsed[k]
                p = p + share**2 * moved @ moved.T
        r = logs.slopes[k]
        s = r @ p @ r.T + noise
        lower = np.linalg.cholesky(s)
        innovations[k] = np.linalg.solve(lower, logs.values[k] - r @ mean)
        roots[k] = np.linalg.solve(lower, r)
        part = p @ roots[k].T
        mean = mean + part @ innovations[k]
        gains[k] = same - part @ roots[k]
        p = gains[k] @ p
        p = 0.5 * (p + p.T)
        means[k], covariances[k] = mean, p
    return Followed(means, covariances, innovations, gains, roots)


def _noise(logs: Stacked) -> float:
    """Deviation of the values, by how neighbouring epochs differ: a change shows in one difference only."""
    if len(logs) < 8:
        return 1.0
    found = follow(logs).innovation
    sizes = [1.0]
    for length in LENGTHS:
        count = len(found) // length
        if count >= 8:
            means = found[: count * length].reshape(count, length, -1).mean(axis=1) * np.sqrt(length)
            # A change shows in one of the differences only, and medians leave it.
            steps = 1.4826 * np.median(np.abs(np.diff(means, axis=0)), axis=0) / np.sqrt(2.0)
            sizes.append(float(np.quantile(steps, SHARE)))
    return max(sizes)


def directions(watched: Watched, cause: Cause) -> Array:
    """Return the directions in which a cause moves the deviations, (values, dimensions)."""
    columns = [watched.common if n == "thrust" else np.eye(len(watched.names))[watched.place(n)] for n in cause.values]
    return np.stack(columns, axis=1)


def _wide(watched: Watched, cause: Cause) -> Array:
    """Sizes that a change may have along each of its directions."""
    sizes = {"command_delay": 0.01, "center_x": 0.2 * watched.arm, "center_y": 0.2 * watched.arm}
    return np.array([sizes.get(name, 0.3) for name in cause.values])


def unlikely(gained: float, dimensions: int) -> float:
    """Return -log10 of the chance that a chi-squared of so many dimensions is larger; finite however small that is."""
    from scipy.special import chdtrc

    chance = float(chdtrc(dimensions, gained))
    if chance > 1e-290:
        return -math.log10(chance)
    # The tail's leading term, for one to three dimensions within a hundredth.
    half = 0.5 * gained
    return (half - (0.5 * dimensions - 1.0) * math.log(half) + math.lgamma(0.5 * dimensions)) / math.log(10.0)


# ---- Tests ----


@dataclass(frozen=True, eq=False)
class ChangeEvidence:
    """What innovations until some epoch say of a change that began at each of several: information and its vector."""

    begin: ArrayIndex
    """Epochs, (m,)."""
    jump: tuple[Array, Array]
    """(m, values, values) and (m, values)."""
    ramp: tuple[Array, Array]
    """The same of what goes on, by second."""

    def size(self, watched: Watched, cause: Cause) -> tuple[Array, Array, Array]:
        """Return sizes (m, dimensions), their covariances, and by how much each explains better, twice the log (m,)."""
        matrix, vector = self.ramp if cause.ramp else self.jump
        d = directions(watched, cause)
        a = np.einsum("id,mij,je->mde", d, matrix, d, optimize=True)
        # Nothing changes beyond all measure: keeps what nothing is told of solvable.
        wide = _wide(watched, cause) * (0.05 if cause.ramp else 1.0)
        a = a + np.diag(1.0 / wide**2)
        b = vector @ d
        covariance = np.linalg.inv(a)
        sizes = np.einsum("mde,me->md", covariance, b)
        return sizes, covariance, np.einsum("md,md->m", sizes, b)


class ChangeTests:
    """Signatures of changes that began at each epoch of the last `BACK` seconds, carried along with the filter."""

    def __init__(self, logs: Stacked, run: Followed, only: Sequence[int] | None = None) -> None:
        self._logs, self._run = logs, run
        self._slots = round(BACK / EPOCH) + 1 if only is None else len(only)
        self._only = only
        size = logs.values.shape[1]
        self._begin = np.zeros(0, np.intp)
        self._response = np.zeros((2, 0, size, size))
        self._matrix, self._vector = np.zeros((2, 0, size, size)), np.zeros((2, 0, size))

    def onward(self, k: int) -> ChangeEvidence:
        """Take in an epoch; epochs come in order."""
        size, run = self._logs.values.shape[1], self._run
        # What goes on has gone on since the epoch before.
        self._response[1] += self._logs.elapsed[k] * np.eye(size) if self._response.shape[1] else 0.0
        if self._only is None or k in self._only:
            self._add(k, size)
        seen = np.matmul(run.root[k], self._response)
        self._matrix += np.matmul(np.swapaxes(seen, -1, -2), seen)
        self._vector += np.einsum("smij,i->smj", seen, run.innovation[k])
        self._response = np.matmul(run.gain[k], self._response)
        return ChangeEvidence(self._begin, (self._matrix[0], self._vector[0]), (self._matrix[1], self._vector[1]))

    def _add(self, k: int, size: int) -> None:
        if len(self._begin) >= self._slots and self._only is None:
            # The oldest but the log's start goes.
            keep = np.arange(len(self._begin)) != 1
            self._begin = self._begin[keep]
            self._response, self._matrix, self._vector = (a[:, keep] for a in (self._response, self._matrix, self._vector))
        first = np.stack([np.eye(size), 0.5 * self._logs.elapsed[k] * np.eye(size)])[:, None]
        self._begin = np.append(self._begin, k)
        self._response = np.concatenate([self._response, first], axis=1)
        self._matrix = np.concatenate([self._matrix, np.zeros((2, 1, size, size))], axis=1)
        self._vector = np.concatenate([self._vector, np.zeros((2, 1, size))], axis=1)


def scores(watched: Watched, told: ChangeEvidence, every: Sequence[Cause], now: int) -> tuple[Array, ArrayIndex]:
    """Return for each cause how unlikely its best change is by chance, as -log10 of it, and where it began, (causes,) each."""
    old = told.begin <= now - round(LEAST / EPOCH)
    best, begin = np.zeros(len(every)), np.zeros(len(every), np.intp)
    if not old.any():
        return best, begin
    for c, cause in enumerate(every):
        gained = np.where(old, told.size(watched, cause)[2], 0.0)
        at = int(np.argmax(gained))
        best[c] = unlikely(float(gained[at]), len(cause.values))
        begin[c] = told.begin[at]
    return best, begin
