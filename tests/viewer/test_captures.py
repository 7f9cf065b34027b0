"""Captures, trainings that go on, and recordings in one file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("viser")

from tests.viewer.chromium import PROGRAM, Page, until
from tests.viewer.test_flights import _straight
from tests.viewer.test_panels import _cloud

from airworthy.capture import CaptureImages, write_capture
from airworthy.capture.training.train import CHECKPOINTS, IDENTITY, REPORT
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.core.files import write_json
from airworthy.core.jobs.checkpoints import Checkpoint, Checkpoints
from airworthy.scenes.record import Scene, SplatPlacement
from airworthy.scenes.splats import write_splats
from airworthy.splats.training.optimizer import SplatOptimizer
from airworthy.viewer import Subject, Viewer, load_flight, load_subject
from airworthy.viewer.captures import CaptureNodes
from airworthy.viewer.recording import export_recording
from airworthy.viewer.server import serve
from airworthy.viewer.splat_nodes import colors_from
from airworthy.viewer.subjects import with_capture
from airworthy.viewer.trainings import TrainingWatch, WatchedTraining

Output = pytest.CaptureFixture[str]


def _capture(folder: Path, count: int = 5) -> Path:
    rng = np.random.default_rng(2)
    images = CaptureImages(
        rgb=tuple(rng.integers(0, 255, (60, 80, 3), np.uint8) for _ in range(count)),
        intrinsics=np.tile((80.0, 80.0, 40.0, 30.0), (count, 1)),
        position=np.stack([np.linspace(0.0, 4.0, count), np.zeros(count), np.ones(count)], axis=1),
        attitude=np.tile((-0.5, 0.5, -0.5, 0.5), (count, 1)),
        points=rng.normal(size=(30, 3)),
        colors=rng.integers(0, 255, (30, 3), np.uint8),
        held_out=np.arange(count) == 2,
        metric=True,
    )
    write_capture(images, folder)
    return folder


class TestCaptures:
    def test_cameras_stand_where_images_were_taken(self, server: Any, tmp_path: Path) -> None:
        subject = load_subject(str(_capture(tmp_path / "room")))
        assert subject.scene is None
        viewer = Viewer(server, subject)
        assert isinstance(viewer.capture, CaptureNodes)
        handles = [viewer.nodes[name] for name in sorted(viewer.capture.cameras)]
        np.testing.assert_allclose(np.sort([handle.position[0] for handle in handles]), np.linspace(0.0, 4.0, 5))
        assert all(handle.fov == pytest.approx(2.0 * np.arctan(30.0 / 80.0)) for handle in handles)
        assert viewer._facts().startswith("5 cameras, 1 of them held out (orange)")
        assert "in metres" in viewer._facts()
        assert list(viewer.controls.boxes) == ["cameras", "points", "way", "grid"]
        viewer.switch("cameras", False)
        assert not viewer.nodes["/capture/cameras"].visible
        viewer.switch("way", True)
        assert viewer.nodes["/capture/way"].visible
        # A browser looks at the cameras from outside of their box.
        low, high = viewer.capture.box
        assert not ((viewer.view.position >= low) & (viewer.view.position <= high)).all()

    def test_with_splats_the_cameras_come_beside(self, server: Any, tmp_path: Path) -> None:
        write_splats(_cloud(20, 0), tmp_path / "cloud.ply")
        subject = with_capture(load_subject(str(tmp_path / "cloud.ply")), _capture(tmp_path / "room"))
        viewer = Viewer(server, subject)
        assert {"/splats/0_cloud", "/capture/cameras", "/capture/points"} <= set(viewer.nodes)
        # Before the middle camera, along its axis, x: from outside there is only the back of what cameras saw.
        np.testing.assert_allclose(viewer.view.position[1:], (0.0, 1.0), atol=1e-9)
        assert 2.0 < viewer.view.position[0] < 2.3
        np.testing.assert_allclose(viewer.view.target - viewer.view.position, (1.0, 0.0, 0.0), atol=1e-9)
        assert viewer.view.fov == pytest.approx(2.0 * np.arctan(30.0 / 80.0))
        assert not viewer.nodes["/capture/points"].visible


def _training(folder: Path, step: int, count: int, degree: int = 1) -> None:
    """What `airworthy capture train` leaves after a step."""
    folder.mkdir(exist_ok=True)
    write_json(folder / IDENTITY, {"options": {"steps": 100}, "images": "0" * 64})
    arrays = SplatOptimizer(_cloud(count, degree)).save()
    notes = {"judged": [[step, 20.0 + step / 10, 0.9]], "loss": []}
    Checkpoints(folder / CHECKPOINTS, digits=8).save(Checkpoint(step, arrays, notes), {})


class TestTrainings:
    def test_each_state_is_given_once(self, tmp_path: Path) -> None:
        _training(tmp_path / "run", 10, 40)
        folder = WatchedTraining(tmp_path / "run")
        first = folder.newest()
        assert first is not None
        assert (first.step, first.steps, len(first.splats), first.done) == (10, 100, 40, False)
        assert first.text() == "step 10 of 100: 40 gaussians, PSNR 21.00 dB at step 10"
        assert folder.newest() is None
        _training(tmp_path / "run", 20, 60)
        second = folder.newest()
        assert second is not None
        assert len(second.splats) == 60
        write_splats(_cloud(70, 1), tmp_path / "run" / "splats.ply")
        curves = {"held_out": [[100, 30.0, 0.9]]}
        write_json(tmp_path / "run" / REPORT, {"splats": "splats.ply", "steps": 100, "curves": curves})
        last = folder.newest()
        assert last is not None
        assert last.done
        assert last.text() == "step 100 of 100, finished: 70 gaussians, PSNR 30.00 dB at step 100"
        assert folder.newest() is None

    def test_the_cloud_follows_the_training(self, server: Any, tmp_path: Path) -> None:
        _training(tmp_path / "run", 10, 40)
        subject = load_subject(str(tmp_path / "run"))
        assert subject.note.startswith("step 10 of 100")
        viewer = Viewer(server, subject)
        node = viewer.nodes["/splats/0_run"]
        assert len(node.buffer) == 40
        assert subject.training is not None
        _training(tmp_path / "run", 20, 64)
        watch = TrainingWatch(subject.training, viewer._trained, 0.05)
        until(lambda: "step 20" in viewer.controls._facts.content)
        watch.close()
        assert len(node.buffer) == 64
        assert "step 20 of 100: 64 gaussians" in viewer.controls._facts.content
        assert viewer.shown_scene is not None
        assert len(viewer.shown_scene.clouds["run"]) == 64  # what clicks meet is the new cloud
        viewer.close()

    def test_harmonics_that_come_later_are_shown(self, server: Any, tmp_path: Path) -> None:
        """A training begins without, and raises their degree step by step."""
        _training(tmp_path / "run", 10, 40, degree=0)
        viewer = Viewer(server, load_subject(str(tmp_path / "run")))
        assert viewer.colors is not None
        _training(tmp_path / "run", 20, 40, degree=2)
        assert viewer.subject.training is not None
        viewer._trained(viewer.subject.training.newest(), "")
        assert viewer.splats is not None
        assert viewer.splats.degree == 2
        eye = np.array([0.0, -3.0, 1.0])
        viewer.splats.color(eye)
        assert viewer.shown_scene is not None
        expected = np.rint(255.0 * colors_from(viewer.shown_scene.clouds["run"], eye))
        assert np.abs(viewer.nodes["/splats/0_run"].rgbs.astype(int) - expected).max() <= 1
        viewer.close()

    def test_a_folder_that_holds_none(self, tmp_path: Path) -> None:
        with pytest.raises(AirworthyError, match="holds no training of splats, or one that has saved nothing yet"):
            WatchedTraining(tmp_path)
        # Trainings of policies leave a file of the same name.
        write_json(tmp_path / IDENTITY, {"options": {}})
        with pytest.raises(AirworthyError, match="holds no training of splats"):
            WatchedTraining(tmp_path)

    def test_a_damaged_checkpoint_is_waited_over(self, tmp_path: Path, capsys: Output) -> None:
        _training(tmp_path / "run", 10, 40)
        for path in (tmp_path / "run" / CHECKPOINTS).glob("*.safetensors"):
            path.write_bytes(b"half")
        assert WatchedTraining(tmp_path / "run").newest() is None
        with pytest.raises(AirworthyError, match="has saved nothing yet that is whole"):
            load_subject(str(tmp_path / "run"))


class TestRecordings:
    def test_a_flight_in_one_file(self, server: Any, tmp_path: Path) -> None:
        viewer = Viewer(server, Subject("run", None, load_flight(_straight(tmp_path / "run", 1))))
        found = export_recording(viewer, tmp_path / "run.html", rate=10.0)
        page = (tmp_path / "run.html").read_text()
        assert (found.frames, found.size) == (21, len(page.encode()))
        assert found.text().endswith("2.0 s in 21 steps; it opens without a server")
        assert "<title>Airworthy: run</title>" in page
        notes = json.loads(re.search(r"const airworthy=(\{.*?\});\nconst", page)[1])  # type: ignore[index]
        assert [row[0] for row in notes["captions"]] == pytest.approx(np.linspace(0.0, 2.0, 21), abs=1e-3)
        assert {plot["title"] for plot in notes["plots"]} >= {"speed [m/s]", "height [m]"}
        # Nothing is fetched: no script, style or image has an address.
        assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=[\"']?https?:", page)

    def test_a_scene_stands_still(self, server: Any, tmp_path: Path) -> None:
        viewer = Viewer(server, Subject("x", Scene("x", clouds={"x": _cloud(20, 1)}, splats=(SplatPlacement("x"),))))
        found = export_recording(viewer, tmp_path / "x.html")
        assert (found.duration, found.frames) == (0.0, 1)
        assert "a scene that stands still" in found.text()
        viewer.close()

    def test_colours_by_direction_are_those_of_the_first_view(self, server: Any, tmp_path: Path) -> None:
        cloud = _cloud(20, 2)
        viewer = Viewer(server, Subject("x", Scene("x", clouds={"x": cloud}, splats=(SplatPlacement("x"),))))
        export_recording(viewer, tmp_path / "x.html")
        expected = np.rint(255.0 * colors_from(cloud, viewer.view.position))
        assert np.abs(viewer.nodes["/splats/0_x"].rgbs.astype(int) - expected).max() <= 1
        told = "Splats have the colours that are seen from the first view."
        assert told in (tmp_path / "x.html").read_text()
        viewer.close()
        grey = Viewer(serve(port=0), Subject("x", Scene("x", clouds={"x": _cloud(20, 0)}, splats=(SplatPlacement("x"),))))
        export_recording(grey, tmp_path / "grey.html")
        assert told not in (tmp_path / "grey.html").read_text()
        grey.close()

    def test_what_is_too_long_is_refused(self, server: Any, tmp_path: Path) -> None:
        viewer = Viewer(server, Subject("run", None, load_flight(_straight(tmp_path / "run", 1))))
        with pytest.raises(AirworthyError, match="a recording holds 12,000"):
            export_recording(viewer, tmp_path / "x.html", rate=1e4)

    @pytest.mark.slow
    @pytest.mark.skipif(not PROGRAM.is_file(), reason="no Chromium")
    def test_it_plays_from_the_disk_alone(self, server: Any, tmp_path: Path) -> None:
        viewer = Viewer(server, Subject("run", None, load_flight(_straight(tmp_path / "run", 1))))
        export_recording(viewer, tmp_path / "run.html", rate=10.0)
        viewer.close()
        with Page(tmp_path / "profile", (800, 600)) as page:
            page.open((tmp_path / "run.html").as_uri())
            page.until_text("from the plan, flying")
            asked = "performance.getEntriesByType('resource').filter(e => !/^(data|blob):/.test(e.name)).length"
            found = page.call("Runtime.evaluate", expression=asked, returnByValue=True)
            assert found["result"]["value"] == 0


class TestCommands:
    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("CAPTURE --training", "--training belongs to a folder of `airworthy capture train`"),
            ("CAPTURE --capture CAPTURE", "is a capture itself: leave --capture out."),
            ("CAPTURE --env 1", "is a capture: leave it out."),
            ("CAPTURE --export x.mp4", "--export is 'x.mp4'; a recording is an .html file."),
            ("CAPTURE --export x.html --open", "--open changes nothing with --export, which serves nobody: leave it out."),
            ("forest --capture missing", "it is no folder"),
        ],
    )
    def test_mistakes(self, line: str, said: str, tmp_path: Path, capsys: Output) -> None:
        folder = str(_capture(tmp_path / "room"))
        assert main(["view", *line.replace("CAPTURE", folder).split()]) == 2
        err = capsys.readouterr().err
        assert said in err

    def test_export_as_people_type_it(self, loopback: None, tmp_path: Path, capsys: Output) -> None:
        folder = _capture(tmp_path / "room")
        assert main(["view", str(folder), "--export", str(tmp_path / "room.html")]) == 0
        out = capsys.readouterr().out
        assert re.search(r"Wrote .*room\.html: \d\.\d MB, a scene that stands still; it opens without a server\.\n$", out)
