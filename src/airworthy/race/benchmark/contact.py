"""What a flight of a race touches, by one of two detectors.

    swept       the vehicle's sphere, swept along every physics step: nothing is missed between two moments
    published   the sphere where it is when a frame is taken, 60 times a second: overlap is contact (spec/flightgoggles 3.3)

The second is FlightGoggles' own, whose renderer looked for overlaps of a sphere of 0.15 m as it drew a frame. At 19 m/s the
vehicle moves 0.32 m from frame to frame, so it may cut a corner or pass through a post of 0.1 m unseen; what it goes through
does not act on it. The first is ours, and what results are flown with.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, NDArray
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import rotate
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.distance import clearance
from airworthy.simulation import Contact, Simulator
from airworthy.vehicles import Vehicle

__all__ = ["PUBLISHED", "SWEPT", "ContactWatch", "Detector", "contact_of"]

Detector = Literal["swept", "published"]
SWEPT: Detector = "swept"
PUBLISHED: Detector = "published"


def contact_of(detector: Detector) -> Contact | None:
    """Return what the simulator does about contact: it stops flights itself, or lets them through, and is not asked."""
    return Contact("freeze") if detector == SWEPT else None


class ContactWatch:
    """Which flights of a batch have touched something, and what.

    Args:
        detector: See the module.
        simulator: Whose contact is `contact_of` the detector.
        geometry: The scenes, an environment for each flight.
        flown_by: Whose sphere counts.

    Raises:
        AirworthyError: The published detector, for a vehicle whose body is no sphere.
    """

    def __init__(self, detector: Detector, simulator: Simulator, geometry: GeometryBatch, flown_by: Vehicle):
        self._detector, self._simulator, self._geometry = detector, simulator, geometry
        if detector == PUBLISHED and flown_by.body.shape != "sphere":
            raise AirworthyError(
                f"The published detector of contacts tests a sphere, and the body of {flown_by.name!r} is a"
                f" {flown_by.body.shape}: leave --contact out."
            )
        self._radius = float(flown_by.body.size[0])
        # Positions are the centre of mass's.
        self._center = np.asarray(flown_by.body.center, np.float64) - np.asarray(flown_by.center_of_mass, np.float64)
        self.touched: ArrayBool = np.zeros(simulator.env_count, bool)
        """Flights that have touched something, (flights,)."""
        self.instance: NDArray[np.int32] = np.full(simulator.env_count, -1, np.int32)
        """What each touched first, as a number of its scene; -1: nothing, (flights,)."""
        self._place = np.full((simulator.env_count, 3), np.nan)

    @property
    def flies_on(self) -> ArrayBool:
        """Flights that have touched something and were not stopped by it, (flights,): what they do from there on is nothing."""
        return self.touched if self._detector == PUBLISHED else np.zeros_like(self.touched)

    @property
    def place(self) -> Array:
        """Where flights are, those that have touched something where they did, world [m], (flights, 3)."""
        now = np.array(self._simulator.position, np.float64)
        return np.where(self.flies_on[:, None], self._place, now)

    def look(self, framed: bool) -> None:
        """Take in a physics step.

        Args:
            framed: Whether a frame is taken at its end.
        """
        if self._detector == SWEPT:
            self.touched = np.asarray(self._simulator.contacts.count) > 0
            self.instance = np.asarray(self._simulator.contacts.instance)
        elif framed:
            self._overlap()

    def _overlap(self) -> None:
        turn = np.array(self._simulator.attitude, np.float64)
        here = np.array(self._simulator.position, np.float64)
        # What is farther than the sphere reaches is not looked for; a position that is none is near nothing.
        found = clearance(self._geometry, here + rotate(turn, self._center), np.arange(len(here)), 2.0 * self._radius)
        new = (found.distance <= self._radius) & ~self.touched
        self._place[new] = here[new]
        self.touched = self.touched | new
        self.instance = np.where(new, found.instance, self.instance)
