"""Places of one's own in the benchmark: proven pairs, any scene and vehicle, and a folder like every other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy

from airworthy.benchmarks.navigation.config import NavigationConfig
from airworthy.benchmarks.navigation.job import run_benchmark
from airworthy.benchmarks.navigation.own_scenes import SPARE, make_own_scene
from airworthy.benchmarks.navigation.replay import replay_row
from airworthy.benchmarks.navigation.store import RESULTS_FILE, read_rows
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.geometry.distance import clearance
from airworthy.scenes import SceneBatch, scene
from airworthy.tasks.navigation import NavigationProtocol
from airworthy.vehicles import vehicle
from airworthy.vehicles.files import vehicle_text


def wall_with_a_door(path: Path, door: float = 2.0) -> Path:
    """A closed hall of 12 x 8 x 3 m with a wall and a door across it [m], as an OBJ file, z up."""
    boxes = [((-6, -4, -0.2), (6, 4, 0)), ((-6, -4.2, 0), (6, -4, 3)), ((-6, 4, 0), (6, 4.2, 3))]
    boxes += [((-6, -4, 3), (6, 4, 3.2)), ((-6.2, -4, 0), (-6, 4, 3)), ((6, -4, 0), (6.2, 4, 3))]
    boxes += [((-0.1, -4, 0), (0.1, -0.5 * door, 3)), ((-0.1, 0.5 * door, 0), (0.1, 4, 3))]
    lines: list[str] = []
    for k, (low, high) in enumerate(boxes):
        corners = [(x, y, z) for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])]
        lines += [f"v {x} {y} {z}" for x, y, z in corners]
        faces = ((1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4))
        lines += ["f " + " ".join(str(8 * k + i) for i in face) for face in faces]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_between_every_pair_there_is_a_way_for_the_body() -> None:
    radius, found = 0.3, make_own_scene("maze:1", 4, 0.3)
    place = scene("maze:1")
    lower, upper = (np.array(corner, float) for corner in (place.bounds.lower, place.bounds.upper))
    # Independently of the search: exact distances on another grid, and SciPy's connected components.
    step = 0.2
    axes = [np.arange(a + 0.5 * step, b, step) for a, b in zip(lower, upper, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    flat = points.reshape(-1, 3)
    batch = SceneBatch(place, 1)
    far = clearance(batch.geometry, flat, env=np.zeros(len(flat), np.int64), max_distance=1.0).distance
    parts, _ = scipy.ndimage.label((far.clip(max=1.0) > radius).reshape(points.shape[:3]))
    assert len({pair.start for pair in found.pairs}) == 4
    for pair in found.pairs:
        ends = np.array([pair.start, pair.goal])
        at = clearance(batch.geometry, ends, env=np.zeros(2, np.int64), max_distance=2.0).distance
        assert (at > radius + SPARE - 1e-4).all()
        assert ((ends - radius > lower) & (ends + radius < upper)).all()
        a, b = (parts[tuple(((end - lower) / step).astype(int))] for end in ends)
        assert a == b > 0
        line = float(np.linalg.norm(ends[1] - ends[0]))
        assert pair.path_m >= line - 1e-6
        assert line >= (upper - lower)[:2].max() / 3


def test_pairs_are_the_same_for_the_same_words_and_others_for_others(tmp_path: Path) -> None:
    scene_path = str(wall_with_a_door(tmp_path / "hall.obj"))
    first = make_own_scene(scene_path, 3, 0.3)
    assert make_own_scene(scene_path, 3, 0.3) == first
    assert first.name == "own_hall"
    assert make_own_scene(scene_path, 3, 0.3, seed=1).pairs != first.pairs
    with pytest.raises(AirworthyError, match=r"only 0 of 2 pairs were found with room for a body of 1\.40 m"):
        make_own_scene(scene_path, 2, 1.4)
    with pytest.raises(AirworthyError, match="only 0 of 2"):
        make_own_scene(scene_path, 2, 0.3, least=500.0)
    with pytest.raises(AirworthyError, match="scene"):
        make_own_scene("nowhere_of_this_name", 2, 0.3)


def test_a_door_too_narrow_for_the_largest_vehicle_parts_the_hall(tmp_path: Path) -> None:
    through = {}
    for door in (2.0, 0.9):
        found = make_own_scene(str(wall_with_a_door(tmp_path / f"door_{door:.0f}.obj", door)), 6, 0.3, least=4.0)
        ends = np.array([[pair.start, pair.goal] for pair in found.pairs])
        inside = (np.abs(ends) < (6.0, 4.0, 3.0)).all(axis=(1, 2))
        through[door] = inside & (ends[:, 0, 0] * ends[:, 1, 0] < 0.0)
    assert through[2.0].any()
    assert not through[0.9].any()


def test_places_of_ones_own_are_flown_kept_replayed_and_held_to_their_digests(tmp_path: Path) -> None:
    scene_path, mine = wall_with_a_door(tmp_path / "hall.obj"), tmp_path / "mine.toml"
    mine.write_text(vehicle_text(replace(vehicle("virt_05"), name="mine")))
    rules = NavigationProtocol(time_limit_s=10.0)
    config = NavigationConfig(
        ("straight",),
        ("real_09", str(mine)),
        scenes=(str(scene_path),),
        pairs=2,
        protocol=rules,
        out=tmp_path / "run",
        report=False,
    )
    done = run_benchmark(config)
    rows = read_rows(tmp_path / "run")
    assert done.flights == len(rows) == 4
    assert {(row["scenario"], row["configuration"], row["vehicle"]) for row in rows} == {
        ("own_hall", k, name) for k in (1, 2) for name in ("real_09", str(mine))
    }
    assert {row["outcome"] for row in rows} <= {"success", "collision"}
    lines = {round(row["line_m"], 6) for row in rows}
    assert len(lines) == 2
    assert min(lines) >= 4.0
    assert done.summary["division"]["division"] == "open"
    assert replay_row(tmp_path / "run", 3, keep=False).equal
    before = (tmp_path / "run" / RESULTS_FILE).read_bytes()
    assert run_benchmark(config).complete
    assert (tmp_path / "run" / RESULTS_FILE).read_bytes() == before
    scene_path.write_text(scene_path.read_text() + "v 0 0 1\nv 0 0.1 1\nv 0.1 0 1\nf -3 -2 -1\n")
    from airworthy.benchmarks.navigation.own_scenes import _scene

    _scene.cache_clear()
    with pytest.raises(AssetError, match="was changed since the pairs"):
        replay_row(tmp_path / "run", 0, keep=False)
    with pytest.raises(AirworthyError, match="other settings"):
        run_benchmark(config)
