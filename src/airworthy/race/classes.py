"""Classes of the AlphaPilot race: what is made harder than in 2019, as options of the simulator and its sensors.

Every number of a class ends in an option that exists: `beacons`, `imu`, `vehicles` and `latency` say which.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated

from airworthy.core.errors import unknown_name
from airworthy.core.files import packaged_toml
from airworthy.core.schema import SHARE, Bound, check_fields
from airworthy.core.table_schema import TableSchema
from airworthy.sensors import BeaconOptions
from airworthy.simulation import Imu, Randomization

_SCHEMA = TableSchema(32, 32)
FRAME_HZ = 60.0
"""Frames of the beacon camera per second; the original's."""
DEFAULT = "noisy"
"""The class of our tables."""


@dataclass(frozen=True)
class RaceClass:
    """Conditions of a race."""

    name: str
    title: str
    vehicle: str
    """Name in the catalogue, or a file."""
    pixel_noise: Annotated[float, Bound(0.0, 100.0, "px")] = 0.0
    """Standard deviation of each beacon's coordinates [px]."""
    dropout: Annotated[float, SHARE] = 0.0
    """Probability that a visible beacon is not reported."""
    shuffle: bool = False
    """Whether identities of beacons are exchanged at random."""
    frame_delay: Annotated[int, Bound(0, 60)] = 0
    """Frames by which beacons come late, stamped with the moment of the pose."""
    mass_error: Annotated[float, Bound(0.0, 0.5)] = 0.0
    """Mass is drawn within plus or minus this share; inertia follows."""
    drag_error: Annotated[float, SHARE] = 0.0
    """Drag likewise."""
    start_error: Annotated[float, Bound(0.0, 10.0, "m")] = 0.0
    """Half width of the cube in which the start is drawn [m]."""
    bias_walk: bool = False
    """Whether the inertial sensor's biases walk."""

    def __post_init__(self) -> None:
        check_fields(self, "RaceClass.")

    def beacons(self) -> BeaconOptions:
        """Return what the beacon camera does to its pixels."""
        return BeaconOptions(pixel_noise=self.pixel_noise, dropout=self.dropout, shuffle=self.shuffle)

    def latency(self) -> float:
        """Return how late a frame of beacons arrives [s]."""
        return self.frame_delay / FRAME_HZ

    def imu(self) -> Imu:
        """Return the inertial sensor: the published noise, with biases where the class has them."""
        # The named device is the later version's; that of 2019 had its noise and no biases.
        device = Imu.named("flightgoggles")
        still = (0.0, 0.0, 0.0)
        return device if self.bias_walk else replace(device, accelerometer_walk=still, gyroscope_walk=still)

    def vehicles(self, identified: bool = False) -> Randomization:
        """Return how vehicles differ from what the pilot believes, and where they start.

        Args:
            identified: Whether they are drawn from what an identification left open, masses among all else.
        """
        mass = 0.0 if identified else self.mass_error
        return Randomization(mass=mass, drag=self.drag_error, position=self.start_error, posterior=identified)


@cache
def race_classes() -> dict[str, RaceClass]:
    """Return all classes by name, the published one first."""
    table = packaged_toml("airworthy.race", "classes.toml")
    return {name: _SCHEMA.record(RaceClass, {"name": name, **row}, f"classes.toml: {name}") for name, row in table.items()}


def race_class(name: str = DEFAULT) -> RaceClass:
    """Return a class by its name; raises UnknownNameError."""
    if name not in race_classes():
        raise unknown_name("class of the race", name, race_classes())
    return race_classes()[name]
