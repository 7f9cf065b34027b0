"""Pilots by the word that names them on a command line: a tracker's law, `mpc`, `svnet`, `svnet:FOLDER`, `policy:FOLDER`,
`avoid:FOLDER` or `navigation:FOLDER`."""

from __future__ import annotations

from pathlib import Path

from airworthy.control.levels import ControlConfig
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.pilots.expert import ExpertPilot, expert_for, expert_reference
from airworthy.pilots.pilot import Pilot
from airworthy.pilots.trackers import pilot_names as tracker_names
from airworthy.pilots.trackers import tracker, tracker_level
from airworthy.simulation.mounted import MountedSensors
from airworthy.simulation.sensor_state import MountedSensor
from airworthy.simulation.simulator import Simulator
from airworthy.trajectories import Course, Trajectory
from airworthy.vehicles import Vehicle

__all__ = [
    "AUTOPILOTS",
    "EXTERNAL",
    "LEARNT_PILOTS",
    "POLICY_WORDS",
    "learnt_guide",
    "pilot_control",
    "pilot_for",
    "pilot_level",
    "pilot_names",
    "pilot_rate",
    "pilot_sensors",
    "policy_word",
]

SVNET, MOTOR, AVOID, NAVIGATION, CAMERA = "svnet", "policy", "avoid", "navigation", "policy_view"
AUTOPILOTS = {
    "px4": "a PX4 outside, by MAVLink in lockstep; px4:PORT listens elsewhere (docs/howto/autopilots.md)",
    "ardupilot": "an ArduPilot outside, by its JSON interface; the same",
    "betaflight": "a Betaflight outside, by its simulator's packets, and a pilot of ours at its sticks; the same",
}
"""Programs outside, which `airworthy.bridges` flies."""
EXTERNAL = "external"
"""Before the kind of any other program outside, with a colon: `airworthy.bridges.remote`."""
LEARNT_PILOTS = (MOTOR, AVOID, NAVIGATION)
"""Words that a folder always follows: nothing of the kind is shipped."""
STUDENT = "agile_autonomy"
"""Kind and word of a student's folder, which a planner flies (`airworthy.planners.agile_autonomy`)."""
POLICY_WORDS = "svnet:FOLDER, policy:FOLDER, avoid:FOLDER or navigation:FOLDER"
_OTHERS = {
    ExpertPilot.name: "model predictive control with the true state and parameters: the expert that others learn from",
    SVNET: "an SV-Net policy, the shipped one or svnet:FOLDER: sees through a camera, knows height, velocity and attitude only",
    MOTOR: "a learnt policy, policy:FOLDER: commands rotors, or what its task commands, from the true state",
    AVOID: "a learnt policy that avoids, avoid:FOLDER: sees a small depth image, commands accelerations past obstacles",
    NAVIGATION: "a learnt policy that navigates, navigation:FOLDER: sees a small depth image, commands velocities to a goal",
}


def pilot_names() -> dict[str, str]:
    """Return built-in pilots and what they do."""
    return {**tracker_names(), **_OTHERS, **AUTOPILOTS}


def _name(specifier: str) -> str:
    name = specifier.partition(":")[0]
    if name not in pilot_names():
        hint = f"A trained policy is {POLICY_WORDS}, a class of your own FILE.py:CLASS."
        raise unknown_name("pilot", name, pilot_names(), hint)
    return name


def _parts(specifier: str) -> tuple[str, str]:
    """Name, and what stands behind the colon.

    Raises:
        UnknownNameError: If there is no such pilot.
        AirworthyError: A pilot with a folder that is no policy, or a program outside.
    """
    name, colon, folder = _name(specifier), *specifier.partition(":")[1:]
    if name in AUTOPILOTS:
        raise AirworthyError(
            f"Pilot {specifier!r} is a program outside: `airworthy fly --pilot {name}` and `airworthy serve` fly it, and in"
            " Python airworthy.bridges."
        )
    if (colon and (name not in (SVNET, *LEARNT_PILOTS) or not folder)) or (name in LEARNT_PILOTS and not colon):
        raise AirworthyError(
            f"The pilot is named {specifier!r}; write {POLICY_WORDS} for a policy, other pilots without a colon."
        )
    return name, folder


def policy_word(folder: str | Path) -> str:
    """Return the word of the pilot whose network lies in a folder; one that holds none is for the pilot's maker to refuse.

    Raises:
        AssetError: Its contract cannot be read or was changed.
    """
    from airworthy.pilots.avoid_policy import contract as avoid
    from airworthy.pilots.motor_policy import contract as motor
    from airworthy.pilots.navigation_policy import contract as navigation
    from airworthy.pilots.network_files import contract_kind

    kind = contract_kind(folder)
    if kind in (sees := {avoid.KIND: AVOID, navigation.KIND: NAVIGATION}):
        return f"{sees[kind]}:{folder}"
    if kind == STUDENT:
        return f"{STUDENT}:{folder}"
    return f"{MOTOR if kind == motor.KIND or _of_task(folder) else SVNET}:{folder}"


def _of_task(folder: str | Path) -> bool:
    """Tell whether a folder's policy is one of a learning task, which says its own level and controller."""
    from airworthy.pilots.network_files import contract_kind
    from airworthy.pilots.task_policy.contract import KIND

    return contract_kind(folder) == KIND


def pilot_control(specifier: str) -> ControlConfig | None:
    """Return the controller through which a pilot's commands go to the rotors, where the pilot asks for its own.

    Raises:
        UnknownNameError: If there is no such pilot.
        AssetError: The folder's policy cannot be read.
    """
    if _name(specifier) != MOTOR or not _of_task(specifier.partition(":")[2]):
        return None
    from airworthy.pilots.task_policy.contract import read_task_folder

    return read_task_folder(specifier.partition(":")[2])[0].control


def pilot_level(specifier: str) -> str:
    """Return the control level of a pilot's commands, for which the simulator must be built; a policy's folder may be left out.

    Raises:
        UnknownNameError: If there is no such pilot.
        AssetError: The folder's policy cannot be read.
    """
    name, folder = _name(specifier), specifier.partition(":")[2]
    if name == MOTOR and folder and _of_task(folder):
        from airworthy.pilots.task_policy.contract import read_task_folder

        return read_task_folder(folder)[0].level
    if name == MOTOR or name in AUTOPILOTS:
        return "rotor_speed"
    if name == NAVIGATION and folder:
        from airworthy.pilots.navigation_policy.pilot import read_flown_policy

        return read_flown_policy(folder).level
    if name in (AVOID, NAVIGATION):
        return "acceleration" if name == AVOID else "velocity"
    return ExpertPilot.level if name in _OTHERS else tracker_level(name)


def pilot_rate(specifier: str) -> float:
    """Return decisions per second [Hz] of a pilot that has a rate of its own; 0 of one that decides whenever it is asked.

    Raises:
        UnknownNameError: If there is no such pilot.
        AssetError: The folder's policy cannot be read.
        AirworthyError: A learnt policy without its folder.
    """
    name, folder = _parts(specifier)
    if name == AVOID:
        from airworthy.pilots.avoid_policy.sight import RATE

        return RATE
    if name == NAVIGATION:
        from airworthy.pilots.navigation_policy.sight import RATE as NAVIGATION_RATE

        return NAVIGATION_RATE
    if name != MOTOR:
        return 0.0
    from airworthy.pilots.motor_policy.contract import read_motor_folder
    from airworthy.pilots.task_policy.contract import read_task_folder

    return (read_task_folder(folder) if _of_task(folder) else read_motor_folder(folder))[0].rate


def pilot_sensors(specifier: str, vehicle: Vehicle) -> dict[str, MountedSensor]:
    """Return what a pilot needs mounted, by name: a policy's camera, as it was trained to see.

    Raises:
        AssetError: The folder holds no policy.
        AirworthyError: As `pilot_for`, or the vehicle's record has no camera.
    """
    name, folder = _parts(specifier)
    if name == MOTOR:  # it needs no sensor, but what cannot fly is refused before anything has flown
        _check_policy(folder, vehicle)
    if name == AVOID:
        from airworthy.pilots.avoid_policy import sight
        from airworthy.pilots.avoid_policy.contract import read_avoid_folder

        read_avoid_folder(folder)
        return {sight.CAMERA: MountedSensor(sight.avoid_camera())}
    if name == NAVIGATION:
        from airworthy.pilots.navigation_policy.pilot import read_flown_policy

        return read_flown_policy(folder).eye.sensors
    if name != SVNET:
        return {}
    from airworthy.pilots.svnet.contract import policy_folder, read_policy
    from airworthy.pilots.svnet.pilot import policy_camera

    contract, _ = read_policy(policy_folder(folder))  # its weights, too: what cannot fly is refused before anything has flown
    return {} if contract.view is None else {CAMERA: MountedSensor(policy_camera(vehicle, contract))}


def _check_policy(folder: str, vehicle: Vehicle) -> None:
    from airworthy.pilots.motor_policy.contract import check_vehicle, read_motor_folder
    from airworthy.pilots.task_policy.contract import check_task_vehicle, read_task_folder

    if _of_task(folder):
        check_task_vehicle(read_task_folder(folder)[0], vehicle)
    else:
        check_vehicle(read_motor_folder(folder)[0], vehicle)


def pilot_for(
    specifier: str, simulator: Simulator, path: Course | Trajectory, mounted: MountedSensors | None = None, device: str = "cpu"
) -> Pilot:
    """Return a pilot for a simulator's vehicles as they are now: make it after parameters were drawn.

    Args:
        specifier: Of `pilot_names`; a policy as svnet:FOLDER, policy:FOLDER, avoid:FOLDER or navigation:FOLDER, the shipped
            one as svnet.
        simulator: Built for the level of `pilot_level`.
        path: What to follow.
        mounted: With the sensors of `pilot_sensors`.
        device: Of the MPC and of the policy's images.

    Raises:
        UnknownNameError: If there is no such pilot.
        AirworthyError: A policy without its camera, of other rotors, or one that cannot be used.
    """
    name, folder = _parts(specifier)
    if name == ExpertPilot.name:
        return expert_for(simulator, expert_reference(path), device=device)
    if name == MOTOR:
        from airworthy.pilots.motor_policy.pilot import motor_pilot
        from airworthy.pilots.task_policy.pilot import task_pilot

        return task_pilot(folder, simulator, path) if _of_task(folder) else motor_pilot(folder, simulator, path)
    if name == AVOID:
        from airworthy.pilots.avoid_policy.pilot import avoid_pilot

        return avoid_pilot(folder, simulator, path)
    if name == NAVIGATION:
        from airworthy.pilots.navigation_policy.pilot import navigation_pilot

        return navigation_pilot(folder, simulator, path)
    if name != SVNET:
        return tracker(name, path.trajectory() if isinstance(path, Course) else path)
    from airworthy.pilots.svnet.contract import policy_folder
    from airworthy.pilots.svnet.pilot import svnet_pilot

    return svnet_pilot(policy_folder(folder), simulator, path, CAMERA, mounted, device)


def learnt_guide(specifier: str) -> str:
    """Return which kind of learnt policy that finds its own way is named, "avoid" or "navigation"; empty: none."""
    word, _, folder = specifier.partition(":")
    return word if word in (AVOID, NAVIGATION) and folder else ""
