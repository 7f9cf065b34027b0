"""`policy:FOLDER`: a learned network flies on what the filter estimates; no plan, and no solver.

Filter, progress and the undone rate loop are those of `race` (`airworthy.race.pilots.racing`), and so is what reaches the
motors: collective thrust and angular acceleration, of which moments come before thrust.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.race.briefing import BeaconFrame
from airworthy.race.estimation.landmarks import gate_corners
from airworthy.race.learned.contract import course_mark, read_race_folder
from airworthy.race.learned.observing import RacerView, commanded, network_outputs
from airworthy.race.onboard import Onboard, OnboardFacts
from airworthy.race.pilots.racing import RacingPilot

__all__ = ["PackagedPolicyPilot", "PolicyPilot"]

_SEEN = 3
"""So many corners in a frame are a sight of a gate, as of `GlanceLedger`."""


class PolicyPilot(RacingPilot):
    """See the module; one flight.

    Args:
        folder: Of the policy, as `airworthy train race` writes it.

    Raises:
        AssetError: It holds no such policy, or a damaged one.
    """

    # It does nothing beside its commands, so that it is given no desk.
    use_desk = None  # type: ignore[assignment]

    def __init__(self, folder: str | Path) -> None:
        super().__init__()
        self.contract, self._weights = read_race_folder(folder)

    @classmethod
    def check(cls) -> None:
        """Raise nothing: no solver is needed."""

    def begin(self, facts: OnboardFacts) -> None:
        """Stand at the start; raises AirworthyError in another race, or at another rate of commands, than it learnt."""
        learnt = self.contract
        if (facts.gates, course_mark(facts.corners, facts.start_position)) != (learnt.gates, learnt.course):
            raise AirworthyError(
                f"This policy learnt the race {learnt.race!r}, whose {len(learnt.gates)} gates or start are others than the"
                f" {len(facts.gates)} gates of this one: fly {learnt.race}, or train a policy for this race."
            )
        if facts.command_rate != learnt.rate:
            raise AirworthyError(
                f"This policy commands {learnt.rate:g} times a second; it is asked {facts.command_rate:g} times."
            )
        super().begin(facts)

    def _prepare(self) -> None:
        facts, passages = self._facts, len(self._facts.gates)
        self._view = RacerView.of(np.array(facts.start_position), facts.start_yaw, passages)
        self._numbers = np.arange(passages)[None]
        self._unseen, self._since = np.full((1, passages), np.inf), 0.0
        self._notice(0.0)

    def _notice(self, stamp: float, frames_taken: tuple[BeaconFrame, ...] = ()) -> None:
        """Keep where gates are believed, how well, and how long ago each was seen; once a frame is enough."""
        self._unseen += stamp - self._since
        self._since = stamp
        for frame in frames_taken:
            seen = np.isfinite(frame.pixel).all(-1).sum(-1) >= _SEEN
            self._unseen = np.where(seen, stamp - max(frame.stamp, 0.0), self._unseen)
        self._corners = gate_corners(self._filter.briefing, self._numbers, self._state.now.gates)[0]
        self._sigma = self._filter.offset_sigma(self._state)

    def _sense(self, onboard: Onboard) -> None:
        super()._sense(onboard)
        if onboard.frames:
            self._notice(onboard.time, onboard.frames)

    def _plan(self, time: float) -> None:
        """Do nothing: it has no plan."""

    def _passed(self, time: float) -> None:
        """Do nothing: it does not return for a gate."""

    def _track(self, time: float) -> Array:
        state = self._own[None]
        unseen = self._unseen + (time - self._since)
        following = np.array([self._progress.next])
        axes = frames.to_matrix(state[:, 6:10])
        observed = self._view.observe(state, axes, self._corners, self._sigma, unseen, following)
        thrust, alpha = commanded(network_outputs(self._weights, observed), self.contract.thrust_max)
        return self._sent_for(self._tracker.within_rotors(thrust, alpha), alpha)

    def telemetry(self) -> Mapping[str, ArrayLike]:
        """Return what it believes, for the report."""
        return self._belief()


class PackagedPolicyPilot(PolicyPilot):
    """The policy that comes with the package."""

    def __init__(self) -> None:
        super().__init__(Path(str(files("airworthy.race.learned").joinpath("alphapilot"))))
