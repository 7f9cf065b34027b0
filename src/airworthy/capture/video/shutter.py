"""Whether a film's rows were exposed one after the other: a rolling shutter, told from the reconstruction.

While a telephone turns, rows that are read later see the room moved on: a point is off by the motion of the image times how
much later its row was read. The leftovers of a reconstruction hardly show it, since poses and points give way; so the
reconstruction is adjusted again with observations from which the motion for several readout times is taken out
(`colmap_process`, step "shutter"), and the readout time with the least leftovers is the one that the film most likely has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import ArrayLike

__all__ = ["READOUTS", "RollingShutterTest", "rolling_shutter"]

READOUTS = (-0.01, 0.0, 0.01, 0.02, 0.03)
"""Times that are tried [s]. Telephones: 0.008 to 0.03; the negative one holds the parabola."""
_CERTAIN = 4.0
"""Standard deviations from 0 from where on a readout is taken to be there. Ours: observations of one picture are not
independent, which makes the deviation too small by up to about 1.5."""
_NOTICED_S = 0.004
_LEAST_PICTURES = 8


@dataclass(frozen=True)
class RollingShutterTest:
    """What the reconstruction says."""

    readout: float
    """From the first row to the last one [s]. Rather too small than too large: motion between pictures of a film is not quite
    that at the instant."""
    deviation: float
    """Standard deviation of it [s]."""
    pictures: int
    """That were looked at; 0: too few for a test, or photographs."""

    @property
    def rolling(self) -> bool:
        """Whether there is one, and it matters."""
        return self.pictures > 0 and self.readout > max(_CERTAIN * self.deviation, _NOTICED_S)

    @property
    def sentence(self) -> str:
        """What to tell a user; empty where there is nothing to tell."""
        if not self.rolling:
            return ""
        return (
            f"The film has a rolling shutter of about {1000 * self.readout:.0f} ms (+- {1000 * self.deviation:.0f}): pictures"
            " taken while turning are bent; walk and turn more slowly, or film with a higher frame rate."
        )


NO_TEST = RollingShutterTest(0.0, 0.0, 0)


def rolling_shutter(readouts: ArrayLike, mean_square: ArrayLike, observations: int, pictures: int) -> RollingShutterTest:
    """Return the readout time at which a film's observations fit best.

    The mean square is a parabola about it; the deviation is where it has risen by the share of one observation.

    Args:
        readouts: That were tried [s], (n,), 3 or more.
        mean_square: Of what is left over at each [px^2], (n,).
        observations: Coordinates of which it is the mean.
        pictures: Of films that were looked at.
    """
    tried, found = np.asarray(readouts, np.float64), np.asarray(mean_square, np.float64)
    if pictures < _LEAST_PICTURES or len(tried) < 3 or observations < 100 or not np.isfinite(found).all():
        return NO_TEST
    # In milliseconds, so that the three columns of the fit are of one size.
    bend, slope, level = np.polyfit(1e3 * tried, found, 2)
    if not bend > 0.0:
        return NO_TEST
    best = -0.5 * slope / bend
    least = level - 0.25 * slope**2 / bend
    return RollingShutterTest(float(1e-3 * best), float(1e-3 * np.sqrt(max(least, 0.0) / (bend * observations))), pictures)
