"""Every container gives back what was put into it, to within its quantisation, whatever encoder wrote it."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import splat_building as build

from airworthy.core import frames
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.scenes.splats import Splats, editing, read_splats, transformed, write_splats

Tolerance = dict[str, float]
EXACT: Tolerance = {"position": 1e-6, "rotation": 1e-5, "scale": 1e-5, "opacity": 1e-6, "first": 1e-6, "rest": 1e-6}
# Half a step of each: 24-bit positions of 1/4096 m, log-scales of 1/16, bytes of opacity, colours of 1/(255 * 0.15), harmonics
# of 1/128; quaternions of three bytes over 2 (version 2), of nine bits over 0.7 (version 3).
SPZ: Tolerance = {"position": 1.3e-4, "rotation": 3e-3, "scale": 1 / 30, "opacity": 2e-3, "first": 0.0132, "rest": 0.004}
# 11 bits over 4 m, 10 bits over 1.4, 11 bits over log-scales of 4, bytes over the bounds of colours, 1/256 of 8.
PACKED: Tolerance = {"position": 2.1e-3, "rotation": 3e-3, "scale": 3e-3, "opacity": 2e-3, "first": 4e-3, "rest": 0.0157}
# 16 bits over logarithms of 2.2 (times 3 m), bytes over 1.4, and tables of 256 values evenly over the range.
SOG: Tolerance = {"position": 1e-4, "rotation": 9e-3, "scale": 9e-3, "opacity": 2e-3, "first": 4e-3, "rest": 4e-3}
# Bytes of quaternion over 2 and of colours over 1 / C0.
FLAT: Tolerance = {"position": 1e-6, "rotation": 1e-2, "scale": 1e-5, "opacity": 2e-3, "first": 7e-3, "rest": 0.0}


FIELDS = ("position", "rotation", "scale", "opacity", "harmonics")


def check(got: Splats, wanted: Splats, tolerance: Tolerance) -> None:
    """Compare gaussian by gaussian; quaternions up to their sign, scales by their ratio."""
    assert got.harmonics.shape == wanted.harmonics.shape
    sign = np.sign((got.rotation * wanted.rotation).sum(1, keepdims=True))
    errors = {
        "position": np.abs(got.position - wanted.position),
        "rotation": np.abs(got.rotation * sign - wanted.rotation),
        "scale": np.abs(np.log(got.scale / wanted.scale)),
        "opacity": np.abs(got.opacity - wanted.opacity),
        "first": np.abs(got.harmonics[:, 0] - wanted.harmonics[:, 0]),
        "rest": np.abs(got.harmonics[:, 1:] - wanted.harmonics[:, 1:]),
    }
    for name, error in errors.items():
        assert error.max(initial=0.0) <= tolerance[name], name


def without_rest(splats: Splats) -> Splats:
    return Splats(splats.position, splats.rotation, splats.scale, splats.opacity, splats.harmonics[:, :1])


FILES: dict[str, tuple[str, Callable[[Splats], bytes], Tolerance]] = {
    "binary PLY": ("a.ply", build.ply, EXACT),
    "big-endian PLY": ("a.ply", lambda s: build.ply(s, ">"), EXACT),
    "text PLY": ("a.ply", lambda s: build.ply(s, ""), EXACT),
    "packed PLY": ("a.ply", build.packed_ply, PACKED),
    "SPZ 2": ("a.spz", lambda s: build.spz(s, 2), SPZ | {"rotation": 0.05}),
    "SPZ 3": ("a.spz", lambda s: build.spz(s, 3), SPZ),
    "SPZ 3 bare": ("a.spz", lambda s: build.spz(s, 3, packed=False), SPZ),
    "SPZ 4": ("a.spz", lambda s: build.spz(s, 4), SPZ),
    "SOG": ("a.sog", lambda s: build.bundle(build.sog_files(s)), SOG),
    "deflated SOG": ("a.sog", lambda s: build.bundle(build.sog_files(s), zipfile.ZIP_DEFLATED), SOG),
    "ksplat 0": ("a.ksplat", lambda s: build.ksplat(s, 0), EXACT | {"opacity": 2e-3, "first": 7e-3}),
    "ksplat 1": ("a.ksplat", lambda s: build.ksplat(s, 1), FLAT | {"position": 1e-4, "scale": 1e-3, "rest": 5e-4}),
    "ksplat 2": ("a.ksplat", lambda s: build.ksplat(s, 2), FLAT | {"position": 1e-4, "scale": 1e-3, "rest": 6e-3}),
    "unnamed PLY": ("a", build.ply, EXACT),
    "unnamed SPZ": ("a.bin", lambda s: build.spz(s, 3), SPZ),
}


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
@pytest.mark.parametrize("name", FILES)
def test_what_was_written_is_read(name: str, degree: int, tmp_path: Path) -> None:
    file, encode, tolerance = FILES[name]
    splats = build.random_splats(7, degree, seed=degree)
    (tmp_path / file).write_bytes(encode(splats))
    loaded = read_splats(tmp_path / file, up="z")
    check(loaded.splats, splats, tolerance)
    assert loaded.dropped == {}
    assert loaded.warnings == ()


def test_a_splat_file_has_no_more_than_degree_0(tmp_path: Path) -> None:
    splats = build.random_splats(5, 2)
    (tmp_path / "a.splat").write_bytes(build.splat(splats))
    check(read_splats(tmp_path / "a.splat", up="z").splats, without_rest(splats), FLAT)


def test_a_folder_its_meta_and_its_chunks(tmp_path: Path) -> None:
    first, second = build.random_splats(7, 1), build.random_splats(4, 2, seed=1)
    for chunk, splats in enumerate((first, second)):
        build.write_files(tmp_path / f"0_{chunk}", build.sog_files(splats))
    build.write_files(tmp_path / "1_0", build.sog_files(build.random_splats(2, 0)))
    check(read_splats(tmp_path / "0_0", up="z").splats, first, SOG)
    check(read_splats(tmp_path / "0_0" / "meta.json", up="z").splats, first, SOG)
    both = read_splats(tmp_path, up="z")
    assert both.levels == 2
    assert len(both.splats) == 11
    assert both.splats.degree == 2
    assert not both.splats.harmonics[:7, 4:].any()
    check(read_splats(tmp_path, up="z", chunks=[1]).splats, second, SOG)
    assert len(read_splats(tmp_path, level=1).splats) == 2
    with pytest.raises(AirworthyError, match="Level 2"):
        read_splats(tmp_path, level=2)
    with pytest.raises(AirworthyError, match="Chunk 5"):
        read_splats(tmp_path, chunks=[5])


def test_a_streamed_set_has_levels_and_chunks(tmp_path: Path) -> None:
    fine, coarse = build.random_splats(9, 2), build.random_splats(4, 2, seed=1)
    build.write_files(tmp_path, build.streamed_files(fine, coarse))
    loaded = read_splats(tmp_path, up="z")
    check(loaded.splats, fine, SOG)
    assert loaded.levels == 2
    check(read_splats(tmp_path / "lod-meta.json", up="z", level=1).splats, coarse, SOG)
    part = Splats(fine.position[4:], fine.rotation[4:], fine.scale[4:], fine.opacity[4:], fine.harmonics[4:])
    check(read_splats(tmp_path, up="z", chunks=[1]).splats, part, SOG)
    with pytest.raises(AirworthyError, match="Level 2"):
        read_splats(tmp_path, level=2)
    with pytest.raises(AirworthyError, match="Chunk 2"):
        read_splats(tmp_path, chunks=[2])


@pytest.mark.parametrize("degree", [0, 3])
def test_gltf_is_turned_and_placed(degree: int, tmp_path: Path) -> None:
    splats = build.random_splats(5, degree)
    (tmp_path / "a.glb").write_bytes(build.glb(*build.gltf_tree(splats)))
    wanted = transformed(transformed(splats, translation=(1, 2, 3)), frames.from_axis_angle((1, 0, 0), np.pi / 2))
    check(read_splats(tmp_path / "a.glb").splats, wanted, EXACT | {"rest": 1e-5, "position": 1e-5})


def test_gltf_drafts_have_logarithms_of_scales(tmp_path: Path) -> None:
    splats = build.random_splats(5, 0)
    root, binary = build.gltf_tree(
        Splats(splats.position, splats.rotation, np.log(splats.scale), splats.opacity, splats.harmonics)
    )
    (tmp_path / "a.glb").write_bytes(build.glb(root, binary))
    loaded = read_splats(tmp_path / "a.glb")
    assert np.abs(np.log(loaded.splats.scale / splats.scale)).max() < 1e-5
    assert "logarithms" in loaded.warnings[0]


def test_gltf_of_spz(tmp_path: Path) -> None:
    splats = build.random_splats(5, 1)
    (tmp_path / "a.glb").write_bytes(build.glb(*build.gltf_tree(splats, build.spz(splats))))
    left_up_front = transformed(splats, (0, 1, 0, 0), (1, 2, 3))
    wanted = transformed(left_up_front, frames.from_axis_angle((1, 0, 0), np.pi / 2))
    check(read_splats(tmp_path / "a.glb").splats, wanted, SPZ)


@pytest.mark.parametrize("scale", [[1, 2, 1], [-1, 1, 1], [0, 0, 0]])
def test_gltf_that_is_stretched_is_refused(scale: list[float], tmp_path: Path) -> None:
    root, binary = build.gltf_tree(build.random_splats(2, 0))
    root["nodes"][0]["scale"] = scale
    (tmp_path / "a.glb").write_bytes(build.glb(root, binary))
    with pytest.raises(AssetError, match="stretches"):
        read_splats(tmp_path / "a.glb")


@pytest.mark.parametrize(
    ("comment", "up", "kind"),
    [
        ("", "-y", "PLY"),
        ("comment Generated by Nerfstudio 1.1.5\ncomment Vertical Axis: z\n", "z", "PLY of Nerfstudio"),
        ("comment Vertical Axis: y\n", "y", "PLY"),
        ("comment Vertical Axis: -y\n", "-y", "PLY"),
    ],
)
def test_which_way_is_up(comment: str, up: str, kind: str, tmp_path: Path) -> None:
    splats = build.random_splats(6, 3)
    (tmp_path / "a.ply").write_bytes(build.ply(splats, comment=comment))
    loaded = read_splats(tmp_path / "a.ply")
    assert (loaded.source.up, loaded.container) == (up, kind)
    axis = {"y": 1, "-y": 1, "z": 2}[up]
    sign = -1 if up == "-y" else 1
    assert np.allclose(loaded.splats.position[:, 2], sign * splats.position[:, axis], atol=1e-6)
    assert np.allclose(loaded.splats.position[:, 0], splats.position[:, 0], atol=1e-6)
    check(loaded.splats, read_splats(tmp_path / "a.ply", up=up).splats, EXACT)
    again = transformed(splats, loaded.source.rotation, loaded.source.translation, loaded.source.scale)
    check(loaded.splats, again, EXACT | {"rest": 1e-5})


def test_spz_and_ply_of_one_scene_agree(tmp_path: Path) -> None:
    """SPZ is right, up, back and 3DGS right, down, front: once turned, both are the same."""
    splats = build.random_splats(6, 3)
    (tmp_path / "a.ply").write_bytes(build.ply(splats))
    (tmp_path / "a.spz").write_bytes(build.spz(transformed(splats, (1, 0, 0, 0))))
    # A quarter turn adds the rounding of up to three coefficients, with factors whose sum is below 2.
    check(read_splats(tmp_path / "a.spz").splats, read_splats(tmp_path / "a.ply").splats, SPZ | {"rest": 0.008})


def test_an_axis_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="up axis"):
        read_splats(tmp_path / "a.ply", up="up")


@pytest.mark.parametrize("given", ["beside", "path"])
def test_nerfstudio_leads_back_to_the_images(given: str, tmp_path: Path) -> None:
    """Splats moved as Nerfstudio moves its data come back where they were."""
    splats = build.random_splats(6, 3)
    turn = frames.from_rotation_vector((0.3, -0.5, 0.9))
    offset, scale = np.array([0.4, -1.0, 2.0]), 0.125
    trained = transformed(splats, turn, scale * offset, scale)
    (tmp_path / "a.ply").write_bytes(build.ply(trained, comment="comment Generated by Nerfstudio\n"))
    folder = tmp_path if given == "beside" else tmp_path / "outputs"
    folder.mkdir(exist_ok=True)
    path = folder / "dataparser_transforms.json"
    path.write_text(json.dumps({"transform": np.column_stack([frames.to_matrix(turn), offset]).tolist(), "scale": scale}))
    loaded = read_splats(tmp_path / "a.ply", transforms=None if given == "beside" else path)
    check(loaded.splats, splats, dict.fromkeys(EXACT, 1e-05))
    assert loaded.source.scale == 8.0
    assert "dataparser_transforms" in loaded.warnings[0]
    untouched = read_splats(tmp_path / "a.ply", transforms=False).splats
    check(untouched, trained, EXACT)


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        {"transform": [[1, 0, 0, 0]], "scale": 1},
        {"transform": [[2, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], "scale": 1},
        {"transform": [[-1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], "scale": 1},
        {"transform": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], "scale": 0},
        {"transform": [[1, 0, 0, "a"], [0, 1, 0, 0], [0, 0, 1, 0]], "scale": 1},
        {"transform": [[1, 0, 0, 0], [0, 1, 0], [0, 0, 1, 0]], "scale": 10**400},
    ],
)
def test_transforms_that_are_none(value: object, tmp_path: Path) -> None:
    (tmp_path / "a.ply").write_bytes(build.ply(build.random_splats(2, 0)))
    (tmp_path / "dataparser_transforms.json").write_text(json.dumps(value))
    with pytest.raises(AssetError, match="cannot be used"):
        read_splats(tmp_path / "a.ply")


@pytest.mark.parametrize("name", ["model.ckpt", "model.pt", "step-000029999.PTH"])
def test_checkpoints_are_never_opened(name: str, tmp_path: Path) -> None:
    with pytest.raises(AssetError, match="ns-export gaussian-splat"):
        read_splats(tmp_path / name)


def test_colours_of_a_ply_without_harmonics(tmp_path: Path) -> None:
    splats = build.random_splats(3, 0)
    data = build.ply(splats)
    for index, name in enumerate((b"red", b"green", b"blue")):
        data = data.replace(b"f_dc_%d" % index, name)
    (tmp_path / "a.ply").write_bytes(data)
    wanted = (splats.harmonics[:, 0] / 255 - 0.5) / build.C0
    assert np.allclose(read_splats(tmp_path / "a.ply").splats.harmonics[:, 0], wanted, atol=1e-5)


def test_degree_4_is_cut(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    splats = build.random_splats(3, 3)
    wide = np.concatenate([splats.harmonics, rng.uniform(-0.5, 0.5, (3, 9, 3)).astype(np.float32)], 1)
    fake = type(
        "Wide", (), {**{n: getattr(splats, n) for n in ("position", "rotation", "scale", "opacity")}, "harmonics": wide}
    )
    for name, data in (("a.ply", build.ply(fake)), ("a.spz", build.spz(fake, 4))):  # type: ignore[arg-type]
        (tmp_path / name).write_bytes(data)
        loaded = read_splats(tmp_path / name, up="z")
        check(loaded.splats, splats, SPZ)
        assert loaded.warnings == ("harmonics of degree 4 cut to 3",)


def test_the_flag_of_anti_aliasing(tmp_path: Path) -> None:
    for flags in (0, 1):
        (tmp_path / "a.spz").write_bytes(build.spz(build.random_splats(), flags=flags))
        assert read_splats(tmp_path / "a.spz").antialiased == bool(flags)


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
@pytest.mark.parametrize(("name", "version", "tolerance"), [("a.ply", 3, EXACT), ("a.spz", 3, SPZ), ("b.spz", 2, SPZ)])
def test_round_trips(name: str, version: int, tolerance: Tolerance, degree: int, tmp_path: Path) -> None:
    splats = build.random_splats(50, degree)
    write_splats(splats, tmp_path / name, spz_version=version)
    # The turn to the file's axes and back costs a rounding of float32, and adds the rounding of up to three coefficients, with
    # factors whose sum is below 2; three bytes hold a small w badly.
    loose = tolerance | {"rotation": 0.06 if version == 2 else max(tolerance["rotation"], 1e-5)}
    check(read_splats(tmp_path / name).splats, splats, loose | {"rest": 2 * tolerance["rest"]})
    data = (tmp_path / name).read_bytes()
    write_splats(splats, tmp_path / name, spz_version=version)
    assert (tmp_path / name).read_bytes() == data


def test_a_second_round_trip_of_spz_changes_nothing_more(tmp_path: Path) -> None:
    write_splats(build.random_splats(50, 3), tmp_path / "a.spz")
    once = read_splats(tmp_path / "a.spz").splats
    write_splats(once, tmp_path / "b.spz")
    check(read_splats(tmp_path / "b.spz").splats, once, EXACT | {"rotation": 3e-3})  # a tie for the largest may go either way


@pytest.mark.parametrize("up", ["-y", "y", "z"])
def test_a_ply_says_which_way_is_up(up: str, tmp_path: Path) -> None:
    splats = build.random_splats(5, 2)
    write_splats(splats, tmp_path / "a.ply", up=up)
    loaded = read_splats(tmp_path / "a.ply")
    assert loaded.source.up == up
    check(loaded.splats, splats, EXACT | {"rest": 2e-6})


def test_opacities_at_the_ends_survive(tmp_path: Path) -> None:
    base = build.random_splats(2, 0)
    write_splats(Splats(base.position, base.rotation, base.scale, [0.0, 1.0], base.harmonics), tmp_path / "a.ply")
    assert np.allclose(read_splats(tmp_path / "a.ply").splats.opacity, [0, 1], atol=2e-7)


def test_far_positions_take_bits_from_the_fraction(tmp_path: Path) -> None:
    splats = build.random_splats(20, 0, extent=3e4)
    write_splats(splats, tmp_path / "a.spz")
    largest = np.abs(splats.position).max()
    assert np.abs(read_splats(tmp_path / "a.spz").splats.position - splats.position).max() <= largest / 2**22
    with pytest.raises(AirworthyError, match="SPZ holds positions"):
        write_splats(transformed(splats, scale=1e4), tmp_path / "a.spz")


def test_what_cannot_be_written(tmp_path: Path) -> None:
    splats = build.random_splats()
    with pytest.raises(AirworthyError, match=r"\.ply or \.spz"):
        write_splats(splats, tmp_path / "a.sog")
    with pytest.raises(AirworthyError, match="version 4"):
        write_splats(splats, tmp_path / "a.spz", spz_version=4)
    with pytest.raises(AirworthyError, match="y up"):
        write_splats(splats, tmp_path / "a.spz", up="z")
    with pytest.raises(AirworthyError, match="no gaussians"):
        write_splats(editing.selected(splats, np.zeros(4, bool)), tmp_path / "a.ply")


def test_scales_that_spz_cannot_hold_are_told(tmp_path: Path) -> None:
    turns = np.tile([0.0, 0.0, 0.0, 1.0], (3, 1))
    scale = np.array([[1e-6, 0.1, 0.1], [0.1, 0.1, 0.1], [0.1, 0.1, 1e3]])
    cloud = Splats(np.zeros((3, 3)), turns, scale, np.full(3, 0.9), np.zeros((3, 1, 3)))
    with pytest.warns(UserWarning, match="2 of 3 gaussians were clipped"):
        write_splats(cloud, tmp_path / "a.spz")
    write_splats(cloud, tmp_path / "a.ply")
