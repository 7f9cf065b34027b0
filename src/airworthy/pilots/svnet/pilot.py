"""SV-Net as a pilot: a camera's image, height, velocity and attitude in, thrust and body rates out; never where it is."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayIndex, ArrayLike, ArrayU8
from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.optics.projections import Pinhole
from airworthy.optics.tone import to_8bit
from airworthy.pilots.expert import believed_thrust
from airworthy.pilots.pilot import HEIGHT, SENSOR, Observation
from airworthy.pilots.svnet.contract import PolicyContract, PolicyImage, read_policy
from airworthy.pilots.svnet.contract_text import EARLY, RATE_MAX
from airworthy.pilots.svnet.features import History, from_command, observable, to_command, to_objective, z_down
from airworthy.pilots.svnet.network import Reading, SvNetwork
from airworthy.pilots.svnet.setting import PolicySetting
from airworthy.pilots.trackers import HoverFrame
from airworthy.sensors.carried import policy_camera_name, policy_cut, vehicle_camera
from airworthy.sensors.devices import Device
from airworthy.simulation.mounted import MountedSensors
from airworthy.simulation.simulator import Simulator
from airworthy.splats.policy_view import PolicyView
from airworthy.trajectories import Course, Trajectory, kinematic_state
from airworthy.vehicles import Vehicle

__all__ = ["SvNetPilot", "check_camera", "objective_of", "policy_camera", "policy_images", "svnet_pilot"]

# ---- What SV-Net is told of its course --------------------------------------------------------------------------------------

# Ours, the policy's own rate: at the 5 rad/s of `RATE_MAX` a sample turns by 0.25 rad, so that signs are certain.
RATE = 20.0
"""Samples of a path per second, between which its quaternions keep their sign."""


def objective_of(path: Trajectory, gravity: float = 9.81) -> Array:
    """Return what the policy is told of its course, (18,): duration, displacement, velocities and quaternions of start and
    end; z up.

    Source: StanfordMSL/SousVide, synthesize_helper.py, by way of the specification's section 5.
    """
    # All of the path, so that the sign of the last quaternion is the one that is reached by flying it.
    sample = path.sample(np.linspace(0.0, path.duration, max(2, round(path.duration * RATE) + 1)))
    attitude = kinematic_state(sample, gravity).attitude
    moved = sample.position[-1] - sample.position[0]
    return np.concatenate([[path.duration], moved, sample.velocity[0], sample.velocity[-1], attitude[0], attitude[-1]])


# ---- From what a mounted camera gives to the image that a policy was shown --------------------------------------------------

# Ours, 4.5 of 224 px: a camera calibrated anew passes, another lens does not.
_SAME = 0.02
"""Of a camera's intrinsics, relative to the size of the image: by as much they may differ from the policy's."""


def policy_images(view: PolicyImage, rgb: ArrayAny) -> ArrayU8:
    """Return 8-bit images (n, H, W, 3) at a policy's view, from those of a camera: at this view already, or whole.

    Args:
        view: Of the policy.
        rgb: (n, h, w, 3) linear radiance, or 8 bits. Whole images are resized and cut as in `PolicyView`.

    Raises:
        AirworthyError: They are too small, or the view cannot be cut from whole images.
    """
    images = rgb if rgb.dtype == np.uint8 else to_8bit(rgb)
    if images.shape[1:3] == (view.height, view.width):
        return np.asarray(images)
    return np.asarray(_cut(view, images.shape[2], images.shape[1]).of(images))


def _cut(view: PolicyImage, width: int, height: int) -> PolicyView:
    """Return how whole images are resized and cut."""
    found = policy_cut(view.width, view.height)
    if found is None or width < view.width or height < view.height:
        raise AirworthyError(
            f"A policy that sees {view.width} x {view.height} px got images of {width} x {height}: give it a camera at its own"
            " view (`policy_camera`)."
        )
    return found


def policy_camera(vehicle: Vehicle, contract: PolicyContract, camera: str = "") -> Device:
    """Return a camera of a vehicle's record as a policy was trained to see through it: to be mounted for it.

    Args:
        vehicle: Whose record gives the mount.
        contract: Gives view and rate.
        camera: Name of the sensor in the record; empty: as `sensors.carried.policy_camera_name` says.

    Raises:
        UnknownNameError: The record has no such camera.
        AirworthyError: The policy does not see, or the record has no camera at all.
    """
    view = contract.view
    if view is None:
        raise AirworthyError(f"A policy of variant {contract.variant!r} does not see; it needs no camera.")
    lens = Pinhole(view.width, view.height, view.fx, view.fy, view.cx, view.cy)
    vehicle_camera(vehicle)  # a vehicle without any camera is told so, not that it has none of this name
    return vehicle_camera(vehicle, camera or policy_camera_name(vehicle)).variant(projection=lens, rate=contract.rate)


def check_camera(contract: PolicyContract, device: Device) -> None:
    """Refuse a camera that shows something else than what the policy was trained on.

    Raises:
        AirworthyError: It gives no colours, is no pinhole without distortion, samples more rarely than the policy decides, or
            has other intrinsics.
    """
    view, lens = contract.view, device.projection
    if view is None:
        return
    if "rgb" not in device.channels or not isinstance(lens, Pinhole) or lens.distortion.any:
        raise AirworthyError(
            f"The policy sees colours of a pinhole without distortion; sensor {device.name!r} is no such camera."
        )
    if device.rate < contract.rate - 1e-6:
        raise AirworthyError(
            f"The policy decides at {contract.rate:g} Hz, sensor {device.name!r} samples at {device.rate:g} Hz: mount it with a"
            " higher rate."
        )
    given = np.array([lens.fx, lens.fy, lens.cx, lens.cy])
    if (lens.width, lens.height) != (view.width, view.height):
        given = _cut(view, lens.width, lens.height).intrinsics(given, (lens.width, lens.height))
    wanted, sides = np.array([view.fx, view.fy, view.cx, view.cy]), np.tile([view.width, view.height], 2)
    if (np.abs(given - wanted) > _SAME * sides).any():
        shown = ", ".join(f"{value:.1f}" for value in given), ", ".join(f"{value:.1f}" for value in wanted)
        raise AirworthyError(
            f"Sensor {device.name!r} shows the policy fx, fy, cx, cy of {shown[0]} px; it was trained on {shown[1]}."
        )


# -----------------------------------------------------------------------------------------------------------------------------


class SvNetPilot:
    """Decides at the policy's rate and holds the command in between; all flights of a tick together.

    Args:
        contract: What the policy is.
        network: Runs it.
        objective: (18,) or (env, 18) of `objective_of`: what it is told of its course.
        full: (env,) thrust of all rotors at full command as the vehicle's allocation believes it to be [N].
        sensor: Name of the mounted camera.
        idle: (env,) or one: thrust until the first image has arrived [N].
        frame: Of vehicles that hover leaning: attitude and commands are of the frame that is level then, and so are `full` and
            `idle`. What the camera sees leans all the same: mount it level in hover.

    Raises:
        AirworthyError: Shapes do not fit.
    """

    name = "svnet"
    level = "rate_thrust"

    def __init__(
        self,
        contract: PolicyContract,
        network: SvNetwork,
        objective: ArrayLike,
        full: ArrayLike,
        sensor: str = "camera",
        idle: ArrayLike = 0.0,
        frame: HoverFrame | None = None,
    ):
        self._frame = frame
        self.contract, self.network, self._sensor = contract, network, sensor
        self._full = np.atleast_1d(np.asarray(full, float))
        count = len(self._full)
        objectives = to_objective(objective)
        if objectives.shape not in ((18,), (count, 18)):
            raise AirworthyError(
                f"{count} flights got objectives of shape {objectives.shape}; expected (18,) or ({count}, 18)."
            )
        self._objective = np.broadcast_to(objectives, (count, 18))
        self._idle = np.broadcast_to(np.asarray(idle, float), count)
        self.history = History(count, contract.history)
        self._tick = np.full(count, -1, np.int64)
        self._turn = np.zeros((count, 4))
        self._given = np.zeros((count, 4))
        self._command = np.zeros((count, 4))
        self.raw = np.zeros((count, 4))
        """(env, 4) what the network last gave, before it was clipped: share of full thrust and body rates, z up."""
        self.estimate = np.full((count, 2), np.nan)
        """(env, 2) mass [kg] and force of one rotor [N] as it last believed them; NaN without a history network."""
        self.decisions = np.zeros(count, np.int64)
        """(env,) since the flight began."""
        self.clipped = np.zeros(count, np.int64)
        """(env,) decisions that were clipped to the bounds, since the flight began."""

    @property
    def sees(self) -> bool:
        """Whether it is given images; the variant that does not is told its position instead."""
        return self.network.kind.vision

    @property
    def observes(self) -> tuple[str, ...]:
        """A camera, height, velocity and attitude."""
        own = (f"{SENSOR}{self._sensor}", HEIGHT) if self.sees else ("position",)
        return (*own, "velocity", "attitude")

    def command(self, observation: Observation) -> Array:
        """Return collective thrust [N] and body rates [rad/s], (env, 4)."""
        tick = np.floor(observation.time * self.contract.rate + EARLY).astype(np.int64)
        new = tick != self._tick
        if new.any():
            self._begin(np.flatnonzero(new & (tick < np.maximum(self._tick, 1))))
            self._tick = tick
            self._decide(observation, new)
        return self._command.copy() if self._frame is None else self._frame.to_body(self._command)

    def note_applied(self, command: Array, which: ArrayBool) -> None:
        """Take note that other commands act than were decided, so that the history tells of what is flown.

        Args:
            command: (env, 4) collective thrust [N] and body rates [rad/s].
            which: (env,) whose.
        """
        if self._frame is not None and self._frame.leans:
            raise AirworthyError("What acts on a vehicle that leans in hover cannot be noted: its history is of another frame.")
        share = np.concatenate([command[:, :1] / self._full[:, None], command[:, 1:]], axis=1)
        self._given[which] = from_command(share)[which]

    def _begin(self, ids: ArrayIndex) -> None:
        """Begin new flights: nothing of the last ones counts."""
        self.history.reset(ids)
        self._turn[ids] = 0.0
        self.estimate[ids], self.raw[ids] = np.nan, 0.0
        self.decisions[ids], self.clipped[ids] = 0, 0
        self._command[ids] = 0.0
        self._command[ids, 0] = self._idle[ids]
        self._given[ids] = 0.0
        # As the network would have commanded it: a share of full thrust, negative along z down.
        self._given[ids, 0] = -(self._idle / self._full)[ids]

    def _decide(self, observation: Observation, new: ArrayBool) -> None:
        state = self._state(observation, new)
        observed = observable(state)
        self.history.push(observation.time, observed, self._given, new)
        ids = np.flatnonzero(new & self._shown(observation))
        if not ids.size:
            return
        known = observed if self.sees else np.concatenate([observation.time[:, None], z_down(state)], axis=1)
        reading = Reading(known[ids], self._objective[ids], self.history.features()[ids], self._images(observation, ids))
        decision = self.network(reading)
        self.raw[ids] = to_command(decision.command)
        if decision.estimate is not None:
            self.estimate[ids] = decision.estimate
        bound = np.clip(self.raw[ids], (0.0, *[-RATE_MAX] * 3), (1.0, *[RATE_MAX] * 3))
        self.decisions[ids] += 1
        # Clipping is ours (the reference does not clip); it is counted, so that reports can say how often it mattered.
        self.clipped[ids] += (bound != self.raw[ids]).any(axis=1)
        self._given[ids] = to_command(bound)
        self._command[ids] = np.concatenate([bound[:, :1] * self._full[ids, None], bound[:, 1:]], axis=1)

    def _state(self, observation: Observation, new: ArrayBool) -> Array:
        """(env, 10) z up, the quaternion's sign that of the tick before; a pilot that sees does not know x and y."""
        if self.sees:
            height = np.asarray(observation[HEIGHT], float)
            position = np.stack([np.zeros_like(height), np.zeros_like(height), height], axis=1)
        else:
            position = np.asarray(observation["position"], float)
        attitude = np.asarray(observation["attitude"], float)
        attitude = attitude if self._frame is None else self._frame.attitude(attitude)
        # q and -q are one attitude; a jump of sign between two ticks would read as a turn in the history.
        attitude = attitude * np.where((attitude * self._turn).sum(axis=1, keepdims=True) < 0.0, -1.0, 1.0)
        self._turn[new] = attitude[new]
        return np.concatenate([position, np.asarray(observation["velocity"], float), attitude], axis=1)

    def _shown(self, observation: Observation) -> ArrayBool:
        """(env,) which flights have an image."""
        return observation.sample(self._sensor).valid if self.sees else np.ones(len(self._full), bool)

    def _images(self, observation: Observation, ids: ArrayIndex) -> ArrayU8 | None:
        if not self.sees or self.contract.view is None:
            return None
        return policy_images(self.contract.view, observation.sample(self._sensor)["rgb"][ids])


# As far as vehicles and gravity move a course's attitudes; another course is whole seconds or metres away.
_SAME_COURSE = 0.05
"""By which numbers of an objective may differ from those of a course that was learnt; ours."""


def _warn_of_foreign_course(setting: PolicySetting, objective: Array, folder: str) -> None:
    """Warn where none of the courses that a policy learnt is the one that it is told of."""
    told = to_objective(objective)
    if setting.courses and all(np.abs(told - item.objective).max() > _SAME_COURSE for item in setting.courses):
        names = ", ".join(item.course for item in setting.courses)
        warnings.warn(
            f"The policy {folder!r} learnt of the courses {names}, and the one that it is told of is none of them: it never"
            " learnt to fly it.",
            AssetWarning,
            stacklevel=3,
        )


def svnet_pilot(
    folder: str | Path,
    simulator: Simulator,
    course: Course | Trajectory,
    sensor: str = "camera",
    mounted: MountedSensors | None = None,
    device: str = "cpu",
    threads: int | None = None,
) -> SvNetPilot:
    """Return the pilot of a policy's folder for a simulator's vehicles.

    Args:
        folder: With contract.json and weights.safetensors.
        simulator: Whose vehicles fly.
        course: Of which it is told the objective.
        sensor: Name of the mounted camera.
        mounted: Where it is mounted, to be compared with what the policy was trained on; None: it is not.
        device: Where images are computed on.
        threads: Most threads of a CPU.

    Raises:
        AssetError: The folder holds no policy.
        AirworthyError: The camera is another than that of the policy's training, or the simulator takes commands too rarely.
    """
    contract, weights = read_policy(folder)
    if (rate := simulator.config.control_rate) < contract.rate - 1e-6:
        raise AirworthyError(
            f"The policy decides at {contract.rate:g} Hz, the simulator takes commands at {rate:g} Hz: raise it."
        )
    if mounted is not None and contract.view is not None:
        check_camera(contract, mounted.sensor(sensor).device)
    path = course.trajectory() if isinstance(course, Course) else course
    vehicles = simulator.held
    objective = objective_of(path, vehicles[0].gravity)
    if contract.setting is not None:
        _warn_of_foreign_course(contract.setting, objective, str(folder))
    idle = np.array([item.mass * item.gravity for item in vehicles])
    network = SvNetwork(contract, weights, device, threads)
    frame = None if simulator.config.dynamics == "semi_kinematic" else HoverFrame(vehicles)
    full = believed_thrust(simulator)
    if frame is None or not frame.leans:
        return SvNetPilot(contract, network, objective, full, sensor, idle)
    return SvNetPilot(contract, network, objective, full / frame.up[:, 2], sensor, idle, frame)
