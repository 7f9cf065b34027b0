"""What a user chooses about a simulation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from airworthy.control.config import ControlConfig
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.dynamics.rigid import INTEGRATORS
from airworthy.sensors.imu import imu_device

Vector3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]


@dataclass(frozen=True)
class Wind:
    """Air motion, world frame."""

    mean: Vector3 = (0.0, 0.0, 0.0)
    """Constant wind [m/s]."""
    gust: Vector3 = (0.0, 0.0, 0.0)
    """Peak of one 1-cosine gust pulse [m/s]."""
    gust_start: float = 0.0
    """Start of the pulse [s of the flight]."""
    gust_duration: float = 1.0
    """Length of the pulse [s]."""
    turbulence: Vector3 = (0.0, 0.0, 0.0)
    """Standard deviation of Dryden turbulence along the world axes [m/s]."""
    turbulence_length: Vector3 = (10.0, 10.0, 5.0)
    """Dryden length scales [m]."""
    airspeed: float = 5.0
    """Speed at which the frozen turbulence is crossed [m/s]."""


@dataclass(frozen=True)
class Ground:
    """A horizontal plane that carries vehicles."""

    height: float = 0.0
    """Height of the plane [m]."""
    friction: float = 0.6
    """Coulomb coefficient."""
    restitution: float = 0.2
    """Newton coefficient for approaches faster than 0.1 m/s."""


@dataclass(frozen=True)
class Contact:
    """What happens where a vehicle meets the geometry that its simulator was given.

    A sphere is met exactly; boxes and cylinders by spheres that enclose them (`airworthy.dynamics.body_spheres`).
    """

    mode: Literal["freeze", "reset", "respond"] = "freeze"
    """"freeze": the flight stops at the impact, with status 2. "reset": a new flight begins at the start pose, rotors at hover,
    biases drawn anew, command forgotten, in the step after the impact. "respond": the vehicle rebounds."""
    restitution: float = 0.2
    """Newton coefficient for approaches faster than 0.1 m/s, 0 to 1; mode "respond"."""
    friction: float = 0.6
    """Coulomb coefficient; mode "respond"."""

    def validate(self) -> None:
        """Check the values.

        Raises:
            AirworthyError: If one cannot be used.
        """
        if self.mode not in CONTACT_MODES:
            raise unknown_name("contact mode", self.mode, CONTACT_MODES)
        if not 0.0 <= self.restitution <= 1.0:
            raise AirworthyError(f"Contact restitution is {self.restitution}; expected 0 to 1.")
        if not 0.0 <= self.friction < math.inf:
            raise AirworthyError(f"Contact friction is {self.friction}; expected 0 or more.")


CONTACT_MODES = ("freeze", "reset", "respond")


@dataclass(frozen=True)
class Downwash:
    """Air that vehicles of a group blow down on those below: F_z = -a exp(-(r / b)^2 / 2).

    With dz the height of the one above and r the horizontal distance: a = strength (radius / (4 dz))^2, b = spread dz + offset.
    Defaults: gym-pybullet-drones, fitted to Crazyflies (spec/boundary_predictor 10).
    """

    strength: float = 2267.18
    """[N]"""
    spread: float = 0.16
    """Widening of the column per metre."""
    offset: float = -0.11
    """[m]"""
    radius: float = 0.0231348
    """Propeller radius [m]."""
    reach: float = 10.0
    """Horizontal distance beyond which there is none [m]."""


@dataclass(frozen=True)
class Imu:
    """An inertial sensor; `Imu.named("bmi088")` builds a known device."""

    accelerometer_noise: Vector3 = (0.0, 0.0, 0.0)
    """White noise density [m/s^2/sqrt(Hz)]."""
    gyroscope_noise: Vector3 = (0.0, 0.0, 0.0)
    """White noise density [rad/s/sqrt(Hz)]."""
    accelerometer_walk: Vector3 = (0.0, 0.0, 0.0)
    """Bias random walk [m/s^3/sqrt(Hz)]."""
    gyroscope_walk: Vector3 = (0.0, 0.0, 0.0)
    """Bias random walk [rad/s^2/sqrt(Hz)]."""
    accelerometer_limit: float = math.inf
    """Saturation [m/s^2]."""
    gyroscope_limit: float = math.inf
    """Saturation [rad/s]."""
    position: Vector3 = (0.0, 0.0, 0.0)
    """Lever arm, body frame, from the reference point [m]."""
    orientation: Quaternion = (0.0, 0.0, 0.0, 1.0)
    """Sensor-to-body quaternion x, y, z, w."""
    bias_initial: Vector3 = (0.0, 0.0, 0.0)
    """Half width of the uniform initial bias: accelerometer [m/s^2], gyroscope [rad/s], mounting angle per axis [rad]."""

    def mounting(self) -> Quaternion:
        """The orientation, brought to unit length.

        Raises:
            AirworthyError: If it has none.
        """
        length = math.sqrt(sum(x * x for x in self.orientation))
        if not (length > 1e-6 and math.isfinite(length)):
            raise AirworthyError(f"An IMU's orientation is {self.orientation}; expected a quaternion x, y, z, w.")
        x, y, z, w = (value / length for value in self.orientation)
        return x, y, z, w

    @classmethod
    def named(cls, name: str, position: Vector3 = (0.0, 0.0, 0.0), orientation: Quaternion = (0.0, 0.0, 0.0, 1.0)) -> Imu:
        """A device of `airworthy.sensors.imu_names()`, mounted.

        Raises:
            UnknownNameError: If there is none of this name.
        """
        return cls(**imu_device(name), position=position, orientation=orientation)


@dataclass(frozen=True)
class Randomization:
    """How vehicles differ from their record, per flight: uniform relative half widths, drawn again at each reset."""

    mass: float = 0.0
    """Mass, +- share; inertia follows."""
    inertia: float = 0.0
    """Each principal inertia, +- share."""
    thrust: float = 0.0
    """Thrust of all rotors together, +- share."""
    rotor: float = 0.0
    """Thrust and torque of each rotor, +- share."""
    drag: float = 0.0
    """All drag coefficients, +- share."""
    lag: float = 0.0
    """Motor time constants, +- share."""
    wind: float = 0.0
    """Horizontal mean wind, uniform in +- this [m/s], added to the configured one."""
    position: float = 0.0
    """Start position, uniform in a cube of this half width [m]."""
    yaw: float = 0.0
    """Start yaw, +- this [rad]."""

    @property
    def any(self) -> bool:
        """Whether anything varies."""
        return any(getattr(self, name) != 0.0 for name in self.__dataclass_fields__)


@dataclass(frozen=True)
class SimulatorConfig:
    """The clock, the equations switched on, and what surrounds the vehicles."""

    dynamics: Literal["rigid", "semi_kinematic"] = "rigid"
    """Family: rigid body with rotors, or point mass with attitude kinematics."""
    physics_rate: float = 960.0
    """Steps of the equations of motion per second [Hz]."""
    control_rate: float = 100.0
    """Commands per second [Hz]; command k falls on physics step ceil(k physics_rate / control_rate)."""
    integrator: Literal["rk4", "semi_implicit", "euler"] = "rk4"
    """Integration of the equations of motion."""
    level: str = "rotor_speed"
    """Control level of the commands; a colon names the law where a level has several ("tracking:mellinger")."""
    control: ControlConfig = field(default_factory=ControlConfig)
    """Gains and variants of the control laws."""
    exact_rotors: bool = False
    """Advance first-order rotors by their exact solution."""
    wrench_noise: bool = True
    """The vehicle's stochastic wrench."""
    disturbance: bool = True
    """The vehicle's impulsive disturbance."""
    battery: bool = False
    """Battery sag, for vehicles that have a battery."""
    ground: Ground | None = None
    """Ground plane; none: the vehicle may fall for ever."""
    contact: Contact | None = None
    """Contact with scene geometry; none: vehicles fly through it. Needs `Simulator(..., geometry=...)`."""
    ground_effect: float = 0.0
    """Coefficient of the ground effect (11.36859 for the Crazyflie lineage); 0: none."""
    wind: Wind = field(default_factory=Wind)
    """Air motion."""
    downwash: Downwash | None = None
    """Vehicles of a group blow at each other, as of the last launch; needs `groups`."""
    imu: Imu | None = None
    """Inertial sensor; none: none is simulated."""
    gyro_feedback: bool = False
    """The rate loop reads the simulated gyroscope instead of the true rate."""
    randomization: Randomization = field(default_factory=Randomization)
    """Spread of the vehicles."""
    rate_limit: float = 5.0
    """Limit of commanded body rates, semi-kinematic only [rad/s]."""
    state_noise: tuple[float, ...] = (0.0,) * 10
    """Standard deviation added per step to position [m], velocity [m/s] and attitude, semi-kinematic only."""

    def validate(self) -> None:
        """Check the numbers.

        Raises:
            AirworthyError: With one sentence, if one cannot be used.
        """
        if self.dynamics not in ("rigid", "semi_kinematic"):
            raise unknown_name("family of dynamics", self.dynamics, ("rigid", "semi_kinematic"))
        if len(self.state_noise) != 10:
            raise AirworthyError(f"state_noise has {len(self.state_noise)} numbers; expected 10: position, velocity, attitude.")
        if self.integrator not in INTEGRATORS:
            raise unknown_name("integrator", self.integrator, INTEGRATORS)
        if not (0 < self.physics_rate <= 1e5 and math.isfinite(self.physics_rate)):
            raise AirworthyError(f"physics_rate is {self.physics_rate} Hz; expected more than 0 and at most 100000.")
        if not 0 < self.control_rate <= self.physics_rate:
            raise AirworthyError(
                f"control_rate is {self.control_rate} Hz;"
                f" expected more than 0 and at most physics_rate ({self.physics_rate} Hz)."
            )
        if self.contact is not None:
            self.contact.validate()
