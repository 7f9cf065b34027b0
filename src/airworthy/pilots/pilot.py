"""What a pilot is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from airworthy.core.arrays import ArrayFloat
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import rotate_inverse
from airworthy.simulation.mounted import MountedSensors
from airworthy.simulation.sensor_state import Sample
from airworthy.simulation.simulator import Simulator

HEIGHT = "height"
"""World z alone, for pilots that are not to know where they are."""
RESTING = "imu_resting"
"""What the inertial sensor would measure of a vehicle that rests as it is, with its biases and its mount, without noise."""
ROOT = {"root_position": "position", "root_velocity": "velocity"}
"""What pilots of vehicles with joints read of the root's own centre of mass, and the simulator's fields that hold it."""
PRIVILEGED = (
    "position", "velocity", "attitude", "rate", "rotor_speed", "wind", HEIGHT, RESTING, *ROOT, "joint", "joint_rate",
)  # fmt: skip
"""State that no sensor gives; a pilot gets it only where it says so."""
WHOLE = {"position": "center", "velocity": "center_velocity"}
"""What pilots read under these names: of a vehicle with joints its whole, and not its root."""
OBSERVABLE = ("imu",)
"""Simulated sensors of the vehicle's own motion."""
SENSOR = "sensor:"
"""Before the name of a mounted sensor: a pilot that observes "sensor:front" is given the newest sample of `front`."""


class Pilot(Protocol):
    """Maps observations of all environments to commands of all environments."""

    @property
    def name(self) -> str:
        """As in the catalogue and in results."""
        ...

    @property
    def level(self) -> str:
        """Control level of its commands, a key of the simulator's levels."""
        ...

    @property
    def observes(self) -> tuple[str, ...]:
        """Fields it is given, besides time; of `PRIVILEGED` and `OBSERVABLE`, or "sensor:NAME". Nothing else reaches it."""
        ...

    def command(self, observation: Observation) -> ArrayFloat:
        """Return commands at `level`, shape (env, width) or (width,).

        A pilot that moves joints has besides `joint_rates`, the rates [rad/s] that servos are to turn at after this command,
        (env, joints); NaN: this joint is not told.
        """
        ...


@dataclass(frozen=True)
class Observation:
    """What a pilot sees at one instant."""

    time: ArrayFloat
    """Since the start of each flight [s], (env,)."""
    fields: dict[str, ArrayFloat]
    """The fields it declared, first axis the environment; read only."""
    samples: dict[str, Sample] = field(default_factory=dict)
    """The newest sample that has arrived of each mounted sensor it declared, by the sensor's name; read only."""

    def __getitem__(self, name: str) -> ArrayFloat:
        if name not in self.fields:
            raise AirworthyError(f"A pilot read {name!r}, which it does not declare; add it to `observes`.")
        return self.fields[name]

    def sample(self, name: str) -> Sample:
        """Return the newest sample of a mounted sensor, which the pilot declares as "sensor:NAME"."""
        if name not in self.samples:
            raise AirworthyError(
                f"A pilot read the sensor {name!r}, which it does not declare; add 'sensor:{name}' to `observes`."
            )
        return self.samples[name]


def check_observes(simulator: Simulator, pilot: Pilot, mounted: MountedSensors | None = None) -> None:
    """Refuse a pilot that asks for what it may not have, or for what is not simulated.

    Args:
        simulator: That it is to fly in.
        pilot: Whose `observes` is checked.
        mounted: Sensors on the vehicles; None: there are none.

    Raises:
        AirworthyError: One sentence.
    """
    if isinstance(pilot.observes, str):
        raise AirworthyError(
            f"Pilot {pilot.name!r} observes the text {pilot.observes!r}; write a tuple, ({pilot.observes!r},)."
        )
    for name in pilot.observes:
        if name.startswith(SENSOR):
            _check_sensor(pilot, name.removeprefix(SENSOR), mounted)
            continue
        if name not in (*PRIVILEGED, *OBSERVABLE):
            raise AirworthyError(
                f"Pilot {pilot.name!r} observes {name!r}; it may ask for {', '.join((*PRIVILEGED, *OBSERVABLE))}, and"
                f" {SENSOR}NAME of a sensor that it carries."
            )
        jointed = name not in ROOT or "joint" in simulator.layout
        if not jointed or (name not in (HEIGHT, RESTING) and ROOT.get(name, name) not in simulator.layout):
            raise AirworthyError(
                f"Pilot {pilot.name!r} observes {name!r}, which {simulator.config.dynamics} dynamics do not have."
            )
        if name in ("imu", RESTING) and simulator.config.imu is None:
            raise AirworthyError(f"Pilot {pilot.name!r} observes {name!r}, but no inertial sensor is simulated; configure one.")


def _check_sensor(pilot: Pilot, name: str, mounted: MountedSensors | None) -> None:
    known = () if mounted is None else mounted.names
    if name not in known:
        there = f"mounted are {', '.join(known)}" if known else "none is mounted"
        raise AirworthyError(f"Pilot {pilot.name!r} observes the sensor {name!r}, but {there}: mount it under this name.")


def observe(simulator: Simulator, observes: tuple[str, ...], mounted: MountedSensors | None = None) -> Observation:
    """Return the declared fields and samples of every environment, as copies that cannot be written; see `check_observes`.

    Args:
        simulator: Whose state is copied.
        observes: Names of fields, and of sensors with `sensor:` in front.
        mounted: Sensors on the vehicles; None: there are none.
    """
    fields = {name: np.array(_field(simulator, name)) for name in observes if not name.startswith(SENSOR)}
    sensors = [name.removeprefix(SENSOR) for name in observes if name.startswith(SENSOR)]
    samples = {} if mounted is None else {name: _copied(mounted.latest(name)) for name in sensors}
    time = simulator.time
    for array in (time, *fields.values()):
        array.flags.writeable = False
    return Observation(time, fields, samples)


def _copied(sample: Sample) -> Sample:
    """Return a sample whose arrays are nobody else's and cannot be written: a sensor's own are buffers that change."""
    data = {channel: np.array(array) for channel, array in sample.data.items()}
    rest = {name: np.array(getattr(sample, name)) for name in ("time", "step", "number", "valid", "position", "attitude")}
    for array in (*data.values(), *rest.values()):
        array.flags.writeable = False
    return replace(sample, data=data, **rest)


def _field(simulator: Simulator, name: str) -> ArrayFloat:
    if name == HEIGHT:
        return np.asarray(simulator.center[:, 2])
    if name in WHOLE:
        # Of a vehicle with joints, where the whole of it is and how it moves.
        return np.asarray(getattr(simulator, WHOLE[name]))
    if name in ROOT:
        return simulator.field(ROOT[name])
    if name == RESTING:
        return _resting(simulator)
    if name == "imu" and (begun := simulator.flight_step == 0).any():
        # A launch leaves the sample of its last step, and there was none yet.
        return np.where(begun[:, None], simulator.imu, simulator.field(name))
    # Without the rows that pad the kernel's rotors.
    return simulator.rotor_speed if name == "rotor_speed" else simulator.field(name)


def _resting(simulator: Simulator) -> ArrayFloat:
    """Accelerometer [m/s^2] and gyroscope [rad/s], sensor frame, (env, 6)."""
    up = np.zeros((simulator.env_count, 3))
    up[:, 2] = simulator.parameter("gravity")
    mount = np.asarray(simulator.parameter("imu_rotation"), float).reshape(-1, 3, 3)  # sensor to body
    force = np.einsum("eij,ei->ej", mount, rotate_inverse(np.asarray(simulator.attitude, float), up))
    return np.concatenate([force + simulator.field("accelerometer_bias"), simulator.field("gyroscope_bias")], axis=1)
