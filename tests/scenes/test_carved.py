"""What is known of a place's space: kept in its folder, met where it is unknown, and refused where nothing is known of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.geometry import Box, RayTable, cast
from airworthy.geometry.distance import clearance
from airworthy.geometry.query_arguments import is_closed
from airworthy.scenes import Instance, Region, Scene, SceneBatch, read_scene, scene, scene_digest, write_scene
from airworthy.scenes.carved import (
    FREE,
    OCCUPIED,
    UNKNOWN,
    CarvedSpace,
    carved_arrays,
    carved_from_arrays,
    freed,
    is_unknown_solid,
    with_unknown,
)


def carved() -> CarvedSpace:
    """A room of 2 x 1 x 1 m in cells of 0.1 m, its right half unknown, a layer of floor occupied; unknown around."""
    cells = np.full((22, 12, 12), UNKNOWN, np.uint8)
    cells[1:11, 1:11, 1:11] = FREE
    cells[1:21, 1:11, 1] = OCCUPIED
    return CarvedSpace(cells, (-0.1, -0.1, -0.1), 0.1)


def place() -> Scene:
    """The room with a floor, its unknown space solid."""
    floor = Instance("floor", (1.0, 0.5, 0.0), name="floor")
    bare = Scene(
        "room", {"floor": Box((1.0, 0.5, 0.05))}, instances=(floor,), bounds=Region((0.0, 0.0, 0.0), (2.0, 1.0, 1.0)), lights=()
    )
    return with_unknown(replace(bare, carved=carved()), "solid")


def test_cells_are_found_by_place() -> None:
    space = carved()
    at = [(0.25, 0.5, 0.5), (1.5, 0.5, 0.5), (0.25, 0.5, 0.05), (9.0, 0.0, 0.0), (np.nan, 0.0, 0.0), (-0.1001, 0.5, 0.5)]
    assert space.values(at).tolist() == [FREE, UNKNOWN, OCCUPIED, UNKNOWN, UNKNOWN, UNKNOWN]
    found = space.volumes()
    assert found["free"] == pytest.approx(0.9)
    assert found["occupied"] == pytest.approx(0.2)
    assert sum(found.values()) == pytest.approx(2.2 * 1.2 * 1.2)
    assert space.upper == pytest.approx((2.1, 1.1, 1.1))


def test_bodies_meet_unknown_space_and_rays_do_not() -> None:
    solid = place()
    assert is_unknown_solid(solid) is True
    assert is_closed(solid.shapes["unknown space"])
    batch = SceneBatch(solid)
    near = clearance(batch.geometry, np.array([[0.5, 0.5, 0.5], [1.5, 0.5, 0.5]]), 0)
    # Unknown begins at x = 1, the walls' unknown cells at y = 0 and 1.
    assert near.distance[0] == pytest.approx(0.45, abs=0.051)
    assert near.distance[1] < -0.3
    assert batch.instance_name(0, int(near.instance[1])) == "unknown space"
    ray = RayTable(np.array([[[1.0, 0.0, 0.0]]]))
    far = cast(batch.geometry, ray, np.array([[0.5, 0.5, 0.5]]), np.array([[0.0, 0.0, 0.0, 1.0]]), np.zeros(1, int), ("range",))
    assert np.isinf(far["range"]).all()


def test_free_and_solid_are_each_others_inverse() -> None:
    solid = place()
    free = with_unknown(solid, "free")
    assert is_unknown_solid(free) is False
    assert [item.name for item in free.instances] == ["floor"]
    assert list(free.shapes) == ["floor"]
    again = with_unknown(free, "solid")
    assert scene_digest(again) == scene_digest(solid) != scene_digest(free)
    assert with_unknown(solid, "solid") is solid


def test_what_was_taken_out_is_free() -> None:
    solid = freed(place(), lambda points: points[:, 0] > 1.05)
    assert solid.carved is not None
    assert is_unknown_solid(solid)
    assert solid.carved.values([(1.5, 0.5, 0.5), (1.5, 0.5, 0.02), (0.2, 0.5, -0.05)]).tolist() == [FREE, FREE, UNKNOWN]
    gap = clearance(SceneBatch(solid).geometry, np.array([[1.5, 0.5, 0.5]]), 0).distance[0]
    assert gap > 0.3 > clearance(SceneBatch(place()).geometry, np.array([[1.5, 0.5, 0.5]]), 0).distance[0]
    bare = Scene("bare")
    assert freed(bare, lambda points: points[:, 0] > 0.0) is bare


def test_a_place_is_kept_bit_for_bit(tmp_path: Path) -> None:
    for name, one in (("solid", place()), ("free", with_unknown(place(), "free"))):
        write_scene(one, tmp_path / name)
        assert scene_digest(read_scene(tmp_path / name)) == scene_digest(one)


def test_the_file_and_the_call_say_how_unknown_space_is_met(tmp_path: Path) -> None:
    write_scene(place(), tmp_path)
    assert is_unknown_solid(scene(tmp_path)) is True
    assert is_unknown_solid(scene(tmp_path, unknown="free")) is False
    file = tmp_path / "scene.toml"
    file.write_text(file.read_text().replace('carved = "', 'unknown = "free"\ncarved = "'))
    assert is_unknown_solid(scene(tmp_path)) is False
    assert is_unknown_solid(scene(tmp_path, unknown="solid")) is True


def test_a_digest_of_before_stays() -> None:
    """A scene that nobody carved counts as it did before there was such a field."""
    bare = replace(place(), carved=None)
    assert scene_digest(bare) != scene_digest(place())
    assert scene_digest(replace(bare, carved=None)) == scene_digest(bare)


def test_where_nothing_is_known_to_be_unknown_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="--unknown free changes nothing for what is no captured place"):
        scene("mid_gate", unknown="free")
    write_scene(Scene("bare", lights=()), tmp_path)
    with pytest.raises(AirworthyError, match="has no unknown space"):
        scene(tmp_path, unknown="solid")
    with pytest.raises(AirworthyError, match="Closest: 'solid'"):
        with_unknown(place(), "sold")


def test_packing_keeps_cells_of_any_number() -> None:
    rng = np.random.default_rng(0)
    for shape in ((1, 1, 1), (2, 3, 5), (4, 4, 4), (7, 1, 3)):
        one = CarvedSpace(rng.integers(0, 3, shape).astype(np.uint8), (0.25, -1.0, 3.0), 0.07)
        same = carved_from_arrays(carved_arrays(one), "here")
        assert np.array_equal(same.cells, one.cells)
        assert same.lower == one.lower
        assert same.resolution == one.resolution


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("cells", np.zeros(1, np.uint8)),
        ("cells", np.full(792, 0xFF, np.uint8)),
        ("cells", np.zeros((792, 1), np.uint8)),
        ("shape", np.array([1 << 40, 1 << 40, 1 << 40])),
        ("shape", np.array([-22, -12, 12])),
        ("shape", np.array([22, 144])),
        ("lower", np.array([np.nan, 0.0, 0.0])),
        ("lower", np.array([0.0, 0.0])),
        ("resolution", np.array([0.0])),
        ("resolution", np.array([np.inf])),
        ("resolution", np.array([0.1], np.float32)),
    ],
)
def test_damaged_arrays_are_refused(part: str, value: np.ndarray) -> None:
    with pytest.raises(AssetError):
        carved_from_arrays({**carved_arrays(carved()), part: value}, "here")


@pytest.mark.parametrize("part", ["cells", "shape", "lower", "resolution"])
def test_missing_arrays_are_refused(part: str) -> None:
    arrays = carved_arrays(carved())
    del arrays[part]
    with pytest.raises(AssetError, match=part):
        carved_from_arrays(arrays, "here")


def test_files_lead_nowhere_else(tmp_path: Path) -> None:
    write_scene(place(), tmp_path)
    file = tmp_path / "scene.toml"
    file.write_text(file.read_text().replace("assets/carved.safetensors", "../carved.safetensors"))
    with pytest.raises(AssetError, match="leads out"):
        read_scene(tmp_path)
