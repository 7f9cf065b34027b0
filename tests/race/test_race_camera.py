"""Images for race pilots: of the course from where the vehicle is, the same through the wall, none unasked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import camera_attitude, from_euler
from airworthy.optics import to_8bit
from airworthy.race import load_race, race_class
from airworthy.race.benchmark import flight as runner
from airworthy.race.benchmark.flight import fly_races
from airworthy.race.benchmark.imaging import check_sensors
from airworthy.race.onboard import Onboard
from airworthy.race.pilots.catalogue import PilotEntry
from airworthy.race.wall.doors import pilot_entry
from airworthy.rendering.images import render
from airworthy.scenes import SceneBatch, scene
from airworthy.sensors import device

RACE = load_race("alphapilot")
OWN = '''
import numpy as np


class Eyes:
    """Rises by what it sees, and gives up after two images in flight."""

    rate = 240.0
    sensors = ("imu", "camera")

    def begin(self, facts):
        self.thrust = 12.0

    def command(self, onboard):
        if onboard.time >= 0.035:
            raise RuntimeError("enough")
        assert not onboard.frames
        for image in onboard.images:
            self.thrust += float(np.mean(image.pixels[0, ::7, ::5])) / 255.0
        return np.array([[self.thrust, 0.0, 0.0, 0.0]])
'''


class Keeps:
    """Keeps what it is given until it has enough."""

    def __init__(self, seconds: float) -> None:
        self.given: list[Onboard] = []
        self._seconds = seconds

    def begin(self, facts: Any) -> None:
        """Nothing."""

    def command(self, onboard: Onboard) -> Array:
        if onboard.time >= self._seconds:
            raise RuntimeError("enough")
        self.given.append(onboard)
        return np.array([[20.0, 0.0, 0.0, 0.0]])


def entry(made: Any, sensors: tuple[str, ...], rate: float = 240.0) -> PilotEntry:
    return PilotEntry("keeps", made, False, False, rate, sensors)


def kept(sensors: tuple[str, ...], seconds: float = 0.02, word: str = "noisy", look_s: float = 1.0) -> list[Onboard]:
    pilot = Keeps(seconds)
    fly_races(RACE, ("published/3",), entry(lambda: pilot, sensors), race_class(word), look_s=look_s)
    return pilot.given


@pytest.fixture(scope="module")
def single() -> list[Onboard]:
    """What a pilot with one camera is given; not to be changed."""
    return kept(("imu", "camera"))


def seen(position: Array, attitude: Array) -> Any:
    """What the lens of 2019 sees of the course."""
    lens = device("flightgoggles_camera").projection
    batch = SceneBatch([scene("alphapilot:published/3")])
    out = render(batch, lens.rays(), position[None], camera_attitude(attitude[None]), np.array([0]), ("rgb",), projection=lens)
    return to_8bit(np.asarray(out["rgb"]))


def test_images_are_of_the_course_from_where_the_vehicle_is(single: list[Onboard]) -> None:
    stamps = [image.stamp for record in single for image in record.images]
    # Before arming one image, since nothing moves; then one a frame.
    assert stamps == [-1.0 / 60.0, 0.0, 16 / 960]
    first, second = single[0].images
    assert first.pixels.shape == (1, 768, 1024, 3)
    assert np.array_equal(first.pixels, second.pixels)
    start = np.array(RACE.start.position), from_euler(0.0, 0.0, np.radians(RACE.start.yaw_deg))
    assert np.array_equal(first.pixels, seen(*(value.astype(np.float32).astype(np.float64) for value in start)))
    assert not any(record.frames for record in single)


@pytest.mark.slow
def test_images_of_the_pair_are_those_of_the_camera_and_of_one_beside_it(single: list[Onboard]) -> None:
    one, both = single, kept(("imu", "stereo"))
    assert [record.time for record in one] == [record.time for record in both]
    pairs = [(a, b) for x, y in zip(one, both, strict=True) for a, b in zip(x.images, y.images, strict=True)]
    assert len(pairs) == 3
    for alone, pair in pairs:
        assert alone.right is None
        assert (alone.stamp, alone.pixels.tobytes()) == (pair.stamp, pair.pixels.tobytes())
        assert pair.right is not None
        assert pair.right.shape == alone.pixels.shape
        assert pair.right.base is None  # no way back to the other flights
    # At the start, which looks along y, the right camera stands at x + 0.32 m.
    right = seen(np.array(RACE.start.position) + np.array([0.32, 0.0, 0.0]), from_euler(0.0, 0.0, np.radians(90.0)))
    off = np.abs(pairs[0][1].right.astype(int) - right.astype(int))  # type: ignore[union-attr]
    # A pixel at an edge falls to either side where places differ by the last bits of float32.
    assert np.mean(off > 1) < 1e-3
    assert np.mean(np.abs(pairs[0][0].pixels.astype(int) - right.astype(int)) > 1) > 0.05


@pytest.mark.slow
def test_pairs_of_class_hard_come_a_frame_late() -> None:
    given = kept(("stereo",), word="hard", look_s=0.0)
    came = [(round(record.time * 960), [image.stamp for image in record.images]) for record in given if record.images]
    assert came == [(16, [0.0])]


def test_images_of_look_and_start_are_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are rendered once; a pilot of all flights, which is given no copies, may write into either."""
    monkeypatch.setattr(runner.RaceCamera, "_pictures", lambda *given: np.ones((1, 1, 1, 3), np.uint8))
    pilot = Keeps(0.001)
    keeps = PilotEntry("keeps", lambda: pilot, False, True, 240.0, ("stereo",))
    fly_races(RACE, ("published/3",), keeps, race_class("noisy"), look_s=1.0)
    first, second = pilot.given[0].images
    assert not np.shares_memory(first.pixels, second.pixels)
    assert first.right is not None
    assert second.right is not None
    assert not np.shares_memory(first.right, second.right)


@pytest.mark.slow
def test_who_was_sent_home_is_rendered_no_more_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """The referee hears of it up to a tenth of a second later, in which the others of the batch go on."""
    rendered = list[list[int]]()
    take = runner.RaceCamera.take

    def watched(camera: Any, position: Array, attitude: Array, stamp: float, flying: Any) -> Any:
        rendered.append(flying.tolist())
        return take(camera, position, attitude, stamp, np.zeros(0, np.intp))

    monkeypatch.setattr(runner.RaceCamera, "take", watched)
    last = iter((0.02, 0.05))
    fly_races(
        RACE, ("published/3", "published/5"), entry(lambda: Keeps(next(last)), ("camera",)), race_class("noisy"), look_s=0.0
    )
    # Of physics steps 16, 32, 48 and on: the first gives up at the command of step 20, the other at that of 48.
    assert rendered == [[0, 1], [1], [1], *[[]] * (len(rendered) - 3)]
    assert len(rendered) > 3


def test_who_asks_for_no_image_has_none_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*given: Any) -> None:
        raise AssertionError("a camera was made")

    monkeypatch.setattr(runner, "RaceCamera", never)
    for sensors in ((), ("imu", "beacons")):
        given = kept(sensors)
        assert not any(record.images for record in given)
        assert any(record.frames for record in given)
    assert not any(record.frames for record in kept(("imu",)))


@pytest.mark.slow
def test_images_of_class_hard_come_a_frame_late() -> None:
    given = kept(("camera",), word="hard", look_s=0.0)
    came = [(round(record.time * 960), [image.stamp for image in record.images]) for record in given if record.images]
    assert came == [(16, [0.0])]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["camera", "stereo"])
def test_images_are_the_same_bytes_through_the_wall_alone_and_together(tmp_path: Path, kind: str) -> None:
    pair = OWN.replace('"camera"', '"stereo"').replace("image.pixels[0, ::7, ::5]", "image.right[0, ::7, ::5]")
    (tmp_path / "eyes.py").write_text(OWN if kind == "camera" else pair)
    word, courses = f"{tmp_path / 'eyes.py'}:Eyes", ("published/2", "fresh/3/1")

    def commands(in_process: bool, names: tuple[str, ...] = courses) -> list[str]:
        flown = fly_races(RACE, names, pilot_entry(word, in_process), race_class("noisy"))
        assert all("enough" in flight.reason for flight in flown)
        return [flight.commands_sha256 for flight in flown]

    walled = commands(False)
    assert walled == commands(True)
    assert walled[1:] == commands(False, courses[1:])
    assert walled[0] != walled[1]  # these commands do follow from what is seen


def test_cameras_that_rules_or_records_have_no_place_for_are_refused() -> None:
    blind = replace(RACE, information=replace(RACE.information, sensors=("imu", "beacons")))
    with pytest.raises(AirworthyError, match=r"names the sensor 'camera'; the race 'alphapilot' gives imu, beacons, each"):
        fly_races(blind, ("nominal",), entry(lambda: Keeps(0.0), ("camera",)), race_class())
    one = replace(RACE, information=replace(RACE.information, sensors=("imu", "camera")))
    with pytest.raises(AirworthyError, match=r"names the sensor 'stereo'; the race 'alphapilot' gives imu, camera, each"):
        fly_races(one, ("nominal",), entry(lambda: Keeps(0.0), ("stereo",)), race_class())
    check_sensors(one, "keeps", ("imu", "camera"), 240.0)
    for kind in ("camera", "stereo"):
        with pytest.raises(AirworthyError, match=r"commands 30 times a second; expected 60 or more"):
            fly_races(RACE, ("nominal",), entry(lambda: Keeps(0.0), (kind,), 30.0), race_class())


@pytest.mark.slow
def test_who_names_sensors_is_given_no_others() -> None:
    """By them it stands in Table IV."""

    def brought(sensors: tuple[str, ...]) -> set[str]:
        given = kept(sensors, 0.01, look_s=0.0)
        names = {"imu": "imu_stamp", "beacons": "frames", "ranger": "ranger", "camera": "images"}
        for record in given:
            assert record.imu.shape == (len(record.imu_stamp), 1, 6)
        return {name for name, field in names.items() if any(len(getattr(record, field)) for record in given)}

    for sensors in (("beacons",), ("imu",), ("ranger", "imu"), ("camera",), ("imu", "beacons", "ranger", "camera")):
        assert brought(sensors) == set(sensors)
    assert brought(()) == {"imu", "beacons", "ranger"}


@pytest.mark.parametrize(
    ("sensors", "said"),
    [
        (
            ("imu", "beacon"),
            r"names the sensor 'beacon'; the race 'alphapilot' gives imu, beacons, ranger, camera, stereo, each",
        ),
        (("imu", "camera", "stereo"), "names camera and stereo; expected one of them: camera is the left one of the pair"),
        (("stereo", "stereo"), "names a sensor twice"),
        (("state",), "names the sensor 'state'"),
        (("imu", "imu"), "names a sensor twice"),
        (("x" * 500,), "names the sensor '" + 40 * "x" + "'"),
    ],
)
def test_sensors_that_are_none_are_refused(sensors: tuple[str, ...], said: str) -> None:
    with pytest.raises(AirworthyError, match=said):
        fly_races(RACE, ("nominal",), entry(lambda: Keeps(0.0), sensors), race_class())
