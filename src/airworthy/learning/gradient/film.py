"""The film of a learning: the same starts flown by the policy as it was at first, on its way, and at the end.

Each stage is one inline SVG that moves by itself: a page that loads nothing and runs no script can show it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import cos, radians, sin
from pathlib import Path

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32
from airworthy.core.errors import AssetWarning
from airworthy.core.frames import rotate
from airworthy.core.jobs.checkpoints import Checkpoint, Checkpoints
from airworthy.learning.gradient.evaluation import HoverProtocol, evaluation_starts
from airworthy.learning.gradient.flyers import LearntPolicy
from airworthy.learning.gradient.hover import HoverStart
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import Vehicle

__all__ = [
    "STAGES",
    "STAGES_FOLDER",
    "FilmedStage",
    "LearningStage",
    "film_learning",
    "film_pictures",
    "keep_stages",
    "kept_stages",
    "stage_svg",
]

STAGES = (0.0, 0.05, 0.25)
"""Ours: shares of a training at which its policy is kept for the film; most is learnt early. The whole one is flown besides."""
# Ours, all below. Hover is settled within two seconds; between pictures it moves evenly, which at 20 a second looks smooth.
_FILM_S, _PICTURES_PER_S = 3.0, 20.0
FILM_MARGIN = 1.3
"""Half the film's width over the distance of the farthest start, most of which begin with a speed away."""
_SIDE = 400
"""Of a picture, in units of its view box."""
_AZIMUTH, _ELEVATION = radians(35.0), radians(14.0)
"""Where the camera stands."""
_ARM_SHARE = 0.1
"""Length of a drone's longest arm as a share of half the picture: true to scale most would be dots."""
_FARTHEST = 4 * _SIDE
"""What is farther out of the picture stays there: a vehicle that tumbles away needs no long numbers."""


@dataclass(frozen=True, eq=False)
class LearningStage:
    """A policy as it was on its way."""

    name: str
    """"untrained", "after 0.05 s", "learnt, after 0.92 s"."""
    weights: Sequence[ArrayF32]
    """As of `network_action`."""


@dataclass(frozen=True, eq=False)
class FilmedStage:
    """Flights of one stage, a picture each `1 / _PICTURES_PER_S` seconds."""

    name: str
    position: Array
    """(pictures, flights, 3) [m]; where a flight has left the numbers, its last place."""
    attitude: Array
    """Body to world, (pictures, flights, 4)."""
    lost: ArrayBool
    """Whether a flight was ever beyond reach, or out of the numbers, (flights,)."""


def film_learning(
    vehicle: Vehicle, policy: LearntPolicy, stages: Sequence[LearningStage], protocol: HoverProtocol, spread: HoverStart
) -> list[FilmedStage]:
    """Fly the first starts of the protocol with each stage of a policy.

    Args:
        vehicle: That flies.
        policy: Whose weights the stages take the place of.
        stages: In order.
        protocol: How many flights, and from where.
        spread: Of starts.
    """
    return [_filmed(vehicle, policy.having(stage.weights), protocol, spread, stage.name) for stage in stages]


def _filmed(vehicle: Vehicle, flyer: LearntPolicy, protocol: HoverProtocol, spread: HoverStart, name: str) -> FilmedStage:
    count = protocol.film_flights
    config = SimulatorConfig(level=flyer.level, control_rate=flyer.rate, physics_rate=protocol.physics_rate)
    simulator = Simulator(vehicle, config, count, seed=protocol.seed)
    start = evaluation_starts(vehicle, spread, protocol, count).T
    simulator.reset(
        position=start[:, :3], velocity=start[:, 3:6], attitude=start[:, 6:10], rate=start[:, 10:13], rotor_speed=start[:, 13:]
    )
    flyer.begin(simulator)
    every = max(1, round(flyer.rate / _PICTURES_PER_S))
    positions, attitudes = [np.array(simulator.position, float)], [np.array(simulator.attitude, float)]
    far = np.linalg.norm(positions[0], axis=1)
    for tick in range(1, round(min(_FILM_S, protocol.flight_s) * flyer.rate) + 1):
        simulator.step(flyer.command(simulator, None))
        position, attitude = np.array(simulator.position, float), np.array(simulator.attitude, float)
        gone = ~(np.isfinite(position).all(axis=1) & np.isfinite(attitude).all(axis=1))
        far = np.where(gone, np.inf, np.maximum(far, np.linalg.norm(position, axis=1)))
        if tick % every == 0:
            position[gone], attitude[gone] = positions[-1][gone], attitudes[-1][gone]
            positions.append(position)
            attitudes.append(attitude)
    return FilmedStage(name, np.array(positions), np.array(attitudes), (far > protocol.reach_m) | simulator.diverged)


def stage_svg(vehicle: Vehicle, stage: FilmedStage, half_m: float) -> str:
    """Draw the flights of a stage around their target, which move again and again at true speed.

    Args:
        vehicle: Its arms are drawn, longer than they are.
        stage: Flights.
        half_m: Half the width of the picture [m].
    """
    scale = 0.5 * _SIDE / half_m
    # Of a single picture, which does not move, as well.
    seconds = max(1, len(stage.position) - 1) / _PICTURES_PER_S
    hubs = np.array([rotor.position for rotor in vehicle.rotors]) - np.array(vehicle.center_of_mass)
    hubs *= _ARM_SHARE * half_m / max(float(np.linalg.norm(hubs, axis=1).max()), 1e-9)
    body = [_target(scale)]
    centre = _seen(stage.position, scale)
    for k, lost in enumerate(stage.lost):
        role = "bad" if lost else "flown"
        trail = " ".join(f"{x},{y}" for x, y in _steps_apart(centre[:, k]))
        body.append(f'<path class="trail" d="M{trail}" stroke="var(--{role})"/>')
    for k, lost in enumerate(stage.lost):
        # Picture, hub, axis: hubs turn with the body, and the picture of each is that of its place.
        turned = rotate(stage.attitude[:, k, None, :], np.broadcast_to(hubs, (len(centre), *hubs.shape)))
        tips = _seen(stage.position[:, k, None, :] + turned, scale)
        drawn = [_drone(c, t) for c, t in zip(centre[:, k], tips, strict=True)]
        role = "bad" if lost else "flown"
        body.append(
            f'<path class="drone" d="{drawn[0]}" stroke="var(--{role})"><animate attributeName="d" dur="{seconds:g}s"'
            f' repeatCount="indefinite" values="{";".join(drawn)}"/></path>'
        )
    kept = int(np.sum(~stage.lost))
    told = f"{escape(stage.name)}: {kept} of {len(stage.lost)} flights kept"
    return f'<svg class="film" viewBox="0 0 {_SIDE} {_SIDE}" role="img"><title>{told}</title>{"".join(body)}</svg>'


def _seen(points: Array, scale: float) -> Array:
    """Whole units right and down in the view box of points (..., 3) [m]: (..., 2)."""
    right = points[..., 1] * cos(_AZIMUTH) - points[..., 0] * sin(_AZIMUTH)
    depth = points[..., 0] * cos(_AZIMUTH) + points[..., 1] * sin(_AZIMUTH)
    up = points[..., 2] * cos(_ELEVATION) - depth * sin(_ELEVATION)
    placed = 0.5 * _SIDE + scale * np.stack([right, -up], axis=-1)
    return np.rint(np.clip(placed, -_FARTHEST, _FARTHEST)).astype(int)


def _steps_apart(points: Array) -> Array:
    """Points (n, 2) without those that repeat the one before."""
    moved = np.r_[True, np.any(np.diff(points, axis=0) != 0, axis=1)]
    return points[moved]


def _drone(centre: Array, tips: Array) -> str:
    """Return the arms as one path; relative, which is shorter."""
    arms = "".join(f"l{x} {y}m{-x} {-y}" for x, y in (tips - centre).tolist())
    return f"M{centre[0]} {centre[1]}{arms}"


def _target(scale: float) -> str:
    """Return the target, and a metre to measure by."""
    middle, foot = _SIDE // 2, _SIDE - 16
    cross = f'<path d="M{middle - 9} {middle}h18M{middle} {middle - 9}v18" stroke="var(--second)" stroke-width="2"/>'
    metre = f'<path d="M14 {foot - 4}v4h{scale:.0f}v-4" fill="none" stroke="var(--axis)" stroke-width="1.5"/>'
    words = 'font-size="19" fill="var(--muted)" font-family="var(--sans)"'
    return f'{cross}{metre}<text x="{20 + scale:.0f}" y="{foot + 2}" {words}>1 m</text>'


# ---- The stages of a training, kept and shown -------------------------------------------------------------------------------

Stages = Mapping[int, tuple[float, Sequence[ArrayF32]]]
"""By gradient steps done: seconds learnt, and the weights then."""
STAGES_FOLDER = "film"
"""Folder with the weights of the film's stages: who judges a finished policy again films it from them."""


def keep_stages(folder: Path, earlier: Stages) -> None:
    """Keep the stages before the last with a finished training."""
    arrays = {f"{at}_{k}": w for at, (_, weights) in earlier.items() for k, w in enumerate(weights)}
    notes = {"stages": [[at, wall_s, len(weights)] for at, (wall_s, weights) in earlier.items()]}
    Checkpoints(folder / STAGES_FOLDER, "film").save(Checkpoint(0, arrays, notes), {})


def kept_stages(folder: Path) -> Stages:
    """Return what `keep_stages` kept; nothing where it is gone or was never kept, of which an `AssetWarning` tells."""
    place = folder / STAGES_FOLDER
    held = Checkpoints(place, "film").newest() if place.is_dir() else None
    if held is None:
        told = f"{str(place)!r} is missing or not whole: without the stages of its learning the film is of the last one alone."
        warnings.warn(told, AssetWarning, stacklevel=2)
        return {}
    told = held.notes["stages"]
    return {int(at): (float(wall_s), [held.arrays[f"{at}_{k}"] for k in range(count)]) for at, wall_s, count in told}


def film_pictures(
    vehicle: Vehicle,
    learnt: LearntPolicy,
    earlier: Stages,
    weights: Sequence[ArrayF32],
    wall_s: float,
    spread: HoverStart,
    protocol: HoverProtocol,
) -> list[tuple[str, str, str]]:
    """Return title, flights kept and picture of each stage of the film; nothing where none is wanted.

    Args:
        vehicle: That flies.
        learnt: Who flies it.
        earlier: The stages before the last.
        weights: Of the last.
        wall_s: How long it learnt.
        spread: Of starts.
        protocol: How many flights are filmed.
    """
    if not protocol.film_flights:
        return []
    named = {at: f"after {spent:.2f} s" if at else "untrained" for at, (spent, _) in earlier.items()}
    stages = [LearningStage(named[at], known) for at, (_, known) in sorted(earlier.items())]
    stages.append(LearningStage(f"learnt, after {wall_s:.2f} s", weights))
    filmed = film_learning(vehicle, learnt, stages, protocol, spread)
    half_m = FILM_MARGIN * float(np.linalg.norm(filmed[0].position[0], axis=-1).max())
    kept = [f"{int(np.sum(~stage.lost))} of {len(stage.lost)} kept" for stage in filmed]
    return [(stage.name, said, stage_svg(vehicle, stage, half_m)) for stage, said in zip(filmed, kept, strict=True)]
