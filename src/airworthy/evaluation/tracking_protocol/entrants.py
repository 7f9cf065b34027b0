"""Who is evaluated: pilots by the words of the command line, or a factory of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from airworthy.core.errors import AirworthyError, AssetError, unknown_name
from airworthy.core.files import sha256_file
from airworthy.pilots import Pilot
from airworthy.pilots.expert import expert_for
from airworthy.pilots.expert_reference import expert_reference
from airworthy.sensors.carried import carried_sensors
from airworthy.sensors.devices import Device
from airworthy.sensors.projections import Pinhole
from airworthy.sensors.splats.policy_view import PolicyView
from airworthy.simulation import MountedSensor, MountedSensors, Simulator
from airworthy.trajectories import Course
from airworthy.vehicles import Vehicle

__all__ = ["CAMERA", "Entrant", "MakePilot", "entrant", "entrants_of", "expert_entrant", "policy_camera"]

CAMERA = "camera"
"""Name under which a policy's camera is mounted."""
POLICY_RATE = 20.0


class MakePilot(Protocol):
    """Makes a pilot for the flights of a simulator, after their drones were drawn and their sensors mounted."""

    def __call__(self, simulator: Simulator, course: Course, mounted: MountedSensors | None) -> Pilot:
        """The pilot, with a command per environment."""
        ...


@dataclass(frozen=True)
class Entrant:
    """A pilot that is tried."""

    name: str
    """As in results; no two of a run may be equal."""
    make: MakePilot
    sensors: Callable[[Vehicle], Mapping[str, MountedSensor]] | None = None
    """What it must carry."""
    senses: bool = True
    """It reads sensed values; False: it is given the true state, whatever the noise level."""
    identity: Mapping[str, Any] = field(default_factory=dict)
    """What its decisions depend on besides its name: hashes of weights, settings."""
    variant: str = ""
    """Of the network; the row of Table I that it stands beside."""


def entrant(word: str) -> Entrant:
    """A pilot by its word: "mpc" (the expert), or "svnet:FOLDER" with what `airworthy train svnet` wrote.

    Raises:
        UnknownNameError: There is no such pilot.
        AssetError: The folder holds no policy.
    """
    kind, colon, folder = word.partition(":")
    if word == "mpc":
        return expert_entrant()
    if kind == "svnet" and colon and folder:
        return svnet_entrant(Path(folder))
    raise unknown_name("pilot to evaluate", word, ("mpc", "svnet:FOLDER"))


def entrants_of(words: Sequence[str]) -> list[Entrant]:
    """Pilots by their words; of those whose folders have one name the folder above is named, too.

    Raises:
        UnknownNameError, AssetError: As `entrant`.
    """
    found = [entrant(word) for word in words]
    names = [item.name for item in found]
    for k, word in enumerate(words):
        if names.count(names[k]) > 1 and ":" in word:
            found[k] = replace(found[k], name="-".join(Path(word.partition(":")[2]).resolve().parts[-2:]))
    return found


def expert_entrant(name: str = "mpc") -> Entrant:
    """The expert: model predictive control with the true state and every drone's true parameters."""

    def make(simulator: Simulator, course: Course, mounted: MountedSensors | None) -> Pilot:
        return expert_for(simulator, expert_reference(course))

    return Entrant(name, make, senses=False, identity={"pilot": "mpc"})


def svnet_entrant(folder: Path) -> Entrant:
    """A trained policy; it is told nothing but what it senses, and carries the camera that its contract names."""
    from airworthy.pilots.svnet.contract import CONTRACT_FILE, WEIGHTS_FILE, read_contract

    if not folder.is_dir():
        raise AssetError(f"{str(folder)!r} is no folder; svnet:FOLDER names what `airworthy train svnet` wrote.")
    contract = read_contract(folder)
    digests = {name: sha256_file(folder / name) for name in (CONTRACT_FILE, WEIGHTS_FILE)}

    def make(simulator: Simulator, course: Course, mounted: MountedSensors | None) -> Pilot:
        from airworthy.pilots.svnet.pilot import svnet_pilot

        return svnet_pilot(folder, simulator, course, CAMERA, mounted, simulator.device)

    def sensors(vehicle: Vehicle) -> Mapping[str, MountedSensor]:
        from airworthy.pilots.svnet.seeing import policy_camera as camera_of

        return {} if contract.view is None else {CAMERA: MountedSensor(camera_of(vehicle, contract))}

    label = folder.name if folder.name not in ("", ".", "..") else contract.variant
    return Entrant(label, make, sensors, identity={"pilot": "svnet", **digests}, variant=contract.variant)


def policy_camera(vehicle: Vehicle) -> Device:
    """The camera of a vehicle's record at the published view of a policy, idealised mount.

    Raises:
        AirworthyError: The vehicle carries no camera.
    """
    carried = [device for device in carried_sensors(vehicle).values() if device.kind == "camera"]
    if not carried:
        raise AirworthyError(f"Vehicle {vehicle.name!r} carries no camera, which a policy needs.")
    device = carried[0].variant(channels=("rgb",), randomize_mount=False, rate=POLICY_RATE)
    whole, view = device.projection, PolicyView()
    if not isinstance(whole, Pinhole):
        return device
    numbers = view.intrinsics((whole.fx, whole.fy, whole.cx, whole.cy), (whole.width, whole.height))
    fx, fy, cx, cy = (float(value) for value in numbers)
    return device.variant(projection=Pinhole(*view.size, fx, fy, cx, cy))
