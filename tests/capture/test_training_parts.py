"""The parts of a training one by one: where gaussians begin, what a step compares, notes, relocates, judges and keeps."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy.capture import TrainOptions
from airworthy.capture.images import CaptureImages
from airworthy.capture.training import run as training_run
from airworthy.capture.training import train as training
from airworthy.capture.training.run import TrainingRun, observed_colors
from airworthy.core.errors import AirworthyError


def images(count: int = 3, **fields: Any) -> CaptureImages:
    """Cameras side by side at z = -3 that look along z, each image of one colour."""
    rgb = tuple(np.full((8, 12, 3), 40 * (k + 1), np.uint8) for k in range(count))
    position = np.stack([0.1 * np.arange(count), np.zeros(count), np.full(count, -3.0)], 1)
    lens, level = np.tile((10.0, 10.0, 6.0, 4.0), (count, 1)), np.tile((0.0, 0.0, 0.0, 1.0), (count, 1))
    return CaptureImages(rgb, lens, position, level, **fields)


def test_points_of_the_set_are_taken_first_and_surfaces_are_swept_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def sweep(*given: Any) -> Any:
        asked.append(given)
        return SimpleNamespace(position=np.full((2, 3), 7.0), color=np.zeros((2, 3)))

    monkeypatch.setattr(training_run, "swept_points", sweep)
    monkeypatch.setattr(training_run, "views_reach", lambda images: 10.0)
    points = np.random.default_rng(1).normal(size=(1000, 3))
    points[7, 1] = np.nan
    colors = np.full((1000, 3), 51, np.uint8)

    def surface(start: str, **fields: Any) -> Any:
        options, rng = TrainOptions(start=start), np.random.default_rng(0)  # type: ignore[arg-type]
        return training_run._surface(images(**fields), options, True, rng)

    place, color, words = surface("auto", points=points, colors=colors)
    assert (place.shape, color.shape, words) == ((1001, 3), (1001, 3), "at the set's points and where swept planes agree")
    assert {tuple(p) for p in place[:999]} == {tuple(p) for p in np.delete(points, 7, axis=0)}
    assert (place[999:] == 7.0).all()
    assert color == pytest.approx(np.repeat((0.2, 0.0), (999, 2))[:, None] * np.ones(3))
    assert asked[0][4:6] == pytest.approx((0.8, 30.0))
    assert surface("auto")[2] == surface("sweep", points=points)[2] == "where swept planes agree"
    assert len(asked) == 3
    assert surface("points", points=points[:6])[1] == pytest.approx(np.full((6, 3), 0.5))
    assert surface("points", points=points, colors=colors)[2] == "at the set's points"
    assert [len(part) for part in surface("random", points=points)[:2]] == [0, 0]
    assert len(asked) == 3


def test_nine_of_ten_gaussians_stand_where_surfaces_are() -> None:
    points = np.random.default_rng(1).uniform(-0.5, 0.5, (1200, 3))
    options = TrainOptions(count=1000, start_share=0.5, start="points")
    splats, words = training_run.first_splats(images(points=points), options, True)
    assert (len(splats), words) == (500, "450 at the set's points, 50 at random")
    assert np.unique(splats.opacity).tolist() == [pytest.approx(0.3)]
    there = {tuple(p) for p in points.astype(np.float32).tolist()}
    assert sum(tuple(p) in there for p in np.asarray(splats.position, np.float32).tolist()) == 450
    few, words = training_run.first_splats(images(points=points[:40]), options, True)
    assert (len(few), words) == (500, "40 at the set's points, 460 at random")
    assert (
        training_run.first_splats(images(), replace(options, start="random"), True)[1] == "all at random in the views' volume"
    )


def test_colours_are_means_of_the_images_that_show_a_point() -> None:
    found = observed_colors(images(), np.array([[0.1, 0.0, 0.0], [0.0, 0.0, -9.0], [1.85, 0.0, 0.0]]))
    # Seen by all three; behind all; half a view is 1.8 m wide at 3 m, so that the first camera, 1.85 m aside, misses it.
    assert found[0] == pytest.approx([80.0 / 255.0] * 3)
    assert found[1] == pytest.approx([0.5] * 3)
    assert found[2] == pytest.approx([100.0 / 255.0] * 3)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("mapped", [False, True])
def test_only_what_shows_the_scene_is_compared(masked: bool, mapped: bool) -> None:
    rng = np.random.default_rng(3)
    image, truth = rng.random((1, 4, 5, 3)), rng.random((1, 4, 5, 3))
    shown = rng.random((4, 5, 3)) > 0.5 if masked else None
    given: dict[str, Any] = {}

    def loss(seen: Any, wanted: Any) -> Any:
        given.update(seen=seen, wanted=wanted)
        return 0.25, np.ones_like(seen)

    maps = SimpleNamespace(applied=lambda k, x: 0.5 * x + k, learned=lambda k, x, slope: 0.5 * slope) if mapped else None
    value, slope = TrainingRun._compared(SimpleNamespace(_maps=maps, _loss=loss), image, truth, shown, 2)  # type: ignore[arg-type]
    seen = 0.5 * image + 2 if mapped else image
    np.testing.assert_allclose(given["seen"], seen if shown is None else np.where(shown, seen, truth), rtol=1e-6)
    weight = (0.5 if mapped else 1.0) * (np.ones_like(image) if shown is None else shown)
    np.testing.assert_allclose(slope, np.broadcast_to(weight, slope.shape))
    assert value == 0.25


def test_losses_are_noted_as_means_each_hundred_steps_and_at_the_end() -> None:
    run: Any = SimpleNamespace(_sums=np.zeros(2), step=0, options=SimpleNamespace(steps=250), notes={"loss": []})
    for step in range(1, 251):
        run.step = step
        TrainingRun._note(run, float(step))
    assert run.notes["loss"] == [[100, 50.5], [200, 150.5], [250, 225.5]]


@pytest.mark.parametrize(("have", "wanted"), [(100, 106), (960, 1000), (1000, 1000), (1500, 1500)])
def test_there_are_more_with_each_relocation_up_to_what_was_asked_for(
    have: int, wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    class Optimizer(list[int]):
        def fields(self) -> str:
            return "fields"

        def replace(self, fields: Any) -> None:
            asked["replaced"] = fields

    def relocated(fields: Any, rng: Any, count: int) -> Any:
        asked.update(count=count, drawn=rng.random())
        return "moved", None

    monkeypatch.setattr(training_run, "relocated", relocated)
    options = SimpleNamespace(count=1000, grow=1.05, seed=7, densify="mcmc")
    run: Any = SimpleNamespace(options=options, optimizer=Optimizer(range(have)), step=300)
    TrainingRun._relocate(run)
    assert asked == {"count": wanted, "drawn": np.random.default_rng((7, 3, 300)).random(), "replaced": "moved"}


@pytest.mark.parametrize(("count", "judged"), [(4, [0, 1, 2, 3]), (10, [*range(10)]), (28, [*range(0, 28, 3)])])
def test_without_held_out_images_ten_are_judged_from_all_over(count: int, judged: list[int]) -> None:
    run: Any = SimpleNamespace(
        images=SimpleNamespace(held_out_ids=np.array([], int)), _numbers=np.arange(count), _quality_of=lambda k: k
    )
    assert TrainingRun.evaluate(run) == judged
    run.images.held_out_ids = np.array([5, 2])
    assert TrainingRun.evaluate(run) == [5, 2]


def test_a_folder_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    options, identity = TrainOptions(), {"options": {}, "images": "a"}
    (tmp_path / training.CHECKPOINTS).mkdir()
    with pytest.raises(AirworthyError, match="holds results but no"):
        training._known(tmp_path, options, identity)
    (tmp_path / training.CHECKPOINTS).rmdir()
    (tmp_path / training.REPORT).write_text("{}", "utf-8")
    with pytest.raises(AirworthyError, match="holds results but no"):
        training._known(tmp_path, options, identity)
    (tmp_path / training.REPORT).unlink()
    assert training._known(tmp_path, options, identity) is None
    place = tmp_path / training.IDENTITY
    assert json.loads(place.read_text("utf-8")) == identity
    for wrong in ([1], {"options": 3}, {}):
        place.write_text(json.dumps(wrong), "utf-8")
        with pytest.raises(AirworthyError, match="does not describe a training"):
            training._known(tmp_path, options, identity)


def test_what_is_no_capture_is_refused() -> None:
    good = images(2)
    for fields, words in (
        ({"intrinsics": np.zeros((2, 3))}, "The intrinsics of 2 posed images"),
        ({"position": np.zeros((3, 3))}, "The position of 2 posed images"),
        ({"attitude": np.full((2, 4), np.nan)}, "not finite"),
        ({"position": np.full((2, 3), np.inf)}, "not finite"),
        ({"rgb": (np.zeros((4, 4), np.uint8),) * 2}, "expected uint8"),
        ({"rgb": (np.zeros((4, 4, 4), np.uint8),) * 2}, "expected uint8"),
        ({"rgb": (np.zeros((4, 4, 3), np.float32),) * 2}, "expected uint8"),
        ({"rgb": (np.zeros((0, 4, 3), np.uint8),) * 2}, "expected uint8"),
        ({"masks": (None, np.zeros((8, 11), bool))}, "The mask of an image"),
        ({"masks": (None,)}, "The masks of 2 posed images"),
        ({"names": ("a",)}, "The names of 2 posed images"),
        ({"held_out": np.zeros(3, bool)}, "The held_out of 2 posed images"),
    ):
        with pytest.raises(AirworthyError, match=words):
            replace(good, **fields)
    for scale, place in ((0.0, 0.0), (-1.0, 0.0), (np.inf, 0.0), (np.nan, 0.0), (1.0, np.nan)):
        with pytest.raises(AirworthyError, match="cannot be moved"):
            good.moved((0.0, 0.0, 0.0, 1.0), (place, 0.0, 0.0), scale)
