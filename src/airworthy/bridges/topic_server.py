"""Our simulator on topics: a vehicle with sensors flies on in real time, whoever commands it (spec/flightgoggles 6 and 7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from airworthy.bridges.clock import FACTORS, AutomaticFactor, Lateness, LinkClock, punctual
from airworthy.bridges.lcm.link import LcmLink
from airworthy.bridges.lcm.pilot import LcmCommands, LcmSender
from airworthy.bridges.people.crowd import Crowd
from airworthy.bridges.people.sources import people_ports
from airworthy.bridges.pictures.process import PictureProcess, PictureSettings
from airworthy.bridges.pictures.renderer import AsyncRenderer, Rendered, is_picture
from airworthy.bridges.priority import FirstInLine
from airworthy.bridges.ros import messages
from airworthy.bridges.ros.bus import COMMANDS, Bus, Subscriber
from airworthy.bridges.ros.dds import DdsBus, domain_of_environment
from airworthy.bridges.ros.flight_log import FLIGHT_LOG, FlightMcap
from airworthy.bridges.ros.messages import PREFIX
from airworthy.bridges.ros.topics import CommandTopic, TopicSender
from airworthy.bridges.ros.zenoh import ZenohBus
from airworthy.bridges.sensor_words import sensor_of
from airworthy.bridges.server import stand
from airworthy.bridges.sockets import refuse_shared_ports
from airworthy.control.kernel import LEVELS
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import yaw_of
from airworthy.core.jobs.progress import waiting
from airworthy.core.schema import SEED, Bound, check_fields
from airworthy.pilots.flight_loop import COMMAND_MOST
from airworthy.scenes import SceneBatch, scene
from airworthy.sensors.devices import Device
from airworthy.simulation import Contact, Ground, Imu, MountedSensor, MountedSensors, Simulator, SimulatorConfig
from airworthy.simulation.sensor_state import Capture, Sample
from airworthy.vehicles import named_vehicle

__all__ = ["TRANSPORTS", "TopicServeConfig", "TopicServed", "serve_topics"]

TRANSPORTS = ("ros2", "zenoh", "lcm")
_FASTEST = 20.0
"""What a limb reaches in a throw [m/s]; what is farther from where it was has been put there."""
_BEHIND = 1.0
"""So late is no jitter: the machine does not keep up, which is said when it is so [s]."""
_IN_THE_CROWD = (
    "Steps waited in line with everything else that this machine does: the system gave no real-time priority (`ulimit -r`), and"
    " where it is busy they were late."
)
_LAST = 30.0
"""Longest time that pictures which are being rendered at the end are waited for [s]."""
_PEOPLE_RATE = 120.0
"""At which whatever moves in the scene is put in its place, as trackers of people send [Hz]."""


@dataclass(frozen=True)
class TopicServeConfig:
    """What is served."""

    transport: Literal["ros2", "zenoh", "lcm"]
    """Over what."""
    vehicle: str = "flightgoggles"
    """Of the catalogue, or a file."""
    scene: str | None = None
    """Where: a scene's name or file; without one, a ground plane in empty air."""
    sensors: tuple[str, ...] = ()
    """What it carries: DEVICE, NAME=DEVICE or NAME=DEVICE:CHANNEL,CHANNEL, one's own FILE.toml:NAME; they need a scene."""
    people: tuple[str, ...] = ()
    """Who is tracked elsewhere and walks in its scene, [NAME=]SOURCE: udp[:PORT], lcm[:CHANNEL], ros2:/TOPIC, zenoh:/TOPIC, or
    file:PATH, a recording."""
    person_height: Annotated[float, Bound(0.5, 2.5, "m")] = 1.75
    """Of their bodies [m]."""
    level: str = "rate_thrust"
    """What is commanded: rate_thrust, rotor_speed; over ROS 2 also velocity, position, tracking (docs/howto/ros2.md)."""
    imu: str = "flightgoggles"
    """Inertial sensor (`airworthy sensors` lists them)."""
    rate: Annotated[float, Bound(20.0, 1000.0, "Hz")] = 960.0
    """Steps of the physics, and of clock, odometry and inertial sensor, per second [Hz]."""
    clock: Literal["real", "scaled"] = "real"
    """"real", at wall-clock time; "scaled", at --factor times that. In lockstep, fly --pilot external:ros2 flies a node."""
    factor: Annotated[float, Bound(*FACTORS)] | Literal["auto"] = 1.0
    """Simulated over wall-clock time, with --clock scaled; "auto": as fast as its cameras' frames are rendered (fps / 55 of
    60 Hz over windows of a second, as FlightGoggles does)."""
    duration: Annotated[float, Bound(0.1, 86400.0, "s")] = 600.0
    """Simulated time [s]."""
    start: tuple[float, float, float] | None = None
    """Where it begins, world [m]; without one, the scene's start, or on the ground at the origin."""
    seed: Annotated[int, SEED] = 0
    """Key of all random numbers."""
    out: Path | None = None
    """Folder to keep the flight in: flight.mcap."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.factor != 1.0 and self.clock != "scaled":
            raise AirworthyError(f"--factor changes nothing with --clock {self.clock}: choose --clock scaled.")
        if self.factor == "auto" and not self.sensors:
            raise AirworthyError("--factor auto counts frames, and nothing makes any: name --sensors, or a factor.")
        if self.sensors and self.scene is None:
            raise AirworthyError("--sensors see nothing in empty air: name a --scene (`airworthy scenes` lists them).")
        refuse_shared_ports(people_ports(self.people))
        if self.people and self.scene is None:
            raise AirworthyError("--people walk in a scene: name a --scene (`airworthy scenes` lists them).")


@dataclass(frozen=True)
class TopicServed:
    """What a session was."""

    seconds: float
    """Simulated [s]."""
    lateness: Lateness
    commands: int
    """That were taken."""
    resets: int
    collisions: int
    frames: dict[str, int]
    """Of sensors, rendered and sent."""
    skipped: dict[str, int]
    """Of those that are rendered beside the flight: frames that were due while the one before was still being rendered."""
    position: Array
    """Where it is at the end, world [m]."""
    notes: tuple[str, ...]
    interrupted: bool


def serve_topics(config: TopicServeConfig, say: Callable[[str], None] = lambda sentence: None) -> TopicServed:
    """Simulate a vehicle and say on topics what it senses, until time is over or somebody stops it.

    It stands with its rotors off, or waits in the air where it begins there, until the first command comes. A command holds
    until the next one.

    Args:
        config: What is served.
        say: Is given a sentence when it begins.

    Raises:
        AirworthyError: Something of it cannot be had.
    """
    with ExitStack() as stack:
        made = _Served(config, stack, say)
        stack.enter_context(punctual())
        say(f"Serving {config.vehicle} at {made.address}; commands on {made.commands.topic}. Ctrl-C ends it.")
        for address in made.crowd.addresses:
            say(f"Waiting for {address}.")
        return made.run()


class _Served:
    def __init__(self, config: TopicServeConfig, stack: ExitStack, say: Callable[[str], None]):
        self._config, self._tell = config, say
        vehicle = named_vehicle(config.vehicle)
        self.crowd = Crowd(config.people, config.person_height, say=say)
        stack.callback(self.crowd.close)
        place = None if config.scene is None else self.crowd.added(scene(config.scene))
        batch = None if place is None else SceneBatch([place], 1)
        self._beacons = () if place is None else place.beacons
        self._batch = None if place is None or not place.actors else batch
        flown = SimulatorConfig(
            physics_rate=config.rate, control_rate=config.rate, level=config.level, imu=Imu.named(config.imu), ground=Ground(),
            contact=None if batch is None else Contact(mode="respond"),
        )  # fmt: skip
        geometry = None if batch is None else batch.geometry
        self._twin = partial(Simulator, vehicle, flown, env_count=1, seed=config.seed, geometry=geometry)
        self.simulator = self._twin()
        self._vehicle, self._start = vehicle, _start(config, place)
        # Zeros command no thrust at these levels.
        self._stands = self._start is None and config.level.partition(":")[0] in ("rate_thrust", "rotor_speed")
        self._reset()
        named = dict(sensor_of(word) for word in config.sensors)
        self._devices: dict[str, Device] = named
        specs: dict[str, Any] = {name: MountedSensor(item) for name, item in named.items()}
        # Before the process with the pictures begins: over zenoh whoever is there first routes for all others.
        self.commands: CommandTopic | LcmCommands
        self._sender: TopicSender | LcmSender
        self._resets: Subscriber | None = None
        if config.transport == "lcm":
            link = LcmLink()
            stack.callback(link.close)
            self.address, self.commands, self._sender = link.address, LcmCommands(link, config.level), LcmSender(link)
        else:
            domain = domain_of_environment()
            bus: Bus = DdsBus(domain) if config.transport == "ros2" else ZenohBus(domain)
            stack.callback(bus.close)
            self.commands, self._sender = CommandTopic(bus, config.level), TopicSender(bus, reliable=False)
            self._resets = bus.subscriber(f"{PREFIX}/input/reset", "std_msgs/msg/Empty", COMMANDS)
            self.address = bus.address
        self._renderer = self._pictures(stack)
        self._mounted = None
        if batch is not None and specs:
            self._mounted = MountedSensors(self.simulator, batch, specs, renderer=self._renderer)
        self._log: FlightMcap | None = None
        if config.out is not None:
            config.out.mkdir(parents=True, exist_ok=True)
            self._log = stack.enter_context(FlightMcap(config.out / FLIGHT_LOG, self.simulator, self._mounted))
        self._taken_here = dict.fromkeys(named, 0)
        self._taken = self._begun = self._collisions = self._touched = self._times_reset = 0
        self._since = 0.0
        self._sender.send(messages.static_frames(named))
        if self._mounted is not None:
            self._mounted.listen(self._capture)
        if self._renderer is not None:
            self._renderer.listen(self._rendered)
            self._renderer.drain()  # kernels are compiled with the first pictures, before anything is due
        self._warm_up()

    def _pictures(self, stack: ExitStack) -> AsyncRenderer | None:
        """Return what renders pictures beside the flight; None where nothing has any."""
        config = self._config
        words = tuple(word for word in config.sensors if is_picture(sensor_of(word)[1]))
        if not words:
            return None
        told = PictureSettings(
            config.transport, str(config.scene), words, config.people, config.person_height, config.out is not None
        )
        names = [sensor_of(word)[0] for word in words]
        renderer = AsyncRenderer(PictureProcess(told), names, config.rate)
        stack.callback(renderer.close)
        with waiting("Waiting for the process that renders pictures"):
            renderer.wait_ready()
        return renderer

    def _warm_up(self) -> None:
        """Do what first steps and messages need before anything is due: a first step loads kernels, for about 100 ms."""
        twin = self._twin()  # a vehicle that has been flown and put back draws other noise
        stand(twin, self._vehicle, 90.0, self._start)
        width = LEVELS[self._config.level].width(twin.rotor_count)
        for _ in range(2):
            twin.step(np.zeros(width))
        for message in self._state_messages(0.0, twin):
            self._sender.prepare(message)

    def _rendered(self, rendered: Rendered) -> None:
        """Keep a picture; called from another thread."""
        if self._log is not None:
            for message in rendered.messages:
                self._log.keep(*message)

    @property
    def _frames(self) -> dict[str, int]:
        """How many frames of each sensor were rendered."""
        beside = {} if self._renderer is None else {name: item.rendered for name, item in self._renderer.frames.items()}
        return self._taken_here | beside

    def run(self) -> TopicServed:
        """Fly."""
        # A step takes half of its millisecond, so that the machine has time for others.
        with FirstInLine() as line:
            return self._fly(line)

    def _fly(self, line: FirstInLine) -> TopicServed:
        config, simulator = self._config, self.simulator
        fastest = max(self._devices, key=lambda name: self._devices[name].rate, default="")
        auto = AutomaticFactor(self._devices[fastest].rate) if config.factor == "auto" else None
        clock = LinkClock(config.clock, 1.0 / config.rate, 1.0 if config.factor == "auto" else config.factor)
        width = LEVELS[config.level].width(simulator.rotor_count)
        command = np.zeros(width)
        steps, interrupted = round(config.duration * config.rate), False
        step, kept_up = 0, True
        try:
            for step in range(1, steps + 1):
                now = step / config.rate
                clock.begin(now)
                if self._renderer is not None:
                    self._renderer.check()
                if kept_up and clock.behind > _BEHIND:
                    kept_up = False
                    line.leave()  # it would take all that the machine has
                    self._tell(
                        f"This machine does not keep up: what was due at {now:.2f} s comes {clock.behind:.1f} s late, and later"
                        " from now on; fewer or smaller --sensors, a lower --rate, or --clock scaled take less of it."
                    )
                if auto is not None and auto.update(self._frames[fastest]):
                    clock.scale(auto.value, now)
                found = self.commands.newest(float(yaw_of(simulator.attitude[0])))
                if found is not None:
                    if found.shape == (width,) and (np.abs(found) <= COMMAND_MOST).all():
                        command, self._taken = found, self._taken + 1
                    else:
                        self.commands.malformed += 1
                if self._resets is not None and self._resets.receive(0.0) is not None:
                    self._begin_at(now - 1.0 / config.rate)
                    self._reset()
                    command, self._taken, self._times_reset = np.zeros(width), 0, self._times_reset + 1
                self._move(step)
                # Before its first command a vehicle in the air waits there; on the ground its sensors are alive.
                if self._taken or self._stands:
                    if not simulator.flight_step[0]:  # it may have waited, while time went on
                        self._begin_at(now - 1.0 / config.rate)
                    simulator.step(command)
                self._say(now, clock.factor if config.clock == "scaled" else None)
            self._finish()
        except KeyboardInterrupt:
            interrupted = True
        odd = {"commands that were none": self.commands.malformed}
        notes = (
            *(f"{config.transport}: {count:,} {what}" for what, count in odd.items() if count),
            *(() if auto is None else (auto.sentence(),)),
            *((_IN_THE_CROWD,) if line.refused else ()),
            *(() if self._renderer is None else self._renderer.notes()),
            *self.crowd.notes(),
        )
        skipped = {} if self._renderer is None else {name: item.skipped for name, item in self._renderer.frames.items()}
        return TopicServed(step / config.rate, clock.lateness(), self._taken + self._begun, self._times_reset, self._collisions,
                           self._frames, skipped, np.array(simulator.position[0]), notes,
                           interrupted)  # fmt: skip

    def _finish(self) -> None:
        """Wait for pictures that are still being rendered."""
        if self._renderer is not None:
            self._renderer.drain(_LAST)

    def _begin_at(self, now: float) -> None:
        """Have stamps of samples go on from a simulated time [s], at which the flight begins anew."""
        self._since = now
        if self._renderer is not None:
            self._renderer.since = now
        if self._log is not None:
            self._log.since = now

    def _move(self, step: int) -> None:
        """Put actors and people where they are; also where no sensor looks, since they are met."""
        every = max(round(self._config.rate / _PEOPLE_RATE), 1)
        if self._batch is None or step % every:
            return
        before = self._batch.dynamic_poses[0]
        # By the flight's own time, as its sensors do it.
        self._batch.advance(self.simulator.time)
        self.crowd.update(self._batch)
        velocity = (self._batch.dynamic_poses[0] - before) * self._config.rate / every
        # Who appears, or begins anew, has come from nowhere and strikes nothing.
        velocity[np.linalg.norm(velocity, axis=-1) > _FASTEST] = 0.0
        self.simulator.set_dynamic_velocity(velocity)

    def _say(self, now: float, factor: float | None) -> None:
        simulator = self.simulator
        if factor is not None:
            self._sender.send(messages.clock_factor_message(factor))
        for message in self._state_messages(now, simulator):
            self._sender.send(message)
        if self._log is not None:
            self._log.write(simulator, now)
        if self._config.scene is not None:
            count = int(simulator.contacts.count[0])
            if count > self._touched:
                self._collisions += 1
                self._sender.send(messages.collision_message())
            self._touched = count

    @staticmethod
    def _state_messages(now: float, simulator: Simulator) -> Iterator[messages.RosMessage]:
        """Yield what is said in every step, of a vehicle at a time [s]."""
        position, velocity, attitude = simulator.position[0], simulator.velocity[0], simulator.attitude[0]
        yield messages.clock_message(now)
        yield messages.imu_message(now, simulator.imu[0])
        yield messages.transform_message(now, position, attitude)
        yield messages.odometry_message(now, position, velocity, attitude, simulator.field("rate")[0])

    def _reset(self) -> None:
        stand(self.simulator, self._vehicle, 90.0, self._start)
        self._begun, self._touched = getattr(self, "_begun", 0) + getattr(self, "_taken", 0), 0

    def _capture(self, capture: Capture) -> None:
        # Of a flight that was reset, or that waited, time goes on.
        when = np.asarray(self._since + capture.step[:1] / self._config.rate, np.float64)
        data = {name: array[:1] for name, array in capture.data.items()}
        place = (capture.position[:1], capture.attitude[:1])
        sample = Sample(when, capture.step[:1], capture.number[:1], np.ones(1, bool), *place, data)
        self._taken_here[capture.name] += 1
        for message in messages.sensor_messages(capture.name, self._devices.get(capture.name), sample, beacons=self._beacons):
            self._sender.send(message)


def _start(config: TopicServeConfig, place: Any) -> Array | None:
    if config.start is not None:
        return np.array(config.start)
    found = None if place is None else getattr(place, "start", None)
    return None if found is None else np.asarray(getattr(found, "position", found), np.float64)[:3]
