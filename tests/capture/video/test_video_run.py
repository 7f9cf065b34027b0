"""The whole way from a film to poses and a page, and what its folder refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from tests.capture.video.film_building import patterned_room, textured_film, textured_picture, write_film
from tests.core.process_ends import ended

from airworthy.capture import CaptureImages, CaptureVideoOptions, best_similarity, capture_video, read_capture
from airworthy.capture.filming import FilmOptions, film, render_film
from airworthy.capture.video import ReconstructionOptions, reconstruct, run, take_frames
from airworthy.capture.video.options import VideoPlan
from airworthy.capture.video.reconstruction import camera_groups
from airworthy.core.errors import AirworthyError


@pytest.fixture(autouse=True)
def lamps_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Light that walls throw back takes half a minute to compute, and nothing here is about it."""
    monkeypatch.setattr(film, "use_baked", lambda batch: None)


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = write_film(tmp_path / "a.mp4", textured_film(12))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "training.json").write_text("{}")
    with pytest.raises(AirworthyError, match="holds a training"):
        capture_video(path, tmp_path / "out")


def test_another_film_or_other_options_are_told(tmp_path: Path) -> None:
    """The first run fails at its poses, or without COLMAP; what it is for stands in the folder by then."""
    path = write_film(tmp_path / "a.mp4", textured_film(4))
    with pytest.raises(AirworthyError, match="only 4 pictures"):
        capture_video(path, tmp_path / "out", CaptureVideoOptions(frames=20))
    with pytest.raises(AirworthyError, match="frames: 20 before, 30 now"):
        capture_video(path, tmp_path / "out", CaptureVideoOptions(frames=30))
    write_film(tmp_path / "a.mp4", textured_film(5))
    with pytest.raises(AirworthyError, match=r"other films or other options .*inputs"):
        capture_video(path, tmp_path / "out", CaptureVideoOptions(frames=20))


def test_other_metres_than_those_of_trained_splats_are_refused_before_anything_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scaled: list[float] = []
    images = CaptureImages((np.zeros((4, 4, 3), np.uint8),), np.ones((1, 4)), np.zeros((1, 3)), np.eye(4)[3:])

    def scale(folder: Path, plan: VideoPlan, *_: object) -> SimpleNamespace:
        scaled.append(plan.options.side)
        return SimpleNamespace(images=images, warning="", record=None)

    def stopped(images: CaptureImages, folder: Path, *_: object) -> None:
        folder.mkdir(exist_ok=True)
        raise KeyboardInterrupt

    nothing = SimpleNamespace(warnings=[], refused="", sentence="")
    quiet_steps = {"read_frames_record": ({}, []), "judged_reconstruction": nothing, "shutter_of": nothing}
    for name, value in {"read_leftovers": {}, **quiet_steps}.items():
        monkeypatch.setattr(run, name, lambda *_, found=value, **__: found)
    monkeypatch.setattr(run._VideoRun, "_poses", lambda *_: {})
    monkeypatch.setattr(run, "scaled_capture", scale)
    monkeypatch.setattr(run, "train_splats", stopped)
    path, out = write_film(tmp_path / "a.mp4", textured_film(4)), tmp_path / "out"

    def asked(side: float) -> None:
        capture_video(path, out, CaptureVideoOptions(side=side, masks=False))

    with pytest.raises(KeyboardInterrupt):
        asked(0.2)
    with pytest.raises(AirworthyError, match=r"splats that were trained with other options \(side: 0.2 before, 0.3 now\)"):
        asked(0.3)
    assert scaled == [0.2]
    # The same goes on; without splats there is nothing that other metres could contradict.
    with pytest.raises(KeyboardInterrupt):
        asked(0.2)
    (out / "splats").rmdir()
    with pytest.raises(KeyboardInterrupt):
        asked(0.3)
    assert scaled == [0.2, 0.2, 0.3]


def test_a_folder_called_like_a_photograph_does_not_end_a_run(tmp_path: Path) -> None:
    """Photographs are read by their content before anything else; a folder among them has none."""
    shots = tmp_path / "shots"
    (shots / "sub.jpg").mkdir(parents=True)
    for k in range(3):
        Image.fromarray(textured_picture(96, 64, k)).save(shots / f"{k}.jpg")
    with pytest.raises(AirworthyError, match="only 3 pictures"):
        capture_video(shots, tmp_path / "out", CaptureVideoOptions(train=False))


@pytest.mark.parametrize("damaged", ["{", "[1, 2]", '{"frames": "long"}', ""])
def test_damaged_times_are_counted_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], damaged: str
) -> None:
    """They tell how long it took, and nothing is made of them."""
    path, out = write_film(tmp_path / "a.mp4", textured_film(4)), tmp_path / "out"
    steps: list[str] = []

    def step(name: str) -> None:
        steps.append(name)
        if name == "poses":
            raise KeyboardInterrupt
        (out / "frames.json").write_text('{"sources": [], "frames": []}')

    monkeypatch.setattr(run, "take_frames", lambda *_: step("frames"))
    monkeypatch.setattr(run, "reconstruct", lambda *_: step("poses"))
    for quiet in (True, False):
        with pytest.raises(KeyboardInterrupt):
            capture_video(path, out, CaptureVideoOptions(train=False), quiet=quiet)
        assert set(json.loads((out / "seconds.json").read_text())) == {"frames", "poses"}
        (out / "seconds.json").write_text(damaged)
    with pytest.raises(KeyboardInterrupt):
        capture_video(path, out, CaptureVideoOptions(train=False), quiet=False)
    assert steps == ["frames", "poses"] * 3
    assert capsys.readouterr().err.count("Times of earlier runs in seconds.json were dropped, and are counted anew") == 2


def test_photographs_are_not_written_over(tmp_path: Path) -> None:
    """A folder of photographs, or the one above it, is no place to write their smaller copies into."""
    shots = tmp_path / "shots" / "images"
    shots.mkdir(parents=True)
    for k in range(3):
        Image.fromarray(np.full((64, 96, 3), 80 * k, np.uint8)).save(shots / f"{k}.jpg")
    before = {path: path.read_bytes() for path in shots.iterdir()}
    for given, out in ((shots.parent, shots.parent), (shots, shots.parent), (shots, shots), (shots, tmp_path)):
        with pytest.raises(AirworthyError, match=r"the photographs of .* lie in it.*choose another --out"):
            capture_video(given, out, CaptureVideoOptions(train=False))
    assert {path: path.read_bytes() for path in shots.iterdir()} == before
    assert sorted(path.name for path in (tmp_path / "shots").iterdir()) == ["images"]


def test_what_cannot_be_asked_for(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match=r"by -3 threads; expected 1 or more, or 0"):
        capture_video("a.mp4", tmp_path / "out", threads=-3)
    # Whoever does without a scale does without the distance that would give one.
    distance = ("0,0,0", "1,0,0", 2.0)
    asked = CaptureVideoOptions(known_distance=(distance,))
    assert asked.aligning().known_distance == (distance,)
    assert asked.aligning(unscaled=True).known_distance == ()
    with pytest.raises(AirworthyError, match="No film was named"):
        capture_video([], tmp_path / "out")
    with pytest.raises(AirworthyError, match="give one of them"):
        capture_video("a.mp4", tmp_path / "out", CaptureVideoOptions(), plan=VideoPlan(10, 100, 100))
    with pytest.raises(AirworthyError, match=r"The marker 'x' is not understood; expected NUMBER or NUMBER:SIDE"):
        CaptureVideoOptions(markers=("x",))


def test_quick_is_smaller_throughout() -> None:
    quick, usual = CaptureVideoOptions(quick=True).plan(), CaptureVideoOptions().plan()
    assert quick.frames < usual.frames
    assert quick.side < usual.side
    assert quick.training.steps < usual.training.steps
    assert quick.reconstruction.features < usual.reconstruction.features
    assert CaptureVideoOptions(quick=True, frames=99).plan().frames == 99


def test_pictures_of_one_size_are_one_camera() -> None:
    sources = [{"focal_over_longer_side": None}, {"focal_over_longer_side": 0.75}]
    pictures = [("a", 0, (96, 64)), ("b", 0, (96, 64)), ("c", 1, (96, 64)), ("d", 1, (64, 96))]
    record = {"sources": sources, "frames": [{"name": n, "source": s, "size": size} for n, s, size in pictures]}
    groups = camera_groups(record, "SIMPLE_RADIAL")
    assert [group["names"] for group in groups] == [["a", "b"], ["c"], ["d"]]
    assert [group["focal"] for group in groups] == [None, 72.0, 72.0]


@pytest.mark.slow
def test_a_film_of_a_room_becomes_poses_and_a_page(tmp_path: Path) -> None:
    pytest.importorskip("pycolmap")
    options = FilmOptions(seconds=12.0, rate=4.0, width=320, height=240, exposures=1, marker_side=0.0, laps=0.5)
    truth = json.loads(render_film(patterned_room(), tmp_path / "film.mp4", options).read_text())
    plan = CaptureVideoOptions(frames=24, width=320, train=False).plan(ReconstructionOptions(features=1500))
    done = capture_video(tmp_path / "film.mp4", tmp_path / "place", plan=plan)
    assert done.summary["registered"] >= 22
    # Of a room of 6 m from 320 pixels: a pixel is a centimetre, poses are a fraction of one.
    images = read_capture(tmp_path / "place", width=64, up="none", every=0)
    numbers = np.array([int(Path(name).stem) for name in images.names])
    position = np.array(truth["position"])[numbers]
    fit = best_similarity(images.position, position)
    assert np.sqrt(np.square(fit.points(images.position) - position).sum(axis=1).mean()) < 0.03
    assert done.summary["cameras"][0]["focal_px"] == pytest.approx(truth["intrinsics"][0], rel=0.02)
    assert done.report.stat().st_size > 20_000
    # Once more: everything is there, nothing is done.
    assert capture_video(tmp_path / "film.mp4", tmp_path / "place", plan=plan).summary == done.summary


@pytest.mark.slow
def test_pictures_that_do_not_overlap_are_told(tmp_path: Path) -> None:
    pytest.importorskip("pycolmap")
    pictures = [textured_picture(320, 240, 50 + k) for k in range(10)]
    path = write_film(tmp_path / "a.mp4", pictures, rate=2.0)
    with pytest.raises(AirworthyError, match=r"do not overlap.*film without cuts"):
        capture_video(path, tmp_path / "out", CaptureVideoOptions(quick=True, train=False))


BEGINS_A_LONG_STEP = """
import sys
from airworthy.capture.video.reconstruction import Colmap
with Colmap(sys.argv[1]) as colmap:
    print(colmap._process.pid, flush=True)
    groups = [{"names": sys.argv[4:], "model": "SIMPLE_RADIAL", "width": 320, "height": 240, "focal": None}]
    order = dict(database=sys.argv[2], images=sys.argv[3], masks="", groups=groups, features=9000, threads=1)
    steps, colmap._steps = colmap._steps, lambda *of: (print(done, flush=True) for done in steps(*of))
    colmap.run("features", "Finding features", **order)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_colmap_ends_with_a_command_that_is_killed(tmp_path: Path) -> None:
    """It was in the middle of a step, and went on for seconds, writing what nobody waited for."""
    pycolmap = pytest.importorskip("pycolmap")
    names = [f"{k}.jpg" for k in range(20)]
    for k, name in enumerate(names):
        Image.fromarray(textured_picture(320, 240, k)).save(tmp_path / name)
    words = [str(tmp_path / "colmap.log"), str(tmp_path / "database.db"), str(tmp_path), *names]
    command = subprocess.Popen([sys.executable, "-c", BEGINS_A_LONG_STEP, *words], stdout=subprocess.PIPE, text=True)
    assert command.stdout is not None
    child = int(command.stdout.readline())
    # Some of the pictures are done.
    assert command.stdout.readline() == "0\n"
    assert not ended(child, 0.1)
    command.kill()
    assert ended(child)
    command.wait()
    command.stdout.close()
    with pycolmap.Database.open(words[1]) as database:
        assert 0 < database.num_images() < 20


@pytest.mark.slow
def test_a_killed_run_goes_on_with_the_same_features(tmp_path: Path) -> None:
    """What is in the database by then is kept: a second call finds all features there and the same matches."""
    pytest.importorskip("pycolmap")
    options = FilmOptions(seconds=6.0, rate=4.0, width=320, height=240, exposures=1, marker_side=0.0, laps=0.25)
    render_film(patterned_room(), tmp_path / "film.mp4", options)
    take_frames([tmp_path / "film.mp4"], tmp_path / "place", 12, 320)
    first = reconstruct(tmp_path / "place", ReconstructionOptions(features=800), threads=1)
    (tmp_path / "place" / "reconstruction.json").unlink()
    again = reconstruct(tmp_path / "place", ReconstructionOptions(features=800), threads=1)
    assert again["features"] == first["features"]
    assert again["pairs"] == first["pairs"]
