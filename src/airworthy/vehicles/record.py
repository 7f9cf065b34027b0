"""The vehicle record: everything that says what flies, and nothing of how it moves.

Frames and units: body x forward, y left, z up, origin at the airframe's reference point (not the centre of mass); SI units,
rotor speed in rad/s. Thrust and torque of a rotor at speed w are `c0 + c1 w + c2 w|w|`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from airworthy.vehicles.uncertainty import Draws

Vector3 = tuple[float, float, float]
Polynomial = tuple[float, float, float]


@dataclass(frozen=True)
class RotorResponse:
    """How a rotor follows its command: dw/dt = a (c - w) + b (c|c| - w|w|), one pair (a, b) for rise and one for fall.

    A first-order lag of time constant tau is a = 1/tau, b = 0. Rise means |command| >= |speed|.
    """

    rise: tuple[float, float]
    """(a [1/s], b [1/rad]) while the magnitude of the speed grows."""
    fall: tuple[float, float]
    """(a [1/s], b [1/rad]) while it shrinks."""

    @classmethod
    def first_order(cls, rise: float, fall: float | None = None) -> RotorResponse:
        """Return the first-order lag with time constants [s]; `inf` rates (0 s) are not representable: use 1e-4."""
        return cls((1.0 / rise, 0.0), (1.0 / (rise if fall is None else fall), 0.0))


@dataclass(frozen=True)
class Rotor:
    """One rotor, fixed in the body."""

    position: Vector3
    """Hub in the body frame [m], from the reference point."""
    thrust: Polynomial
    """Thrust along the axis [N]: c0 + c1 w + c2 w|w|."""
    torque: Polynomial
    """Magnitude of the reaction torque about the axis [N m]: c0 + c1 w + c2 w|w|."""
    spin: Literal[-1, 1]
    """+1: the reaction torque on the airframe points along the axis; -1: against it."""
    response: RotorResponse
    speed_max: float
    """Upper limit of the rotor state [rad/s; N where `Vehicle.motor_state` is "thrust"]."""
    speed_min: float = 0.0
    """Lower limit of the rotor state; negative for a reversible rotor."""
    axis: Vector3 = (0.0, 0.0, 1.0)
    """Direction of positive thrust in the body frame, unit length."""
    inertia: float = 0.0
    """Moment of inertia of rotor and propeller about the axis [kg m^2]."""
    radius: float = 0.0
    """Propeller radius [m]; 0 where unknown."""
    hub_drag: tuple[float, float] = (0.0, 0.0)
    """Drag at the hub per rotor speed and air speed there, across and along the axis [N s^2/(rad m)]."""
    flapping: float = 0.0
    """Moment of flapping blades at the hub per rotor speed and air speed across the axis [N s^2/rad]; positive turns the
    body against its motion, nose up in forward flight."""
    translational_lift: float = 0.0
    """Thrust per squared air speed across the axis [N s^2/m^2]."""
    link: str = ""
    """Of a vehicle with joints: the link that carries it, in whose frame position and axis then are; empty: the root."""


@dataclass(frozen=True)
class Drag:
    """Aerodynamic force and moment of the airframe, in the body frame, v and w relative to the air.

    force  = -(linear v + quadratic_norm |v| v + quadratic_axis |v_i| v_i + rotor_speed (sum of |rotor speeds|) v)
    moment = -(angular_linear w + angular_norm |w| w + angular_axis |w_i| w_i) + center x force
    """

    linear: Vector3 = (0.0, 0.0, 0.0)
    """[N s/m] per axis."""
    quadratic_norm: Vector3 = (0.0, 0.0, 0.0)
    """[N s^2/m^2] per axis, times the vector's norm."""
    quadratic_axis: Vector3 = (0.0, 0.0, 0.0)
    """[N s^2/m^2] per axis, times that axis' magnitude."""
    rotor_speed: Vector3 = (0.0, 0.0, 0.0)
    """[N s^2/(rad m)] per axis, times the sum of rotor speed magnitudes."""
    angular_linear: Vector3 = (0.0, 0.0, 0.0)
    """[N m s/rad] per axis."""
    angular_norm: Vector3 = (0.0, 0.0, 0.0)
    """[N m s^2/rad^2] per axis, times the vector's norm."""
    angular_axis: Vector3 = (0.0, 0.0, 0.0)
    """[N m s^2/rad^2] per axis, times that axis' magnitude."""
    center: Vector3 = (0.0, 0.0, 0.0)
    """Where the drag force acts, from the centre of mass, body frame [m]."""


@dataclass(frozen=True)
class WrenchNoise:
    """Stochastic wrench: continuous white noise, drawn each step as N(0, autocorrelation / dt) per axis."""

    force: Vector3 = (0.0, 0.0, 0.0)
    """Autocorrelation of the force per axis [N^2 s]."""
    moment: Vector3 = (0.0, 0.0, 0.0)
    """Autocorrelation of the moment per axis [N^2 m^2 s]."""


@dataclass(frozen=True)
class Disturbance:
    """Impulsive disturbance: in each span of 1 / rate, with this probability, a uniform random wrench on the body.

    Sources state it per step of their own physics; `rate` is that of those steps, so that neither the number of pushes nor
    their impulse depends on the rate of the simulation. At `rate` itself they are the published ones.
    """

    probability: float = 0.0
    """Of a push in a span."""
    force_max: Vector3 = (0.0, 0.0, 0.0)
    """Bound of each force component [N]."""
    torque_max: Vector3 = (0.0, 0.0, 0.0)
    """Bound of each torque component [N m]."""
    rate: float = 100.0
    """Spans per second [Hz]; by default those of Aerial Gym, whose physics step is 0.01 s."""


@dataclass(frozen=True)
class Battery:
    """Open-circuit voltage falls linearly with the charge used; the current drops it over a resistance."""

    voltage_full: float
    """[V] at full charge."""
    voltage_empty: float
    """[V] at empty."""
    voltage_nominal: float
    """[V] at which the rotor speed limits hold; the limit scales with voltage / nominal."""
    capacity: float
    """[A s]"""
    resistance: float
    """[ohm]"""
    efficiency: float = 0.7
    """Mechanical rotor power over electrical power."""


@dataclass(frozen=True)
class VoltageChain:
    """From a firmware's motor command to rotor speed (Crazyflie lineage).

    grams = command_to_grams * u;  volts = volts_linear grams + volts_quadratic grams^2;
    pwm = clip(65535 min(1, volts / supply), pwm_min, pwm_max);  speed = speed_slope pwm + speed_offset [rad/s].
    """

    command_to_grams: float
    volts_linear: float
    volts_quadratic: float
    supply: float
    pwm_min: float
    pwm_max: float
    speed_slope: float
    """[rad/s per count]"""
    speed_offset: float
    """[rad/s]"""


@dataclass(frozen=True)
class CollisionBody:
    """Bounding shape, centred at `center` in the body frame. Cylinder axis is body z."""

    shape: Literal["sphere", "box", "cylinder"]
    size: Vector3
    """Sphere: (radius, radius, radius); box: half lengths; cylinder: (radius, radius, half height) [m]."""
    center: Vector3 = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class SensorMount:
    """A named sensor and where it sits."""

    name: str
    kind: str
    """"camera", "imu", "ranger", "lidar", ..."""
    device: str = ""
    """Name in the device catalogue of `sensors`, or FILE.toml:NAME beside the vehicle's file; empty: ideal."""
    position: Vector3 = (0.0, 0.0, 0.0)
    """[m] in the body frame."""
    orientation: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)
    """Sensor-to-body quaternion x, y, z, w."""
    parameters: tuple[tuple[str, float], ...] = ()
    """Numbers of this sensor (fx, width, ...), as pairs."""
    device_table: str = ""
    """Of FILE.toml:NAME its table as TOML, as it was when the vehicle was read: a record is whole wherever it is moved."""
    link: str = ""
    """Of a vehicle with joints: the link that carries it, in whose frame position and orientation then are; empty: the root."""


Quaternion = tuple[float, float, float, float]
JointLaw = Literal["spring", "morphy", "torque"]


@dataclass(frozen=True)
class Joint:
    """A hinge that carries a link: where it is in the parent, its axis, its limits, and what torque acts about it.

    Laws, with the joint's angle q, its rate qd and its target:

        spring   kp (target - q) - kd qd; where kp is 0: kd (target - qd)
        morphy   -kp e |e| - kd qd - weight cos q, e = q - rest (Aerial Gym's compliant arm, identified)
        torque   target - kd qd
    """

    position: Vector3
    """Origin of the link's frame in the parent's [m]; the axis passes through it."""
    axis: Vector3
    """Direction in the link's frame, unit length; the link turns about it by q."""
    rotation: Quaternion = (0.0, 0.0, 0.0, 1.0)
    """Link to parent at q = 0, quaternion x, y, z, w."""
    law: JointLaw = "spring"
    kp: float = 0.0
    """Stiffness [N m/rad; of "morphy" N m/rad^2]."""
    kd: float = 0.0
    """Damping [N m s/rad]."""
    rest: float = 0.0
    """Angle at which the spring is slack [rad]; of "spring" the target where none is given."""
    weight: float = 0.0
    """Of "morphy": the arm's weight times its length, which the law holds up at q = 0 on a level base [N m]."""
    armature: float = 0.0
    """Inertia of the drive about the axis [kg m^2], added to the link's."""
    lower: float | None = None
    """Stop [rad]; none: it turns on."""
    upper: float | None = None
    """Stop [rad]."""
    effort: float | None = None
    """Largest torque of the drive of an active joint [N m]; none: unlimited. A passive spring has no such limit."""
    rate_max: float | None = None
    """Bound of rate targets [rad/s]; none: unlimited."""
    active: bool = False
    """Whether commands set its target."""
    initial_low: float = 0.0
    """Least angle at the start of a flight [rad]."""
    initial_high: float = 0.0
    """Largest angle at the start of a flight [rad]."""


@dataclass(frozen=True)
class LinkShape:
    """A primitive that a link collides with, in the link's frame; a cylinder's axis is its own z."""

    shape: Literal["sphere", "box", "cylinder"]
    size: Vector3
    """Half extents, as of `CollisionBody` [m]."""
    position: Vector3 = (0.0, 0.0, 0.0)
    """[m]"""
    rotation: Quaternion = (0.0, 0.0, 0.0, 1.0)
    """Shape to link, quaternion x, y, z, w."""


@dataclass(frozen=True)
class Link:
    """A rigid part of a vehicle with joints. The first is the root, whose frame is the body frame; it hangs on nothing."""

    name: str
    parent: str = ""
    """The link that it hangs on, which stands before it; empty: it is the root."""
    joint: Joint | None = None
    """How it hangs there; none: it is the root."""
    mass: float = 0.0
    """[kg]; zero for links between the joints of one place."""
    center_of_mass: Vector3 = (0.0, 0.0, 0.0)
    """In the link's frame [m]."""
    inertia: tuple[float, float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    """About the link's own centre of mass, link axes: xx, yy, zz, xy, xz, yz [kg m^2]."""
    shapes: tuple[LinkShape, ...] = ()
    drag: Vector3 = (0.0, 0.0, 0.0)
    """Linear drag along the link's axes, at its centre of mass, against the air [N s/m]."""


UNCERTAIN = {
    "mass": "log",
    "thrust": "log",
    "thrust_linear": "linear",
    "torque_ratio": "log",
    "lag": "log",
    "command_delay": "linear",
    "inertia_xx": "log",
    "inertia_yy": "log",
    "inertia_zz_ratio": "log",
    "center_x": "linear",
    "center_y": "linear",
    "damping": "log",
    "drag_x": "log",
    "drag_y": "log",
    "drag_z": "log",
    "sag": "linear",
}
"""What of a vehicle may be uncertain, and the scale on which that is normal; `vehicles.uncertainty` says what each is."""


@dataclass(frozen=True)
class ThrustDrift:
    """How thrust of all rotors changes within a flight, as a battery makes it whose voltage no log tells; it is not drawn."""

    rate: float
    """Of the logarithm of thrust [1/s]; negative where it falls."""
    sd: float
    """Of the rate, from flight to flight [1/s]."""
    since: float
    """So long after take-off thrust is as recorded [s]."""


@dataclass(frozen=True)
class Uncertainty:
    """How sure a vehicle's values are: a normal distribution of several together, on the scales of `UNCERTAIN`.

    A table of a file holds it as `[uncertainty]`; `Vehicle.draw` draws vehicles from it.
    """

    names: tuple[str, ...]
    """Of `UNCERTAIN`, each once."""
    transform: tuple[Literal["log", "linear"], ...]
    """Scale of each: normal is its logarithm, or itself."""
    mean: tuple[float, ...]
    """On that scale; SI units before the logarithm."""
    sd: tuple[float, ...]
    """Standard deviation on that scale."""
    correlation: tuple[tuple[float, ...], ...]
    """Full matrix."""
    share: tuple[float, ...]
    """1 - variance over what it was beforehand: how much logs told of each, 0 to 1."""
    state: float
    """Rotor state at which "thrust" and "thrust_linear" are told [rad/s, or N]."""
    method: str = ""
    """How it was found."""
    seed: int = 0
    thrust_drift: ThrustDrift | None = None
    """None: no flight told it, or the voltage tells what the battery does (`Vehicle.command_sag`)."""


@dataclass(frozen=True)
class Vehicle:
    """A vehicle's parameters. Build one with `vehicle()` (catalogue), `read_vehicle` (file), `import_urdf` or `synthesize`."""

    name: str
    mass: float
    """[kg]"""
    inertia: tuple[float, float, float, float, float, float]
    """About the centre of mass, body axes: xx, yy, zz, xy, xz, yz [kg m^2]."""
    rotors: tuple[Rotor, ...]
    center_of_mass: Vector3 = (0.0, 0.0, 0.0)
    """In the body frame [m]."""
    motor_state: Literal["speed", "thrust"] = "speed"
    """What a rotor's state is. With "thrust", speeds and limits read newtons and `thrust` is (0, 1, 0)."""
    drag: Drag = Drag()
    wrench_noise: WrenchNoise = WrenchNoise()
    disturbance: Disturbance = Disturbance()
    battery: Battery | None = None
    voltage_chain: VoltageChain | None = None
    body: CollisionBody = CollisionBody("sphere", (0.15, 0.15, 0.15))
    sensors: tuple[SensorMount, ...] = ()
    gravity: float = 9.81
    """[m/s^2] that the vehicle's source uses."""
    command_delay: float = 0.0
    """Dead time from a motor's command to the first answer of its rotor [s]; rigid dynamics fly it."""
    rotor_range: tuple[float, float] | None = None
    """Rotor states that were flown where thrust was identified, least and largest; beyond them the curve is extrapolated."""
    command_map: tuple[float, float] | None = None
    """Steady rotor speed of a command u in its logs, 0 < u <= 1: first + second u [rad/s]; none: u times `speed_max`. What
    flies commands speeds; logs of the vehicle command fractions."""
    command_sag: tuple[float, float] | None = None
    """How the supply enters commands in logs, exponent and voltage [V]: a command u at V volts acts as u (V / second)^first. Of
    motors that are driven by a share of the supply the exponent is about 1, of such whose drive makes up for it 0; none: the
    voltage plays no part."""
    links: tuple[Link, ...] = ()
    """Of a vehicle with joints, parents first; empty: it is rigid. Mass, centre of mass and inertia are then those of all links
    with every joint at zero, about the root link's frame: `articulated` makes such a record."""
    fixed_base: bool = False
    """Whether the root link of a vehicle with joints is held where it is, as on a test stand."""
    sources: dict[str, str] = field(default_factory=dict, compare=False)
    """Where each value comes from: dotted field name -> source."""
    extra: dict[str, float | str] = field(default_factory=dict, compare=False)
    """Published facts beside the physics (family, printed indicators, controller mass, ...)."""
    uncertainty: Uncertainty | None = field(default=None, compare=False)
    """How sure its values are; none: that is not known."""

    @property
    def rotor_count(self) -> int:
        return len(self.rotors)

    @property
    def joint_count(self) -> int:
        return max(len(self.links) - 1, 0)

    def draw(self, count: int, seed: int) -> Draws:
        """Draw vehicles from what is uncertain of this one; see `vehicles.uncertainty.draw`."""
        from airworthy.vehicles.uncertainty import draw

        return draw(self, count, seed)
