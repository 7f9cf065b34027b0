"""The file of a scene is read by `fly` as `scenes show` reads it, and its copy as it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from airworthy.benchmarks.fly.config import FlyConfig, command_line, read_as_it_is, resolved
from airworthy.benchmarks.fly.job import run_fly
from airworthy.benchmarks.fly.replay import refly
from airworthy.benchmarks.fly.scene import place_of
from airworthy.core.errors import AirworthyError


@pytest.fixture
def slab(tmp_path: Path) -> str:
    """A floor of 8 m by 6 m in centimetres, y up."""
    corners = [(x, y, z) for x in (-400, 400) for y in (0, 10) for z in (-300, 300)]
    faces = ((1, 2, 4), (1, 4, 3), (5, 7, 8), (5, 8, 6), (1, 5, 6), (1, 6, 2), (3, 4, 8), (3, 8, 7), (1, 3, 7), (1, 7, 5))
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + [f"f {a} {b} {c}" for a, b, c in faces]
    path = tmp_path / "slab.obj"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_units_and_axis_of_a_file(slab: str) -> None:
    place = place_of(FlyConfig(scene=slab, units="cm", up="y"))
    assert place is not None
    wide = np.subtract(place.bounds.upper, place.bounds.lower)
    assert 8.0 <= wide[0] < 40.0  # of metres it would be 800
    assert 6.0 <= wide[1] < 40.0


def test_the_copy_is_flown_again_in_its_own_units(slab: str, tmp_path: Path) -> None:
    config = FlyConfig(
        vehicle=("carl",), scene=slab, units="cm", up="y", waypoints=("0,0,1.5", "0.3,0,1.5"), hold=0.0, report=False
    )
    run_fly(FlyConfig(**{**config.__dict__, "out": tmp_path / "run"}))
    assert refly(tmp_path / "run").equal
    assert "--units cm --up y" in command_line(config)


def test_options_at_their_defaults_are_not_written() -> None:
    assert "units" not in resolved(FlyConfig())
    assert read_as_it_is(FlyConfig(scene="a.obj", units="cm", voxel=0.1)) == FlyConfig(scene="a.obj")


def test_both_frames_are_refused(slab: str, tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="--recentre and --keep-frame contradict each other"):
        run_fly(FlyConfig(scene=slab, recentre=True, keep_frame=True, out=tmp_path / "run"))
