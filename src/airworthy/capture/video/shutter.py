"""Whether a film's rows were exposed one after the other: a rolling shutter, told from the reconstruction.

While a telephone turns, rows that are read later see the room moved on: a point is off by the motion of the image times how
much later its row was read. The leftovers of a reconstruction hardly show it, since poses and points give way; so the
reconstruction is adjusted again with observations from which the motion for several readout times is taken out
(`colmap_process`, step "shutter"), and the readout time with the least leftovers is the one that the film most likely has.

Leftovers count under a loss that bends, as a few wrong matches make up most of their squares, and were chosen to fit without
a readout. How sure that is the scatter from run to run of pictures tells, not the number of observations: those of one picture,
and of its neighbours, have the same motion taken out and are wrong together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayLike

__all__ = ["READOUTS", "RollingShutterTest", "rolling_shutter"]

READOUTS = (-0.01, 0.0, 0.01, 0.02, 0.03)
"""Times that are tried [s]. Telephones: 0.008 to 0.03; the negative one holds the parabola."""
_RUNS = (1, 3, 5, 10)
"""Pictures that follow each other and are taken for one observation; the widest of their intervals counts."""
_LEAST_RUNS = 6
_CERTAIN = 2.0
"""Half widths of the interval from 0 from where on a readout is taken to be there: about four standard deviations."""
_NOTICED_S = 0.004
_LEAST_PICTURES = 8


@dataclass(frozen=True)
class RollingShutterTest:
    """What the reconstruction says."""

    readout: float
    """From the first row to the last one [s]."""
    half_95: float
    """Half width of its 95 % interval [s]."""
    pictures: int
    """That were looked at; 0: too few for a test, or photographs."""

    @property
    def rolling(self) -> bool:
        """Whether there is one, and it matters."""
        return self.pictures > 0 and self.readout > max(_CERTAIN * self.half_95, _NOTICED_S)

    @property
    def sentence(self) -> str:
        """What to tell a user; empty where there is nothing to tell."""
        if not self.rolling:
            return ""
        return (
            f"The film has a rolling shutter of about {1000 * self.readout:.0f} ms (95 %: +- {1000 * self.half_95:.0f}):"
            " pictures taken while turning are bent; walk and turn more slowly, or film with a higher frame rate."
        )


NO_TEST = RollingShutterTest(0.0, 0.0, 0)


def rolling_shutter(readouts: ArrayLike, costs: ArrayLike, pictures: int) -> RollingShutterTest:
    """Return the readout time at which a film's observations fit best.

    The sum of costs is a parabola about it. Each picture's own parabola pulls it to where that picture would have it; the
    scatter of those pulls, summed over runs of pictures, is how sure it is (errors robust to clusters; K.-Y. Liang and S.
    Zeger, "Longitudinal data analysis using generalized linear models", Biometrika 73 (1986)).

    Args:
        readouts: That were tried [s], (n,), 3 or more.
        costs: Of what is left over in each picture at each, by time, (n, pictures) [px^2].
        pictures: Of films that were looked at.
    """
    tried, found = np.asarray(readouts, np.float64), np.asarray(costs, np.float64)
    if pictures < _LEAST_PICTURES or len(tried) < 3 or found.ndim != 2 or not np.isfinite(found).all():
        return NO_TEST
    # In milliseconds, so that the three columns of the fit are of one size.
    bend, slope, _ = np.polyfit(1e3 * tried, found, 2)
    if not bend.sum() > 0.0:
        return NO_TEST
    best = -0.5 * float(slope.sum() / bend.sum())
    half = _half_95(slope + 2.0 * bend * best, 2.0 * float(bend.sum()))
    return NO_TEST if half is None else RollingShutterTest(1e-3 * best, 1e-3 * half, pictures)


def _half_95(pulls: Array, stiffness: float) -> float | None:
    """Return the half width of the interval of a sum of pulls over a stiffness, the widest by all lengths of runs; None: there
    are too few pictures."""
    from scipy.stats import t

    widths = []
    for length in _RUNS:
        sums = np.add.reduceat(pulls, np.arange(0, len(pulls), length))
        count = len(sums)
        if count >= _LEAST_RUNS:
            deviation = np.sqrt(np.square(sums).sum() * count / (count - 1)) / stiffness
            widths.append(float(t.ppf(0.975, count - 1) * deviation))
    return max(widths, default=None)
