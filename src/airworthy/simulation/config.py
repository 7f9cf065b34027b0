"""What a user chooses about a simulation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from airworthy.control.levels import RATE_LOOP, ControlConfig, rate_level
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import SHARE, Bound, check_fields
from airworthy.sensors.devices import imu_device

if TYPE_CHECKING:
    from airworthy.vehicles.record import Vehicle

Vector3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]

AIR_SPEED = Bound(-100.0, 100.0, "m/s")
"""No wind that anything flies in is stronger."""
GUSTINESS = Bound(0.0, 100.0, "m/s")
PHYSICS_RATE = Bound(1.0, 1e5, "Hz")
CONTROL_RATE = Bound(0.01, 1e5, "Hz")
PLACE = Bound(-1e5, 1e5, "m")  # float32 keeps a centimetre at this distance
_SPREAD = Bound(0.0, 1.0, below=True)  # a whole would let a mass be zero
_NOISE = Bound(0.0, 1e6)
_SATURATION = Bound(0.0, 1e9, above=True, infinite=True)
FRICTION = Bound(0.0, 100.0)


@dataclass(frozen=True)
class Wind:
    """Air motion, world frame."""

    mean: Annotated[Vector3, AIR_SPEED] = (0.0, 0.0, 0.0)
    """Constant wind [m/s]."""
    gust: Annotated[Vector3, AIR_SPEED] = (0.0, 0.0, 0.0)
    """Peak of one 1-cosine gust pulse [m/s]."""
    gust_start: Annotated[float, Bound(-1e6, 1e6, "s")] = 0.0
    """Start of the pulse [s of the flight]."""
    gust_duration: Annotated[float, Bound(1e-3, 1e6, "s")] = 1.0
    """Length of the pulse [s]."""
    turbulence: Annotated[Vector3, GUSTINESS] = (0.0, 0.0, 0.0)
    """Standard deviation of Dryden turbulence along the world axes [m/s]."""
    # Ours: a few rooms across.
    turbulence_length: Annotated[Vector3, Bound(0.01, 1e5, "m")] = (10.0, 10.0, 5.0)
    """Dryden length scales [m]."""
    # Taylor's hypothesis: turbulence stands still and is crossed at this speed; at hover it would never change otherwise.
    airspeed: Annotated[float, Bound(0.01, 1e3, "m/s")] = 5.0
    """Speed at which the frozen turbulence is crossed [m/s]."""

    def __post_init__(self) -> None:
        check_fields(self, "Wind.")

    @property
    def blows(self) -> bool:
        """Whether the air moves at all."""
        return any(map(any, (self.mean, self.gust, self.turbulence)))


ROLLING = 0.3
"""Ours, because the spheres of the catalogue stand for airframes on feet, which do not roll at all: with 0.3 one that lands at
0.5 m/s sideways stops within 5 cm, and stands on slopes of up to 0.3. A rubber ball has 0.01 on a hard floor, 0.1 on grass."""


@dataclass(frozen=True)
class Ground:
    """A horizontal plane that carries vehicles."""

    height: Annotated[float, PLACE] = 0.0
    """Height of the plane [m]."""
    friction: Annotated[float, FRICTION] = 0.6
    """Coulomb coefficient."""
    restitution: Annotated[float, SHARE] = 0.2
    """Newton coefficient for approaches faster than 0.1 m/s (spec/aerial_gym section 2.2: bounce threshold)."""
    rolling: Annotated[float, FRICTION] = ROLLING
    """Resistance of round bodies to rolling: the push acts up to this share of the radius ahead of the point below. Spheres of
    vehicles with joints roll without; another value than this one is refused there."""

    def __post_init__(self) -> None:
        check_fields(self, "Ground.")


@dataclass(frozen=True)
class Contact:
    """What happens where a vehicle meets the geometry that its simulator was given.

    Spheres, boxes and cylinders are met exactly, but for edges rounded by 2.5 mm (`airworthy.dynamics.scene_native`).
    """

    mode: Literal["freeze", "reset", "respond"] = "freeze"
    """"freeze": the flight stops at the impact, with status 2. "reset": a new flight begins at the start pose, rotors at hover,
    biases drawn anew, command forgotten, in the step after the impact. "respond": the vehicle rebounds."""
    restitution: Annotated[float, SHARE] = 0.2
    """Newton coefficient for approaches faster than 0.1 m/s, 0 to 1; mode "respond"."""
    friction: Annotated[float, FRICTION] = 0.6
    """Coulomb coefficient; mode "respond"."""
    rolling: Annotated[float, FRICTION] = ROLLING
    """As of `Ground`; mode "respond"."""

    def __post_init__(self) -> None:
        check_fields(self, "Contact.")


CONTACT_MODES = ("freeze", "reset", "respond")


@dataclass(frozen=True)
class Downwash:
    """Air that vehicles of a group blow down on those below: F_z = -a exp(-(r / b)^2 / 2).

    With dz the height of the one above and r the horizontal distance: a = strength (radius / (4 dz))^2, b = spread dz + offset.
    Defaults: gym-pybullet-drones, fitted to Crazyflies (spec/boundary_predictor 10).
    """

    strength: Annotated[float, Bound(0.0, 1e6, "N")] = 2267.18
    """[N]"""
    spread: Annotated[float, Bound(0.0, 100.0)] = 0.16
    """Widening of the column per metre."""
    offset: Annotated[float, Bound(-100.0, 100.0, "m")] = -0.11
    """[m]"""
    radius: Annotated[float, Bound(0.0, 100.0, "m", above=True)] = 0.0231348
    """Propeller radius [m]."""
    reach: Annotated[float, Bound(0.0, 1e5, "m")] = 10.0
    """Horizontal distance beyond which there is none [m]."""

    def __post_init__(self) -> None:
        check_fields(self, "Downwash.")


@dataclass(frozen=True)
class Imu:
    """An inertial sensor; `Imu.named("bmi088")` builds a known device."""

    accelerometer_noise: Annotated[Vector3, _NOISE] = (0.0, 0.0, 0.0)
    """White noise density [m/s^2/sqrt(Hz)]."""
    gyroscope_noise: Annotated[Vector3, _NOISE] = (0.0, 0.0, 0.0)
    """White noise density [rad/s/sqrt(Hz)]."""
    accelerometer_walk: Annotated[Vector3, _NOISE] = (0.0, 0.0, 0.0)
    """Bias random walk [m/s^3/sqrt(Hz)]."""
    gyroscope_walk: Annotated[Vector3, _NOISE] = (0.0, 0.0, 0.0)
    """Bias random walk [rad/s^2/sqrt(Hz)]."""
    accelerometer_limit: Annotated[float, _SATURATION] = math.inf
    """Saturation [m/s^2]."""
    gyroscope_limit: Annotated[float, _SATURATION] = math.inf
    """Saturation [rad/s]."""
    position: Annotated[Vector3, Bound(-1e3, 1e3, "m")] = (0.0, 0.0, 0.0)
    """Lever arm, body frame, from the reference point [m]."""
    orientation: Annotated[Quaternion, Bound(-1e6, 1e6)] = (0.0, 0.0, 0.0, 1.0)
    """Sensor-to-body quaternion x, y, z, w."""
    link: str = ""
    """Link of a vehicle with joints that carries it, in whose frame position and orientation then are; empty: the root."""
    bias_initial: Annotated[Vector3, Bound(0.0, 1e3)] = (0.0, 0.0, 0.0)
    """Half width of the uniform initial bias: accelerometer [m/s^2], gyroscope [rad/s], mounting angle per axis [rad]."""

    def __post_init__(self) -> None:
        check_fields(self, "Imu.")
        self.mounting()

    def mounting(self) -> Quaternion:
        """Return the orientation, brought to unit length.

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
        """Return a device of `airworthy.sensors.imu_names()`, mounted.

        Args:
            name: Of the device.
            position: Of its mount in the body frame [m].
            orientation: Of its mount, quaternion x, y, z, w, sensor to body.

        Raises:
            UnknownNameError: If there is none of this name.
        """
        return cls(**imu_device(name), position=position, orientation=orientation)

    @classmethod
    def recorded(cls, vehicle: Vehicle) -> Imu:
        """Return the inertial sensor that a vehicle's record states, by the variances of its samples and its biases' walk.

        Raises:
            AirworthyError: It states none, or a sensor in other words.
        """
        mount = next((sensor for sensor in vehicle.sensors if sensor.kind == "imu"), None)
        stated = {} if mount is None else dict(mount.parameters)
        if mount is None or not {"rate_hz", "accel_noise_variance_m2ps4", "gyro_noise_variance_rad2ps2"} <= stated.keys():
            raise AirworthyError(
                f"The vehicle {vehicle.name!r} states no inertial sensor by the variances of its samples; name a device:"
                " Imu.named(...)."
            )

        def density(name: str, rate: float) -> Vector3:
            # White noise of density d has samples of standard deviation d sqrt(rate).
            return (math.sqrt(stated.get(name, 0.0) / rate),) * 3

        rate = stated["rate_hz"]
        return cls(
            density("accel_noise_variance_m2ps4", rate),
            density("gyro_noise_variance_rad2ps2", rate),
            density("accel_bias_walk_autocorrelation_m2ps5", 1.0),
            density("gyro_bias_walk_autocorrelation_rad2ps3", 1.0),
            position=mount.position,
            orientation=mount.orientation,
        )


@dataclass(frozen=True)
class Randomization:
    """How vehicles differ from their record, per flight, drawn again at each reset: uniform relative half widths, or what an
    identification left open."""

    mass: Annotated[float, _SPREAD] = 0.0
    """Mass, +- share; inertia follows."""
    inertia: Annotated[float, _SPREAD] = 0.0
    """Each principal inertia, +- share."""
    thrust: Annotated[float, _SPREAD] = 0.0
    """Thrust of all rotors together, +- share."""
    rotor: Annotated[float, _SPREAD] = 0.0
    """Thrust and torque of each rotor, +- share."""
    drag: Annotated[float, SHARE] = 0.0
    """All drag coefficients, +- share."""
    lag: Annotated[float, _SPREAD] = 0.0
    """Motor time constants, +- share."""
    wind: Annotated[float, GUSTINESS] = 0.0
    """Horizontal mean wind, uniform in +- this [m/s], added to the configured one."""
    position: Annotated[float, Bound(0.0, 1e3, "m")] = 0.0
    """Start position, uniform in a cube of this half width [m]."""
    yaw: Annotated[float, Bound(0.0, math.pi, "rad")] = 0.0
    """Start yaw, +- this [rad]."""
    joint: Annotated[float, SHARE] = 0.0
    """Start angles of joints, +- this share of half of what the vehicle's record has them start within; stops hold."""
    posterior: bool = False
    """Draw from the joint distribution of the record's `uncertainty`, as `Vehicle.draw` does. Mass, inertia, thrust and lag are
    then 0: independent boxes around an identified vehicle leave the hover that its log has shown."""
    widen: Annotated[float, Bound(0.0, 10.0, above=True)] = 1.0
    """Factor of the deviations of that distribution."""

    def __post_init__(self) -> None:
        check_fields(self, "Randomization.")
        if self.widen != 1.0 and not self.posterior:
            raise AirworthyError(
                f"Randomization.widen is {self.widen:g}, which widens what an identification left open: draw it"
                " (posterior=True, or identified on a command line), or leave it out."
            )
        together = [name for name in ("mass", "inertia", "thrust", "lag") if getattr(self, name) != 0.0]
        if self.posterior and together:
            raise AirworthyError(
                f"Randomization.{together[0]} is {getattr(self, together[0]):g}, which an identified vehicle's uncertainty"
                " draws together with the rest: leave it out."
            )

    @property
    def any(self) -> bool:
        """Whether anything varies."""
        return self.posterior or self.shares

    @property
    def shares(self) -> bool:
        """Whether anything varies by itself, besides what an identification left open."""
        return any(getattr(self, name) != 0.0 for name in self.__dataclass_fields__ if name not in ("posterior", "widen"))


IDENTIFIED_WORD = "identified"
"""Of --randomize: vehicles as an identification left them open."""


def asked_randomization(values: Mapping[str, float], identified: bool = False) -> Randomization:
    """Return how vehicles differ by the numbers of --randomize, which is named where one of them is refused.

    Args:
        values: By field.
        identified: Whether vehicles are drawn from what their identification left open.

    Raises:
        AirworthyError: A number is out of range.
    """
    try:
        return Randomization(**values, posterior=identified)
    except AirworthyError as error:
        raise AirworthyError(f"--randomize: {str(error).removeprefix('Randomization.')}") from None


@dataclass(frozen=True)
class SimulatorConfig:
    """The clock, the equations switched on, and what surrounds the vehicles."""

    dynamics: Literal["rigid", "semi_kinematic", "articulated"] = "rigid"
    """Family: rigid body with rotors, point mass with attitude kinematics, or a tree of bodies with joints and rotors."""
    physics_rate: Annotated[float, PHYSICS_RATE] = 960.0
    """Steps of the equations of motion per second [Hz]."""
    control_rate: Annotated[float, CONTROL_RATE] = 100.0
    """Commands per second [Hz]; command k falls on physics step ceil(k physics_rate / control_rate)."""
    integrator: Literal["rk4", "semi_implicit", "euler", "midpoint", "extrapolated"] = "rk4"
    """Integration of the equations of motion; midpoint and extrapolated are for joints, which have no euler."""
    joint_angles: Annotated[tuple[float, ...], Bound(-1e3, 1e3, "rad")] = ()
    """Angles that joints start from and that gains are found at [rad]; empty: those in which the vehicle hovers, see
    `airworthy.dynamics.articulated.joint_angles`."""
    level: str = "rotor_speed"
    """Control level of the commands; a colon names the law where a level has several ("tracking:mellinger")."""
    control: ControlConfig = field(default_factory=ControlConfig)
    """Gains and variants of the control laws."""
    specialized: bool = False
    """Compile a kernel for exactly these effects, level and integrator: 1.1 to 1.35 times as fast on a CPU, with the same
    bits, for a compilation of some seconds (cached). For long runs of one configuration."""
    exact_rotors: bool = False
    """Advance first-order rotors by their exact solution. Those too fast for the integrator's step are in any case; see
    `Simulator.exact_rotors` and `airworthy.simulation.stability`."""
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
    ground_effect: Annotated[float, Bound(0.0, 1e4)] = 0.0
    """Coefficient of the ground effect (11.36859 for the Crazyflie lineage); 0: none."""
    wind: Wind = field(default_factory=Wind)
    """Air motion."""
    downwash: Downwash | None = None
    """Vehicles of a group blow at each other, as of the last launch; needs `groups`."""
    imu: Imu | None = None
    """Inertial sensor; none: none is simulated."""
    gyro_feedback: bool = False
    """The loop of level "rate_thrust:flightgoggles" reads the simulated gyroscope instead of the true rate; others read
    none."""
    randomization: Randomization = field(default_factory=Randomization)
    """Spread of the vehicles."""
    rate_limit: Annotated[float, Bound(0.0, 1e3, "rad/s", above=True)] = 5.0
    """Limit of commanded body rates, semi-kinematic only [rad/s]."""
    state_noise: Annotated[tuple[float, ...], Bound(0.0, 1e3)] = (0.0,) * 10
    """Standard deviation added to position [m], velocity [m/s] and attitude per step of 1 / state_noise_rate, semi-kinematic
    only; it grows with the root of time, whatever the physics rate."""
    state_noise_rate: Annotated[float, PHYSICS_RATE] = 100.0
    """Steps per second that `state_noise` is stated for [Hz]; by default those of FiGS."""

    def __post_init__(self) -> None:
        check_fields(self)
        if len(self.state_noise) != 10:
            raise AirworthyError(f"state_noise has {len(self.state_noise)} numbers; expected 10: position, velocity, attitude.")
        jointed = self.dynamics == "articulated"
        if self.integrator in ("midpoint", "extrapolated") and not jointed:
            raise AirworthyError(
                f"The integrator {self.integrator!r} is for vehicles with joints; {self.dynamics} dynamics take rk4,"
                " semi_implicit or euler."
            )
        if self.joint_angles and not jointed:
            raise AirworthyError(f"joint_angles are given, but {self.dynamics} dynamics have no joints: leave them out.")
        if self.imu is not None and self.imu.link and not jointed:
            raise AirworthyError(f"Imu.link is {self.imu.link!r}, but {self.dynamics} dynamics have no links: leave it out.")
        if self.control_rate > self.physics_rate:
            raise AirworthyError(
                f"control_rate is {self.control_rate} Hz;"
                f" expected more than 0 and at most physics_rate ({self.physics_rate} Hz)."
            )
        if self.gyro_feedback and self.level != RATE_LOOP:
            raise AirworthyError(
                f"gyro_feedback changes nothing at level {self.level!r}, whose law reads the true rates; take level"
                f" {RATE_LOOP!r}, the loop of FlightGoggles, or leave it out."
            )

    @classmethod
    def published(cls, vehicle: Vehicle, **changes: Any) -> SimulatorConfig:
        """Return the configuration in which a vehicle's publication flies it at thrust and body rates, as races do.

        Of the family FlightGoggles (spec/flightgoggles 4.2, 4.3): its rate loop on its noisy gyroscope, Euler steps at 960 Hz.
        Plain `rate_thrust` is another law, with stiffer rates: a pilot that inverts the published loop drives rotors into their
        limits with it, and loses thrust (`tests/simulation/test_published_setup.py` measures how much).

        Args:
            vehicle: Of the catalogue.
            **changes: Fields that differ (`control_rate=240.0`, `contact=Contact("freeze")`).

        Raises:
            AirworthyError: It has no published configuration.
        """
        if vehicle.extra.get("family") != "flightgoggles":
            raise AirworthyError(
                f"The vehicle {vehicle.name!r} has no published configuration, only those of the family FlightGoggles have;"
                " choose the fields of SimulatorConfig yourself."
            )
        physics = float(vehicle.extra["physics_rate_hz"])
        fields = {"level": rate_level(vehicle), "integrator": "euler", "physics_rate": physics, "gyro_feedback": True}
        return cls(**{**fields, "imu": Imu.recorded(vehicle), **changes})
