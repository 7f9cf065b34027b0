"""What the gallery asks sensors for, place by place and device by device, on small pictures; the whole page is a slow test."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from airworthy.optics.projections import Pinhole
from airworthy.reports import gallery, pictures
from airworthy.scenes import Scene
from airworthy.scenes.record import Region
from airworthy.sensors import device

DEVICES = (
    "st_vl53l5cx",
    "realsense_d455",
    "generic_radar",
    "flightgoggles_camera_v3",
    "lightware_sf11b",
    "flightgoggles_beacons",
)


def test_a_place_and_its_channels(small: gallery.GalleryScene) -> None:
    shown = gallery._place(small)
    assert shown["facts"][0] == ("instances", "2")
    assert shown["facts"][-1] == ("light baked in", "1.0 s")
    assert len(shown["channels"]) == 10
    assert "(1000 ms for all ten" in shown["channels"][0]["what"]
    assert small.approached().position.tolist() == small.position.tolist()


def test_devices(small: gallery.GalleryScene) -> None:
    shrunk = [device(name) for name in DEVICES]
    lens = Pinhole.from_fov(32, 24, horizontal=1.2)
    shrunk = [item.variant(projection=lens) if item.kind in ("depth_camera", "camera") else item for item in shrunk]
    cards = [gallery._device_card(item, [small], 3) for item in shrunk]
    assert [card["name"] for card in cards] == list(DEVICES)
    assert all(card["samples"][0]["place"] == "Made" for card in cards)


def test_a_beacon_is_circled() -> None:
    picture = np.zeros((40, 40, 3), np.uint8)
    gallery._circle(picture, 20.5, 15.5, 9.0)
    away = np.hypot(*(np.mgrid[:40, :40] - np.array([15.0, 20.0])[:, None, None]))
    assert np.array_equal(picture.any(axis=2), np.abs(away - 9.0) < 1.8)


def test_a_picture_in_motion(small: gallery.GalleryScene, monkeypatch: pytest.MonkeyPatch) -> None:
    lens = Pinhole.from_fov(32, 24, horizontal=1.2)
    tiny = device("flightgoggles_camera_v3").variant(projection=lens)
    monkeypatch.setattr(gallery, "device", lambda name: tiny)
    shown = gallery._realism(small, 5)
    assert len(shown) == 12
    assert len({row["image"] for row in shown}) >= 8  # each piece shows


def test_words_of_the_page(tmp_path: Path) -> None:
    assert gallery._command(gallery.GalleryConfig(scan="a.obj", seed=4, out=Path("x"))).endswith(
        "--scan a.obj --seed 4 --out x"
    )
    assert [gallery.bytes_shown(v) for v in (0, 999.0, 1000.0, 2.5e6, 3e9, 5e12)] == [
        "0 B",
        "999 B",
        "1 kB",
        "2.5 MB",
        "3 GB",
        "5e+03 GB",
    ]
    for name in ("realsense_d455", "ouster_os0_128", "lightware_sf11b", "flightgoggles_camera"):
        assert gallery.device_facts(device(name))
    place = gallery.museum(tmp_path)
    assert gallery.hero_pose(place) == ((-3.9, 0.1, 1.75), 0.0, -0.06)
    assert gallery.hero_pose(place, near=True)[0][0] == -1.75


def test_where_a_place_without_a_start_is_seen_from() -> None:
    bounds = Region((-4.0, 2.0, 1.0), (2.0, 4.0, 9.0))
    assert gallery.hero_pose(Scene("nowhere", bounds=bounds)) == ((-1.0, 3.0, 2.5), pytest.approx(np.pi / 6), 0.0)
    low = Region((-4.0, 2.0, 1.0), (2.0, 4.0, 2.0))
    assert gallery.hero_pose(Scene("low", bounds=low))[0] == (-1.0, 3.0, 1.5)


def test_a_scan_stands_on_its_foot_at_its_height(tmp_path: Path) -> None:
    file = tmp_path / "stone.obj"
    file.write_text("v 0 0 0\nv 2 0 0\nv 0 0 3\nv 0 4 0\nf 1 2 3\nf 1 3 4\nf 1 4 2\nf 2 4 3\n")
    placed = gallery._stood(Scene("room"), file, (1.0, 2.0, 0.5), 0.7, 2.0, "y")
    (item,) = placed.instances
    assert item.scale == pytest.approx(0.5)  # 4 high in the file, 2 here


def test_pictures_of_channels() -> None:
    limits = SimpleNamespace(metres=lambda values: np.where(values > 9.0, np.nan, values))
    sensor, depth = SimpleNamespace(limits=limits), np.array([[0.5, 2.0, 10.0], [4.0, -1.0, 8.0]])
    for channel in ("depth", "range", "true_depth", "true_range"):
        assert pictures._picture_of(channel, depth, sensor).shape == (2, 3, 3)
        assert pictures._picture_of(channel, depth[0], sensor) is None
        assert pictures._scale_note(channel, depth, sensor).startswith("; red is near")
    assert pictures._scale_note("depth", np.full((2, 2), 10.0), sensor) == "; nothing measured"
    assert pictures._scale_note("rgb", depth, sensor) == ""
    assert pictures._picture_of("face", np.array([[-1, 0], [1, 2]]), sensor)[0, 0].tolist() == list(pictures.NOTHING)
    normals = np.array([[[0.0, 0.0, 1.0], [np.nan, 0.0, 0.0]], [[-1.0, 0.0, 0.0], [0.6, 0.8, 0.0]]])
    assert pictures._picture_of("normal", normals, sensor)[0, 0].tolist() == [128, 128, 255]
    assert pictures._picture_of("flow", normals[..., :2], sensor).shape == (2, 2, 3)
    assert pictures._picture_of("rgb", np.full((1, 1, 3), 7, np.uint8), sensor).tolist() == [[[7, 7, 7]]]
    assert pictures._picture_of("albedo", np.full((1, 1, 3), 0.5), sensor).dtype == np.uint8
    assert pictures._picture_of("temperature", depth, sensor) is None
    assert pictures.enlarged(np.zeros((2, 3, 3), np.uint8), 7).shape == (6, 9, 3)
    assert pictures.enlarged(np.zeros((2, 3, 3), np.uint8), 3).shape == (2, 3, 3)
    assert pictures.fitted(np.zeros((9, 30, 3), np.uint8), 10).shape == (3, 10, 3)
    assert pictures.fitted(np.zeros((9, 10, 3), np.uint8), 10).shape == (9, 10, 3)
