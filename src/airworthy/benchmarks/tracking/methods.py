"""Who is evaluated: pilots by the words of the command line, or a factory of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np

from airworthy.benchmarks.navigation.methods import BUILT_IN_PILOTS, is_own_pilot, own_pilot
from airworthy.benchmarks.navigation.methods import method_of as navigation_method
from airworthy.benchmarks.tracking.conditions import Condition
from airworthy.bridges.autopilots import CLOCKS, IMU, RATES, autopilot
from airworthy.bridges.external_pilot import LinkSettings
from airworthy.bridges.remote.pilot import RemoteSettings
from airworthy.bridges.remote.words import external_entry, is_external, without_prefix
from airworthy.bridges.stick_pilot import StickPilot
from airworthy.control.kernel import LEVELS
from airworthy.control.levels import ControlConfig
from airworthy.core.arrays import Array, ArrayInt, ArrayU32
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.files import sha256, sha256_file
from airworthy.core.random import Stream, flight_key, uniforms
from airworthy.core.schema import Bound, check_fields
from airworthy.pilots import Pilot
from airworthy.pilots.catalogue import (
    AUTOPILOTS,
    LEARNT_PILOTS,
    pilot_control,
    pilot_for,
    pilot_level,
    pilot_rate,
    pilot_sensors,
)
from airworthy.pilots.expert import expert_for, expert_reference, full_thrust_of
from airworthy.pilots.network_files import CONTRACT_FILE, WEIGHTS_FILE
from airworthy.pilots.svnet.contract import policy_folder, shipped_name
from airworthy.simulation import Imu, MountedSensor, MountedSensors, Simulator
from airworthy.simulation.family import FAMILIES
from airworthy.simulation.posterior import DrawnVehicle
from airworthy.trajectories import Course, Trajectory, kinematic_state
from airworthy.vehicles import Vehicle

__all__ = [
    "CAMERA",
    "TICK_RATE",
    "Drones",
    "MakePilot",
    "Patience",
    "TrackingMethod",
    "VehicleSpread",
    "catalogue_method",
    "draw_drones",
    "equip",
    "expert_method",
    "families_of",
    "keys_of",
    "method_of",
    "methods_of",
    "with_draws",
]

# -----------------------------------------------------------------------------------------------------------------------------
# The drones of a block and where they begin: functions of (seed, flight number), the same in every condition.
#
# Flights with one number therefore have the same start and the same drawn drone whoever flies and whatever the condition,
# which is what makes differences between pilots and conditions pairs.

_START, _DRONE, _SIDE = 0, 1, 2
"""Steps of the stream that a flight's own numbers are drawn from."""


@dataclass(frozen=True)
class VehicleSpread:
    """Half widths of what every flight of a run draws, uniform."""

    position: float = 0.1
    """[m]"""
    velocity: float = 0.1
    """[m/s]"""
    attitude: float = 0.05
    """Of each component of the quaternion, before it is normalised."""
    mass: float = 0.0
    """Share; so is thrust. A condition that has a wider one wins."""
    thrust: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self, "Spread.")


@dataclass(frozen=True, eq=False)
class Drones:
    """Of n flights."""

    number: ArrayInt
    """(n,)"""
    mass: Array
    """(n,) as flown [kg]."""
    thrust: Array
    """(n,) of all rotors at full command [N]."""
    vehicle: Vehicle
    """Of which they are kinds."""
    side: Array
    """(n,) 1 or -1: from which side a gust comes."""
    position: Array
    """(n, 3) start, world [m]; so are velocity (n, 3) and attitude (n, 4)."""
    velocity: Array
    attitude: Array

    @property
    def ratio(self) -> Array:
        """(n,) force of one rotor at full command over mass [N/kg]: what a history network can know."""
        return self.thrust / self.rotors / self.mass

    @property
    def nominal(self) -> float:
        """The same of the record."""
        return full_thrust_of(self.vehicle) / self.rotors / self.vehicle.mass

    @property
    def rotors(self) -> int:
        """Of each."""
        return self.vehicle.rotor_count

    def full_of(self, family: str) -> Array:
        """Return (n,) thrust that a command of full thrust names [N]: in the rigid family what the allocation believes."""
        return self.thrust if family == "semi_kinematic" else np.full(len(self.thrust), full_thrust_of(self.vehicle))


def keys_of(seed: int, number: ArrayInt) -> ArrayU32:
    """Return (n, 4) keys of flights by their numbers: apart from those with which a simulator draws."""
    own = int(sha256(f"tracking protocol {seed}")[:16], 16)
    return flight_key(own, number)


def draw_drones(
    vehicle: Vehicle, path: Trajectory, spread: VehicleSpread, condition: Condition, seed: int, number: ArrayInt
) -> Drones:
    """Draw the flights of some numbers (n,).

    Args:
        vehicle: The nominal one.
        path: Whose state at time 0 starts are drawn around.
        spread: Half widths: position [m], velocity [m/s], quaternion [1], mass and thrust as shares.
        condition: Factor of mass, and wider spreads of starts, mass and thrust.
        seed: Of the run.
        number: Of the flights, (n,); draws depend on nothing else.
    """
    key = keys_of(seed, number)
    sample = path.sample(np.zeros(1))
    wanted = np.concatenate([sample.position[0], sample.velocity[0], kinematic_state(sample, vehicle.gravity).attitude[0]])
    widest = [max(getattr(spread, name), getattr(condition, f"{name}_spread")) for name in ("position", "velocity", "attitude")]
    half = np.repeat(widest, [3, 3, 4])
    start = wanted + half * (2.0 * uniforms(key, _START, Stream.SYNTHESIS, 10) - 1.0)
    start[:, 6:] /= np.linalg.norm(start[:, 6:], axis=1, keepdims=True)
    share = 2.0 * uniforms(key, _DRONE, Stream.SYNTHESIS, 2) - 1.0
    mass = vehicle.mass * condition.mass * (1.0 + max(spread.mass, condition.mass_spread) * share[:, 0])
    thrust = full_thrust_of(vehicle) * (1.0 + max(spread.thrust, condition.thrust_spread) * share[:, 1])
    # From which side a gust comes.
    side = np.where(uniforms(key, _SIDE, Stream.SYNTHESIS, 1)[:, 0] < 0.5, 1.0, -1.0)
    return Drones(number, mass, thrust, vehicle, side, start[:, :3], start[:, 3:6], start[:, 6:])


def with_draws(drones: Drones, drawn: Sequence[DrawnVehicle]) -> Drones:
    """Return drones of drawn vehicles: what a condition makes of mass and thrust is made of theirs.

    Args:
        drones: Of the record.
        drawn: What each flight drew of it.
    """
    mass = np.array([item.vehicle.mass for item in drawn]) / drones.vehicle.mass
    thrust = np.array([full_thrust_of(item.vehicle) for item in drawn]) / full_thrust_of(drones.vehicle)
    return replace(drones, mass=drones.mass * mass, thrust=drones.thrust * thrust)


def equip(simulator: Simulator, drones: Drones, drawn: Sequence[DrawnVehicle] = ()) -> None:
    """Give a simulator's vehicles these drones' mass and thrust; inertia follows mass, as of a drone that is denser.

    Args:
        simulator: Of the flights; one that draws vehicles is reset before, and what is set holds until it is again.
        drones: Of the flights.
        drawn: What each flight has drawn; none: the simulator's records fly.
    """
    flown, lasting = [item.vehicle for item in drawn] or simulator.vehicles, not drawn
    share = drones.mass / np.array([item.mass for item in flown])
    simulator.set_parameter("mass", drones.mass, lasting)
    if simulator.config.dynamics == "semi_kinematic":
        simulator.set_parameter("thrust_limit", drones.thrust)
        return
    simulator.set_parameter("inertia", simulator.parameter("inertia") * share[:, None], lasting)
    gain = drones.thrust / np.array([full_thrust_of(item) for item in flown])
    for name in ("rotor_thrust", "rotor_torque"):
        rows = np.asarray(simulator.parameter(name))
        simulator.set_parameter(name, rows.reshape(len(gain), -1) * gain[:, None], lasting)


# -----------------------------------------------------------------------------------------------------------------------------

CAMERA = "camera"
"""Name under which a policy's camera is mounted."""
TICK_RATE = 20.0
"""Ticks per second [Hz], as published: what is recorded, judged, pushed and sensed anew; pilots of `LEVEL` decide at them."""
COMMAND_RATES = (TICK_RATE, 100.0, 500.0)
"""At which a simulator here may take commands [Hz]: whole numbers to a tick, and whole steps of the rigid family's physics."""
_AUTOPILOT_RATES = (500.0, 1000.0)
"""The same, of autopilots; ArduCopter does not arm with less than 720 samples per second [Hz]."""
_OTHERS_RATE = 100.0
"""Least of pilots at another level than `LEVEL` [Hz]: at which `airworthy fly` flies them."""


class MakePilot(Protocol):
    """Makes a pilot for the flights of a simulator, after their drones were drawn and their sensors mounted."""

    def __call__(self, simulator: Simulator, course: Course, mounted: MountedSensors | None) -> Pilot:
        """Return the pilot, with a command per environment."""
        ...


@dataclass(frozen=True)
class TrackingMethod:
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
    level: str = "rate_thrust"
    """Of its commands; as published, thrust [N] and body rates [rad/s]."""
    rate: float = TICK_RATE
    """At which the simulator takes its commands, one of `COMMAND_RATES` [Hz]."""
    control: ControlConfig | None = None
    """Through which its commands go to the rotors, where it asks for its own."""
    imu: str = ""
    """Inertial sensor that it reads (`airworthy sensors` lists them); none where it reads none."""
    single: bool = False
    """It flies one flight at a time, whatever the size of a batch: a program outside that has one vehicle."""


LEVEL = "rate_thrust"
"""Of the published pilots' commands: thrust [N] and body rates [rad/s], which both families take."""


@dataclass(frozen=True)
class Patience:
    """With programs outside [s]."""

    reply: Annotated[float | None, Bound(0.01, 3600.0, "s")] = None
    """How long a reply may take; None: as usual over its protocol."""
    appear: Annotated[float | None, Bound(0.01, 3600.0, "s")] = None
    """How long one may take to appear, and an autopilot again to arm; None: as usual."""

    def __post_init__(self) -> None:
        check_fields(self, "Patience.")

    def of(self, kind: type[Any], **more: Any) -> Any:
        """Return settings of a protocol.

        Args:
            kind: Its class of settings.
            more: Other fields.
        """
        given = {"patience": self.reply, "wait": self.appear}
        return kind(**{name: value for name, value in given.items() if value is not None}, **more)


USUAL_PATIENCE = Patience()


def method_of(specifier: str, patience: Patience = USUAL_PATIENCE) -> TrackingMethod:
    """Return a pilot by its word, one that `airworthy fly` takes: mpc (the expert), svnet (the shipped policy), svnet:FOLDER,
    policy:FOLDER, avoid:FOLDER and navigation:FOLDER (learnt ones), a tracker's law, FILE.py:CLASS, a pilot of one's own,
    external:KIND[:WHERE], a program outside, or px4, ardupilot, betaflight[:PORT], an autopilot outside.

    Args:
        specifier: The word.
        patience: With programs outside.

    Raises:
        UnknownNameError: There is no such pilot.
        AssetError: The folder holds no policy, or there is no such file.
        AirworthyError: It is a planner, or the class is none that can fly a course.
    """
    if is_own_pilot(specifier):
        return own_method(specifier)
    if is_external(specifier):
        return external_method(specifier, patience)
    if without_prefix(specifier).partition(":")[0] in AUTOPILOTS:
        return autopilot_method(without_prefix(specifier), patience)
    kind, colon, folder = specifier.partition(":")
    if specifier == "mpc":
        return expert_method()
    if kind == "svnet" and bool(colon) == bool(folder):
        return svnet_method(policy_folder(folder))
    if specifier in BUILT_IN_PILOTS:
        raise AirworthyError(_PLANS.format(specifier))
    return catalogue_method(specifier)


_PLANS = (
    "{!r} is a planner, which finds its own way from a start to a goal; an evaluation flies courses: try it in `airworthy bench"
    " navigation`, or name a pilot."
)


def families_of(method: TrackingMethod) -> tuple[str, ...]:
    """Return the families of dynamics whose vehicles take a pilot's commands."""
    return tuple(name for name in ("semi_kinematic", "rigid") if method.level in FAMILIES[name].levels)


def catalogue_method(specifier: str) -> TrackingMethod:
    """Return a pilot by its word of `pilots.pilot_names`; a learnt policy decides at its own rate.

    Raises:
        UnknownNameError: There is no such pilot.
        AssetError: The folder holds no policy.
        AirworthyError: It decides more often than a simulator here takes commands.
    """
    level, wanted = pilot_level(specifier), pilot_rate(specifier)
    kind, _, folder = specifier.partition(":")
    least = TICK_RATE if level == LEVEL else max(wanted, _OTHERS_RATE)
    rate = next((rate for rate in COMMAND_RATES if rate >= least - 1e-6), None)
    if rate is None:
        raise AirworthyError(
            f"{specifier!r} decides at {wanted:g} Hz, and an evaluation's simulator takes commands at up to"
            f" {COMMAND_RATES[-1]:g} Hz: fly it with `airworthy fly --pilot {specifier} --control-rate {wanted:g}`, whose"
            " --latency, --randomize and --turbulence are much of what an evaluation tries."
        )

    def make(simulator: Simulator, course: Course, mounted: MountedSensors | None) -> Pilot:
        return pilot_for(specifier, simulator, course, mounted, simulator.device)

    def sensors(vehicle: Vehicle) -> Mapping[str, MountedSensor]:
        return pilot_sensors(specifier, vehicle)

    digests = {name: sha256_file(Path(folder) / name) for name in (CONTRACT_FILE, WEIGHTS_FILE)} if folder else {}
    name = (Path(folder).name if Path(folder).name not in ("", ".", "..") else kind) if folder else specifier
    identity = {"pilot": kind, **digests}
    # A tracker gives the course alone: the law that follows it acts inside the simulator, on the true state.
    senses = bool(folder)
    control = pilot_control(specifier)
    return TrackingMethod(name, make, sensors, senses, identity, level=level, rate=rate, control=control)


def methods_of(tokens: Sequence[str], patience: Patience = USUAL_PATIENCE) -> list[TrackingMethod]:
    """Return pilots by their words; of those whose folders have one name the folder above is named, too.

    Args:
        tokens: The words.
        patience: With programs outside.

    Raises:
        UnknownNameError, AssetError: As `method_of`.
        AirworthyError: A policy is named twice.
    """
    found = [method_of(specifier, patience) for specifier in tokens]
    specifiers: dict[Path, str] = {}
    for specifier in tokens:
        kind, _, place = specifier.partition(":")
        if kind in ("svnet", *LEARNT_PILOTS):
            folder = (policy_folder(place) if kind == "svnet" else Path(place)).resolve()
            if folder in specifiers:
                raise AirworthyError(f"{specifiers[folder]} and {specifier} are the same policy; name each once.")
            specifiers[folder] = specifier
    names = [item.name for item in found]
    for k, specifier in enumerate(tokens):
        if names.count(names[k]) > 1 and ":" in specifier:
            found[k] = replace(found[k], name="-".join(Path(specifier.partition(":")[2]).resolve().parts[-2:]))
    return found


def expert_method(name: str = "mpc") -> TrackingMethod:
    """Return the expert: model predictive control with the true state and every drone's true parameters."""

    def make(simulator: Simulator, course: Course, mounted: MountedSensors | None) -> Pilot:
        return expert_for(simulator, expert_reference(course))

    return TrackingMethod(name, make, senses=False, identity={"pilot": "mpc"})


def own_method(specifier: str) -> TrackingMethod:
    """Return a pilot of a user's own, FILE.py:CLASS; a new one is made for every block of flights.

    Raises:
        AssetError: There is no such file.
        AirworthyError: It cannot be imported, or the class is a planner or none that flies.
    """
    found = navigation_method(specifier)
    if found.kind == "planner":
        raise AirworthyError(_PLANS.format(specifier))
    level = own_pilot(found).level
    if level not in LEVELS:
        raise unknown_name("control level", str(level), LEVELS, f"The pilot {specifier!r} names it.")
    rate = TICK_RATE if level == LEVEL else _OTHERS_RATE

    def make(simulator: Simulator, course: Course, mounted: MountedSensors | None) -> Pilot:
        return own_pilot(found)

    return TrackingMethod(found.name, make, identity={"pilot": "own", **found.identity}, level=level, rate=rate)


def external_method(specifier: str, patience: Patience = USUAL_PATIENCE) -> TrackingMethod:
    """Return a pilot of a program outside, which is told the course.

    Args:
        specifier: external:KIND[:WHERE].
        patience: With it.

    Raises:
        AirworthyError: It does not answer.
    """
    entry = external_entry(specifier, patience.of(RemoteSettings))
    hello = entry.hello
    rate = TICK_RATE if hello.level == LEVEL else _OTHERS_RATE

    def make(simulator: Simulator, course: Course, mounted: MountedSensors | None) -> Pilot:
        pilot = entry()
        pilot.follow(course.trajectory(), tuple(simulator.vehicles[:1]))
        return pilot

    identity = {**entry.identity}
    return TrackingMethod(hello.name, make, identity=identity, level=hello.level, rate=rate, single=entry.single)


def autopilot_method(word: str, patience: Patience = USUAL_PATIENCE) -> TrackingMethod:
    """Return an autopilot outside, which is waited for at each flight, and holds its vehicle where its own pilot tells it.

    Args:
        word: px4, ardupilot or betaflight, with :PORT or :ADDRESS:PORT behind it where it is to be waited for elsewhere.
        patience: With it.
    """
    kind = word.partition(":")[0]
    rate = next(rate for rate in _AUTOPILOT_RATES if rate >= RATES[kind])

    def make(simulator: Simulator, course: Course, mounted: MountedSensors | None) -> Pilot:
        vehicle = simulator.vehicles[0]
        sticks = StickPilot(vehicle, course.trajectory(), rate) if kind == "betaflight" else None
        settings = patience.of(LinkSettings, clock=CLOCKS[kind])
        pilot = autopilot(word, vehicle, rate, settings, Imu.named(IMU), simulator.seed, sticks)
        try:
            pilot.connect()
        except AirworthyError as error:
            pilot.close()
            reason = str(error).partition(": start it")[0].rstrip(".")
            raise AirworthyError(
                f"{reason}: an evaluation waits for it at each flight, so have it start anew whenever it ends, or wait longer"
                " with --wait SECONDS; flights that were flown are kept, and the same command goes on from there."
            ) from None
        except BaseException:
            pilot.close()
            raise
        return pilot

    # The noise that it senses is that of its own sensors.
    identity = {"pilot": kind, "imu": IMU}
    return TrackingMethod(kind, make, senses=False, identity=identity, level="rotor_speed", rate=rate, imu=IMU, single=True)


def svnet_method(folder: Path) -> TrackingMethod:
    """Return a trained policy; it is told nothing but what it senses, and carries the camera that its contract names."""
    from airworthy.pilots.svnet.contract import read_policy

    contract, _ = read_policy(folder)  # its weights, too: what cannot fly is refused before anything has flown
    digests = {name: sha256_file(folder / name) for name in (CONTRACT_FILE, WEIGHTS_FILE)}

    def make(simulator: Simulator, course: Course, mounted: MountedSensors | None) -> Pilot:
        from airworthy.pilots.svnet.pilot import svnet_pilot

        return svnet_pilot(folder, simulator, course, CAMERA, mounted, simulator.device)

    def sensors(vehicle: Vehicle) -> Mapping[str, MountedSensor]:
        from airworthy.pilots.svnet.pilot import policy_camera

        return {} if contract.view is None else {CAMERA: MountedSensor(policy_camera(vehicle, contract))}

    shipped = shipped_name(folder)
    label = (f"svnet:{shipped}" if shipped else folder.name) if folder.name not in ("", ".", "..") else contract.variant
    return TrackingMethod(label, make, sensors, identity={"pilot": "svnet", **digests}, variant=contract.variant)
