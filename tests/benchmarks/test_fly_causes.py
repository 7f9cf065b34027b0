"""Why flights failed, in a clause, from made-up recordings."""

from __future__ import annotations

from typing import Any

import numpy as np

from airworthy.benchmarks.fly.causes import causes_of
from airworthy.cli.fly import failures
from airworthy.evaluation import evaluate_tracking
from airworthy.geometry import Box
from airworthy.scenes import Instance, Region, Scene
from airworthy.simulation.flights import FlightTable
from airworthy.tasks import TrackingReference
from airworthy.trajectories import Limits, from_waypoints
from airworthy.vehicles.record import CollisionBody

LINE = from_waypoints(np.array([[0.0, 0.0, 1.0], [8.0, 0.0, 1.0]]), Limits(speed=2.0, acceleration=3.0))
REFERENCE = TrackingReference.from_trajectory(LINE)
WALL = Scene(
    "walled",
    shapes={"block": Box((0.5, 2.0, 2.0))},
    instances=(Instance("block", (5.0, 0.0, 1.0), name="wall"),),
    bounds=Region((-1.0, -3.0, 0.0), (7.5, 3.0, 3.0)),
)


def flown(shift: Any, status: Any = 0.0, clearance: Any = None, until: float = 1.0) -> FlightTable:
    """A flight along the line with a shift (n, 3) of its positions, over a share of its time."""
    t = np.linspace(0.0, until * LINE.duration, 101)
    flat = LINE.sample(t)
    position = flat.position + np.broadcast_to(shift, (101, 3))
    columns = {"env": np.zeros(101, np.int32), "t": t, "status": np.broadcast_to(status, 101).astype(np.int8)}
    columns |= {f"position_{a}_m": position[:, k].astype(np.float32) for k, a in enumerate("xyz")}
    columns |= {f"velocity_{a}_m_s": flat.velocity[:, k].astype(np.float32) for k, a in enumerate("xyz")}
    columns |= {f"attitude_{a}": np.full(101, float(a == "w"), np.float32) for a in "xyzw"}
    return FlightTable(columns | ({} if clearance is None else {"clearance_m": np.asarray(clearance, np.float32)}))


def why(table: FlightTable, outcome: str, scene: Scene | None = None, farthest: float = np.inf) -> str:
    results = evaluate_tracking(table, REFERENCE)
    assert [result.outcome for result in results] == [outcome]
    return causes_of(table, results, REFERENCE, scene, farthest=farthest)[0]


def test_a_path_that_was_left() -> None:
    t = np.linspace(0.0, LINE.duration, 101)
    aside = np.zeros((101, 3))
    aside[30:61, 1] = 1.6 + 0.4 * (np.arange(30, 61) == 50)
    x = float(LINE.sample(t[50]).position[0])
    assert why(flown(aside), "off_course") == (
        f"it was farther than 1.5 m from its path from {t[30]:.2f} s on, 2 m at {t[50]:.2f} s, at ({x:.3g}, 2, 1) m"
    )


def test_an_end_that_was_not_reached() -> None:
    t = np.linspace(0.0, LINE.duration, 101)
    short = np.minimum(7.0, LINE.sample(t).position) - LINE.sample(t).position  # it stops a metre before the end
    assert why(flown(short), "off_course") == (
        "it came no nearer to the last waypoint than 1 m in its last 2 s, 0.5 m being near enough,"
        f" and ended at {LINE.duration:.2f} s, at (7, 0, 1) m"
    )


def test_what_was_hit() -> None:
    status = np.where(np.arange(101) < 40, 0.0, 2.0)
    t = np.linspace(0.0, LINE.duration, 101)[40]
    x = float(LINE.sample(t).position[0])
    assert why(flown(0.0, status), "collision", WALL) == f"it hit 'wall' at {t:.2f} s, at ({x:.3g}, 0, 1) m"
    near = np.where(np.arange(101) == 40, 0.1, 1.0)
    away = np.where(np.arange(101)[:, None] > 60, [0.0, 3.0, 0.0], 0.0)
    assert why(flown(away, clearance=near), "collision", WALL).startswith(f"it came within 0.15 m of 'wall' at {t:.2f} s")


def test_which_bound_was_crossed() -> None:
    status = np.where(np.arange(101) < 100, 0.0, 3.0)
    aside = np.where(np.arange(101)[:, None] < 100, 0.0, [0.0, -2.3, 0.0])
    end = f"{LINE.duration:.2f} s, at (8, -2.3, 1) m"
    assert why(flown(aside, status), "out_of_bounds", WALL) == f"it left the scene, whose bound is x = 7.5 m, at {end}"
    assert why(flown(aside, status), "out_of_bounds", farthest=6.0) == (
        f"it was 8.32 m from its start, beyond the 6 m that this course allows, at {end}"
    )


def test_what_a_vehicle_lies_on_that_never_left_it() -> None:
    """At rest within its body's reach of something; not while it moves, nor farther off, nor without a body that is known."""
    floor = Scene(
        "floored", shapes={"block": Box((20.0, 20.0, 0.5))}, instances=(Instance("block", (0.0, 0.0, -0.5), name="floor"),)
    )
    grounded = np.array([0.0, 0.0, 0.2]) - LINE.sample(np.linspace(0.0, LINE.duration, 101)).position
    body = CollisionBody("box", (0.3, 0.3, 0.1))
    still = flown(grounded, clearance=np.full(101, 0.2))
    for axis in "xyz":
        still.columns[f"velocity_{axis}_m_s"] = np.zeros(101, np.float32)
    moving = flown(grounded, clearance=np.full(101, 0.2))
    moving.columns["velocity_x_m_s"][-1] = 0.3

    def said(table: FlightTable, bodies: dict[int, CollisionBody] | None) -> str:
        results = evaluate_tracking(table, REFERENCE)
        assert results[0].outcome == "off_course"
        return causes_of(table, results, REFERENCE, floor, bodies=bodies)[0]

    assert said(still, {0: body}).endswith("; it lies still on 'floor' in the end")
    small = CollisionBody("sphere", (0.15, 0.15, 0.15))
    assert not any("lies" in text for text in (said(still, {0: small}), said(still, None), said(moving, {0: body})))


def test_one_line_for_each_outcome() -> None:
    flights = [
        {"env": 0, "outcome": "success"},
        {"env": 1, "outcome": "collision", "cause": "it hit 'a'"},
        {"env": 2, "outcome": "collision", "cause": "it hit 'b'"},
        {"env": 3, "outcome": "off_course", "cause": "it was far"},
        {"env": 4, "outcome": "pilot_error", "cause": "told elsewhere"},
    ]
    assert failures(flights) == ["collision: first flight 1: it hit 'a'.", "off_course: flight 3: it was far."]
    assert failures(flights[3:4]) == ["off_course: it was far."]
