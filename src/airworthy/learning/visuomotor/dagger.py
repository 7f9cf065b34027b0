"""Flights from which a policy learns while it flies them itself: at each tick the expert says what it would have done (DAgger).

Ross, Gordon, Bagnell: A reduction of imitation learning and structured prediction to no-regret online learning, 2011. Where the
policy comes too far off the expert takes over until the vehicle is back (as in HG-DAgger, Kelly et al. 2019), so that no image
is spent on flights that are lost; a flight with help is no success. The expert is told the truth, and looks for itself on the
course near where the vehicle is, not where the clock is: a policy that is early or late is no mistake to be corrected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from airworthy.benchmarks.tracking.block import ConditionBlock, Setting, fly_block
from airworthy.benchmarks.tracking.conditions import Condition
from airworthy.benchmarks.tracking.methods import CAMERA, TrackingMethod, VehicleSpread
from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayInt, ArrayU8
from airworthy.evaluation.metrics import path_distance
from airworthy.pilots.expert import ExpertPilot, believed_thrust, expert_for, expert_reference
from airworthy.pilots.pilot import Observation
from airworthy.pilots.svnet.contract import PolicyContract
from airworthy.pilots.svnet.features import from_command
from airworthy.pilots.svnet.network import Decision, Reading, SvNetwork
from airworthy.pilots.svnet.pilot import SvNetPilot, objective_of, policy_camera
from airworthy.simulation import MountedSensor, MountedSensors, Simulator
from airworthy.tasks import TrackingProtocol
from airworthy.trajectories import Course
from airworthy.vehicles import Vehicle

__all__ = ["SEARCH", "TAKEN_BACK", "TAKEN_OVER", "DaggerFlights", "dagger_flights"]

# [M] Labels by the clock failed; searched by 1.5 s they follow the vehicle's progress. Searched around the clock a policy that
# is later than that was told to cut across, on an orbit through the pillar.
SEARCH = 1.5
"""How far from where it was last the expert looks for the vehicle on its course [s]."""
TAKEN_OVER, TAKEN_BACK = 0.7, 0.3
"""Distances from the course at which the expert takes over, and hands back [m]; the first as in the prototype's labels."""
_STEP = 0.02
"""Between the points of the course that a distance is measured to [s]."""


@dataclass(frozen=True, eq=False)
class DaggerFlights:
    """What some flights left: k instants, and how the flights ended."""

    images: ArrayU8
    """(k, H, W, 3) as the policy saw them."""
    state: ArrayF32
    """(k, 8) observable, world z down, as sensed; so are the next two as the network read them."""
    objective: ArrayF32
    """(k, 18)"""
    history: ArrayF32
    """(k, 75)"""
    command: ArrayF32
    """(k, 4) of the expert: thrust in [-1, 0], body rates [rad/s]."""
    position: ArrayF32
    """(k, 3) true, world [m]."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    """One per flight: outcome, tracking error, share of ticks with help, ..."""
    dropped: int = 0
    """Instants whose label is none: no optimum was found, or the flight was over."""

    @classmethod
    def joined(cls, parts: Sequence[DaggerFlights]) -> DaggerFlights:
        """Return all of several, in order."""
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("images", "state", "objective", "history", "command", "position")
        }
        return cls(**arrays, rows=[row for part in parts for row in part.rows], dropped=sum(part.dropped for part in parts))


class _ReadNetwork:
    """A network that keeps what it last read."""

    def __init__(self, network: SvNetwork):
        self.kind, self._network = network.kind, network
        self.reading: Reading | None = None

    def __call__(self, reading: Reading) -> Decision:
        self.reading = reading
        return self._network(reading)


class DaggerPilot:
    """Lets a policy fly, asks the expert at each of its decisions, and lets it take over where the policy is far off.

    Args:
        learner: The policy; its network is a `_ReadNetwork`.
        expert: Of the same vehicles.
        simulator: For the truth.
        points: (p, 3) of the course, close together, world [m].
        full: (env,) thrust that a command of full thrust names [N].
    """

    name = "dagger"
    level = "rate_thrust"

    def __init__(self, learner: SvNetPilot, expert: ExpertPilot, simulator: Simulator, points: Array, full: Array):
        self._learner, self._expert, self._simulator, self._points, self._full = learner, expert, simulator, points, full
        self.observes = learner.observes
        self._helped = np.zeros(len(full), bool)
        self._tick = 0
        self.helped: list[ArrayBool] = []
        """By tick: which flights the expert flew, (env,)."""
        self.parts: list[dict[str, Any]] = []
        """By tick: env, tick, sound, and what was read and labelled."""

    @property
    def estimate(self) -> Array:
        """(env, 2) of the policy's history network."""
        return self._learner.estimate

    def command(self, observation: Observation) -> Array:
        """Return collective thrust [N] and body rates [rad/s], (env, 4)."""
        decided = self._learner.decisions.copy()
        given = self._learner.command(observation)
        truth = {name: np.asarray(getattr(self._simulator, name)) for name in ("position", "velocity", "attitude")}
        # Of a load that is hung on in flight the expert is told, and the policy is not.
        self._expert.weigh(self._simulator.parameter("mass"))
        lost = self._expert.failures + self._expert.cut_off
        right = self._expert.command(Observation(observation.time, truth))
        sound = (self._expert.failures + self._expert.cut_off == lost) & np.isfinite(right).all(axis=1)
        self._keep(np.flatnonzero(self._learner.decisions != decided), right, sound, truth["position"])
        away = path_distance(np.where(np.isfinite(truth["position"]), truth["position"], 1e6), self._points)
        self._helped = np.where(away > TAKEN_OVER, True, self._helped & (away > TAKEN_BACK))
        self.helped.append(self._helped.copy())
        self._tick += 1
        if self._helped.any():
            self._learner.note_applied(right, self._helped)
            given = np.where(self._helped[:, None], right, given)
        return given

    def _keep(self, ids: ArrayInt, right: Array, sound: ArrayBool, position: Array) -> None:
        network: Any = self._learner.network
        reading = network.reading
        if not ids.size or reading is None:
            return
        share = np.concatenate([right[:, :1] / self._full[:, None], right[:, 1:]], axis=1)
        self.parts.append(
            {
                "env": ids,
                "tick": np.full(len(ids), self._tick),
                "sound": sound[ids],
                "images": np.array(reading.images),
                "state": np.asarray(reading.state, np.float32),
                "objective": np.asarray(reading.objective, np.float32),
                "history": np.asarray(reading.history, np.float32),
                "command": from_command(share[ids]).astype(np.float32),
                "position": position[ids].astype(np.float32),
            }
        )


def dagger_flights(
    network: SvNetwork,
    contract: PolicyContract,
    block: ConditionBlock,
    setting: Setting,
    vehicle: Vehicle,
    spread: VehicleSpread,
    seed: int,
    device: str = "cpu",
    alive: Callable[[], None] = lambda: None,
) -> DaggerFlights | None:
    """Fly a block of flights with a policy, and return what can be learnt of them; None where somebody stopped it.

    Args:
        network: The policy's, ready to run.
        contract: What it is.
        block: Which flights, under which condition.
        setting: Course and scene of the condition.
        vehicle: What flies.
        spread: Of starts and drones, where the condition has no wider one.
        seed: Of everything that is drawn.
        device: Where it is simulated.
        alive: Called after each tick; raises where the flights are not wanted any more.

    Raises:
        AirworthyError: Policy, vehicle and scene do not fit together.
    """
    made: list[DaggerPilot] = []
    times = np.linspace(0.0, setting.path.duration, max(2, round(setting.path.duration / _STEP)))
    points = setting.path.sample(times).position

    def make(simulator: Simulator, course: Course, mounted: MountedSensors | None) -> DaggerPilot:
        full = believed_thrust(simulator)
        idle = np.array([item.mass * item.gravity for item in simulator.vehicles])
        watched: Any = _ReadNetwork(network)
        objective = objective_of(course.trajectory(), simulator.vehicles[0].gravity)
        learner = SvNetPilot(contract, watched, objective, full, CAMERA, idle)
        expert = expert_for(
            simulator, expert_reference(course, gravity=simulator.vehicles[0].gravity), search=SEARCH, by_progress=True
        )
        made.append(DaggerPilot(learner, expert, simulator, points, full))
        return made[-1]

    def sensors(carrier: Vehicle) -> Mapping[str, MountedSensor]:
        return {CAMERA: MountedSensor(policy_camera(carrier, contract))}

    method = TrackingMethod("dagger", make, sensors)
    result = fly_block(
        block,
        setting,
        method,
        vehicle,
        spread=spread,
        protocol=TrackingProtocol(),
        seed=seed,
        device=device,
        progress_callback=alive,
        picture=False,
    )
    if result is None:
        return None
    # Ticks that a flight was flown for: behind them its vehicle stands still, and its images are of nothing.
    flown = np.diff(result.table.starts) - 1
    return _gathered(made[0], flown, result.rows)


def _gathered(pilot: DaggerPilot, flown: ArrayInt, rows: list[dict[str, Any]]) -> DaggerFlights:
    if not pilot.parts:
        raise AssertionError("a policy that sees decided nothing")
    found = {name: np.concatenate([part[name] for part in pilot.parts]) for name in pilot.parts[0]}
    good = found.pop("sound") & (found.pop("tick") < flown[found.pop("env")])
    for name in ("state", "history", "position"):
        good &= np.isfinite(found[name]).all(axis=1)
    helped = np.array(pilot.helped)
    for k, row in enumerate(rows):
        mine = helped[: max(1, int(flown[k])), k]
        row["helped_percent"] = 100.0 * float(mine.mean())
        row["alone"] = row["outcome"] == "success" and not mine.any()
    kept = {name: values[good] for name, values in found.items()}
    return DaggerFlights(**kept, rows=rows, dropped=int((~good).sum()))


def dagger_condition(
    name: str, drones: float, start: float, noise: str, delay: float, gust: float, light: float, pickup: float
) -> Condition:
    """Return what flights to learn from are flown under.

    Args:
        name: Of the condition.
        drones: Share by which mass and thrust are spread.
        start: By which starts are spread [m], and velocities [m/s].
        noise: Level of what is sensed.
        delay: Of commands [s].
        gust: Lateral push for a second [m/s^2].
        light: Factor of linear radiance.
        pickup: Share of the mass that is hung on in flight.
    """
    return Condition(
        name,
        name,
        mass_spread=drones,
        thrust_spread=drones,
        noise=noise,
        delay=delay,
        gust=gust,
        light=light,
        pickup=pickup,
        position_spread=start,
        velocity_spread=start,
        attitude_spread=0.25 * start,
    )
