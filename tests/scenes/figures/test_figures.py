"""Figures of people: closed meshes over what is hit, that go with their actors and change nothing but colours."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Mesh, RayTable
from airworthy.geometry.distance import clearance
from airworthy.rendering import render
from airworthy.scenes import Region, Scene, SceneBatch, check_scene, read_scene, scene_digest, write_scene
from airworthy.scenes.actors import add_actor, posed
from airworthy.scenes.appearance import OPEN_CHANNEL
from airworthy.scenes.figures.fields import ball, gradient, union
from airworthy.scenes.figures.figure import FigureForm, figure_mesh
from airworthy.scenes.figures.nets import field_mesh
from airworthy.scenes.figures.stances import STANCES, Stance, joint_frames
from airworthy.scenes.figures.wearing import with_figure
from airworthy.scenes.people import person
from airworthy.scenes.record import Actor
from airworthy.scenes.vegetation.cache import kept_mesh

COARSE = FigureForm(detail=0, outfit="worker", seed=3)


@cache
def standing(figure: bool, animation: str = "standing") -> Scene:
    """Return somebody who looks along x, alone, with or without the figure."""
    kit = person("somebody", 1.75, animation=animation)
    if figure:
        kit = with_figure(kit, replace(COARSE, outfit="shirt"))
    place = Scene("place", bounds=Region((-4.0, -4.0, -1.0), (4.0, 4.0, 4.0)), lights=(), source="own")
    return add_actor(place, kit)


def edges_meet(faces: np.ndarray) -> bool:
    """Tell whether every edge of triangles is there as often in one direction as in the other: closed, wound one way."""
    pairs = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]).astype(np.int64)
    size = int(faces.max()) + 1
    there, back = (np.sort(pairs[:, k] * size + pairs[:, 1 - k]) for k in (0, 1))
    return bool((there == back).all())


def test_a_net_of_a_ball_is_closed_lies_on_it_and_has_its_volume() -> None:
    points, faces = field_mesh(ball((0.1, 0.0, 0.0), 1.0), np.full(3, -1.4), np.full(3, 1.4), 0.1)
    assert edges_meet(faces)
    assert np.abs(np.linalg.norm(points - (0.1, 0.0, 0.0), axis=1) - 1.0).max() < 1e-9
    a, b, c = points[faces].transpose(1, 0, 2)
    volume = float((np.cross(a, b) * c).sum() / 6.0)
    # Chords of cells as wide as 0.1 lose about h^2 / 4 of the radius' square.
    assert volume == pytest.approx(4.0 / 3.0 * np.pi, rel=0.1**2)
    normals = gradient(ball((0.1, 0.0, 0.0), 1.0), points)
    np.testing.assert_allclose(normals, points - (0.1, 0.0, 0.0), atol=1e-6)


def test_a_rounded_union_is_never_outside_of_either_and_differs_only_near_the_seam() -> None:
    a, b = np.random.default_rng(0).uniform(-1.0, 1.0, (2, 200))
    joined = union(a, b, 0.3)
    assert (joined <= np.minimum(a, b)).all()
    far = np.abs(a - b) >= 0.3
    np.testing.assert_array_equal(joined[far], np.minimum(a, b)[far])
    assert joined[np.argmin(np.abs(a - b))] == pytest.approx(np.minimum(a, b)[np.argmin(np.abs(a - b))] - 0.075, abs=5e-3)


def test_a_figure_is_closed_as_tall_as_asked_and_stands_on_the_floor() -> None:
    mesh = figure_mesh(COARSE)
    assert edges_meet(mesh.faces)
    assert mesh.vertices[:, 2].min() == pytest.approx(0.0, abs=0.01)
    # A helmet adds some 3 cm.
    assert mesh.vertices[:, 2].max() == pytest.approx(1.75 + 0.03, abs=0.03)
    assert len(mesh.faces) < 1500
    share = mesh.channels[OPEN_CHANNEL]
    assert 0.15 <= share.min() < 0.5 < share.max() == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("name", STANCES)
def test_the_lower_foot_of_every_stance_touches_the_floor(name: str) -> None:
    frames_of = joint_frames(1.8, Stance(name, 0.1))  # type: ignore[arg-type]
    soles = [frames_of[f"foot_{side}"][2, 3] - 0.0388 * 1.8 * frames_of[f"foot_{side}"][2, 2] for side in ("left", "right")]
    # A foot that rolls over its heel or toes stands on these, not on the middle of its sole.
    assert min(soles) == pytest.approx(0.0, abs=0.05)
    assert frames_of["head"][2, 3] > 0.9


@pytest.mark.parametrize(
    ("form", "most"),
    [
        (replace(COARSE, outfit="shirt"), 0.05),
        (replace(COARSE, weight=0.6, outfit="jacket"), 0.05),
        # Capsules have no shoulders, over which a vest and its tape lie.
        (replace(COARSE, weight=0.6), 0.06),
    ],
    ids=["shirt", "heavy in a jacket", "heavy worker"],
)
def test_a_figure_lies_within_five_centimetres_of_what_is_hit(form: FigureForm, most: float) -> None:
    # 0.6 is the most that people of shipped places weigh.
    mesh = figure_mesh(form)
    batch = SceneBatch(standing(False))
    near = clearance(batch.geometry, mesh.vertices.astype(float), np.zeros(len(mesh.vertices), np.int32))
    # What lies within the capsules hides nothing that could be hit: only what stands out counts.
    out = np.maximum(near.distance, 0.0)
    assert np.quantile(out, 0.99) < 0.045
    assert out.max() < most


def seen(scene: Scene, channels: tuple[str, ...], move: float = 0.0) -> dict[str, np.ndarray]:
    batch = SceneBatch(scene)
    if move:
        batch.pose_actor("somebody", (0.0, move, 0.0))
    y, z = np.meshgrid(np.linspace(-0.4, 0.4, 24), np.linspace(-0.9, 0.9, 48))
    table = RayTable(np.stack([np.full_like(y, 3.0), y, z], -1) / np.sqrt(9.0 + y * y + z * z)[..., None], axis=(1.0, 0.0, 0.0))
    where = np.array([[-3.0, 0.0, 0.9]])
    return {k: v[0] for k, v in render(batch, table, where, np.array([frames.IDENTITY]), channels=channels).items()}


@pytest.mark.parametrize("animation", ["standing", "walking"])
def test_colours_see_the_figure_and_all_else_meets_the_capsules_to_the_byte(animation: str) -> None:
    geometric = ("depth", "instance", "instance_id", "semantic_id", "normal_world")
    bare, worn = (seen(standing(figure, animation), (*geometric, "albedo")) for figure in (False, True))
    for name in geometric:
        assert bare[name].tobytes() == worn[name].tobytes()
    body = worn["albedo"].sum(-1) > 0.0
    hit = np.isfinite(bare["depth"])
    assert 0.6 < body.sum() / hit.sum() < 1.4
    assert (body & hit).sum() > 0.8 * body.sum()
    assert (bare["albedo"] != worn["albedo"]).any()


def test_a_figure_goes_with_its_actor() -> None:
    stays = seen(standing(True), ("albedo",))["albedo"].sum(-1) > 0.0
    moved = seen(standing(True), ("albedo",), 0.2)["albedo"].sum(-1) > 0.0
    columns = [np.average(np.arange(24), weights=mask.sum(0)) for mask in (stays, moved)]
    # 0.2 m at 3 m are 0.2 of a picture 0.8 wide there: 6 of 24 columns.
    assert columns[1] - columns[0] == pytest.approx(0.2 / 0.8 * 23.0, abs=0.6)


def test_posed_scenes_and_files_keep_figures(tmp_path: Path) -> None:
    place = standing(True)
    assert all(problem.startswith("note:") for problem in check_scene(place))
    write_scene(place, tmp_path / "place")
    assert scene_digest(read_scene(tmp_path / "place")) == scene_digest(place)
    still = posed(replace(place, actors=(replace(place.actors[0], position=(1.0, 0.0, 0.0)),)))
    assert not still.actors
    assert all(look.position == pytest.approx((1.0, 0.0, 0.0)) and not look.attached for look in still.looks)


def test_what_is_attached_to_nobody_is_refused() -> None:
    place = standing(True)
    lone = replace(place, actors=())
    assert any("attached to the actor" in problem for problem in check_scene(lone))
    with pytest.raises(AirworthyError, match="attached"):
        SceneBatch(lone).rendered()
    with pytest.raises(AirworthyError, match="no person"):
        with_figure(replace(person(), actor=Actor("box", ())), COARSE)
    with pytest.raises(AirworthyError, match=r"expected 0\.5 to"):
        FigureForm(3.0)
    with pytest.raises(AirworthyError, match="outfit 'armour'"):
        FigureForm(outfit="armour")  # type: ignore[arg-type]
    with pytest.raises(AirworthyError, match=r"Stance\.name"):
        Stance("flying")  # type: ignore[arg-type]


def test_what_is_kept_has_its_channels(tmp_path: Path) -> None:
    points = np.eye(3, dtype=np.float32)
    mesh = Mesh(points, np.array([[0, 1, 2]]), channels={"share": np.array([0.1, 0.2, 0.3], np.float32)})
    for make in (lambda: mesh, lambda: Mesh(0.0 * points, np.array([[0, 1, 2]]))):
        found = kept_mesh("one", make, tmp_path, "airworthy.scenes.figures")
        np.testing.assert_array_equal(found.channels["share"], mesh.channels["share"])


def test_a_head_that_looks_left_turns_left_and_takes_nothing_else_along() -> None:
    straight, left = joint_frames(1.8, Stance()), joint_frames(1.8, Stance(look=0.6))
    before, after = straight["head"][:3, :3] @ (1.0, 0.0, 0.0), left["head"][:3, :3] @ (1.0, 0.0, 0.0)
    # x is ahead and y to the left; a neck that leans a little keeps the angle to its cosine.
    assert np.arctan2(after[1], after[0]) - np.arctan2(before[1], before[0]) == pytest.approx(0.6, abs=0.02)
    for joint, frame in straight.items():
        if joint != "head":
            np.testing.assert_array_equal(left[joint], frame)


def test_who_walks_shares_limbs_whatever_stance_the_form_has() -> None:
    """Limbs are cut at rest, as a skeleton turns them: forms that differ in stance alone share them."""
    kit = person("somebody", 1.75, animation="walking")
    rest, sitting = (with_figure(kit, replace(COARSE, stance=stance)).shapes for stance in (Stance(), Stance("sitting")))
    limbs = [name for name in rest if "/figure/" in name]
    assert len(limbs) > 5
    assert all(sitting[name] is rest[name] for name in limbs)
