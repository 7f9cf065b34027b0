"""Motors from measured rotor speeds: steady speed over command, lags of rise and fall, dead time, by what speeds show alone.

The state of each rotor follows its command's steady speed, `offset + (1 - offset) u` of that at full command; measured is that
state times what full command gives, which differs from motor to motor, and drifts with the battery. Gains and drift are solved
for in closed form beside each trial of the others (variable projection, Golub and Pereyra 1973), so that a battery that sags is
taken neither for a lag nor for an offset. Whether rise and fall differ, and whether rotors respond by the first power or the
square, is judged by seconds of flight that were left out, the simplest within a standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.vehicles.identification.prediction.held_command import HeldCommand
from airworthy.vehicles.identification.prediction.signals import LATTICE, LEAD, FlightSignals

__all__ = ["MotorFit", "fit_motors"]

STEP = 0.004
"""Between speeds that are compared [s]; they are means over as long."""
KNOTS = 2.0
"""Between knots of the drift [s]."""
BLOCK = 1.0
"""Of residuals that share their cause [s]."""
ALONE = 0.025
"""Residuals that are further apart count as independent where blocks say no more [s]."""
LASTS = 30.0
"""So much of each flight is looked at [s]."""
COARSE = 2
"""Periods of the commands' lattice whose mean is held here."""
GAIN_MOST = 1.4
"""Ours: a motor whose speed over command is beyond this factor from the others' has a sensor that does not measure; propellers
and motors of one vehicle differ by a twentieth."""
ALIKE = 0.01
"""Ours: a structure whose left-out error is so little more, as a share, is no worse, however surely: of one lag, rise and fall
apart by a thousandth were told with 0.2 % less error."""
PRIOR = {"offset": (0.15, 0.3), "rise": (np.log(0.05), 0.7), "ratio": (0.0, 0.3), "delay": (0.008, 0.006)}
"""Mean and deviation: offset [1], log of the lag of rise [s], log of fall over rise, dead time [s]; lag and dead time as those
of `parameters`."""
FAR = 6.0
"""Residuals beyond so many usual ones are glitches of the sensor, and left out."""
DRIFT = 0.05
"""Deviation beforehand of the drift between flights and within one [1]."""
FOLDS_MIN = 4
"""Blocks under which no structure is judged."""


@dataclass(frozen=True, eq=False)
class MotorFit:
    """What measured speeds say of the motors."""

    full: float
    """Speed at full command, mean over motors and flights [rad/s]."""
    gains: tuple[float, ...]
    """Of each motor, over that."""
    offset: float
    """Steady speed is full (offset + (1 - offset) u), u > 0 [1]."""
    offset_sd: float
    lag: float
    """Of rise, about hover [s]."""
    ratio: float
    """Lag of fall over that of rise."""
    delay: float
    """Dead time from command to measured speed [s]."""
    covariance: Array
    """Of log lag, log ratio and delay [s], (3, 3)."""
    square: bool
    """Whether rotors respond by the square of their speeds; else by the first power."""
    apart: bool
    """Whether rise and fall are told apart."""
    rms: float
    """Left over [rad/s]."""
    rms_still: float
    """The same where speeds followed commands at once [rad/s]."""
    glitches: float
    """Share of samples that were left out."""
    scores: dict[str, float]
    """By structure: error on seconds that were left out, over that of the structure that is best."""
    errors: dict[str, float]
    """By structure: standard error of the difference to the best."""

    @property
    def command_map(self) -> tuple[float, float]:
        """Return steady speed at a command just above 0, and its slope over the command [rad/s]."""
        return self.full * self.offset, self.full * (1.0 - self.offset)

    def record(self) -> dict[str, Any]:
        """Return it as plain tables, for identification.json."""
        return asdict(self) | {"covariance": self.covariance.tolist(), "command_map": list(self.command_map)}

    def sentence(self) -> str:
        """Return what was found, in words."""
        first, slope = self.command_map
        power = "square" if self.square else "first power"
        fall = f" rising and {1e3 * self.lag * self.ratio:.1f} ms falling" if self.apart else ""
        head = f"Motors by measured speeds: {first:.0f} + {slope:.0f} u rad/s, lag {1e3 * self.lag:.1f} ms{fall} by the {power}"
        left = f"{self.rms:.2g} rad/s are left ({self.rms_still:.2g} if speeds followed at once)"
        return f"{head}, dead time {1e3 * self.delay:.1f} ms to the measured speed; {left}."


@dataclass(frozen=True, eq=False)
class _Part:
    """What is compared of one flight."""

    command: HeldCommand
    time: Array
    """(n,)"""
    speed: Array
    """Measured, (n, rotors)."""
    drift: Array
    """Hat functions over knots, (n, knots)."""
    block: ArrayInt
    """Of each time, counted over all flights, (n,)."""


def fit_motors(flights: Sequence[FlightSignals], hover: float) -> MotorFit:
    """Fit steady speeds, lags and dead time to measured speeds.

    Args:
        flights: With speeds.
        hover: Mean command in hover, at which lags are told.

    Raises:
        AirworthyError: The flights hold under two seconds.
    """
    parts, blocks = [], 0
    for flight in flights:
        parts.append(_part(flight, blocks))
        blocks = int(parts[-1].block.max(initial=blocks - 1)) + 1
    if sum(len(p.time) for p in parts) * STEP < 2.0:
        raise AirworthyError("The logs hold under 2 s of usable flight with measured rotor speeds.")
    found: dict[str, _Fitted] = {}
    for name, square, apart in (
        ("first power", False, False),
        ("square", True, False),
        ("first power, rise and fall apart", False, True),
        ("square, rise and fall apart", True, True),
    ):
        near = found.get("square" if square else "first power", found.get("first power"))
        found[name] = _Fitted(parts, hover, square, apart, None if near is None else near.theta)
    scores = {name: fitted.left_out() for name, fitted in found.items()}
    best = min(scores, key=lambda name: float(scores[name].mean()))
    behind = {name: score - scores[best] for name, score in scores.items()}
    errors = {name: float(d.std(ddof=1) / np.sqrt(len(d))) if len(d) > 1 else np.inf for name, d in behind.items()}
    # Those with one lag are the simpler ones; both powers are alike simple.
    alike = ALIKE * float(scores[best].mean())
    close = [name for name in found if name == best or float(behind[name].mean()) <= max(errors[name], alike)]
    simple = [name for name in close if not found[name].apart] or close
    chosen = min(simple, key=lambda name: float(scores[name].mean()))
    whole = float(scores[best].mean())
    return found[chosen].result(
        {name: float(score.mean()) / whole for name, score in scores.items()},
        {name: error / whole for name, error in errors.items()},
    )


def _part(flight: FlightSignals, first: int) -> _Part:
    assert flight.speeds is not None
    times, blocks, left = [], [], LASTS
    for start, stop in flight.spans:
        stop = min(stop, start + left)
        line = np.arange(start + STEP, stop - STEP, STEP)
        left -= max(stop - start, 0.0)
        if len(line):
            times.append(line)
            blocks.append(first + ((line - line[0]) / BLOCK).astype(np.int64))
            first = int(blocks[-1][-1]) + 1
    time = np.concatenate(times) if times else np.zeros(0)
    knots = np.arange(time.min(initial=np.inf), time.max(initial=-np.inf) + KNOTS, KNOTS) if len(time) else np.zeros(1)
    drift = np.maximum(1.0 - np.abs(time[:, None] - knots[None]) / KNOTS, 0.0)
    block = np.concatenate(blocks) if blocks else np.zeros(0, np.int64)
    command = flight.command.between(float(time[0]) - LEAD, float(time[-1])) if len(time) else flight.command
    return _Part(_coarse(command), time, np.abs(flight.speeds.mean(time, STEP)), drift, block)


def _coarse(command: HeldCommand) -> HeldCommand:
    """Return commands on a coarser lattice, by their exact means: what a rotor does within a few milliseconds is the same."""
    whole = len(command.values) // COARSE * COARSE
    if command.period > LATTICE or not whole:
        return command
    values = command.values[:whole].reshape(-1, COARSE, command.values.shape[1]).mean(axis=1)
    return HeldCommand(command.start, COARSE * command.period, values)


class _Fitted:
    """One structure, fitted."""

    def __init__(self, parts: Sequence[_Part], hover: float, square: bool, apart: bool, near: Array | None = None) -> None:
        from scipy.optimize import least_squares

        self.parts, self.hover, self.square, self.apart = parts, hover, square, apart
        names = ["offset", "rise", *(["ratio"] if apart else []), "delay"]
        prior = np.array([PRIOR[name] for name in names])
        count = sum(p.speed.size for p in parts)
        self.good = [np.ones_like(p.speed, bool) for p in parts]
        self.block = np.concatenate([np.repeat(p.block, p.speed.shape[1]) for p in parts])
        start = prior[:, 0].copy()
        if near is not None:
            # Rise and fall begin alike.
            start = np.insert(near, 2, 0.0) if apart else near.copy()
        scale = 1.0
        for _ in range(2):
            rough = self._left(start)[0]
            width = 1.4826 * float(np.median(np.abs(rough))) + 1e-9
            scale = width * np.sqrt(ALONE / STEP)

            def weighed(x: Array, scale: float = scale) -> Array:
                return np.concatenate([self._left(x)[0] / scale, (x - prior[:, 0]) / prior[:, 1]])

            step = np.where(np.array(names) == "delay", 1e-4, 1e-3)
            jacobian = _differences(weighed, step)
            low = np.array([{"offset": -0.5, "delay": -0.02}.get(n, -np.inf) for n in names])
            high = np.array([{"offset": 0.9, "delay": 0.1}.get(n, np.inf) for n in names])
            solved = least_squares(weighed, start, jacobian, (low, high), x_scale=prior[:, 1], max_nfev=8)
            start = solved.x
            left = self._left(start)[0]
            width = 1.4826 * float(np.median(np.abs(left))) + 1e-9
            kept = np.abs(left) <= FAR * width
            if kept.all():
                break
            begin = 0
            for k, p in enumerate(self.parts):
                self.good[k] = kept[begin : begin + p.speed.size].reshape(p.speed.shape)
                begin += p.speed.size
        self.names, self.theta = names, start
        self.left, self.gains = self._left(start)
        # The residuals' own size now.
        own = 1.4826 * float(np.median(np.abs(self.left))) + 1e-9
        self.slopes = (jacobian(start)[:count]) * scale
        self.size = own * np.sqrt(ALONE / STEP)
        self.prior = prior
        self.curvature = self.slopes.T @ self.slopes / self.size**2 + np.diag(1.0 / prior[:, 1] ** 2)
        self.each = np.zeros((int(self.block.max()) + 1, len(names)))
        np.add.at(self.each, self.block, self.slopes * self.left[:, None] / self.size**2)

    def _states(self, x: Array, part: _Part) -> Array:
        of = dict(zip(self.names_of(x), x.tolist(), strict=True))
        # A trial may lie anywhere; what no motor has is cut.
        rise = 1.0 / np.exp(np.clip(of["rise"], -8.0, 2.0))
        rates = rise, rise / np.exp(np.clip(of.get("ratio", 0.0), -4.0, 4.0))
        steady = of["offset"] + (1.0 - of["offset"]) * self.hover
        pairs = [(0.0, 0.5 * rate / steady) if self.square else (rate, 0.0) for rate in rates]
        response = np.array([*pairs[0], *pairs[1]])
        command = part.command.mapped(of["offset"])
        return command.at(command.states(response[None])[0], response, part.time - of["delay"])

    def names_of(self, x: Array) -> list[str]:
        return ["offset", "rise", *(["ratio"] if len(x) == 4 else []), "delay"]

    def _left(self, x: Array) -> tuple[Array, Array]:
        """Residuals [rad/s], glitches as 0, and gains of each flight and motor [rad/s]."""
        found, gains = [], []
        for part, good in zip(self.parts, self.good, strict=True):
            state, rotors = self._states(x, part), part.speed.shape[1]
            level = float(np.median(part.speed)) / max(float(np.median(state)), 1e-6)
            # Normal equations: gains of motors, and a drift that is small beside them.
            own = np.where(good, state, 0.0)
            wanted = np.where(good, part.speed, 0.0)
            size = rotors + part.drift.shape[1]
            gram, right = np.zeros((size, size)), np.zeros(size)
            gram[:rotors, :rotors] = np.diag((own**2).sum(axis=0))
            gram[rotors:, :rotors] = level * (part.drift.T @ own**2)
            gram[:rotors, rotors:] = gram[rotors:, :rotors].T
            gram[rotors:, rotors:] = level**2 * (part.drift.T @ (part.drift * (own**2).sum(axis=1)[:, None]))
            right[:rotors] = (own * wanted).sum(axis=0)
            right[rotors:] = level * (part.drift.T @ (own * wanted).sum(axis=1))
            noise = (0.01 * level) ** 2
            held = np.diag([0.0] * rotors + [noise / DRIFT**2] * (size - rotors))
            solved = np.linalg.lstsq(gram + held, right, rcond=None)[0]
            left = part.speed - state * (solved[:rotors] + level * (part.drift @ solved[rotors:])[:, None])
            found.append(np.where(good, left, 0.0).ravel())
            gains.append(
                solved[:rotors] * (1.0 + float((part.drift @ solved[rotors:]).mean()) * level / solved[:rotors].mean())
            )
        return np.concatenate(found), np.array(gains)

    def left_out(self) -> Array:
        """Mean square of residuals of each block, fitted without it, by one step from the whole fit, (blocks,)."""
        made = []
        for block in range(len(self.each)):
            rows = self.block == block
            if not rows.any():
                continue
            own = self.slopes[rows].T @ self.slopes[rows] / self.size**2
            moved = np.linalg.solve(self.curvature - own, self.each[block])
            made.append(float(np.mean((self.left[rows] + self.slopes[rows] @ moved) ** 2)))
        return np.array(made)

    def result(self, scores: dict[str, float], errors: dict[str, float]) -> MotorFit:
        """Return what was found."""
        inverse = np.linalg.inv(self.curvature)
        scattered = inverse @ (self.each.T @ self.each + np.diag(1.0 / self.prior[:, 1] ** 2)) @ inverse
        sd = np.minimum(np.sqrt(np.maximum(np.diag(inverse), np.diag(scattered))), self.prior[:, 1])
        related = inverse / np.sqrt(np.outer(np.diag(inverse), np.diag(inverse)))
        covariance = related * np.outer(sd, sd)
        of = dict(zip(self.names, self.theta.tolist(), strict=True))
        place = [self.names.index(name) if name in self.names else None for name in ("rise", "ratio", "delay")]
        whole = np.zeros((3, 3))
        for i, a in enumerate(place):
            for j, b in enumerate(place):
                if a is not None and b is not None:
                    whole[i, j] = covariance[a, b]
        full = float(self.gains.mean())
        still = self.theta.copy()
        still[self.names.index("rise")], still[self.names.index("delay")] = np.log(1e-3), 0.0
        good = np.concatenate([g.ravel() for g in self.good])
        return MotorFit(
            full=full,
            gains=tuple(float(g) for g in self.gains.mean(axis=0) / full),
            offset=of["offset"],
            offset_sd=float(sd[self.names.index("offset")]),
            lag=float(np.exp(of["rise"])),
            ratio=float(np.exp(of.get("ratio", 0.0))),
            delay=of["delay"],
            covariance=whole,
            square=self.square,
            apart=self.apart,
            rms=float(np.sqrt(np.mean(self.left[good] ** 2))),
            rms_still=float(np.sqrt(np.mean(self._left(still)[0][good] ** 2))),
            glitches=float(1.0 - good.mean()),
            scores=scores,
            errors=errors,
        )


def _differences(of: Callable[[Array], Array], steps: Array) -> Callable[[Array], Array]:
    """Return differences of a function, steps of their own for each number."""

    def slopes(x: Array) -> Array:
        columns, at = [], of(x)
        for k, step in enumerate(steps):
            moved = np.zeros(len(x))
            moved[k] = step
            columns.append((of(x + moved) - at) / step)
        return np.stack(columns, axis=1)

    return slopes
