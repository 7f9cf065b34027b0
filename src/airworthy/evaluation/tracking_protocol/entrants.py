"""Who is evaluated: pilots by the words of the command line, or a factory of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.files import sha256_file
from airworthy.pilots import Pilot
from airworthy.pilots.expert import expert_for
from airworthy.pilots.expert_reference import expert_reference
from airworthy.pilots.svnet.shipped import policy_folder, shipped_name
from airworthy.simulation import MountedSensor, MountedSensors, Simulator
from airworthy.trajectories import Course
from airworthy.vehicles import Vehicle

__all__ = ["CAMERA", "Entrant", "MakePilot", "entrant", "entrants_of", "expert_entrant"]

CAMERA = "camera"
"""Name under which a policy's camera is mounted."""


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
    """A pilot by its word: mpc (the expert), svnet (the shipped policy), or svnet:FOLDER (what `airworthy train svnet` wrote).

    Raises:
        UnknownNameError: There is no such pilot.
        AssetError: The folder holds no policy.
    """
    kind, colon, folder = word.partition(":")
    if word == "mpc":
        return expert_entrant()
    if kind == "svnet" and bool(colon) == bool(folder):
        return svnet_entrant(policy_folder(folder))
    raise unknown_name("pilot to evaluate", word, ("mpc", "svnet", "svnet:FOLDER"))


def entrants_of(words: Sequence[str]) -> list[Entrant]:
    """Pilots by their words; of those whose folders have one name the folder above is named, too.

    Raises:
        UnknownNameError, AssetError: As `entrant`.
        AirworthyError: A policy is named twice.
    """
    found = [entrant(word) for word in words]
    places: dict[Path, str] = {}
    for word in words:
        if word.partition(":")[0] == "svnet":
            place = policy_folder(word.partition(":")[2]).resolve()
            if place in places:
                raise AirworthyError(f"{places[place]} and {word} are the same policy; name each once.")
            places[place] = word
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
    from airworthy.pilots.svnet.contract import CONTRACT_FILE, WEIGHTS_FILE, read_policy

    contract, _ = read_policy(folder)  # its weights, too: what cannot fly is refused before anything has flown
    digests = {name: sha256_file(folder / name) for name in (CONTRACT_FILE, WEIGHTS_FILE)}

    def make(simulator: Simulator, course: Course, mounted: MountedSensors | None) -> Pilot:
        from airworthy.pilots.svnet.pilot import svnet_pilot

        return svnet_pilot(folder, simulator, course, CAMERA, mounted, simulator.device)

    def sensors(vehicle: Vehicle) -> Mapping[str, MountedSensor]:
        from airworthy.pilots.svnet.seeing import policy_camera

        return {} if contract.view is None else {CAMERA: MountedSensor(policy_camera(vehicle, contract))}

    shipped = shipped_name(folder)
    label = (f"svnet:{shipped}" if shipped else folder.name) if folder.name not in ("", ".", "..") else contract.variant
    return Entrant(label, make, sensors, identity={"pilot": "svnet", **digests}, variant=contract.variant)
