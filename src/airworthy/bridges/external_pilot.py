"""A pilot that is another program: sensors go out, motor commands come back, once per control period.

Whoever flies it (`airworthy.pilots.fly`) steps the vehicle when `command` returns, so that physics waits for the other side and
the other side gets every sample in order. Before the flight the vehicle stands where it begins, with running sensors, until the
other side arms: an autopilot takes seconds to find out where it is.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Annotated, Literal

import numpy as np

from airworthy.bridges.clock import ClockMode, LinkClock
from airworthy.bridges.motors import frame_for, motor_map
from airworthy.bridges.sockets import AutopilotFailure
from airworthy.bridges.vehicle_sample import VehicleSample, vehicle_sample
from airworthy.core.arrays import Array, ArrayFloat
from airworthy.core.errors import AirworthyError
from airworthy.core.random import Stream, flight_key, normals
from airworthy.core.schema import Bound, check_fields
from airworthy.pilots.pilot import Observation
from airworthy.sensors.navigation.geodesy import Home
from airworthy.sensors.navigation.suite import NavigationSensors
from airworthy.simulation.config import Imu
from airworthy.vehicles import Vehicle

__all__ = ["ExternalPilot", "LinkSettings", "MotorReply"]

_WAIT = Bound(0.01, 3600.0, "s")


@dataclass(frozen=True)
class LinkSettings:
    """What a user chooses about a link."""

    address: str = ""
    """Where to listen: PORT, ADDRESS or ADDRESS:PORT; without one, the protocol's port on this machine alone."""
    patience: Annotated[float, _WAIT] = 5.0
    """How long a reply may take; then the flight ends as pilot_error [s]."""
    wait: Annotated[float, _WAIT] = 120.0
    """How long to wait for the other side to appear, and again for it to arm [s]."""
    clock: ClockMode = "lockstep"
    """Physics waits for replies alone, or also for the wall clock."""
    factor: Annotated[float, Bound(0.01, 1000.0)] = 1.0
    """Simulated over wall-clock time, with clock "scaled"."""
    stand_clock: Literal["lockstep", "real"] = "real"
    """Of the time before the flight: at wall-clock time, so that people can arm, or as fast as it goes."""
    thrust_factor: Annotated[float, Bound(0.0, 1.0)] = 1.0
    """What a motor command is worth: f u^2 + (1 - f) u of the largest thrust (PX4's THR_MDL_FAC)."""
    home: Home = field(default_factory=Home)
    """Where the world's origin lies on the Earth."""
    magnetometer: str = "hmc5883l"
    """Device."""
    barometer: str = "ms5611"
    """Device."""
    gnss: str = "f9p_rtk"
    """Device."""

    def __post_init__(self) -> None:
        check_fields(self, "link.")


@dataclass(frozen=True)
class MotorReply:
    """What came back."""

    commands: Array
    """Of motors, in [0, 1], in the autopilot's order."""
    armed: bool


class ExternalPilot(ABC):
    """Base of all autopilots: one vehicle, one link; a context manager that closes it.

    Args:
        vehicle: Its rotors must be those of the autopilot's frame.
        rate: Control periods per second [Hz], as the simulator that it flies in has.
        settings: Of the link.
        imu: Of the simulator; its noise is what the sensors of a standing vehicle show.
        seed: Key of the noise.

    Raises:
        AirworthyError: The rotors do not fit.
    """

    name: str
    frame = "quad_x"
    """Of the airframe, in `motor_maps.toml`, where a vehicle has as many rotors."""
    level = "rotor_speed"
    observes = ("position", "velocity", "attitude", "rate", "imu", "imu_resting")

    def __init__(
        self, vehicle: Vehicle, rate: float, settings: LinkSettings | None = None, imu: Imu | None = None, seed: int = 0
    ):
        self.settings = LinkSettings() if settings is None else settings
        self.rate = rate
        self.frame = frame_for(vehicle, self.name, self.frame)
        self.motors = motor_map(vehicle, self.name, self.frame, thrust_factor=self.settings.thrust_factor)
        self._imu, self._key = imu or Imu(), flight_key(seed, np.zeros(1, np.uint32))
        s = self.settings
        self._sensors = NavigationSensors(s.home, s.magnetometer, s.barometer, s.gnss, seed)
        self.clock = LinkClock(s.clock, 1.0 / rate, s.factor)
        self._stood: float | None = None
        self.exchanges = 0
        """Samples that were answered."""
        self.absent = False
        """Whether nobody was there: nothing ever came within the link's `wait`."""

    # ---- what a protocol does ---------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def address(self) -> str:
        """Where it listens."""

    @abstractmethod
    def connect(self) -> None:
        """Wait for the other side to appear.

        Raises:
            AirworthyError: It did not within `settings.wait`.
        """

    @abstractmethod
    def exchange(self, sample: VehicleSample, standing: bool) -> MotorReply | None:
        """Send a sample and return the motor commands that answer it.

        Args:
            sample: Of now.
            standing: Before the flight, where nothing may come back, and None is returned.

        Raises:
            AutopilotFailure: Nothing came within the link's patience, or the other side left.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of the sockets; may be called again."""

    def notes(self) -> list[str]:
        """Return what was odd about the link, a sentence each."""
        late = self.clock.lateness()
        return [f"Clock {self.clock.mode}: {late.sentence()}."] if late.steps else []

    def unarmed(self) -> str:
        """Return what is known to keep it from arming, as the end of a sentence; none where nothing is."""
        return ""

    # ---- the pilot --------------------------------------------------------------------------------------------------

    def __enter__(self) -> ExternalPilot:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def command(self, observation: Observation) -> ArrayFloat:
        """Return rotor states, (1, rotor_count), that answer what is seen."""
        if len(observation.time) != 1:
            raise AirworthyError(f"{self.name} flies one vehicle, and there are {len(observation.time)}: set --envs to 1.")
        flown = float(observation.time[0])
        if self._stood is None:
            self._stood = self.stand(observation)
        self.clock.begin(flown)
        reply = self.exchange(self._sample(self._stood + flown, observation, observation["imu"][0]), standing=False)
        assert reply is not None
        self.exchanges += 1
        return self._states(reply)

    def stand(self, observation: Observation, until: Callable[[MotorReply], bool] = lambda reply: reply.armed) -> float:
        """Hold the vehicle where it is, with running sensors, until a reply says that the flight begins; return the time [s].

        Args:
            observation: Of the vehicle; its place and attitude are those of all the while.
            until: Whether a reply ends it.

        Raises:
            AutopilotFailure: None did within the link's `wait`.
        """
        pace = LinkClock(self.settings.stand_clock, 1.0 / self.rate)
        deadline, step = time.monotonic() + self.settings.wait, 0
        while True:
            now = step / self.rate
            pace.begin(now)
            reply = self.exchange(self._sample(now, observation, self._resting(observation, step), moving=False), standing=True)
            step += 1
            if reply is not None and until(reply):
                return step / self.rate
            if time.monotonic() > deadline:
                self.absent = reply is None
                silent = "never answered" if self.absent else "did not arm"
                why = "" if reply is None else self.unarmed()
                raise AutopilotFailure(
                    f"{self.name} {silent} within {self.settings.wait:g} s{why}; docs/howto/autopilots.md says how it does"
                )

    def _states(self, reply: MotorReply) -> Array:
        if not np.isfinite(reply.commands).all():
            raise AutopilotFailure(f"{self.name} sent motor commands that are not finite: {reply.commands[:4].tolist()}")
        return self.motors.rotor_states(reply.commands)[None]

    def _sample(self, now: float, seen: Observation, imu: ArrayFloat, moving: bool = True) -> VehicleSample:
        velocity, rate = (seen[name] * float(moving) for name in ("velocity", "rate"))
        fixes = self._sensors.sample(now, seen["position"], velocity, seen["attitude"])
        return vehicle_sample(now, seen["position"][0], velocity[0], seen["attitude"][0], rate[0], imu, fixes)

    def _resting(self, seen: Observation, step: int) -> Array:
        """IMU of a vehicle at rest, with the biases that it has in flight, or an estimator that has learnt them here is wrong
        there; and noise, since autopilots take a constant sensor for a dead one."""
        # Ours: behind the 24 numbers of a step that the navigation sensors draw.
        drawn = normals(self._key, step, Stream.NAVIGATION, 8, 32)[0, :6]
        density = np.array([*self._imu.accelerometer_noise, *self._imu.gyroscope_noise])
        return np.asarray(seen["imu_resting"][0] + density * np.sqrt(self.rate) * drawn)
