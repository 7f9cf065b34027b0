"""The two detectors of contact: the published one against distances of shapes in NumPy, and what it overlooks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.geometry.twins import shape_distance
from airworthy.race.benchmark.contact import PUBLISHED, SWEPT, ContactWatch, contact_of
from airworthy.race.benchmark.job import RaceBenchConfig, run_race_bench
from airworthy.race.benchmark.recording import trace_of
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.generators.halls.race_courses import alphapilot_course
from airworthy.vehicles import vehicle

HALL = alphapilot_course("nominal")
RACER = vehicle("flightgoggles_2019")
RADIUS = 0.15


def distances(points: Array) -> tuple[Array, list[str]]:
    """Distance of points to the nearest part of the hall that can be hit, by each shape's own formula, and its name."""
    rows, names = [], []
    for item in HALL.instances:
        if item.collide:
            local = frames.rotate(frames.conjugate(np.array(item.attitude)), points - np.array(item.position))
            rows.append(shape_distance(HALL.shapes[item.shape], local))
            names.append(item.name)
    nearest = np.argmin(rows, axis=0)
    return np.min(rows, axis=0), [names[k] for k in nearest]


def watch(positions: Array, detector: Any = PUBLISHED, flown_by: Any = RACER) -> tuple[ContactWatch, Any]:
    """A detector of flights that stand somewhere, and what moves them."""
    attitude = frames.normalize(np.random.default_rng(4).normal(size=(len(positions), 4)))
    held: Any = SimpleNamespace(position=positions, attitude=attitude, env_count=len(positions))
    return ContactWatch(detector, held, SceneBatch([HALL] * len(positions)).geometry, flown_by), held


def test_overlap_is_what_distances_of_shapes_say() -> None:
    rng = np.random.default_rng(3)
    corners = np.array([corner for gate in HALL.gates for corner in gate.corners])
    points = corners[rng.integers(len(corners), size=48)] + rng.uniform(-0.45, 0.45, (48, 3))
    distance, names = distances(points)
    # Beyond what single precision decides.
    clear = np.abs(distance - RADIUS) > 1e-5
    detector, _ = watch(points)
    detector.look(framed=True)
    assert 5 < np.count_nonzero(detector.touched) < 43
    assert np.array_equal(detector.touched[clear], (distance <= RADIUS)[clear])
    batch = SceneBatch([HALL])
    for flight in np.flatnonzero(detector.touched & clear):
        assert batch.instance_name(0, int(detector.instance[flight])) == names[flight]


def test_the_sphere_is_where_the_body_is() -> None:
    """Positions are the centre of mass's, and bodies may lie beside it, turning with the vehicle."""
    rng = np.random.default_rng(5)
    corners = np.array([corner for gate in HALL.gates for corner in gate.corners])
    middles = corners[rng.integers(len(corners), size=48)] + rng.uniform(-0.45, 0.45, (48, 3))
    body, mass = np.array([0.4, 0.1, -0.2]), np.array([0.1, -0.1, 0.1])
    racer = replace(RACER, body=replace(RACER.body, center=tuple(body)), center_of_mass=tuple(mass))
    detector, held = watch(middles, flown_by=racer)
    held.position = middles - frames.rotate(held.attitude, body - mass)
    detector.look(framed=True)
    distance, _ = distances(middles)
    clear = np.abs(distance - RADIUS) > 1e-5
    assert 5 < np.count_nonzero(detector.touched) < 43
    assert np.array_equal(detector.touched[clear], (distance <= RADIUS)[clear])


def test_between_frames_nothing_is_looked_for_and_what_was_touched_stays_so() -> None:
    (gate,) = (gate for gate in HALL.gates if gate.name == "Gate10")
    # In the tube beside the opening, and two metres before and behind it.
    middle = 0.5 * (np.array(gate.corners[0]) + np.array(gate.corners[1]))
    through = np.array(gate.direction) * 2.0
    detector, held = watch((middle - through)[None])
    for place, framed, touched in ((middle, False, False), (middle + through, True, False), (middle, True, True)):
        held.position = place[None]
        detector.look(framed)
        assert detector.touched.tolist() == [touched]
    name = SceneBatch([HALL]).instance_name(0, int(detector.instance[0]))
    held.position = (middle + through)[None]
    detector.look(True)
    assert detector.touched.tolist() == [True]
    assert SceneBatch([HALL]).instance_name(0, int(detector.instance[0])) == name
    assert name.startswith("Gate10, ")


def test_no_number_touches_nothing_and_another_body_is_refused() -> None:
    detector, _ = watch(np.full((1, 3), np.nan))
    detector.look(True)
    assert not detector.touched.any()
    box = replace(RACER, body=replace(RACER.body, shape="box", size=(0.3, 0.3, 0.1)))
    with pytest.raises(AirworthyError, match="tests a sphere, and the body of 'flightgoggles_2019' is a box"):
        ContactWatch(PUBLISHED, SimpleNamespace(env_count=1), None, box)  # type: ignore[arg-type]
    swept = contact_of(SWEPT)
    assert swept is not None
    assert swept.mode == "freeze"
    assert contact_of(PUBLISHED) is None


FALLS = """
class Falls:
    rate = 60.0

    def begin(self, facts):
        pass

    def command(self, onboard):
        # Full thrust at the end would throw it up again, had it not ended on the floor.
        return [0.0, 0.0, 0.0, 0.0]
"""


def ended(folder: Path) -> Array:
    """Heights at which flights of a folder ended [m]."""
    blocks = [json.loads(path.read_text())["content"] for path in sorted((folder / "blocks").iterdir())]
    return np.array([trace_of(trace, "a flight", folder).end_position[2] for block in blocks for trace in block["traces"]])


@pytest.mark.slow
def test_a_fall_ends_on_the_floor_or_in_it_and_folders_are_kept_apart(tmp_path: Path) -> None:
    (tmp_path / "falls.py").write_text(FALLS)

    def run(**changes: Any) -> dict[str, Any]:
        fields = {"pilot": f"{tmp_path / 'falls.py'}:Falls", "courses": "published:0-5", "in_process": True}
        return run_race_bench(RaceBenchConfig(**{**fields, "out": str(tmp_path / "out"), **changes})).summary

    swept = run()
    with pytest.raises(AirworthyError, match="contact: swept before, published now"):
        run(contact="published")
    with pytest.raises(AirworthyError, match=r"decoy_beacons: (F|f)alse before, (T|t)rue now"):
        run(decoy_beacons=True)
    other = run(contact="published", decoy_beacons=True, out=str(tmp_path / "other"))
    for summary, said in ((swept, ("swept", False)), (other, ("published", True))):
        assert (summary["contact"], summary["decoy_beacons"]) == said
        assert {(row["end"], row["part"]) for row in summary["flights"]} == {("contact", "floor")}
    ends = [ended(tmp_path / name) for name in ("out", "other")]
    # Stopped on the floor, or found in it at the next frame: up to 16 steps at 10 m/s, 0.17 m.
    assert ends[0] == pytest.approx(np.full(6, RADIUS), abs=1e-4)
    assert np.all(ends[1] < RADIUS)
    assert np.all(ends[1] > RADIUS - 0.18)
    # Falls are alike but for noise: nobody is counted through the floor, and on through the void below.
    assert [row["path_m"] for row in other["flights"]] == pytest.approx([row["path_m"] for row in swept["flights"]], abs=0.2)
    # Wherever a row of ours stands, it says under which rules.
    marks = "contacts looked for 60 times a second, as in 2019, beacons of decoys lit"
    notes = [row["note"] for row in [*other["pilots"], *other["tables"]["scores"], *other["tables"]["sensors"]] if row["note"]]
    assert notes
    assert all(note.endswith(marks) for note in notes)
    page = (tmp_path / "other" / "report.html").read_text()
    assert "overlap, looked for at 60 Hz, as in 2019" in page
    assert marks not in json.dumps(swept)
