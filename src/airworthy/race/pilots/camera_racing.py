"""`race:camera`: as `race`, by IMU and camera instead of IMU and beacons (spec/race 10).

Estimator, plans, tracker and rate loop are those of `race`. Frames of beacons are made from images (`airworthy.race.vision`):
openings that are found in the picture, named by what the filter expects, and taken as exact as they are found, whatever the
class says of beacons. One camera, the left one of the pair; depth comes from the known sizes of openings, not from stereo.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from airworthy.race.briefing import BeaconFrame, RaceBriefing
from airworthy.race.onboard import ImageFrame, Onboard, OnboardFacts
from airworthy.race.pilots.racing import RacingPilot
from airworthy.race.vision.naming import PIXEL_SIGMA, seen_gates

__all__ = ["CameraRacingPilot"]


class CameraRacingPilot(RacingPilot):
    """See the module; one flight."""

    sensors = ("imu", "camera")

    def _told(self, facts: OnboardFacts) -> RaceBriefing:
        # Noise and exchanged names are those of beacons.
        return replace(facts.briefing(), pixel_noise=PIXEL_SIGMA, identified=True)

    def _arrived(self, onboard: Onboard) -> Sequence[ImageFrame]:
        return onboard.images

    def _frame(self, arrived: ImageFrame) -> BeaconFrame:
        step = round(max(arrived.stamp, 0.0) / self._filter.dt)
        # Images come at frames' moments, and late ones within the ring: a belief of that moment is kept.
        belief = max((item for item in self._state.past if item.step <= step), key=lambda item: item.step)
        return seen_gates(self._filter.briefing, belief, self._filter.gates_at, arrived.stamp, arrived.pixels[0])
