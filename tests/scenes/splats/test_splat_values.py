"""What readers take from splat files, whole and damaged, and what edits make of gaussians, number by number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import splat_building as build
import splat_fuzzing as fuzzing
from tests.fixtures.damage import outcomes
from tests.fixtures.snapshots import check_snapshot, condensed

from airworthy.scenes.record import Scene, SplatPlacement
from airworthy.scenes.splats import SPLAT_LIMITS, EditBox, editing, geometry, placing, read_splats, record, write_splats

SNAPSHOTS = Path(__file__).parent / "snapshots"
TURN = (0.1, -0.3, 0.5, 0.8062257748)


@pytest.mark.parametrize("container", fuzzing.CONTAINERS)
def test_files_whole_and_damaged(container: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    valid = fuzzing.seeds()[container]
    count = 40 if container in ("streamed", "folder", "nerfstudio") else 80
    found = outcomes(fuzzing, monkeypatch, fuzzing.Driver(tmp_path), valid, fuzzing.inputs(container, 77), count)
    check_snapshot(SNAPSHOTS / f"read_{container}.txt", found, 1e-5)


def test_edits_and_their_defaults() -> None:
    splats = build.random_splats(200, 3, 5)
    box = EditBox((0.2, -0.1, 0.3), (0.8, 0.7, 1.0), TURN)
    edits: dict[str, Any] = {
        "thinned": editing.thinned(splats, 40),
        "levels": editing.levels_of_detail(splats, (100, 20)),
        "transformed": editing.transformed(splats, TURN, (1.0, -2.0, 0.5), 1.7),
        "cropped": editing.cropped(splats, box),
        "deleted": editing.deleted(splats, [box, EditBox((-1.0, 0.0, 0.0), (0.5, 0.5, 0.5))]),
        "merged": editing.merged([splats, build.random_splats(3, 1)]),
        "recoloured": editing.recolored(splats, np.diag((0.5, 1.5, 1.0)) + 0.05, (0.1, 0.0, -0.1)),
        "brightened": editing.brightened(splats, 1.3),
        "turns": [editing.up_turn(up) for up in ("x", "y", "z", "-x", "-y", "-z")],
    }
    check_snapshot(SNAPSHOTS / "edits.txt", {key: condensed(value) for key, value in edits.items()}, 1e-5)


def test_harmonics() -> None:
    rng = np.random.default_rng(4)
    directions, coefficients = rng.normal(size=(7, 3)), rng.normal(size=(7, 16, 3)).astype(np.float32)
    values: dict[str, Any] = {}
    for degree in range(4):
        values[f"basis {degree}"] = record.basis(directions, degree)
        values[f"turn {degree}"] = record.turn_matrix(TURN, degree)
        values[f"colors {degree}"] = record.colors(coefficients[:, : (degree + 1) ** 2], directions)
        values[f"with degree {degree}"] = record.with_degree(coefficients[:, :4], degree)
    values["turned"] = record.turned(coefficients, TURN)
    check_snapshot(SNAPSHOTS / "harmonics.txt", values, 1e-8)


def test_geometry_of_splats() -> None:
    splats = build.random_splats(60, 1, 5)
    points = np.random.default_rng(0).uniform(-3.0, 3.0, (40, 3))
    values: dict[str, Any] = {"box": geometry.splat_box(splats), "faint": geometry.splat_box(splats, 0.5)}
    values["clearance"] = geometry.splat_clearance(splats, points, 0.2)
    values["mesh"] = condensed(geometry.splat_geometry(splats, 0.2).mesh)
    check_snapshot(SNAPSHOTS / "geometry.txt", values, 1e-5)


def test_placing() -> None:
    splats = build.random_splats(60, 1, 5)
    values: dict[str, Any] = {
        "placed": placing.placed(splats, SplatPlacement("a", (1.0, 2.0, 3.0), TURN, 0.5)),
        "standing": placing.standing(splats, (1.0, 2.0, 0.5), 0.4, 2.0),
        "foot": placing.standing(splats, (1.0, 2.0, 0.5), foot=0.2),
        "stood": placing.stood("a", splats, (1.0, 2.0, 0.5), 0.4, 2.0),
        "resolution": [placing.surface_resolution((0, 0, 0), (s, s, 3.0)) for s in (0.5, 3.0, 10.0, 50.0, 400.0)],
        "surface": placing.with_surface(placing.add_splats(Scene("x"), splats, "a"), 0.25),
    }
    check_snapshot(SNAPSHOTS / "placing.txt", {key: condensed(value) for key, value in values.items()}, 1e-5)


@pytest.mark.parametrize("ending", ["ply", "spz"])
def test_written(ending: str, tmp_path: Path) -> None:
    values: dict[str, Any] = {"limits": SPLAT_LIMITS}
    for degree in range(4):
        path = write_splats(build.random_splats(20, degree, 2), tmp_path / f"a.{ending}")
        values[str(degree)] = condensed(read_splats(path))
    check_snapshot(SNAPSHOTS / f"written_{ending}.txt", values, 1e-5)
