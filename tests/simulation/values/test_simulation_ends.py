"""What is recorded at the ends of its ranges: flags, codes, counts of images, blocks of whole flights, sizes, environments."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box, Cylinder, Sphere
from airworthy.optics.tone import to_8bit
from airworthy.simulation import recorder
from airworthy.simulation import sensor_recording as recording
from airworthy.simulation.mounted import body_shape
from airworthy.simulation.recorder import Recorder
from airworthy.vehicles.record import CollisionBody


def test_any_part_of_a_step_that_was_saturated_flags_it_and_what_is_no_status_has_diverged() -> None:
    assert recorder._flag(np.array([0.0, 5e-324, 0.25, 1.0, -1.0, np.nan])).tolist() == [0, 1, 1, 1, 0, 0]
    found = recorder._code(np.array([0.0, 2.0, 127.0, 127.1, -1e-9, np.nan, np.inf]))
    assert found.tolist() == [0, 2, 127, 1, 1, 1, 1]


def test_environments_to_record_lie_among_those_there_are() -> None:
    assert recorder._env_ids(None, 3).tolist() == [0, 1, 2]
    assert recorder._env_ids([2, 0, 2], 3).tolist() == [0, 2]
    for wrong in ([], [-1], [3]):
        with pytest.raises(AirworthyError, match="must lie in 0 to 2"):
            recorder._env_ids(wrong, 3)


def test_a_recording_of_just_the_memory_allowed_is_held_there(tmp_path: Path) -> None:
    assert not isinstance(recorder._allocate((2, 3, 5), 120, tmp_path), np.memmap)
    spilt = recorder._allocate((2, 3, 5), 119, tmp_path)
    assert isinstance(spilt, np.memmap)
    assert spilt.shape == (2, 3, 5)
    assert not list(tmp_path.iterdir())
    with pytest.raises(AirworthyError, match=r"would take 0\.0 GiB"):
        recorder._allocate((2, 3, 5), 119, None)
    with pytest.raises(AirworthyError, match="Could not make a recording of 120 bytes"):
        recorder._allocate((2, 3, 5), 119, tmp_path / "missing")


def test_blocks_hold_whole_flights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "_BLOCK_ROWS", 10)
    made = Recorder(("x",), 6, 5)
    for k in range(5):
        made.record(0.1 * k, np.arange(6.0)[None] + 10.0 * k)
    # 5 + 5 rows fill a block to its end, 5 + 4 + 1 as well; none is begun for flights of no rows.
    found = list(made.blocks([5, 5, 5, 4, 1, 0]))
    assert [np.unique(block["env"]).tolist() for block in found] == [[0, 1], [2, 3, 4]]
    assert found[1]["x"].tolist() == [2.0, 12.0, 22.0, 32.0, 42.0, 3.0, 13.0, 23.0, 33.0, 4.0]
    assert found[1]["t"] == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4, 0.0, 0.1, 0.2, 0.3, 0.0])
    assert [len(block["env"]) for block in made.blocks()] == [10, 10, 10]
    assert [len(block["env"]) for block in made.blocks([5, 5, 1, 5, 5, 0])] == [10, 6, 5]
    for wrong in ([5] * 5, [6, 0, 0, 0, 0, 0], [-1, 0, 0, 0, 0, 0]):
        with pytest.raises(AirworthyError, match="values from 0 to 5"):
            list(made.blocks(wrong))


def test_images_of_counts_hold_what_fits_and_nothing_else() -> None:
    metres = [0.0, 0.00049, 0.00051, 65.535, 65.5355, 65.536, np.inf, np.nan, -1.0]
    assert recording.depth_16bit(metres).tolist() == [0, 0, 1, 65535, 0, 0, 0, 0, 0]
    assert recording.depth_8bit([0.09, 0.11, 51.0, 51.11]).tolist() == [0, 1, 255, 0]
    assert recording.metres_of([0, 1, 65535]) == pytest.approx([np.inf, 0.001, 65.535])
    assert recording.ids_16bit([-1, 0, 1, 65535]).tolist() == [0, 0, 1, 65535]
    assert recording.ids_16bit(np.zeros((0, 2), int)).shape == (0, 2)
    with pytest.raises(AirworthyError, match="holds 65536"):
        recording.ids_16bit([65536])
    assert recording.normals_8bit([-1.0, 0.0, 1.0, np.nan, 0.5]).tolist() == [0, 128, 255, 0, 191]
    assert recording.grey([[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]]).tolist() == [76, 150, 29, 255]


@pytest.mark.parametrize(
    ("far", "unit"),
    [(65.535, 1e-3), (65.536, 4e-3), (262.14, 4e-3), (262.15, 1e-2), (655.35, 1e-2), (9e3, 1e-2), (np.inf, 1e-3)],
)
def test_counts_are_as_fine_as_a_range_allows(far: float, unit: float) -> None:
    assert recording.depth_unit(SimpleNamespace(limits=SimpleNamespace(maximum=far))) == unit  # type: ignore[arg-type]


def test_images_of_each_kind() -> None:
    device: Any = SimpleNamespace(limits=SimpleNamespace(maximum=10.0, metres=lambda x: 2.0 * x))
    one = np.array([[1.5, 0.0]], np.float32)
    assert recording._image("depth", one, device).tolist() == [[3000, 0]]
    assert recording._image("instance_id", np.array([[3, -1]]), device).tolist() == [[3, 0]]
    assert recording._image("normal", np.array([[[0.0, 1.0, -1.0]]]), device).tolist() == [[[128, 255, 0]]]
    assert recording._image("valid", np.array([[True, False]]), device).tolist() == [[255, 0]]
    bytes_ = np.array([[[1, 2, 3]]], np.uint8)
    assert recording._image("rgb", bytes_, device) is bytes_
    linear = np.array([[[0.5, 0.0, 1.0]]], np.float32)
    # sRGB of a half is 188; radiance is mapped by tone besides, albedo is not.
    assert recording._image("albedo", linear, device).tolist() == [[[188, 0, 255]]]
    np.testing.assert_array_equal(recording._image("rgb", linear, device), to_8bit(linear))
    assert (to_8bit(linear) != [[[188, 0, 255]]]).all()
    kinds = [recording._kind(name, one) for name in ("points", "depth", "valid", "albedo", "semantic_id", "normal", "flow")]
    assert kinds == ["pcd", "png", "png", "png", "png", "png", "npy"]


def test_bodies_as_shapes() -> None:
    for given, shape in (
        (CollisionBody("sphere", (0.2, 0.2, 0.2)), Sphere(0.2)),
        (CollisionBody("box", (0.3, 0.2, 0.1)), Box((0.3, 0.2, 0.1))),
        (CollisionBody("cylinder", (0.3, 0.3, 0.1)), Cylinder(0.3, 0.1)),
    ):
        assert body_shape(given) == shape
