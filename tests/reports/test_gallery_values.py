"""Every picture and word of the sensor gallery, and pictures of what sensors measure, against lines on file and by formula."""

from __future__ import annotations

import base64
import dataclasses
import io
from math import inf, nan, pi
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.fixtures.flights import fly
from tests.fixtures.recording import plain
from tests.fixtures.snapshots import check_snapshot

from airworthy.core.frames import from_euler
from airworthy.geometry import Box
from airworthy.optics.projections import Pinhole
from airworthy.reports import gallery, pictures
from airworthy.scenes import Instance, Scene, SceneBatch
from airworthy.scenes.extent import scene_box
from airworthy.scenes.record import Region
from airworthy.scenes.viewpoints import Viewpoint
from airworthy.sensors import device, device_names
from airworthy.simulation.flights import FlightTable
from airworthy.tasks import TrackingReference

SNAPSHOTS = Path(__file__).parent / "snapshots" / "gallery.txt"
RENDERED = 2e-3
"""Means of 8-bit pictures, relative: some pixels are rounded to the next level on another processor."""


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Pictures instead of the text that holds them, and whether each is a photograph."""
    kept: list[Any] = []

    def keep(picture: Any, photo: bool = True) -> str:
        kept.append(np.asarray(picture, float))
        return f"picture {len(kept) - 1}, photo {photo}, {picture.shape}"

    monkeypatch.setattr(pictures, "data_uri", keep)
    return kept


def check(name: str, shown: Any, seen: list[Any]) -> None:
    """Words exactly; pictures as the shading of another processor may round them."""
    entries = shown if isinstance(shown, dict) else {"shown": shown}
    check_snapshot(SNAPSHOTS, {str(key): entry for key, entry in entries.items()}, part=name)
    values = {f"picture {k}": picture for k, picture in enumerate(seen)}
    check_snapshot(SNAPSHOTS, values, rtol=1e-2, of_means=RENDERED, part=f"{name}, pictures")


def joined(entry: dict[str, Any]) -> str:
    return " | ".join(f"{key}={value}" for key, value in entry.items())


def test_a_place(small: gallery.GalleryScene, seen: list[Any]) -> None:
    shown = gallery._place(small)
    shown["channels"] = " || ".join(joined(row) for row in shown["channels"])
    # What hierarchies take is for the ray engine's tests.
    shown["facts"] = " ".join(f"{name}: {value}" for name, value in shown["facts"] if name != "hierarchies and instances")
    check("place", shown, seen)


SHOWN = ("st_vl53l5cx", "realsense_d455", "generic_radar", "flightgoggles_camera_v3", "lightware_sf11b", "ouster_os0_128")


def shrunk(name: str) -> Any:
    """A device with few pixels."""
    item = device(name)
    if item.kind in ("depth_camera", "camera"):
        return item.variant(projection=Pinhole.from_fov(32, 24, horizontal=1.2))
    if name == "ouster_os0_128":
        return item.variant(projection=dataclasses.replace(item.projection, width=64, height=16), points_in_world=False)
    return item


def test_cards_of_devices(small: gallery.GalleryScene, seen: list[Any]) -> None:
    cards = {}
    for name in SHOWN:
        card = gallery._device_card(shrunk(name), [small], 3)
        cards[name] = " || ".join([card["kind"], *map(str, card["facts"]), *(joined(one) for one in card["samples"])])
    check("devices", cards, seen)


def test_of_two_samples_the_quicker_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks, taken = iter([0.0, 0.3, 1.0, 1.25]), []
    monkeypatch.setattr(gallery, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    assert gallery._timed(lambda: taken.append(0) or {"rgb": len(taken)}) == ({"rgb": 2}, "250.0 ms")  # type: ignore[arg-type]


def test_pieces_of_realism(small: gallery.GalleryScene, seen: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = device("flightgoggles_camera_v3").variant(projection=Pinhole.from_fov(32, 24, horizontal=1.2))
    monkeypatch.setattr(gallery, "device", lambda name: tiny)
    check("realism", " || ".join(joined(row) for row in gallery._realism(small, 5)), seen)


def test_beacons_on_the_corners_of_gates(small: gallery.GalleryScene, seen: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gallery, "SAMPLE_WIDTH", 64)
    square = ((3.0, -1.0, 1.0), (3.0, 1.0, 1.0), (3.0, 1.0, 2.0), (3.0, -1.0, 2.0))
    gate = SimpleNamespace(corners=square)
    lens = Pinhole.from_fov(64, 48, horizontal=1.2)
    camera = device("flightgoggles_beacons").variant(projection=lens)
    empty = Scene("empty", {}, bounds=Region((-5.0, -5.0, 0.0), (5.0, 5.0, 3.0)))
    scene = SimpleNamespace(gates=(gate,), beacons=(), **{key: getattr(empty, key) for key in ("bounds", "start", "name")})
    stage = dataclasses.replace(
        small, scene=scene, batch=SceneBatch(empty), position=np.array([0.0, 0.0, 1.5]), attitude=np.array([0.0, 0, 0, 1])
    )
    shown = gallery._sample(camera, stage, 0)
    assert shown["note"].endswith(", 4 of 4 beacons seen")
    (picture,) = seen
    pink = (picture == (255, 60, 170)).all(axis=2)
    for x, y, z in square:  # a ring of 9 px round where a pinhole sees each
        u, v = 32.0 - lens.fx * y / x, 24.0 - lens.fy * (z - 1.5) / x
        rows, columns = np.mgrid[:48, :64] + 0.5
        ring = np.abs(np.hypot(columns - u, rows - v) - 9.0) < 1.7
        assert pink[ring].all()
    nothing = dataclasses.replace(stage, scene=SimpleNamespace(gates=(), beacons=()))
    assert gallery._sample(camera, nothing, 0) == {"images": [], "note": "this place has no beacons"}


def test_facts_of_every_device() -> None:
    facts = {
        name: " | ".join(f"{key}: {value}" for key, value in gallery.device_facts(device(name))) for name in device_names()
    }
    check_snapshot(SNAPSHOTS, facts, part="facts")


def test_the_museum(tmp_path: Path) -> None:
    """Three of its sculptures, and the room: what stands where, on which foot, how large."""
    stone = "v 0 0 0\nv 2 0 0\nv 0 0 3\nv 0 4 0\nf 1 2 3\nf 1 3 4\nf 1 4 2\nf 2 4 3\n"
    for name in ("threedscans/Plato/Plato.obj", "threedscans/Hermes/Hermes.obj", "ggg/Angel.obj"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(stone)
    place = gallery.museum(tmp_path)
    things = place.instances
    shown: dict[str, Any] = {
        "instances": [[item.shape, np.array([*item.position, *item.attitude, item.scale]), *item.materials] for item in things],
        "lights": list(place.lights),
        "materials": " ".join(place.materials),
        "brass": place.materials["brass"],
        "plinth": place.materials["plinth"],
        "bounds": place.bounds,
        "start": place.start,
        "sky": place.sky,
        "words": [place.name, place.description, place.source],
        "shapes": {name: plain(shape) for name, shape in place.shapes.items()},
    }
    check_snapshot(SNAPSHOTS, shown, of_means=1e-6, part="museum")


def test_a_scan_stands_on_its_foot_as_high_as_it_is_said(tmp_path: Path) -> None:
    file = tmp_path / "stone.obj"
    file.write_text("v 0 0 0\nv 2 0 0\nv 0 0 3\nv 0 4 0\nf 1 2 3\nf 1 3 4\nf 1 4 2\nf 2 4 3\n")
    for up, yaw in (("y", 0.7), ("z", -2.0)):
        box = scene_box(gallery._stood(Scene("room"), file, (1.0, 2.0, 0.5), yaw, 2.0, up))
        assert box is not None
        assert (box[0][2], box[1][2]) == (pytest.approx(0.5), pytest.approx(2.5))


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0 B"), (999.4, "999 B"), (1000, "1 kB"), (999_400, "999 kB"), (1e6, "1 MB"), (1e9, "1 GB"), (1.5e12, "1.5e+03 GB")],
)
def test_numbers_of_bytes(count: float, said: str) -> None:
    assert gallery.bytes_shown(count) == said


def test_the_command_that_makes_it_again() -> None:
    command = gallery._command(gallery.GalleryConfig(scene="forest:2", seed=4, out=Path("x")))
    assert command == "airworthy sensors gallery --scene forest:2 --seed 4 --out x"


def test_a_page_has_a_section_per_kind_and_a_card_per_device(
    small: gallery.GalleryScene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(gallery, "page_of", lambda package, template, **content: given.update(content) or "page")
    monkeypatch.setattr(
        gallery, "_device_card", lambda item, stages, seed: {"name": item.name, "kind": item.kind, "asked": (len(stages), seed)}
    )
    monkeypatch.setattr(gallery, "_place", lambda stage: stage.title)
    monkeypatch.setattr(gallery, "_realism", lambda stage, seed: [stage.title, seed])
    monkeypatch.setattr(gallery, "generated_place", lambda name: small.scene)
    for scanned, missing in ((None, True), (small.scene, False)):
        monkeypatch.setattr(gallery, "scanned_place", lambda path, found=scanned: found)
        path = gallery.write_gallery(gallery.GalleryConfig(bake=False, seed=8, out=tmp_path / "out"))
        assert path.read_text() == "page"
        assert given["missing"] is missing
        assert given["places"] == ["Generated", "Scanned"][: 1 if missing else 2]
        assert given["realism"] == ["Generated", 8]
        assert given["device_count"] == len(device_names())
        cards = [card for section in given["sections"] for card in section["cards"]]
        assert sorted(card["name"] for card in cards) == sorted(device_names())
        assert {card["asked"] for card in cards} == {(1 if missing else 2, 8)}
        assert all(section["title"] == gallery._KINDS[section["cards"][0]["kind"]] for section in given["sections"])
        order = list(gallery._KINDS.values())
        titles = [section["title"] for section in given["sections"]]
        assert titles == [title for title in order if title in titles]


def test_where_places_are_seen_from(small: gallery.GalleryScene) -> None:
    for near in (False, True):
        position, attitude = gallery._pose(small.scene, near)
        np.testing.assert_allclose(position, [0.0, 0.0, 1.5])
        np.testing.assert_allclose(attitude, from_euler(0.0, 0.0, pi / 6))
    posed = Scene("mid_gate", bounds=Region((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)))
    np.testing.assert_allclose(gallery._pose(posed)[1], from_euler(0.0, 0.08, 0.42))
    stage = dataclasses.replace(small, scene=posed)
    np.testing.assert_allclose(stage.approached().position, (-2.3, 0.2, 1.3))


# ---- pictures of what sensors measure ---------------------------------------------------------------------------------------


def test_pictures_of_fixed_input() -> None:
    rng = np.random.default_rng(3)
    metres = rng.uniform(0.2, 12.0, (6, 8))
    metres[0, :4] = nan, inf, -1.0, 0.0
    flow = rng.normal(0.0, 3.0, (5, 7, 2))
    flow[0, 0] = nan
    normals = rng.normal(size=(4, 5, 3))
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    cloud = rng.uniform(-4.0, 4.0, (60, 3))
    eye, target = (-9.0, -2.0, 4.0), (0.0, 0.5, 0.0)
    shown = {
        "distance": pictures.distance_picture(metres),
        "distance within": pictures.distance_picture(metres, 1.0, 6.0, "viridis"),
        "distance of nothing": pictures.distance_picture(np.full((2, 2), nan)),
        "distance of one": pictures.distance_picture([[3.0]], 3.0),
        "numbers": pictures.number_picture(np.arange(-2, 40).reshape(6, 7)),
        "normals": pictures.normal_picture(normals),
        "flow": pictures.flow_picture(flow),
        "flow within": pictures.flow_picture(flow, 2.0),
        "flow of nothing": pictures.flow_picture(np.full((2, 2, 2), nan)),
        "no flow": pictures.flow_picture(np.zeros((2, 2, 2))),
        "points": pictures.points_picture(cloud, cloud[:, 2], eye, target, (60, 40), 1.1),
        "points of one colour": pictures.points_picture(cloud, np.ones(60), eye, target, (60, 40)),
        "points behind": pictures.points_picture(cloud, cloud[:, 0], (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (60, 40), 2.0),
        "enlarged": pictures.enlarged(pictures.number_picture(np.arange(6).reshape(2, 3)), 8),
    }
    values = {
        f"{key}{suffix}": part
        for key, image in shown.items()
        for suffix, part in (("", image.astype(float)), (".shape", str(image.dtype)))
    }
    check_snapshot(SNAPSHOTS, values, rtol=1e-2, of_means=RENDERED, part="of fixed input")


def test_hues_by_their_formula() -> None:
    hue, saturation, value = (
        np.array([0.0, 1 / 3, 2 / 3, 1 / 6, 0.25]),
        np.array([1.0, 1.0, 1.0, 1.0, 0.5]),
        np.array([1.0, 0.5, 1.0, 1.0, 1.0]),
    )
    wanted = [[1, 0, 0], [0, 0.5, 0], [0, 0, 1], [1, 1, 0], [0.75, 1.0, 0.5]]
    np.testing.assert_allclose(pictures._hsv(hue, saturation, value), wanted, atol=1e-12)


def test_pictures_in_a_page() -> None:
    picture = np.tile(np.arange(48, dtype=np.uint8).reshape(4, 4, 3), (3, 3, 1))
    photo, exact = pictures.data_uri(picture), pictures.data_uri(picture, photo=False)
    assert photo.startswith("data:image/jpeg;base64,")
    assert exact.startswith("data:image/png;base64,")
    back = np.asarray(Image.open(io.BytesIO(base64.b64decode(exact.split(",")[1]))).convert("RGB"))
    assert np.array_equal(back, picture)
    tables = Image.open(io.BytesIO(base64.b64decode(photo.split(",")[1]))).quantization
    assert tables[0][0] == 5  # of the standard's 16, at quality 84: (16 * 32 + 50) // 100


def test_the_place_with_its_paths(reference: TrackingReference, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "SIZE", (56, 28))
    columns, _ = fly(reference, 3, rate_hz=5.0)
    columns["status"] = np.where((columns["env"] == 1) & (columns["t"] > 9.0), 2, 0)
    shapes = {"floor": Box((8.0, 8.0, 0.05)), "wall": Box((0.1, 3.0, 1.5))}
    things = (Instance("floor", (0.0, 0.0, -0.05)), Instance("wall", (-1.0, 0.0, 1.0)))
    place = Scene("yard", shapes, instances=things, bounds=Region((-8.0, -8.0, 0.0), (8.0, 8.0, 4.0)))
    table = FlightTable.from_columns(columns)
    values = {"image": pictures.place_picture(place, table).astype(float)}
    check_snapshot(SNAPSHOTS, values, rtol=1e-2, of_means=RENDERED, part="with paths")
    monkeypatch.setattr(pictures, "data_uri", lambda picture: f"{picture.shape}")
    shown = pictures.place_pictures(dataclasses.replace(place, description="A yard.."), table, [{"name": "x"}])
    assert shown == {"place": "(28, 56, 3)", "place_note": "yard: A yard.", "seen": [{"name": "x"}]}
    assert pictures.place_pictures(place, table, [])["place_note"] == "yard."


def test_points_in_a_view_from_above_and_in_perspective(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "SIZE", (80, 40))
    points = np.array([[0.0, 0.0, 1.0], [1.0, 0.5, 2.0], [3.0, 0.0, 9.94], [9.0, 0.0, 0.0]])
    down = np.array([1.0, 0.0, 0.0, 0.0])
    above = Viewpoint(np.array([0.0, 0.0, 10.0]), down, span=(8.0, 5.0))
    depth = np.full((40, 80), 8.5)
    pixel, visible = pictures._projected(points, depth, above)
    # 5 m over 40 px are coarser than 8 m over 80: 8 px a metre.
    np.testing.assert_allclose(pixel, [[40, 20], [48, 16], [64, 20], [112, 20]], atol=1e-9)
    assert visible.tolist() == [False, True, True, True]
    seen = Viewpoint(np.array([0.0, 0.0, 10.0]), down, fov=1.2)
    pixel, visible = pictures._projected(points, np.full((40, 80), 8.88), seen)
    focal = 40.0 / np.tan(0.6)
    np.testing.assert_allclose(pixel[:2], [[40, 20], [40 + focal / 8.0, 20 - 0.5 * focal / 8.0]], atol=1e-9)
    np.testing.assert_allclose(pixel[2], [40 + focal * 3.0 / 0.06, 20.0], atol=1e-6)
    assert visible[:2].tolist() == [True, True]  # 9 m away, 8.88 and the margin


class Mounted:
    """Sensors of two flights, whose newest samples are made up."""

    def __init__(self, samples: dict[str, Any]):
        self.samples, self.names = samples, tuple(samples)

    def latest(self, name: str) -> Any:
        return SimpleNamespace(valid=[True, name != "dead"], time=[1.5, 2.25], data=self.samples[name])

    def sensor(self, name: str) -> Any:
        limits = SimpleNamespace(metres=lambda values: np.where(values > 9.0, nan, values))
        return SimpleNamespace(device=SimpleNamespace(name=f"a {name}", limits=limits))


def test_what_sensors_saw_last(seen: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    depth = np.stack([np.zeros((4, 6)), np.linspace(0.5, 12.0, 24).reshape(4, 6)])
    samples = {
        "eye": {"rgb": np.full((2, 3, 5, 3), 9, np.uint8), "depth": depth, "points": np.zeros((2, 7, 3))},
        "dead": {"rgb": np.zeros((2, 2, 2, 3), np.uint8)},
        "wide": {"semantic_id": np.arange(2 * 3 * 70).reshape(2, 3, 70), "true_range": depth},
        "blind": {"range": np.full((2, 2, 2), 10.0)},
    }
    found = pictures.sensor_pictures(Mounted(samples), 1)  # type: ignore[arg-type]
    check("sensors", {k: joined(row) for k, row in enumerate(found)}, seen)
    assert [row["name"] for row in found] == ["eye", "eye", "wide", "wide", "blind"]
    assert all(picture.shape[1] >= 240 for picture in seen)
    monkeypatch.setattr(pictures, "SENSORS", 2)
    assert len(pictures.sensor_pictures(Mounted(samples), 1)) == 2  # type: ignore[arg-type]


def test_colours_of_a_map_are_those_of_matplotlib() -> None:
    table = pictures._colormap("turbo")
    assert table.shape == (256, 3)
    assert table[0].tolist() == [48, 18, 59]
    assert table[255].tolist() == [122, 4, 3]
