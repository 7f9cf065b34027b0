"""What errors of open-loop predictions say: rows with intervals, mismatches in the vehicle's own terms, a verdict in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.benchmarks.validation.open_loop.prediction import CHANNELS, GRAVITY, TRIM, BatchWindows, OpenLoop
from airworthy.core.arrays import Array, ArrayBool, ArrayIndex
from airworthy.core.frames import conjugate, from_rotation_vector, multiply, rotate, to_rotation_vector
from airworthy.evaluation.blocks import block_rms, block_rms_ratio, block_slope
from airworthy.evaluation.statistics import Estimate
from airworthy.vehicles.identification.prediction.predict import STEP, WIDTH

__all__ = ["BASELINES", "MODELS", "ErrorRow", "Mismatch", "baselines", "error_rows", "errors_of", "mismatches", "verdict"]

BASELINES = ("hold", "constant acceleration")
"""What needs no vehicle: rate, specific force and velocity stay as they are; or they go on changing as in the moment before."""
MODELS = ("vehicle", "vehicle, trimmed")
"""The record; the record with the push that it missed in the tenth of a second before."""
SLOPE_TIME = 0.05
"""Moment before a window over which its angular acceleration is taken [s]."""
BLOCK = 1.0
"""Windows that begin within this share what disturbs them [s]."""
CONFIDENCE = 0.9
SKILL_MIN = 0.3
"""At `JUDGED` on windows with turns, above which a vehicle is called flyable (specification identify, 9)."""
JUDGED = 0.25
"""Horizon of the verdict [s]."""
SHORT = 0.1
"""Horizon at which responses are compared [s]."""
MATTERS = {"lift": 0.03, "turn": 0.2}
"""Ours: a share of the lift, and of the response of a rate, that is worth a sentence."""
LIFT_MAX = 0.1
"""Ours: a record whose lift is further off is not to be trusted, whatever its rates."""
TURN_MAX = 1.5
"""Ours: a record whose turns about x or y are off by more than this factor is not to be trusted either."""
HELD_WIDTH = 0.025
"""Over which the specific force that is held is averaged [s]: within it readings are vibration."""

Errors = dict[str, dict[str, Array]]


@dataclass(frozen=True)
class ErrorRow:
    """Errors of one channel at one horizon, over one set of windows."""

    channel: str
    """"rate" [rad/s], "force" (along z) [m/s^2], "attitude" [rad], "velocity" [m/s] or "position" [m]."""
    windows: str
    """"all" or "excited": those in which the vehicle turns more than in half of its flight's."""
    horizon: float
    """[s]"""
    count: int
    """Of windows."""
    rms: Mapping[str, Estimate]
    """Of lengths of errors, by model and baseline, with 90 % intervals over blocks of a second."""
    median: Mapping[str, float]
    """Of lengths of errors."""
    skill: Mapping[str, Estimate]
    """By model: 1 - its rms over that of the better baseline, with its interval."""
    best: str
    """The better baseline."""

    def says(self, model: str = "vehicle") -> str:
        """Return "better", "worse" or "not told apart" from the better baseline."""
        skill = self.skill[model]
        if skill.low > 0.0:
            return "better"
        return "worse" if skill.high < 0.0 else "not told apart"


@dataclass(frozen=True)
class Mismatch:
    """One thing that the vehicle does otherwise than the log."""

    quantity: str
    """"lift" or "turn x", "turn y", "turn z"."""
    ratio: Estimate
    """What the log shows over what the vehicle does: of lift the mean specific force, of turns the change of the rate."""
    sentence: str
    matters: bool
    """Whether it is told apart from 1, and by more than a little."""


def baselines(windows: BatchWindows) -> dict[str, dict[str, Array]]:
    """Return what each baseline predicts, by channel, at the start and each horizon, (w, 1 + horizons, k)."""
    time = np.array([0.0, *windows.horizons])
    rate = windows.measured["rate"][:, 0]
    before = np.concatenate(
        [
            flight.signals.gyro.mean(part.start - SLOPE_TIME, WIDTH) - flight.signals.gyro.mean(part.start, WIDTH)
            for flight, part in zip(windows.flights, windows.parts, strict=True)
        ]
    )
    turning = -before / SLOPE_TIME
    found: dict[str, dict[str, Array]] = {}
    for name, share in zip(BASELINES, (0.0, 1.0), strict=True):
        slope = share * turning
        made = {"rate": rate[:, None] + slope[:, None] * time[None, :, None]}
        if "force" in windows.measured and not share:
            made["force"] = np.repeat(_held_force(windows)[:, None], len(time), axis=1)
        if windows.posed:
            angle = rate[:, None] * time[None, :, None] + 0.5 * slope[:, None] * time[None, :, None] ** 2
            start = windows.measured["attitude"][:, :1]
            made["attitude"] = multiply(np.repeat(start, len(time), axis=1), from_rotation_vector(angle))
            velocity, position = windows.measured["velocity"][:, 0], windows.measured["position"][:, 0]
            pulled = share * (rotate(start[:, 0], windows.force[:, 0]) - np.array([0.0, 0.0, GRAVITY]))
            made["velocity"] = velocity[:, None] + pulled[:, None] * time[None, :, None]
            made["position"] = position[:, None] + velocity[:, None] * time[None, :, None]
            made["position"] += 0.5 * pulled[:, None] * time[None, :, None] ** 2
        found[name] = made
    return found


def _held_force(windows: BatchWindows) -> Array:
    """Mean specific force along z in the moment before each window, (w, 1)."""
    found = [
        flight.signals.force.mean(part.start - 0.5 * HELD_WIDTH, HELD_WIDTH)[:, 2:]
        for flight, part in zip(windows.flights, windows.parts, strict=True)
    ]
    return np.concatenate(found)


def errors_of(windows: BatchWindows, predictions: Mapping[str, OpenLoop]) -> Errors:
    """Return lengths of errors at each horizon, by channel and by model or baseline, (w, horizons); NaN where not known."""
    at = [0, *(round(h / STEP) for h in windows.horizons)]
    made: dict[str, dict[str, Array]] = {}
    for name, found in predictions.items():
        values = {c: getattr(found, c)[:, at] for c in windows.measured}
        if "force" in values:
            values["force"] = values["force"][..., 2:]
        made[name] = values
    made |= baselines(windows)
    out: Errors = {}
    for channel in CHANNELS:
        if channel not in windows.measured:
            continue
        truth = windows.measured[channel][:, 1:]
        lost = ~windows.valid if windows.posed else np.zeros(truth.shape[:2], bool)
        out[channel] = {
            name: np.where(lost, np.nan, _length(channel, values[channel][:, 1:], truth))
            for name, values in made.items()
            if channel in values
        }
    return out


def _length(channel: str, values: Array, truth: Array) -> Array:
    if channel == "attitude":
        return np.asarray(np.linalg.norm(to_rotation_vector(multiply(conjugate(truth), values)), axis=-1))
    return np.asarray(np.linalg.norm(values - truth, axis=-1))


def blocks_of(windows: BatchWindows) -> ArrayIndex:
    """Return which windows begin in the same stretch of the same flight, (w,)."""
    keys = np.stack([windows.flight, np.floor(windows.start / BLOCK)], axis=1)
    return np.asarray(np.unique(keys, axis=0, return_inverse=True)[1], np.intp).ravel()


def error_rows(windows: BatchWindows, errors: Errors) -> tuple[ErrorRow, ...]:
    """Return the table."""
    blocks = blocks_of(windows)
    rows = []
    for channel, by_name in errors.items():
        for label, which in (("all", np.ones(len(windows), bool)), ("excited", windows.excited)):
            for k, horizon in enumerate(windows.horizons):
                known = which & np.isfinite(by_name["hold"][:, k])
                if known.any():
                    rows.append(_row(channel, label, horizon, {n: v[known, k] for n, v in by_name.items()}, blocks[known]))
    return tuple(rows)


def _row(channel: str, label: str, horizon: float, errors: dict[str, Array], blocks: ArrayIndex) -> ErrorRow:
    rms = {name: block_rms(values, blocks, CONFIDENCE) for name, values in errors.items()}
    best = min((name for name in BASELINES if name in rms), key=lambda name: rms[name].value)
    skill = {}
    for name in MODELS:
        if name in errors:
            ratio = block_rms_ratio(errors[name], errors[best], blocks, CONFIDENCE)
            skill[name] = Estimate(1.0 - ratio.value, 1.0 - ratio.high, 1.0 - ratio.low)
    median = {name: float(np.median(values)) for name, values in errors.items()}
    return ErrorRow(channel, label, horizon, len(blocks), rms, median, skill, best)


# ---- Why ---------------------------------------------------------------------------------------------------------------------


def mismatches(windows: BatchWindows, predicted: OpenLoop, trimmed: OpenLoop) -> tuple[Mismatch, ...]:
    """Return how lift and turns of the log compare with the vehicle's, in its own terms.

    A pilot's commands go against a push, so that turns regressed on what the rotors do come out too small even of the true
    vehicle: what the push of the moment before explains is taken out of both first.

    Args:
        windows: That were predicted.
        predicted: By the vehicle.
        trimmed: By the vehicle with the push of the moment before.
    """
    blocks, step = blocks_of(windows), round(SHORT / STEP)
    good = ~predicted.diverged
    found = []
    if "force" in windows.measured:
        felt, made = windows.force[:, 1 : step + 1, 2].mean(axis=1), predicted.force[:, 1 : step + 1, 2].mean(axis=1)
        ratio = block_slope(made[good], felt[good], blocks[good], CONFIDENCE)
        found.append(Mismatch("lift", ratio, _lift_sentence(ratio), _apart(ratio, MATTERS["lift"])))
    for k, axis in enumerate("xyz"):
        turned, made = response_pairs(windows, predicted, trimmed, k)
        ratio = block_slope(made, turned, blocks[good], CONFIDENCE)
        found.append(Mismatch(f"turn {axis}", ratio, _turn_sentence(axis, ratio), _apart(ratio, MATTERS["turn"])))
    return tuple(found)


def response_pairs(windows: BatchWindows, predicted: OpenLoop, trimmed: OpenLoop, axis: int) -> tuple[Array, Array]:
    """Return changes of the rate in the first tenth of a second, of the log and of the vehicle, without what a push explains.

    Args:
        windows: That were predicted.
        predicted: By the vehicle; windows that diverged are left out.
        trimmed: By the vehicle with the push of the moment before.
        axis: 0 to 2.
    """
    step, good = round(SHORT / STEP), ~predicted.diverged
    turned, made = (rate[good, step, axis] - rate[good, 0, axis] for rate in (windows.rate, predicted.rate))
    push = trimmed.rate[good, step, axis] - predicted.rate[good, step, axis]
    known = np.stack([np.ones_like(push), push], axis=1)
    left = [values - known @ np.linalg.lstsq(known, values, rcond=None)[0] for values in (turned, made)]
    return left[0], left[1]


def _apart(ratio: Estimate, least: float) -> bool:
    return (ratio.low > 1.0 or ratio.high < 1.0) and abs(ratio.value - 1.0) > least


def _agreed(ratio: Estimate) -> str:
    return "they nearly agree" if ratio.low > 1.0 or ratio.high < 1.0 else "they agree"


def _interval(ratio: Estimate) -> str:
    return f" ({ratio.low:.2f} to {ratio.high:.2f})" if math.isfinite(ratio.low) and math.isfinite(ratio.high) else ""


def _lift_sentence(ratio: Estimate) -> str:
    if not math.isfinite(ratio.value):
        return "Lift is not told."
    said = f"The log lifts {ratio.value:.3f} times as much as the vehicle{_interval(ratio)}"
    if not _apart(ratio, MATTERS["lift"]):
        return f"{said}: {_agreed(ratio)}."
    way = "little" if ratio.value > 1.0 else "much"
    off = 100.0 * abs(1.0 / ratio.value - 1.0)
    return f"{said}: the record has {off:.0f} % too {way} thrust for its mass at these commands or speeds."


def _turn_sentence(axis: str, ratio: Estimate) -> str:
    if not math.isfinite(ratio.value):
        return f"Turns about {axis} are not told."
    said = f"About {axis} the log turns {ratio.value:.2f} times as much as the vehicle{_interval(ratio)}"
    if not _apart(ratio, MATTERS["turn"]):
        told = math.isfinite(ratio.low) and ratio.high - ratio.low < 1.0
        return f"{said}: {_agreed(ratio)}." if told else f"{said}: too few turns tell it."
    if ratio.high < 0.0:
        return f"{said}: it turns the other way, so spins or the order of motors are not the vehicle's."
    of = "torque over inertia" if axis == "z" else "thrust times arm over inertia"
    return f"{said}: the record's {of} is too {'large' if ratio.value < 1.0 else 'small'}, or its lag is not the motors'."


# ---- Verdict -----------------------------------------------------------------------------------------------------------------

_WORDS = {
    "rate": "body rate",
    "force": "specific force",
    "attitude": "attitude",
    "velocity": "velocity",
    "position": "position",
}


def row_of(rows: Sequence[ErrorRow], channel: str, windows: str, horizon: float) -> ErrorRow | None:
    """Return one row; None where the table has none."""
    found = (r for r in rows if (r.channel, r.windows) == (channel, windows) and abs(r.horizon - horizon) < 1e-9)
    return next(found, None)


def judged_row(rows: Sequence[ErrorRow], channel: str) -> ErrorRow | None:
    """Return the row by which a channel is judged: of windows with turns, where these are enough for an interval.

    Args:
        rows: Of the table.
        channel: As of `ErrorRow`.
    """
    turns, every = (row_of(rows, channel, windows, JUDGED) for windows in ("excited", "all"))
    return turns if turns is not None and math.isfinite(turns.skill[MODELS[0]].low) else every


def verdict(rows: Sequence[ErrorRow], found: Sequence[Mismatch], diverged: ArrayBool, hovers: bool) -> tuple[str, str]:
    """Return a word, "flyable", "supported" or "do not trust", and whether the vehicle explains the log, in a few sentences.

    "flyable": it hovers, its lift is right to a tenth and its turns to a factor of 1.5, and the trimmed prediction's error of
    the rate at a quarter of a second is under 0.7 of the better baseline's on windows with turns, beyond chance. "supported":
    it hovers, lift and turns are as right, something is predicted better than without it, beyond chance, and the rate not
    worse.

    Args:
        rows: Of the table.
        found: Mismatches.
        diverged: Which windows diverged.
        hovers: Whether the vehicle carries its weight.
    """
    judged = {channel: judged_row(rows, channel) for channel in _WORDS}
    words: dict[str, list[str]] = {"better": [], "worse": [], "not told apart": []}
    for channel, row in judged.items():
        if row is not None:
            words[row.says()].append(_WORDS[channel])
    how = {"better": "smaller in", "worse": "larger in", "not told apart": "not told apart in"}
    parts = "; ".join(f"{how[word]} {_listed(names)}" for word, names in words.items() if names)
    whole = bool(words["better"]) and not words["worse"] and not any(m.matters for m in found)
    explained = "explains the log" if whole else "explains the log in part"
    explained = explained if words["better"] else "does not explain the log"
    said = f"The vehicle {explained}. Its errors a quarter of a second ahead, beside what needs no vehicle: {parts}."
    if diverged.any():
        said += f" {int(diverged.sum())} of {len(diverged)} predictions ran away."
    said += "".join(f" {m.sentence}" for m in found if m.matters)
    if not hovers:
        said += " The vehicle cannot carry its weight."
    if all(math.isnan(r.skill["vehicle"].low) for r in judged.values() if r is not None):
        said += " Too few seconds are judged to tell anything from chance."
    lift = next((m.ratio.value for m in found if m.quantity == "lift"), 1.0)
    row = judged["rate"]
    turned = [m.ratio for m in found if m.quantity in ("turn x", "turn y")]
    far = any(r.low > TURN_MAX or r.high < 1.0 / TURN_MAX for r in turned)
    if row is None or not hovers or far or not abs(lift - 1.0) <= LIFT_MAX:
        return "do not trust", said
    skill = row.skill.get("vehicle, trimmed", row.skill["vehicle"])
    if skill.value > SKILL_MIN and skill.low > 0.0:
        return "flyable", said
    return ("supported" if words["better"] and row.says() != "worse" else "do not trust"), said


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def trim_sentence() -> str:
    """Return what a trimmed prediction is."""
    return (
        f"Trimmed: the push that the vehicle missed in the tenth of a second before a window goes on (times {TRIM[0]:g}) and"
        f" dies away in {TRIM[1]:g} s."
    )
