"""What the second camera of the stereo pair adds: one update of the filter by pictures of one camera, and by those of both.

    python benchmarks/race_stereo.py                120 views, some minutes on a busy core
    python benchmarks/race_stereo.py --views 40 --seed 1

Views are drawn as in `race_eyes.py`. The belief is wrong by errors that are drawn as its covariance says (5 cm and half a
degree of vehicle and gates); openings are named by it, and taken in one update. Of gates that the left camera shows whole it is
told how far off they are afterwards from the vehicle, along the line of sight and across, beside what the filter says. A gate
is found with three corners or four in one picture.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.core import frames
from airworthy.race import BeaconFrame, GateFilter, course_of, gate_shape, load_race, race_briefing, race_class
from airworthy.race.benchmark.imaging import RaceCamera
from airworthy.race.briefing import RaceBriefing
from airworthy.race.estimation.estimator import Belief, FilterState
from airworthy.race.estimation.landmarks import gate_axes
from airworthy.race.vision.naming import PIXEL_SIGMA, seen_gates
from airworthy.scenes import SceneBatch, scene
from airworthy.sensors import rig
from benchmarks import hardware
from benchmarks.race_eyes import COURSE, UNSURE, view

ONE, BOTH = "left camera", "both cameras"


def told() -> RaceBriefing:
    """Return what `race:stereo` is told, of gates that stand where they are said to: a course is no matter of the picture."""
    race = load_race("alphapilot")
    shapes = [gate_shape(course_of(race, COURSE).gate(gate)) for gate, _ in race.passes]
    return replace(
        race_briefing(race, race_class("published")),
        corners=np.stack([shape.corners for shape in shapes]),
        normal=np.stack([shape.normal for shape in shapes]),
        pixel_noise=PIXEL_SIGMA,
        right_position=np.array(rig("flightgoggles_race")["right"].mount.position),
    )


def believed(begun: Belief, position: Array, attitude: Array, sigma: Array, rng: np.random.Generator) -> Belief:
    """Return a belief of one vehicle that is wrong as its covariance says.

    Args:
        begun: Any belief of one flight.
        position: Where it is [m], (3,).
        attitude: How it is turned, quaternion x, y, z, w, (4,).
        sigma: Standard deviations of all errors, (d,).
        rng: What draws the errors.
    """
    error = sigma * rng.standard_normal(len(sigma))
    turned = frames.multiply(frames.from_rotation_vector(error[6:9]), attitude)
    motion = replace(begun.motion, position=(position + error[:3])[None], attitude=turned[None])
    gates = error[len(error) - begun.gates.size :].reshape(begun.gates.shape)
    return replace(begun, motion=motion, gates=gates, covariance=np.diag(sigma**2)[None])


def offsets(filter_: GateFilter, state: FilterState, position: Array, gate: int) -> tuple[Array, Array]:
    """Return the error of a gate's centre from the vehicle, along the line of sight, aside and upwards [m], (3,), and what the
    filter says of it: standard deviations, (3,).
    """
    center, _, by_yaw = gate_axes(filter_.briefing, state.now.gates)
    true = filter_.briefing.corners[gate].mean(axis=0) - position
    ahead = true / np.linalg.norm(true)
    aside = np.cross([0.0, 0.0, 1.0], ahead)
    axes = np.stack([ahead, aside / np.linalg.norm(aside), np.cross(ahead, aside / np.linalg.norm(aside))])
    covariance = filter_.covariance(state)[0]
    at = filter_.gates_at + 3 * gate
    slope = np.zeros((3, len(covariance)))
    slope[:, :3] = -np.eye(3)
    slope[:2, at : at + 2] = np.eye(2)
    slope[:, at + 2] = by_yaw[0, gate]
    slope = axes @ slope
    error = axes @ (center[0, gate] - state.now.motion.position[0] - true)
    return error, np.sqrt(np.diag(slope @ covariance @ slope.T))


def measured(views: int, seed: int) -> dict[str, Any]:
    """Return errors and standard deviations after updates by one camera and by both, and how many gates were found."""
    filter_ = GateFilter(told())
    known, begun = filter_.briefing, filter_.begin(1)
    camera = RaceCamera(SceneBatch([scene(f"alphapilot:{COURSE}")]), race_class("published"), True)
    sigma = np.full(begun.now.covariance.shape[1], UNSURE[0])
    sigma[6:9] = sigma[filter_.gates_at + 2 :: 3] = UNSURE[1]
    rng, found = np.random.default_rng(seed), {ONE: 0, BOTH: 0}
    told_of: dict[str, list[Any]] = {ONE: [], BOTH: []}
    for _ in range(views):
        position, attitude = view(rng, known.corners.mean(1), known.normal)
        (image,) = camera.take(position[None], attitude[None], 0.0, np.array([0]))
        assert image.right is not None
        belief = believed(begun.now, position, attitude, sigma, rng)
        frame = seen_gates(known, belief, filter_.gates_at, 0.0, image.pixels[0], image.right[0])
        state = replace(begun, now=belief, past=(belief,))
        left = BeaconFrame(0.0, frame.pixel)
        whole = np.flatnonzero(left.corners_seen[0] == 4)
        for name, given in ((ONE, left), (BOTH, frame)):
            found[name] += int(np.sum(given.corners_seen >= 3))
            after, _ = filter_.update(state, given)
            told_of[name] += [offsets(filter_, after, position, int(gate)) for gate in whole]
    return {"found": found, **{name: np.array(rows) for name, rows in told_of.items()}}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--views", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    given = measured(chosen.views, chosen.seed)
    rows = {}
    for name in (ONE, BOTH):
        error, said = given[name][:, 0], given[name][:, 1]
        rows[name] = {
            "gates_found": given["found"][name],
            "gates": len(error),
            "error_rms_m": np.sqrt(np.mean(error**2, axis=0)).round(4).tolist(),
            "error_median_m": np.median(np.abs(error), axis=0).round(4).tolist(),
            "said_rms_m": np.sqrt(np.mean(said**2, axis=0)).round(4).tolist(),
            "squared_over_said": np.mean((error / said) ** 2, axis=0).round(2).tolist(),
        }
    result = {"hardware": hardware.describe(hardware.use_cores(1)), "views": chosen.views, **rows}
    if chosen.json:
        print(json.dumps(result, indent=1))
        return
    print(f"{chosen.views} views; gates relative to the vehicle: along the line of sight, aside, upwards [m]")
    for name, row in rows.items():
        print(name, *(f"{key} {value}" for key, value in row.items()), sep="\n  ")


if __name__ == "__main__":
    main()
