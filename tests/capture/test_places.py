"""Places of trained splats: what is pruned, what is written, and that nobody flies where nothing is known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.capture.place_building import HIGH, LOW, PILLAR, room_capture, room_splats

from airworthy.benchmarks.fly import FlyConfig, run_fly
from airworthy.capture import CaptureImages, PlaceOptions, made_place, read_capture, write_capture, write_place
from airworthy.capture.places.pruning import camera_counts, pruned
from airworthy.cli.main import main
from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.geometry.distance import clearance
from airworthy.scenes import SceneBatch, Splats, merged, read_model, read_scene, scene, scene_digest, write_scene, write_splats
from airworthy.scenes.carved import FREE, UNKNOWN, is_unknown_solid
from airworthy.scenes.splats.editing import selected
from airworthy.scenes.viewpoints import view
from airworthy.tasks import course_clearance
from airworthy.trajectories import Limits, from_waypoints
from airworthy.vehicles import vehicle

OPTIONS = PlaceOptions(cell=0.1)


def strays(count: int = 200) -> Splats:
    """Gaussians far behind the walls."""
    rng = np.random.default_rng(5)
    at = rng.uniform(HIGH + 0.5, HIGH + 2.0, (count, 3))
    turn = np.tile([0.0, 0.0, 0.0, 1.0], (count, 1))
    return Splats(at, turn, np.full((count, 3), 0.05), np.full(count, 0.6), np.zeros((count, 1, 3)))


@pytest.fixture(scope="module")
def images() -> CaptureImages:
    return room_capture(room_splats(), 70)


@pytest.fixture(scope="module")
def splats(images: CaptureImages) -> Splats:
    """Of the room what training would have made, and strays: what no photograph shows is not trained."""
    room = room_splats()
    return merged([selected(room, camera_counts(room, images, 0.05) >= 2), strays()])


@pytest.fixture(scope="module")
def folder(images: CaptureImages, splats: Splats, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("place") / "room"
    write_place(made, images, splats, OPTIONS)
    return made


def test_what_no_camera_sees_is_left_out_at_no_loss(images: CaptureImages, splats: Splats) -> None:
    counts = camera_counts(splats, images, 0.05)
    room = len(splats) - 200
    # Walls let a few hundredths of the light through, by which some of what is behind shows a little.
    assert (counts[room:] < 2).mean() > 0.9
    assert (counts[:room] >= 2).mean() > 0.98
    cut = pruned(splats, images, 0.05)
    assert cut.least == 2
    assert cut.kept[room:].mean() < 0.1
    assert cut.psnr_after > cut.psnr_before - 0.1
    assert cut.left_out == np.count_nonzero(counts < 2)
    assert len(cut.splats) == np.count_nonzero(counts >= 2)


def test_splats_that_lie_behind_a_ceiling_free_nothing_there_and_are_told(images: CaptureImages, splats: Splats) -> None:
    known = made_place(images, splats, OPTIONS).record
    assert known["rays_beyond_points"] < 0.01
    assert known["warnings"] == []
    # As a training that knows nothing of the ceiling's depth leaves it; its points were triangulated where it is.
    raised = splats.position.copy()
    ceiling = np.abs(raised[:, 2] - HIGH[2]) < 0.01
    raised[ceiling, 2] += 0.5
    raised[ceiling, :2] *= 1.3
    wide = np.where(ceiling[:, None], 1.3 * splats.scale, splats.scale)
    made = made_place(images, replace(splats, position=raised, scale=wide), OPTIONS)
    height = made.carving.lower[2] + 0.1 * (np.arange(made.states.shape[2]) + 0.5)
    assert not (made.states[..., height > HIGH[2]] == FREE).any()
    assert made.room.bounds.upper[2] <= HIGH[2] + 0.05
    (line,) = made.record["warnings"]
    assert "% of the rays end beyond everything that was triangulated" in line


def test_the_folder_holds_all_of_it(folder: Path, images: CaptureImages) -> None:
    names = {item.name for item in folder.iterdir()}
    assert {"scene.toml", "assets", "collision.ply", "cameras.json", "place.json", "report.html"} <= names
    record = json.loads((folder / "place.json").read_text())
    assert record["metric"] is True
    assert record["unknown"] == "solid"
    assert record["gaussians"]["pruned"] >= 180
    assert record["points"]["median_m"] < 0.05
    assert len(json.loads((folder / "cameras.json").read_text())["frames"]) == len(images)
    assert "known to be free" in (folder / "report.html").read_text()
    assert len(read_model(folder / "collision.ply").shapes) == 1


def test_it_is_inside_by_construction(folder: Path) -> None:
    place = read_scene(folder)
    assert place.start is not None
    assert place.goal is not None
    assert is_unknown_solid(place)
    bounds = np.array([place.bounds.lower, place.bounds.upper])
    assert (bounds[0] >= LOW).all()
    assert (bounds[1] <= HIGH).all()
    ends = np.array([place.start.position, place.goal.position])
    assert (clearance(SceneBatch(place).geometry, ends, 0).distance >= 0.3).all()
    assert place.carved is not None
    assert (place.carved.values(ends) == FREE).all()


def test_pictures_are_taken_inside(folder: Path) -> None:
    """From outside there is only the back of what was seen: the view is from the start, towards the goal."""
    place = scene(str(folder))
    seen, inside = view(place, "orbit"), view(place, "inside")
    np.testing.assert_array_equal(inside.attitude, seen.attitude)
    assert place.start is not None
    assert place.goal is not None
    np.testing.assert_allclose(seen.position, place.start.position)
    ahead = frames.rotate(seen.attitude, np.array([0.0, 0.0, 1.0]))
    way = np.subtract(place.goal.position, place.start.position)
    np.testing.assert_allclose(ahead, way / np.linalg.norm(way), atol=1e-9)


def test_equal_inputs_give_an_equal_place(folder: Path, images: CaptureImages, splats: Splats, tmp_path: Path) -> None:
    write_place(tmp_path / "room", images, splats, OPTIONS)
    assert scene_digest(read_scene(tmp_path / "room")) == scene_digest(read_scene(folder))


def test_a_course_through_unknown_space_does_not_fit(folder: Path) -> None:
    place = read_scene(folder)
    inner = 0.5 * (PILLAR[0] + PILLAR[1])
    inner[2] = 1.2
    assert place.carved is not None
    assert place.carved.values([inner])[0] == UNKNOWN
    hidden = replace(place, instances=tuple(item for item in place.instances if item.name == "unknown space"))
    path = from_waypoints(np.array([np.array(place.start.position), inner]), Limits(speed=1.0, acceleration=2.0))
    found = course_clearance(path, hidden, vehicle("carl"))
    assert not found.fits
    assert found.touches[0].thing == "'unknown space'"


def test_what_cannot_be_a_place_is_refused(images: CaptureImages, splats: Splats, tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="not metric"):
        write_place(tmp_path, replace(images, metric=False), splats, OPTIONS)
    clear = Splats(splats.position, splats.rotation, splats.scale, np.full(len(splats), 0.004), splats.harmonics)
    with pytest.raises(AirworthyError, match="opaque to no training camera"):
        write_place(tmp_path, images, clear, OPTIONS)
    with pytest.raises(AirworthyError, match="No connected free space"):
        write_place(tmp_path, images, splats, PlaceOptions(cell=0.1, radius=2.0))
    for wrong in ({"cell": -1.0}, {"cell": 1e-3}, {"radius": 0.0}, {"background": 2.0}):
        with pytest.raises(AirworthyError, match=f"PlaceOptions.{next(iter(wrong))} is"):
            PlaceOptions(**wrong)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_nobody_flies_through_unknown_space(folder: Path, tmp_path: Path) -> None:
    """The pillar's inside is unknown, its surface taken away: the flight meets unknown space, or passes where that is free."""
    place = read_scene(folder)
    assert place.start is not None
    start, inner = np.array(place.start.position), 0.5 * (PILLAR[0] + PILLAR[1])
    inner[2] = start[2]
    bare = replace(place, instances=tuple(item for item in place.instances if item.name == "unknown space"))
    write_scene(bare, tmp_path / "bare")
    for mode, outcome in (("solid", "collision"), ("free", "success")):
        config = FlyConfig(
            scene=str(tmp_path / "bare"),
            vehicle=("carl",),
            waypoints=tuple(",".join(f"{x:.4f}" for x in at) for at in (start, inner)),
            unknown=mode,  # type: ignore[arg-type]
            course_check="none",
            report=False,
            out=tmp_path / mode,
        )
        summary = run_fly(config).summary
        assert summary["aggregate"]["outcomes"][outcome] == 1
        assert ("unknown space" in json.dumps(summary)) == (mode == "solid")


@pytest.mark.slow
def test_the_command_makes_a_place(
    images: CaptureImages, splats: Splats, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_capture(images, tmp_path / "capture")
    file = write_splats(splats, tmp_path / "splats.ply", up="z")
    argv = ["capture", "place", str(file), "--capture", str(tmp_path / "capture"), "--out", str(tmp_path / "place")]
    assert main([*argv, "--cell", "0.1"]) == 0
    text = capsys.readouterr().out
    assert "known to be free in cells of 10 cm" in text
    assert "which is solid" in text
    assert "Left out" in text
    assert main(["scenes", "show", str(tmp_path / "place")]) == 0
    shown = capsys.readouterr().out
    assert "space_m3.free" in shown
    assert "unknown_space" in shown
    assert read_capture(tmp_path / "capture", quiet=True).metric
