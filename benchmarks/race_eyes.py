"""How well corners of race gates are found in pictures: errors, shares and times, by distance and obliqueness.

    python benchmarks/race_eyes.py                 120 views, some minutes on a busy core
    python benchmarks/race_eyes.py --views 1000 --seed 1

Views are drawn in the hall of published/0: a gate, from 3 to 40 m and 0 to 70 degrees aside, on either side of it, the camera
turned and tilted at random so that the gate is somewhere in the picture. All gates in it count, by their beacons: a corner is
visible where the beacon camera of the contest sees it, without noise. Openings are named with a belief that is 5 cm and half a
degree unsure, as in flight; their corners are compared with those of the mid plane at the true pose.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.core import frames
from airworthy.optics import Pinhole
from airworthy.race import GateFilter, course_of, gate_shape, load_race, race_briefing, race_class
from airworthy.race.benchmark.imaging import RaceCamera
from airworthy.race.benchmark.sensing import Poses, RaceSensors
from airworthy.race.vision.naming import expected_openings, named
from airworthy.race.vision.openings import find_openings
from airworthy.scenes import SceneBatch, scene
from airworthy.sensors import device
from benchmarks import hardware

COURSE = "published/0"
LOWER, UPPER = np.array([-43.0, -47.0, 0.5]), np.array([35.0, 51.0, 19.0])
"""Where the camera may be: within the walls of the hall [m]."""
UNSURE = (0.05, np.radians(0.5))
"""Standard deviation of positions [m], of the vehicle's and of gates, and of angles [rad]."""
DISTANCES, ASIDE = (3.0, 8.0, 15.0, 25.0, 40.0), (0.0, 25.0, 50.0, 70.0)
"""Edges of the table's rows [m] and columns [deg]."""
WRONG = 5.0
"""An error beyond this is a wrong name or another thing's edge [px]."""


def view(rng: np.random.Generator, centers: Array, normals: Array) -> tuple[Array, Array]:
    """Return where the vehicle is and how it is turned, so that a gate is in the picture."""
    while True:
        gate = rng.integers(len(centers))
        turn = frames.from_euler(0.0, 0.0, np.radians(rng.uniform(-ASIDE[-1], ASIDE[-1])) + np.pi * rng.integers(2))
        away = rng.uniform(DISTANCES[0], DISTANCES[-1]) * frames.rotate(turn, normals[gate]) + [
            0.0,
            0.0,
            rng.uniform(-1.0, 1.0),
        ]
        position = centers[gate] + away
        if np.all(position > LOWER) and np.all(position < UPPER):
            heading = np.arctan2(-away[1], -away[0]) + rng.uniform(-0.5, 0.5)
            return position, frames.from_euler(rng.uniform(-1.2, 1.2), rng.uniform(-0.3, 0.3), heading)


def measured(views: int, seed: int) -> dict[str, Any]:
    """Return rows of gates: distance, obliqueness, visible corners, found ones, errors; and times."""
    race, conditions = load_race("alphapilot"), race_class("published")
    course, briefing = course_of(race, COURSE), race_briefing(race, conditions)
    shapes = [gate_shape(course.gate(name)) for name, _ in course.passes]
    corners = np.stack([shape.corners for shape in shapes])
    centers, normals = np.stack([shape.center for shape in shapes]), np.stack([shape.normal for shape in shapes])
    # Gates as they stand are nominal here: their shift is no matter of the picture.
    briefing = replace(briefing, corners=corners, normal=normals)
    batch = SceneBatch([scene(f"alphapilot:{COURSE}")])
    camera, sensors = RaceCamera(batch, conditions), RaceSensors(race, batch, conditions, np.zeros(1, np.uint32), 0, 960.0)
    gates = GateFilter(briefing)
    begun = gates.begin(1).now
    unsure = np.full(begun.covariance.shape[1], UNSURE[0])
    unsure[6:9] = unsure[gates.gates_at + 2 :: 3] = UNSURE[1]
    lens = device("flightgoggles_camera").projection
    assert isinstance(lens, Pinhole)
    rng, rows, times = np.random.default_rng(seed), [], []
    for number in range(views):
        position, attitude = view(rng, centers, normals)
        motion = replace(begun.motion, position=position[None], attitude=attitude[None])
        belief = replace(begun, motion=motion, covariance=np.diag(unsure**2)[None])
        one = np.array([0])
        (image,) = camera.take(position[None], attitude[None], 0.0, one)
        seen, _ = sensors.sample(Poses(position[None], attitude[None]), 16 * number, one)
        visible = np.isfinite(seen[0].pixel[0, ..., 0])
        started = time.process_time()
        pixel = named(find_openings(image.pixels[0]), expected_openings(briefing, belief, gates.gates_at), len(corners))
        times.append(time.process_time() - started)
        true, _ = lens.project(frames.rotate_inverse(frames.camera_attitude(attitude), corners - position))
        off = np.linalg.norm(pixel - true, axis=-1)
        away = centers - position
        distance = np.linalg.norm(away, axis=1)
        aside = np.degrees(np.arccos(np.clip(np.abs(np.sum(away * normals, axis=1)) / distance, 0.0, 1.0)))
        rows += [(distance[k], aside[k], visible[k], off[k]) for k in range(len(corners)) if visible[k].any()]
    return {"rows": rows, "milliseconds": 1e3 * np.median(times)}


def summary(rows: list[tuple[float, float, Array, Array]]) -> dict[str, Any]:
    """Return figures of some gates: corners that are visible, share of them that was found, and errors of those."""
    visible = sum(int(np.sum(seen)) for _, _, seen, _ in rows)
    off = np.concatenate([off[np.isfinite(off)] for *_, off in rows]) if rows else np.zeros(0)
    right = off[off < WRONG]
    found = {
        "visible": visible,
        "found": len(off),
        "share": len(off) / visible if visible else None,
        "wrong": len(off) - len(right),
    }
    if not len(right):
        return found
    return found | {
        "rms_px": float(np.sqrt(np.mean(right**2))),
        "median_px": float(np.median(right)),
        "p95_px": float(np.percentile(right, 95)),
        "max_px": float(np.max(off)),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--views", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    given = measured(chosen.views, chosen.seed)
    cells = {}
    for near, far in pairwise(DISTANCES):
        for least, most in pairwise(ASIDE):
            some = [row for row in given["rows"] if near <= row[0] < far and least <= row[1] < most]
            cells[f"{near:g} to {far:g} m, {least:g} to {most:g} deg"] = summary(some)
    result = {
        "hardware": hardware.describe(hardware.use_cores(1)),
        "views": chosen.views,
        "milliseconds_per_picture": given["milliseconds"],
        "all": summary([row for row in given["rows"] if row[0] < DISTANCES[-1] and row[1] < ASIDE[-1]]),
        "cells": cells,
    }
    if chosen.json:
        print(json.dumps(result, indent=1))
        return
    print(
        f"{chosen.views} views, {given['milliseconds']:.0f} ms of a processor each; corners: visible, found, wrong; error [px]"
    )
    for name, row in {"all": result["all"], **cells}.items():
        error = f"rms {row['rms_px']:.2f}, median {row['median_px']:.2f}, 95 % {row['p95_px']:.2f}" if "rms_px" in row else ""
        print(f"{name:28} {row['visible']:5} {row['found']:5} {row['wrong']:3}   {error}")


if __name__ == "__main__":
    main()
