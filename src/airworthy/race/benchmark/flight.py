"""The runner: courses of one race flown by one pilot, all in one simulator, judged at every physics step.

Each flight has its own course, its own scene, and its own pilot behind the `Onboard` record. Nothing of a flight depends on the
others of its batch: random numbers follow the course's name and the seed, so that k flights together have the bits of k alone.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt, ArrayU32
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import from_euler
from airworthy.race.background import CHARGE_S, Charge, DeskNote, DeskRecord
from airworthy.race.benchmark.contact import SWEPT, ContactWatch, Detector, contact_of
from airworthy.race.benchmark.crew import Crew, check_rate
from airworthy.race.benchmark.flight_measures import FlightMeasures, Measure
from airworthy.race.benchmark.imaging import CAMERA, STEREO, RaceCamera, check_sensors, granted
from airworthy.race.benchmark.recording import FlightRecorder, RaceTrace
from airworthy.race.benchmark.sensing import Poses, RaceSensors
from airworthy.race.classes import FRAME_HZ, RaceClass
from airworthy.race.courses import course_of
from airworthy.race.gate_geometry import gate_shape
from airworthy.race.onboard import ImageFrame, Onboard, Truth, onboard_facts
from airworthy.race.pilots.catalogue import PilotEntry
from airworthy.race.record import Race
from airworthy.race.referee import CLOSING_S, RaceEnd, Referee, RefereeState
from airworthy.race.scoring import RaceResult, race_results
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.generators.halls.race_courses import alphapilot_course
from airworthy.scenes.generators.halls.race_hall import decoy_frames
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.simulation.posterior import DrawnVehicle
from airworthy.vehicles import named_vehicle

_JUDGED = 96
"""Steps after which the referee is asked, a tenth of a second: it costs the same for one step as for many. A pilot may be
called so long behind its finish; what it does there is not looked at, but by the strict test."""
Tap = Callable[[int, Onboard], Onboard]
"""Sees each record before the pilots do, by its physics step, and returns what they are given: to keep a stream, or to play
one."""
_FLOWN = "alphapilot"
"""The one scene that races are flown in with sensors; `airworthy.race.benchmark.course_flight` flies the others."""


@dataclass(frozen=True)
class RaceFlight:
    """What became of one flight, and how it was flown."""

    course: str
    result: RaceResult
    part: str
    """What was touched, by its name in the scene; empty where nothing was."""
    reason: str
    """Why its pilot was sent home; empty where it was not."""
    clipped: int
    """Commands that had to be clipped."""
    commands_sha256: str
    """Of all its commands, as the vehicle was given them."""
    speed_max: float
    """[m/s]."""
    path_m: float
    """Length that was flown until the race ended [m]."""
    planned: tuple[DeskRecord, ...]
    """What its pilot did beside its commands."""
    noted: tuple[DeskNote, ...]
    """What its pilot says that it did out of the ordinary."""
    command_cpu_s: Array
    """Processor time of each command, work beside them left out [s]; charged to nobody."""
    telemetry_errors: int
    """Times that its pilot's telemetry could not be used."""
    telemetry_reason: str
    """What was wrong with it the first time."""
    trace: RaceTrace
    """Where it was and what it saw, once a frame."""
    drawn: DrawnVehicle | None = None
    """What it drew of its vehicle; None: it flew the record."""


def check_scene(race: Race) -> None:
    """Refuse a race that names a scene in which none is flown; raises AirworthyError."""
    if race.scene not in ("", _FLOWN):
        raise AirworthyError(
            f"The race {race.name!r} names the scene {race.scene!r}, in which no race is flown: leave scene out, and one is"
            f" built from its gates, or name {_FLOWN!r}."
        )


def check_flyable(race: Race) -> None:
    """Refuse a race that has no scene to be flown in; raises AirworthyError."""
    check_scene(race)
    if not race.scene:
        raise AirworthyError(
            f"The race {race.name!r} is not flown with sensors: that is for races in the scene {_FLOWN!r}. With the true state:"
            f" airworthy races fly {race.name}."
        )


def flight_ids_of(courses: Sequence[str]) -> ArrayU32:
    """Return the number that each flight's random numbers follow: of its course's name, whichever others fly with it."""
    return np.array([zlib.crc32(name.encode()) for name in courses], np.uint32)


def fly_races(
    race: Race,
    courses: Sequence[str],
    entry: PilotEntry,
    conditions: RaceClass,
    *,
    seed: int = 0,
    look_s: float | None = None,
    charge: Charge = CHARGE_S,
    contact: Detector = SWEPT,
    decoy_beacons: bool = False,
    identified: bool = False,
    tap: Tap | None = None,
    advanced: Callable[[int], None] = lambda flights: None,
) -> tuple[RaceFlight, ...]:
    """Fly each course once.

    Args:
        race: Nominal; in a scene that can be flown.
        courses: Names, as `airworthy.race.course_of` has them, each once.
        entry: Who flies.
        conditions: The class.
        seed: Of all random numbers.
        look_s: How long pilots look before arming [s]; None: as the race says.
        charge: Of work that pilots do beside their commands.
        contact: Who says what was touched (`airworthy.race.benchmark.contact`).
        decoy_beacons: Whether the gates that are not flown bear beacons, too, which pilots are told.
        identified: Whether each flight draws its vehicle from what an identification left open, the same for every pilot.
        tap: See `Tap`.
        advanced: Told whenever flights end, and how many.

    Raises:
        AirworthyError: A race without a scene, a course that is not there, a rate that is none, a vehicle that tells nothing
            to draw from.
    """
    check_flyable(race)
    check_sensors(race, entry.name, entry.sensors, entry.rate)
    look = race.clock.look_s if look_s is None else look_s
    batch = _Batch(race, courses, entry, conditions, seed, look, charge, contact, decoy_beacons, identified)
    try:
        batch.begin()
        while not batch.over:
            before = int(np.sum(batch.state.done))
            batch.advance(tap)
            advanced(int(np.sum(batch.state.done)) - before)
        return batch.flights()
    finally:
        batch.close()


class _Batch:
    """Everything of one batch; the pilots are given nothing of it but records."""

    def __init__(
        self,
        race: Race,
        courses: Sequence[str],
        entry: PilotEntry,
        conditions: RaceClass,
        seed: int,
        look_s: float,
        charge: Charge,
        contact: Detector,
        decoy_beacons: bool,
        identified: bool,
    ):
        count, flown_by = len(courses), named_vehicle(conditions.vehicle)
        self._courses, self._entry = tuple(courses), entry
        self._races = [course_of(race, name) for name in courses]
        self._scenes = SceneBatch([alphapilot_course(name, decoy_beacons) for name in courses])
        config = SimulatorConfig.published(
            flown_by, contact=contact_of(contact), imu=conditions.imu(), randomization=conditions.vehicles(identified)
        )
        ids = flight_ids_of(courses)
        self._rate = config.physics_rate
        self._period = check_rate(entry, self._rate)
        self._sim = Simulator(
            flown_by,
            config,
            count,
            seed=seed,
            flight_ids=ids,
            geometry=self._scenes.geometry,
            geometry_env=np.arange(count),
        )
        yaw = math.radians(race.start.yaw_deg)
        level = from_euler(0.0, 0.0, yaw)
        self._sim.reset(position=np.tile(race.start.position, (count, 1)), attitude=np.tile(level, (count, 1)))
        self._contact = ContactWatch(contact, self._sim, self._scenes.geometry, flown_by)
        self._sensors = RaceSensors(race, self._scenes, conditions, ids, seed, self._rate)
        # Who does not ask for images has none rendered.
        pair = STEREO in entry.sensors
        self._camera = RaceCamera(self._scenes, conditions, pair) if pair or CAMERA in entry.sensors else None
        rates = (self._rate, FRAME_HZ, entry.rate)
        decoys = decoy_frames() if decoy_beacons else ()
        facts = onboard_facts(race, flown_by, self._sensors.projection, conditions, rates=rates, decoys=decoys, flights=count)
        self._crew = Crew(entry, facts, charge)
        self._referee = Referee(self._races, physics_rate=self._rate)
        self._corners = np.stack([_corners(item) for item in self._races])
        self.state: RefereeState = self._referee.advance(self._referee.begin(), self._poses().position[None])
        self._step, self._imu = 0, np.zeros((0, count, 6))
        self._recorder = FlightRecorder(count, len(race.passes))
        self._path: list[Array] = []
        self._events: list[ArrayInt] = []
        self._kept, self._measures = FlightMeasures(count), list[Measure]()
        self._last: Array = self._poses().position
        self._whole = np.full(count, np.iinfo(np.int64).max)
        """Sample behind which nothing of a flight is measured: who flies on after a contact is not."""
        everybody = np.arange(count)
        self._frames = self._sensors.look(self._poses(), look_s, everybody)
        frames, self._ranged = self._sensors.sample(self._poses(), 0, everybody)
        self._frames += frames
        self._images: list[ImageFrame] = []
        if self._camera is not None:
            here = self._poses()
            self._images += self._camera.begin(here.position, here.attitude, look_s, everybody)

    def begin(self) -> None:
        """Have the pilots begin."""
        self._crew.begin()

    def close(self) -> None:
        """End the pilots."""
        self._crew.close()

    @property
    def over(self) -> bool:
        """Whether nothing is left to be judged."""
        late = self._step / self._rate > self._races[0].limits.time_s + CLOSING_S
        return bool(np.all(self.state.done)) or late

    def advance(self, tap: Tap | None) -> None:
        """Fly one command's period: records to the pilots, commands to the vehicles, positions to the referee."""
        racing = self.state.end == RaceEnd.RUNNING
        onboard = self._onboard()
        truth = self._truth() if self._entry.truth else None
        given = granted(onboard, self._entry.sensors)
        # What a pilot believes is read once a frame, whether it is shown that frame or not.
        tell = bool(onboard.frames)
        failed = self._crew.fly(given if tap is None else tap(self._step, given), truth, racing, tell)
        self._record(onboard, racing)
        self._sim.set_command(self._crew.command)
        imu = np.empty((self._period, len(racing), 6))
        flying = np.flatnonzero(racing)
        # Whose pilot was sent home is rendered nothing any more: the referee hears of it up to a tenth of a second later.
        seeing = np.flatnonzero(racing & (failed == int(RaceEnd.RUNNING)))
        self._frames, self._ranged, self._images = [], [], []
        for k in range(self._period):
            logged = self._sim.advance(1, imu_log=True)
            assert logged is not None
            imu[k] = logged[0]
            self._step += 1
            self._contact.look(framed=bool(self._sensors.schedule.is_due(self._step)))
            self._path.append(np.array(self._sim.position, np.float64))
            # What ended in this step, contact before anything that the pilot did.
            self._events.append(np.where(self._contact.touched, int(RaceEnd.CONTACT), failed))
            if self._sensors.schedule.is_due(self._step):
                frames, ranged = self._sensors.sample(self._poses(), self._step, flying)
                self._frames += frames
                self._ranged += ranged
                if self._camera is not None:
                    here = self._poses()
                    self._images += self._camera.take(here.position, here.attitude, self._step / self._rate, seeing)
        self._imu = imu
        self._measures.append(Measure(self._step, np.linalg.norm(np.asarray(self._sim.velocity, np.float64), axis=1)))
        self._whole = np.where(self._contact.flies_on, np.minimum(self._whole, self._step - self._period), self._whole)
        if len(self._path) >= _JUDGED:
            path = np.stack(self._path)
            self.state = self._referee.advance(self.state, path, np.stack(self._events))
            self._measure(racing, np.concatenate([self._last[None], path]))
            self._path, self._events = [], []

    def _record(self, onboard: Onboard, racing: Array) -> None:
        """Take a row for page and film where a frame came with this command."""
        if onboard.frames:
            state = np.hstack([np.asarray(getattr(self._sim, name)) for name in ("position", "velocity", "attitude")])
            said = self._crew.telemetry(racing)
            self._recorder.take(onboard.time, state, onboard.frames[-1], said, np.flatnonzero(racing))

    def _measure(self, racing: ArrayBool, path: Array) -> None:
        """Take in what was flown since the referee was asked before; `racing`: whose race had not ended then."""
        # How a race ended is known behind the piece alone: what came after its end is no part of it.
        ended = np.where(self.state.end == RaceEnd.RUNNING, self._step, self.state.end_step)
        self._kept.add(racing, np.minimum(ended, self._whole), self._measures, path, self._step - len(path) + 1)
        self._measures, self._last = [], path[-1]

    def _poses(self) -> Poses:
        return Poses(np.array(self._sim.position, np.float64), np.array(self._sim.attitude, np.float64))

    def _onboard(self) -> Onboard:
        first = self._step - len(self._imu)
        stamps = np.arange(first, self._step) / self._rate
        seen = tuple(self._frames), tuple(self._ranged)
        return Onboard(self._step / self._rate, stamps, self._imu, *seen, self._contact.touched, tuple(self._images))

    def _truth(self) -> Truth:
        position, velocity, attitude, rate = (
            np.array(getattr(self._sim, name), np.float64) for name in ("position", "velocity", "attitude", "rate")
        )
        return Truth(position, velocity, attitude, rate, self._corners.copy())

    def flights(self) -> tuple[RaceFlight, ...]:
        """Return what became of each flight."""
        results, digests, place = race_results(self._referee, self.state), self._crew.digests(), self._contact.place
        drawn = self._sim.drawn_vehicles()
        return tuple(
            RaceFlight(
                course=self._courses[k],
                result=result,
                part=self._part(k) if result.end == "contact" else "",
                reason=self._crew.reason[k],
                clipped=int(self._crew.clipped[k]),
                commands_sha256=digests[k],
                speed_max=float(self._kept.speed[k]),
                path_m=float(self._kept.length[k]),
                planned=self._crew.planned(k),
                noted=self._crew.noted(k),
                command_cpu_s=self._crew.spent(k),
                telemetry_errors=int(self._crew.heard.errors[k]),
                telemetry_reason=self._crew.heard.reason[k],
                trace=self._recorder.trace(k, place[k] if result.end == "contact" else None),
                drawn=drawn[k] if drawn else None,
            )
            for k, result in enumerate(results)
        )

    def _part(self, flight: int) -> str:
        return self._scenes.instance_name(flight, int(self._contact.instance[flight]))


def _corners(race: Race) -> Array:
    return np.stack([gate_shape(race.gate(name)).corners for name, _ in race.passes])
