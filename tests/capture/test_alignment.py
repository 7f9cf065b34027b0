"""From corners to a metric, level frame: rendered markers, exact cases, noise, and what contradicts itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from alignment_building import SIDE, hall_points, walk

from airworthy.capture import AlignOptions, CaptureImages, align_capture, find_alignment, read_capture, write_alignment_page
from airworthy.capture.alignment import align
from airworthy.capture.alignment.align import aligned, corners_by_name
from airworthy.capture.alignment.level import angle_of
from airworthy.capture.alignment.marker_bundle import fit_markers
from airworthy.capture.alignment.marker_sheet import draw_marker
from airworthy.capture.alignment.markers import marker_corners, refined_corners
from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Mesh
from airworthy.optics.projections import Pinhole
from airworthy.optics.tone import srgb_from_linear
from airworthy.rendering.converting import display_color, lit_batch
from airworthy.rendering.images import render
from airworthy.rendering.shading import ShadingOptions
from airworthy.scenes import Instance, Material, Region, Scene, Texture
from airworthy.scenes.splats import Splats
from airworthy.scenes.viewpoints import look_at

MARKER = 0.341
UP = np.array([0.0, 0.0, 1.0])


def random_turn(rng: np.random.Generator) -> np.ndarray:
    return frames.normalize(rng.normal(size=4))


def marked_scene(side: float = MARKER) -> Scene:
    """A marker on a floor of speckled grey."""
    half = 0.5 * side * 8.0 / 6.0  # its white margin is a cell wide
    speckles = np.random.default_rng(0).integers(90, 160, (64, 64, 1)).astype(np.uint8)
    sheet = np.repeat(draw_marker(32)[..., None], 3, axis=-1)

    def square(half: float, height: float) -> Mesh:
        corners = np.array([[-half, half, height], [half, half, height], [half, -half, height], [-half, -half, height]])
        uv = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
        return Mesh(corners, np.array([[0, 2, 1], [0, 3, 2]]), uv=uv)

    return Scene(
        "marked",
        shapes={"floor": square(2.0, 0.0), "sheet": square(half, 0.002)},
        textures={"floor": Texture(np.repeat(speckles, 3, axis=-1)), "sheet": Texture(sheet, wrap="clamp")},
        materials={name: Material((1.0, 1.0, 1.0, 1.0), base_color_map=name, roughness=1.0) for name in ("floor", "sheet")},
        instances=(Instance("floor", materials=("floor",)), Instance("sheet", materials=("sheet",))),
        bounds=Region((-2.0, -2.0, 0.0), (2.0, 2.0, 2.0)),
    )


def marked_views(encode: Callable = srgb_from_linear, count: int = 12, size: tuple[int, int] = (320, 240)) -> CaptureImages:
    """Rendered views of the marker from around and above, in which it is 43 to 82 px wide."""
    rng = np.random.default_rng(3)
    turn = np.linspace(0.0, 2.0 * np.pi, count, endpoint=False)
    position = np.stack((np.cos(turn), np.sin(turn), np.full(count, 1.0)), -1) * rng.uniform(0.8, 1.6, (count, 1))
    attitude = np.stack([look_at(place, rng.uniform(-0.1, 0.1, 3)) for place in position])
    lens = Pinhole.from_fov(*size, horizontal=1.0)
    batch = lit_batch(marked_scene(), baked=False)
    shading = ShadingOptions(samples=4)
    env = np.zeros(count, np.int32)
    light = render(batch, lens.rays(), position, attitude, env, ("rgb",), shading, projection=lens)["rgb"]
    rgb = tuple(np.rint(255.0 * encode(0.5 * image)).astype(np.uint8) for image in light)
    intrinsics = np.tile((lens.fx, lens.fy, lens.cx, lens.cy), (count, 1))
    return CaptureImages(rgb, intrinsics, position, attitude, points=rng.uniform(-1.0, 1.0, (9, 3)))


@pytest.fixture(scope="module")
def views() -> CaptureImages:
    return marked_views()


def true_corners(images: CaptureImages) -> np.ndarray:
    """(n, 4, 2) where the printed corners are, in the frame in which the images were rendered."""
    corners = marker_corners(MARKER) + np.array([0.0, 0.0, 0.002])
    eye = frames.rotate_inverse(images.attitude[:, None], corners - images.position[:, None])
    return eye[..., :2] / eye[..., 2:] * images.intrinsics[:, None, :2] + images.intrinsics[:, None, 2:]


def lost(images: CaptureImages, scale: float, seed: int = 0) -> CaptureImages:
    """The capture in some other frame and unit, as a reconstruction leaves it."""
    rng = np.random.default_rng(seed)
    return images.moved(random_turn(rng), rng.normal(size=3), 1.0 / scale)


@pytest.mark.parametrize("scale", [0.13, 1.0, 7.7])
def test_a_rendered_marker_gives_the_scale(views: CaptureImages, scale: float) -> None:
    """Corners found in the pictures themselves, starting a pixel off; two of twelve views are given wrong ones.

    Edges are found to about 0.1 px, of 50 samples each; the marker is 60 px wide and seen ten times: 0.1 %.
    """
    start = true_corners(views) + np.random.default_rng(5).normal(size=(len(views), 4, 2))
    corners = {k: refined_corners(views.rgb[k], place) for k, place in enumerate(start)}
    assert np.abs(np.array([*corners.values()]) - true_corners(views)).max() < 0.3
    corners[3] = corners[3] + (25.0, -10.0)
    corners[8] = corners[8] * 1.2
    images = lost(views, scale)
    found = find_alignment(images, corners, MARKER)
    assert found.agreeing.tolist() == [0, 1, 2, 4, 5, 6, 7, 9, 10, 11]
    assert found.similarity.scale == pytest.approx(scale, rel=0.002)
    back = aligned(images, found)
    assert back.metric
    assert np.linalg.norm(back.position - views.position, axis=-1).max() < 0.01
    assert np.degrees(frames.angle_between(back.attitude, views.attitude)).max() < 0.5
    assert np.abs(np.asarray(back.points) - np.asarray(views.points)).max() < 0.02
    assert back.notes[-1].startswith("aligned: scale ")
    assert set(found.bundle.markers[0].left_out) == {3, 8}


def test_a_tone_curve_moves_edges_and_hardly_the_scale() -> None:
    """The project's own film curve is not sRGB: it moves edges inwards by up to 0.2 px, of 60. The fit finds by how much: from
    near and from far that is another share of the marker. The scale stays within 0.3 %, and within its interval.
    """
    images = marked_views(display_color)
    corners = {k: refined_corners(images.rgb[k], place) for k, place in enumerate(true_corners(images))}
    found = find_alignment(lost(images, 3.0), corners, MARKER)
    assert -0.25 < found.bundle.bleed < 0.0
    assert found.similarity.scale == pytest.approx(3.0, rel=0.003)
    assert abs(found.similarity.scale / 3.0 - 1.0) <= found.scale_half


@pytest.mark.parametrize("seed", range(5))
def test_half_a_pixel_of_noise_leaves_the_scale_within_a_percent(views: CaptureImages, seed: int) -> None:
    """Without looking at the pictures: the corners where they are, and half a pixel of noise on each coordinate."""
    rng = np.random.default_rng(seed)
    noisy = true_corners(views) + 0.5 * rng.normal(size=(len(views), 4, 2))
    images = lost(views, 3.0, seed)
    found = find_alignment(images, dict(enumerate(noisy)), MARKER, seed=seed)
    assert found.similarity.scale == pytest.approx(3.0, rel=0.01)
    assert found.error == pytest.approx(0.5 * np.sqrt(2.0), rel=0.3)
    record = json.loads(json.dumps(found.record(images)))
    assert record["marker_side_m"] == MARKER
    assert record["images_with_marker"] == 12


def test_exact_corners_give_the_exact_frame(views: CaptureImages) -> None:
    images = lost(views, 2.0)
    found = find_alignment(images, dict(enumerate(true_corners(views))), MARKER)
    assert found.similarity.scale == pytest.approx(2.0, rel=1e-9)
    assert found.error < 1e-6
    back = aligned(images, found)
    assert back.position == pytest.approx(views.position - (0.0, 0.0, 0.002), abs=1e-8)
    assert back.source.rotation == pytest.approx((0.0, 0.0, 0.0, 1.0), abs=1e-8)  # there and back again
    assert back.source.scale == pytest.approx(1.0, rel=1e-9)


def test_splats_move_with_the_images(views: CaptureImages) -> None:
    """A gaussian at a corner of the marker, in the frame of the capture, is at the marker's corner in metres."""
    images = lost(views, 4.0)
    found = find_alignment(images, dict(enumerate(true_corners(views))), MARKER).similarity
    corner = marker_corners(MARKER)[:1]
    splats = Splats(
        found.inverse.points(corner), np.array([[0.0, 0.0, 0.0, 1.0]]), np.full((1, 3), 0.1), np.ones(1), np.zeros((1, 1, 3))
    )
    moved = found.splats(splats)
    assert moved.position == pytest.approx(corner, abs=1e-6)
    assert moved.scale == pytest.approx(np.full((1, 3), 0.4), rel=1e-6)


def test_corners_by_the_names_of_images(views: CaptureImages) -> None:
    square = [[0, 0], [1, 0], [1, 1], [0, 1]]
    found = corners_by_name(views, {"00003": square}, refine=False)
    assert list(found) == [3]
    assert (found[3] == square).all()
    with pytest.raises(AirworthyError, match="Unknown image 'x'"):
        corners_by_name(views, {"x": square})
    with pytest.raises(AirworthyError, match="are not four pairs of numbers"):
        corners_by_name(views, {"00003": [[0, "a"]]})


def test_an_aligned_capture_is_written_as_metric(views: CaptureImages, tmp_path: Path) -> None:
    from airworthy.capture import write_capture

    images = lost(views, 2.0)
    write_capture(aligned(images, find_alignment(images, dict(enumerate(true_corners(views))), MARKER)), tmp_path)
    again = read_capture(tmp_path)
    assert again.metric
    assert again.position == pytest.approx(views.position - (0.0, 0.0, 0.002), abs=1e-8)


def test_two_images_are_enough_and_say_how_little_they_know() -> None:
    made = walk(2, seed=3)
    two = find_alignment(made.images, made.corners(), SIDE)
    assert two.similarity.scale == pytest.approx(made.truth.scale, rel=1e-6)
    rough = find_alignment(made.images, made.corners(0.5), SIDE)
    many = walk(24, seed=3)
    assert rough.scale_half > 2.0 * find_alignment(many.images, many.corners(0.5), SIDE).scale_half
    with pytest.raises(AirworthyError, match="The marker is seen in 1 image, and 2 from different places are needed"):
        find_alignment(made.images, {0: made.corners()[0]})


@pytest.mark.parametrize(("error", "alone", "bent"), [(2.9, 0.24, True), (1.4, 0.24, False), (2.9, 1.2, False)])
def test_a_marker_that_all_images_see_beside_its_place_is_said(
    error: float, alone: float, bent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = walk(8)
    exact = find_alignment(made.images, made.corners(), SIDE).bundle
    assert exact is not None
    assert exact.alone == exact.error
    assert not exact.bent
    found = replace(exact, error=error, alone=alone)
    monkeypatch.setattr(align, "fit_markers", lambda *_: found)
    said = find_alignment(made.images, made.corners(), SIDE).notes
    assert [line.startswith("images see the marker alike within 0.2 px, and 2.9 px beside") for line in said] == [True] * bent


def test_views_from_one_line_or_one_square_are_enough() -> None:
    """The poses of the images are known, so that nothing can turn about the line they were taken from."""
    made = walk(12)
    along = np.stack((np.linspace(-1.0, 1.0, 12), np.full(12, -1.0), np.ones(12)), axis=-1)
    turn = np.stack([look_at(place, np.zeros(3)) for place in along])
    images = CaptureImages(made.images.rgb, made.images.intrinsics, along, turn)
    eye = frames.rotate_inverse(turn[:, None], marker_corners(SIDE) - along[:, None])
    corners = eye[..., :2] / eye[..., 2:] * images.intrinsics[:, None, :2] + images.intrinsics[:, None, 2:]
    assert find_alignment(images, dict(enumerate(corners)), SIDE).similarity.scale == pytest.approx(1.0, rel=1e-9)


def test_intervals_agree_with_leaving_out_one_image_after_the_other() -> None:
    """The jackknife itself, twelve fits: to first order it is what the fit says; a quarter is what twelve of them allow."""
    made = walk(12, poses=2e-3)
    corners = made.corners(0.3)
    whole = find_alignment(made.images, corners, SIDE)
    logs = np.log(
        [
            find_alignment(made.images, {k: c for k, c in corners.items() if k != out}, SIDE).similarity.scale
            for out in range(12)
        ]
    )
    deviation = np.sqrt(11.0 / 12.0 * np.square(logs - logs.mean()).sum())
    spread = whole.bundle.spread
    slope = np.eye(len(spread.by_corner))[0]
    assert np.sqrt(slope @ spread.by_image @ slope) == pytest.approx(deviation, rel=0.25)


def test_intervals_hold_the_truth() -> None:
    """20 walks with poses 0.1 degrees off: an interval of 95 % misses 4 or more of 20 once in 60 times; seeds are fixed."""
    inside = 0
    for seed in range(20):
        made = walk(12, seed, poses=np.radians(0.1) / np.sqrt(3.0))
        rng = np.random.default_rng(seed)
        corners = {k: c + 0.5 * rng.normal(size=(4, 2)) for k, c in made.corners().items()}
        found = find_alignment(made.images, corners, SIDE)
        inside += abs(found.similarity.scale / made.truth.scale - 1.0) <= found.scale_half
    assert inside >= 17


def test_several_markers_make_one_scale() -> None:
    """Two markers of different sides, one on a wall: their poses are found, the first is the origin."""
    made, wall = walk(), frames.from_euler(0.0, 0.5 * np.pi, 0.0)
    seen = {4: made.corners(0.2, side=0.3, at=(-1.0, 0.5, 0.4), turn=wall), 0: made.corners(0.2)}
    seen[4] = {k: c for k, c in seen[4].items() if made.position[k, 0] > -0.5}
    found = align_capture(made.images, AlignOptions(side=SIDE, markers=("0", "4:0.3"), level="marker"), seen)
    assert [marker.number for marker in found.bundle.markers] == [0, 4]
    assert found.similarity.scale == pytest.approx(made.truth.scale, rel=5e-3)
    assert found.similarity.points(found.bundle.markers[1].position) == pytest.approx((-1.0, 0.5, 0.4), abs=0.01)
    record = json.loads(json.dumps(found.record(made.images)))
    assert [marker["side_m"] for marker in record["markers"]] == [SIDE, 0.3]


def test_markers_whose_sides_contradict_each_other_are_refused() -> None:
    made = walk()
    seen = {0: made.corners(0.1), 1: made.corners(0.1, at=(0.4, 0.2, 0.0))}
    with pytest.raises(
        AirworthyError, match=r"markers . and . contradict each other: .* a factor of .*; measure both"
    ) as error:
        fit_markers(made.images, seen, {0: SIDE, 1: 0.341})
    assert "00000" in str(error.value)


def test_a_marker_that_one_image_shows_does_not_forbid_to_do_without_it() -> None:
    made = walk()
    once = {0: {3: made.corners()[3]}}
    found = align_capture(made.images, AlignOptions(unscaled=True), once)
    assert found.bundle is None
    assert "the marker 0 was not used: it is seen in one image alone" in found.notes
    with pytest.raises(AirworthyError, match="seen in 1 image, and 2 from different places are needed"):
        align_capture(made.images, AlignOptions(), once)


def test_a_mirrored_marker_is_named() -> None:
    made = walk()
    flipped = {k: c[[1, 0, 3, 2]] for k, c in made.corners().items()}
    with pytest.raises(
        AirworthyError, match=r"The marker 0 is mirrored in 24 images \(00000, .*, and 18 more\): film it and not"
    ):
        find_alignment(made.images, flipped, SIDE)
    some = made.corners() | {3: flipped[3], 7: flipped[7]}
    found = find_alignment(made.images, some, SIDE)
    assert found.bundle.markers[0].left_out == {
        3: "mirrored, or its corners in another order",
        7: "mirrored, or its corners in another order",
    }


def test_a_marker_that_moved_is_named() -> None:
    made = walk()
    there = made.corners(0.2, at=(0.3, -0.1, 0.0))
    half = made.corners(0.2) | {k: there[k] for k in range(12)}
    with pytest.raises(
        AirworthyError, match=r"lay at two places, 0.32 m apart: 12 images \(00.*against 12 images .*leave the images"
    ):
        find_alignment(made.images, half, SIDE)
    few = made.corners(0.2) | {k: there[k] for k in range(6)}
    found = find_alignment(made.images, few, SIDE)
    assert sorted(found.bundle.markers[0].left_out) == [0, 1, 2, 3, 4, 5]
    assert found.bundle.markers[0].elsewhere == pytest.approx(0.316, abs=0.01)
    assert "not used in 6 images" in found.notes[0]


def test_nonsense_is_refused() -> None:
    made, rng = walk(), np.random.default_rng(0)
    random = {k: rng.uniform(0, 500, 2) + 40.0 * c for k, c in enumerate([np.array([[0, 0], [1, 0], [1, 1], [0, 1.0]])] * 24)}
    with pytest.raises(AirworthyError, match="agree"):
        find_alignment(made.images, random, SIDE)
    with pytest.raises(AirworthyError, match="Corners are given of the image 99, and there are 24"):
        find_alignment(made.images, {99: random[0]}, SIDE)
    with pytest.raises(AirworthyError, match="expected 4 finite pairs"):
        find_alignment(made.images, {0: random[0][:3]}, SIDE)


def test_the_floor_and_the_marker_make_it_level() -> None:
    made = walk(points=hall_points())
    found = align_capture(made.images, AlignOptions(side=SIDE), {0: made.corners(1.0)})
    truth = frames.rotate_inverse(made.truth.rotation, UP)
    # 1,000 points of 4 mm over 8 m: 0.01 degrees; the rest is what a floor itself may slope.
    assert np.degrees(angle_of(found.level.direction, truth)) < 0.05
    assert np.degrees(angle_of(found.level.direction, truth)) <= np.degrees(found.level.tilt95) < 0.3
    assert found.metric
    assert {"marker", "floor"} <= set(found.level.used)
    assert found.floor.points > 700
    assert found.similarity.points(made.truth.inverse.points(np.zeros(3))) == pytest.approx(np.zeros(3), abs=0.01)


@pytest.mark.parametrize("where", ["wall", "any"])
def test_a_marker_elsewhere_gives_the_scale_alone(where: str) -> None:
    """On a wall x comes out of it, on a table it is the marker's; the origin is on the floor below, level comes from it."""
    made = walk(points=hall_points())
    at = (0.2, 0.1, 0.75)
    turn = (
        frames.multiply(frames.from_euler(0.0, 0.0, 0.5), frames.from_euler(0.0, 0.5 * np.pi, 0.0))
        if where == "wall"
        else frames.from_euler(0.02, 0.0, 0.5)
    )
    corners = made.corners(0.1, at=at, turn=turn)
    if where == "wall":
        ahead = frames.rotate(turn, UP)
        corners = {k: c for k, c in corners.items() if ahead @ (made.position[k] - at) > 0.3}
        with pytest.raises(AirworthyError, match="say --marker-on wall, or any"):
            align_capture(level_walk(made), AlignOptions(side=SIDE), {0: corners})
    images = level_walk(made)
    found = align_capture(images, AlignOptions(side=SIDE, marker_on=where), {0: corners})
    back = aligned(images, found)
    expected = frames.rotate_inverse(frames.from_euler(0.0, 0.0, 0.5), made.position - (0.2, 0.1, 0.0))
    assert back.position == pytest.approx(expected, abs=0.02)
    assert found.origin.startswith("on the floor below the marker 0")
    assert "marker" not in found.level.used


def level_walk(made: object) -> CaptureImages:
    """The walk in a frame that is hardly tilted, in a unit of 2 m: cameras are held as people hold them."""
    tilt = frames.from_euler(0.05, -0.03, 1.0)
    return CaptureImages(
        made.images.rgb, made.images.intrinsics, made.position, made.attitude, points=made.truth.points(made.images.points)
    ).moved(tilt, (1.0, 2.0, 3.0), 0.5)  # fmt: skip


def test_what_is_not_told_is_said() -> None:
    made = walk()
    with pytest.raises(AirworthyError, match="No image shows the marker 0 of the dictionary 4x4_50"):
        align_capture(made.images, corners={0: {}})
    alone = align_capture(made.images, AlignOptions(unscaled=True), corners={})
    assert not alone.metric
    assert alone.similarity.scale == 1.0
    assert any("nothing told the scale" in note for note in alone.notes)
    assert any("no floor was found: the capture has no points" in note for note in alone.notes)
    assert not aligned(made.images, alone).metric
    assert alone.record(made.images)["scale_half_95"] is None


def test_the_sets_own_z_where_it_is_asked_for() -> None:
    made = walk(points=hall_points())
    images = level_walk(made).moved(frames.from_euler(-0.05, 0.03, 0.0), np.zeros(3), 1.0)
    found = align_capture(images, AlignOptions(side=SIDE, level="frame"), {0: made.corners(0.1)})
    assert found.level.used == ("frame",)
    assert frames.rotate(found.similarity.rotation, UP) == pytest.approx(UP, abs=1e-9)


def test_without_opencv_distances_and_corners_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    made = walk(points=hall_points())
    a, b = (",".join(map(str, place)) for place in made.truth.inverse.points(np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]])))
    found = align_capture(made.images, AlignOptions(known_distance=((a, b, 2.0),)))
    assert found.similarity.scale == pytest.approx(made.truth.scale, rel=1e-6)
    assert "markers were not looked for: finding markers and lines in images needs the package 'cv2'" in found.notes[0]
    with pytest.raises(AirworthyError, match="needs the package 'cv2'"):
        align_capture(made.images)


def test_a_table_is_not_the_floor() -> None:
    made = walk(points=hall_points())
    found = align_capture(made.images, AlignOptions(side=SIDE), {0: made.corners(0.1, at=(1.6, -0.5, 0.75))})
    assert any("lies 0.75 m above the floor" in note and "--marker-on any" in note for note in found.notes)


def test_options_that_cannot_be_used() -> None:
    with pytest.raises(AirworthyError, match="The marker 'a' is not understood; expected NUMBER or NUMBER:SIDE"):
        AlignOptions(markers=("a",))
    with pytest.raises(AirworthyError, match="Unknown marker dictionary"):
        AlignOptions(dictionary="3x3")
    with pytest.raises(AirworthyError, match="side"):
        AlignOptions(side=-1.0)
    assert AlignOptions(side=0.3, markers=("2", "5:0.1")).sides == {2: 0.3, 5: 0.1}


def test_the_page_shows_every_image_and_each_kind_of_evidence(views: CaptureImages, tmp_path: Path) -> None:
    corners = dict(enumerate(true_corners(views)))
    corners[4] = corners[4] + (30.0, 5.0)
    images = lost(views, 2.0)
    write_alignment_page(tmp_path / "a.html", find_alignment(images, corners, MARKER), images)
    page = (tmp_path / "a.html").read_text()
    assert page.count("<figure") == 11
    assert "not used: " in page
    assert "11 of 12 images agree on marker 0 of the dictionary 4x4_50" in page
    assert "0.341 m wide" in page
    assert "http" not in page.replace("http-equiv", "")
