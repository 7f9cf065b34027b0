"""Watch a vehicle over its logs: which value has drifted, by how much, since when. Pure: nothing is read, written or drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.logs import Log
from airworthy.vehicles.identification.agreement import refuse_repeated
from airworthy.vehicles.identification.known import NO_LOG
from airworthy.vehicles.identification.prediction.plant import plant_of
from airworthy.vehicles.record import Vehicle
from airworthy.vehicles.watching.changes import (
    Cause,
    ChangeEvidence,
    ChangeTests,
    Hypothesis,
    Stacked,
    causes,
    directions,
    follow,
    scores,
    stacked_logs,
    unlikely,
)
from airworthy.vehicles.watching.epochs import EPOCH, epochs_of
from airworthy.vehicles.watching.prepare import SAG, Prepared, prepared
from airworthy.vehicles.watching.result import Drift, DriftSize, TrackRow, WatchableCause, WatchedVehicle, plain, unit_of
from airworthy.vehicles.watching.values import Watched

__all__ = ["ALARM", "watch"]

ALARM = 10.0
"""Score from which on a change is told: -log10 of its chance by the filter's own noise. How often that is false is measured
(docs/howto/watch.md): gusts last, so that it is more often than once in 10^10."""
SETTLE = 10.0
"""After an alarm, so much more of the logs is looked at before its cause is chosen [s]."""
AROUND = 10.0
"""Begins that are compared in the end lie so near the one of the alarm [s]."""
AFTER = 60.0
"""Sizes are told by so much of the logs from the begin on [s]: later ones have wandered."""
NEAR, NEAR_SHARE = 9.2, 0.07
"""Causes are told apart where one explains better than another by this (twice the log of 100), and by this share of all. Of
18 real flights with weaker or stronger rotors, 3 % tell a wrong cause in 2 and the right one alone in 11, 7 % in none and in
11, 10 % in none and in 5; 160 simulated flights are the same by all of them."""
DIMENSION = 4.0
"""So much better a cause must explain for each value more that it moves."""
DRIFTS_MAX = 6
"""More are not looked for: a vehicle with so many is another one."""
SHOWN = 10.0
"""Time in which the smallest change that is told as watchable would show [s]."""
BEYOND = {"command_delay": 0.02, "center": 0.3}
"""Changes that would have to be larger than that (lengths over the arm) count as not watched; of logarithms 0.5."""
NINETY = 1.645
"""Deviations of a 90 % interval."""
TIME_FALL = 2.706
"""What a begin may explain less than the best one, within its 90 % interval."""

Part = tuple[float, float]


def watch(
    logs: Sequence[Log],
    vehicle: Vehicle,
    *,
    use: Sequence[Part] = (),
    skip: Sequence[Part] = (),
    threshold: float = ALARM,
    say: Callable[[str], None] = lambda _: None,
) -> WatchedVehicle:
    """Tell which value of a vehicle has drifted.

    Args:
        logs: Of its flights, in order of time, with motor commands, gyro and accelerometer.
        vehicle: As it was identified; what its `[uncertainty]` leaves open is no drift.
        use: Only these parts of each log [s]; empty: all.
        skip: Not these parts [s].
        threshold: Score of an alarm.
        say: ChangeEvidence each stage.

    Raises:
        AirworthyError: A log cannot be watched, or the vehicle is none that is predicted; one sentence.
    """
    if not logs:
        raise AirworthyError(NO_LOG)
    if not 2.0 <= threshold <= 1000.0:
        raise AirworthyError(f"threshold is {threshold:g}; expected 2 to 1,000, as {ALARM:g}.")
    _refuse_disorder(logs)
    refuse_repeated(logs)
    plant_of(vehicle)  # what cannot be predicted is told before any log is looked at
    watched = Watched(vehicle)
    ready = [prepared(log, vehicle, use, skip) for log in logs]
    stacked = stacked_logs(watched, [epochs_of(watched, p.signals, p.took_off) for p in ready])
    say(f"{len(stacked) * EPOCH:.1f} s are watched, {stacked.noise:.2f} times the sensors' noise from second to second")
    search = _Search(stacked, threshold)
    found = search.all()
    if found:
        # Far from the record slopes are others: predictions are made anew about what was found.
        points = _points(stacked, [search.judged(found, k) for k in range(len(found))])
        parts = [points[stacked.log == k] for k in range(len(logs))]
        stacked = stacked_logs(
            watched, [epochs_of(watched, p.signals, p.took_off, rows) for p, rows in zip(ready, parts, strict=True)]
        )
        search = _Search(stacked, threshold)
    judged = search.kept(found)
    drifts = sorted((_drift(stacked, j, ready) for j in judged), key=lambda d: (d.alarm_log, d.began))
    notes = [note for p in ready for note in p.notes]
    if watched.base.uncertainty is None:
        notes.append(f"{vehicle.name} tells no uncertainty: what was so from the start is judged by declared deviations.")
    track = _track(stacked, [j.hypothesis for j in judged])
    return WatchedVehicle(
        vehicle=vehicle.name,
        logs=tuple(log.name for log in logs),
        seconds=len(stacked) * EPOCH,
        threshold=threshold,
        drifts=tuple(drifts),
        watchable=_watchable(stacked, threshold),
        track=track,
        noise=stacked.noise,
        notes=(*notes, *_battery_notes(watched, track)),
    )


def _refuse_disorder(logs: Sequence[Log]) -> None:
    known = [(log.name, log.source.start_ns) for log in logs if log.source.start_ns]
    for (before, earlier), (name, later) in pairwise(known):
        if later < earlier:
            raise AirworthyError(f"Log {name!r} was begun before {before!r}; give logs in order of time.")


# ---- Found -------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Alarm:
    hypothesis: Hypothesis
    alarmed: int


@dataclass(frozen=True, eq=False)
class _Judged:
    """A change with all that came after it."""

    hypothesis: Hypothesis
    alarmed: int
    sizes: Array
    covariance: Array
    low: int
    high: int
    score: float
    others: tuple[Cause, ...]


class _Search:
    """Changes, one after another, each looked for with those before it taken as found."""

    def __init__(self, stacked: Stacked, threshold: float) -> None:
        self.stacked, self.threshold = stacked, threshold
        self.every = causes(stacked.watched.base.rotor_count)

    def all(self) -> list[_Alarm]:
        found: list[_Alarm] = []
        while len(found) < DRIFTS_MAX:
            following = self._next(found)
            if following is None:
                break
            found.append(following)
        return found

    def _next(self, found: Sequence[_Alarm]) -> _Alarm | None:
        stacked = self.stacked
        tests = ChangeTests(stacked, follow(stacked, [a.hypothesis for a in found]))
        alarmed = -1
        for k in range(len(stacked)):
            told = tests.onward(k)
            if alarmed < 0 and scores(stacked.watched, told, self.every, k)[0].max() >= self.threshold:
                alarmed = k
            if alarmed >= 0 and (k - alarmed >= SETTLE / EPOCH or k == len(stacked) - 1):
                best = max(self.every, key=lambda cause: self._worth(told, cause).max())
                begin = int(told.begin[int(np.argmax(self._worth(told, best)))])
                if any(a.hypothesis == Hypothesis(best, begin) for a in found):
                    return None
                return _Alarm(Hypothesis(best, begin), alarmed)
        return None

    def _worth(self, told: ChangeEvidence, cause: Cause) -> Array:
        """By how much a cause explains better, less what its number of values is worth, for each begin."""
        return told.size(self.stacked.watched, cause)[2] - DIMENSION * (len(cause.values) - 1)

    def kept(self, found: Sequence[_Alarm]) -> list[_Judged]:
        """Judge all changes, and again without the weakest that is no alarm any more: another one's slopes had made it."""
        left = list(found)
        while True:
            judged = [self.judged(left, k) for k in range(len(left))]
            weak = min(range(len(left)), key=lambda k: judged[k].score, default=-1)
            if weak < 0 or judged[weak].score >= self.threshold:
                return judged
            del left[weak]

    def judged(self, found: Sequence[_Alarm], number: int) -> _Judged:
        """Look at one change again, with all others taken as found, and all that came after it."""
        stacked, alarm = self.stacked, found[number]
        others = [a.hypothesis for k, a in enumerate(found) if k != number]
        run = follow(stacked, others)
        reach, at = round(AROUND / EPOCH), alarm.hypothesis.begin
        tests = ChangeTests(stacked, run, range(max(at - reach, 0), min(at + reach, len(stacked) - 3)))
        last = min(max(at + round(AFTER / EPOCH), alarm.alarmed + round(SETTLE / EPOCH)), len(stacked) - 1)
        told = tests.onward(0)
        for k in range(1, last + 1):
            told = tests.onward(k)
        worth = {cause: self._worth(told, cause) for cause in self.every}
        best = max(worth, key=lambda cause: worth[cause].max())
        gained = told.size(stacked.watched, best)[2]
        place = int(np.argmax(gained))
        change = Hypothesis(best, int(told.begin[place]))
        inside = told.begin[gained >= gained[place] - TIME_FALL]
        near = worth[best].max() - max(NEAR, NEAR_SHARE * gained[place])
        alike = tuple(c for c, w in worth.items() if w.max() >= near and not _nested(c, best))
        sizes, covariance = self._steady(others, change, last) if best.ramp else self._jumped(others, change, last)
        score = unlikely(float(gained[place]), len(best.values))
        return _Judged(change, alarm.alarmed, sizes, covariance, int(inside.min()), int(inside.max()), score, alike)

    def _jumped(self, others: Sequence[Hypothesis], change: Hypothesis, last: int) -> tuple[Array, Array]:
        """Sizes of a jump and their covariance; the second about it, of which it is not sure what came before, is left out."""
        at = change.begin
        stacked = self.stacked.without(slice(max(at - 1, 0), at + 2)) if at else self.stacked
        tests = ChangeTests(stacked, follow(stacked, others), [at])
        told = tests.onward(0)
        for k in range(1, last + 1):
            told = tests.onward(k)
        sizes, covariance, _ = told.size(stacked.watched, change.cause)
        return sizes[0], covariance[0]

    def _steady(self, others: Sequence[Hypothesis], change: Hypothesis, last: int) -> tuple[Array, Array]:
        """Return what came of a steady change until the end of what is looked at: it need not have gone on as it began."""
        w, at = self.stacked.watched, change.begin
        run = follow(self.stacked, [*others, change])
        d = directions(w, change.cause)
        d = d / (d**2).sum(axis=0)
        before = (run.mean[at - 1], run.covariance[at - 1]) if at else (np.zeros(len(w.names)), w.prior)
        return (run.mean[last] - before[0]) @ d, d.T @ (run.covariance[last] + before[1]) @ d


def _nested(one: Cause, other: Cause) -> bool:
    """Whether a cause is another one with more or fewer of its values, or goes on where that jumps: no other cause."""
    return set(one.values) <= set(other.values) or set(other.values) <= set(one.values)


def _points(stacked: Stacked, judged: Sequence[_Judged]) -> Array:
    """Deviations that were found, of each epoch, (n, values)."""
    points = np.zeros_like(stacked.values)
    for j in judged:
        move = directions(stacked.watched, j.hypothesis.cause) @ j.sizes
        at = j.hypothesis.begin
        share = np.ones(len(points) - at)
        if j.hypothesis.cause.ramp:
            # In steps of a few seconds, so that predictions stay in batches.
            gone = np.cumsum(stacked.elapsed[at:])
            share = np.minimum(gone // 4.0 * 4.0 / min(float(gone[-1]), AFTER), 1.0)
        points[at:] += share[:, None] * move
    return points


# ---- In words ----


def _drift(stacked: Stacked, judged: _Judged, ready: Sequence[Prepared]) -> Drift:
    cause, begin = judged.hypothesis.cause, judged.hypothesis.begin
    names = {c.name for c in judged.others} | {cause.name}
    ratio = {"mass", "thrust"} <= names and cause.name in ("mass", "thrust")
    name = "thrust_over_mass" if ratio else cause.name
    hidden = {"mass", "thrust", "payload"} if ratio else {cause.name}
    # Of a payload the mass alone, and of its parts the whole, are no other causes.
    alternatives = tuple(dict.fromkeys(c.name for c in judged.others if c.name not in hidden))
    number = int(stacked.log[begin])
    before = begin == 0 or stacked.log[begin - 1] != stacked.log[begin]
    low, high = (stacked.time[k] if stacked.log[k] == number else stacked.time[begin] for k in (judged.low, judged.high))
    # A change within an epoch shows in it or in the next.
    low, high = (float(low), float(high)) if before else (float(low) - 0.5 * EPOCH, float(high) + EPOCH)
    fall = ready[number].voltage_fall(float(stacked.time[begin])) if name in ("thrust", "thrust_over_mass") else None
    return Drift(
        cause=name,
        told=not alternatives and not ratio,
        alternatives=alternatives,
        steadily=cause.ramp,
        log=ready[number].log.name,
        began=float(stacked.time[begin]),
        began_low=low,
        began_high=high,
        before=bool(before),
        alarm_log=ready[int(stacked.log[judged.alarmed])].log.name,
        alarmed=float(stacked.time[judged.alarmed]) + EPOCH,
        sizes=_sizes(judged, ratio),
        score=judged.score,
        voltage_fall=fall if fall is not None and fall >= SAG else None,
    )


def _sizes(judged: _Judged, ratio: bool) -> tuple[DriftSize, ...]:
    cause = judged.hypothesis.cause
    found = []
    for k, name in enumerate(cause.values):
        value, sd = float(judged.sizes[k]), float(np.sqrt(judged.covariance[k, k]))
        # More mass is less thrust over mass.
        sign, shown = (-1.0 if name == "mass" else 1.0, "thrust_over_mass") if ratio else (1.0, name)
        ends = sorted(plain(shown, sign * value + d * NINETY * sd) for d in (-1.0, 1.0))
        found.append(DriftSize(shown, plain(shown, sign * value), ends[0], ends[1], unit_of(shown)))
    return tuple(found)


def _watchable(stacked: Stacked, threshold: float) -> tuple[WatchableCause, ...]:
    """Smallest changes that would show within `SHOWN` seconds, the median over begins."""
    from scipy.stats import chi2

    watched, length = stacked.watched, round(SHOWN / EPOCH)
    every = [c for c in causes(watched.base.rotor_count) if not c.ramp and c.name != "payload"]
    begins = list(range(0, len(stacked) - length, max(len(stacked) // 40, 1))) or [0]
    run, needed = follow(stacked), {n: float(chi2.isf(10.0**-threshold, n)) for n in (1, 2)}
    least: dict[str, list[float]] = {c.name: [] for c in every}
    tests, waiting = ChangeTests(stacked, run, begins), 0
    for k in range(len(stacked)):
        told = tests.onward(k)
        while waiting < len(begins) and (k == begins[waiting] + length or k == len(stacked) - 1):
            for cause in every:
                covariance = told.size(watched, cause)[1][waiting]
                least[cause.name].append(float(np.sqrt(needed[len(cause.values)] * covariance.diagonal().max())))
            waiting += 1
    rows = []
    for cause in every:
        unit = unit_of(cause.values[0])
        limit = BEYOND.get(cause.name, 0.5) * (watched.arm if cause.name == "center" else 1.0)
        size = float(np.median(least[cause.name]))
        rows.append(WatchableCause(cause.name, plain(cause.values[0], size) if size < limit else None, unit))
    return tuple(rows)


def _track(stacked: Stacked, found: Sequence[Hypothesis]) -> tuple[TrackRow, ...]:
    watched = stacked.watched
    run = follow(stacked, found)
    mean = watched.common / watched.base.rotor_count
    single = np.eye(len(watched.names))
    shown = {"thrust_over_mass": mean - single[watched.place("mass")], "mass": single[watched.place("mass")], "thrust": mean}
    for k, name in enumerate(watched.names):
        if name.startswith("rotor"):
            # Beside the mean of all.
            shown[name] = single[k] - mean
        elif name in ("lag", "command_delay", "center_x", "center_y") or (name == "thrust_drift" and watched.battery.sd):
            shown[name] = single[k]
    matrix = np.stack(list(shown.values()))
    values = run.mean @ matrix.T
    sds = np.sqrt(np.einsum("vi,nij,vj->nv", matrix, run.covariance, matrix, optimize=True))
    return tuple(
        TrackRow(str(stacked.names[stacked.log[k]]), float(stacked.time[k]) + EPOCH, name, float(values[k, v]),
                 float(sds[k, v]), unit_of(name))
        for k in range(len(stacked))
        for v, name in enumerate(shown)
    )  # fmt: skip


def _battery_notes(watched: Watched, track: Sequence[TrackRow]) -> list[str]:
    """Say of each log how thrust went in it, beside what the record expects of its battery."""
    last = {row.log: row for row in track if row.name == "thrust_drift"}
    rate, sd = 100.0 * watched.battery.rate, 100.0 * watched.battery.sd
    notes = []
    for log, row in last.items():
        value, reach = 100.0 * row.value, 100.0 * NINETY * row.sd
        notes.append(
            f"{log}: thrust of all rotors goes by {value:+.2f} % per second ({value - reach:+.2f} to {value + reach:+.2f}), by"
            f" the record {rate:+.2f} +-{sd:.2f}: its battery, and no drift."
        )
    return notes
