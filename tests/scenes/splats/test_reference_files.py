"""Real and reference files: what is known of them, to three decimals, and that containers of one scene agree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from airworthy.scenes.splats import LoadedSplats, read_splats, transformed, write_splats

COUNTS = {"angel": 71359, "angel-kneeling": 83547, "massa": 58649, "narcissus": 101275, "trumpet": 89292}
LEVELS = (500_000, 250_000, 125_000, 31_000, 8_406, 3_000, 1_873)


@pytest.fixture(scope="module")
def folder(data_dir: Path) -> Path:
    return data_dir / "splats"


def bounds(loaded: LoadedSplats) -> np.ndarray:
    """Least, largest and mean position."""
    position = loaded.splats.position.astype(float)
    return np.stack([position.min(0), position.max(0), position.mean(0)])


def test_the_angel_in_two_containers(folder: Path) -> None:
    sog = read_splats(folder / "statues_sog" / "angel.sog", up="z")
    packed = read_splats(folder / "statues_sog" / "angel.compressed.ply", up="z")
    assert (len(sog.splats), len(packed.splats)) == (71359, 71377)
    mean = (0.149, -0.730, -0.103)
    of_sog = np.array([(-0.787, -2.102, -0.702), (0.806, 1.668, 0.642), mean])
    of_packed = np.array([(-0.806, -1.668, -0.702), (0.787, 2.102, 0.642), (-0.149, 0.730, -0.103)])
    # Stated to three decimals, of values with more: half a unit, and a unit of float32 for ties.
    assert np.abs(bounds(sog) - of_sog).max() <= 0.00051
    assert np.abs(bounds(packed) - of_packed).max() <= 0.00051
    half_turn = transformed(packed.splats, (0, 0, 1, 0))
    assert np.abs(half_turn.position.astype(float).mean(0) - sog.splats.position.astype(float).mean(0)).max() < 1e-3
    # Both drop colours and sizes into tables of their own; their averages over 71,000 gaussians are the same to a percent.
    for name in ("opacity", "scale", "harmonics"):
        ours, theirs = (getattr(s, name).astype(float).mean(0) for s in (sog.splats, half_turn))
        assert np.allclose(ours, theirs, rtol=0.01, atol=0.005), name


@pytest.mark.parametrize("name", COUNTS)
def test_the_statues_stand_upright(name: str, folder: Path) -> None:
    loaded = read_splats(folder / "statues_sog" / f"{name}.sog")
    assert len(loaded.splats) == COUNTS[name]
    assert (loaded.dropped, loaded.source.up, loaded.splats.degree) == ({}, "-y", 0)
    low, high, mean = bounds(loaded)
    assert 3.7 < high[2] - low[2] < 4.3  # about 4 units tall
    assert (high - low)[:2].max() < 2.0
    assert mean[2] > (low + high)[2] / 2  # more is carved of the figure than of the pedestal


def test_the_sign_in_four_chunks(folder: Path) -> None:
    counts = [len(read_splats(folder / "flowers_sog_chunks", chunks=[chunk]).splats) for chunk in range(4)]
    assert counts == [164037, 139651, 139609, 98807]
    loaded = read_splats(folder / "flowers_sog_chunks")
    assert len(loaded.splats) == 542_104
    assert (loaded.splats.degree, loaded.dropped) == (2, {})


@pytest.mark.parametrize("level", range(1, 7))
def test_the_levels_of_the_robot(level: int, folder: Path) -> None:
    loaded = read_splats(folder / "playbot_sog_lod", up="z", level=level)
    assert len(loaded.splats) == LEVELS[level]
    assert (loaded.levels, loaded.splats.degree) == (7, 2)
    # The set states the bounds of all its gaussians with their extent.
    assert (loaded.splats.position.min(0) >= (-1.034, -1.084, -1.040)).all()
    assert (loaded.splats.position.max(0) <= (1.036, 0.053, 1.043)).all()


def test_the_finest_level_of_the_robot(folder: Path) -> None:
    loaded = read_splats(folder / "playbot_sog_lod")
    assert len(loaded.splats) == LEVELS[0]
    assert len(read_splats(folder / "playbot_sog_lod" / "lod-meta.json", chunks=[0]).splats) == 248_155
    assert np.abs(bounds(loaded)).max() < 1.09


def test_the_guitar(folder: Path) -> None:
    loaded = read_splats(folder / "guitar.compressed.ply")
    assert len(loaded.splats) == 90_854


def test_three_gaussians_in_three_containers(folder: Path) -> None:
    """The first is exact, SPZ lies half a turn about x away, and all agree within each container's steps."""
    stem = folder / "format_fixtures" / "test-splat.3-points-from-train"
    ply, flat, spz = (read_splats(f"{stem}.{suffix}", up="z") for suffix in ("ply", "splat", "spz"))
    assert np.allclose(ply.splats.position[0], (2.0079, 0.0810, 1.3285), atol=6e-5)
    assert np.allclose(spz.splats.position[0], (2.0078, -0.0811, -1.3286), atol=6e-5)
    assert (ply.splats.degree, flat.splats.degree, spz.splats.degree) == (3, 0, 3)
    turned = transformed(spz.splats, (1, 0, 0, 0))
    for other, position, scale in ((flat.splats, 0.0, 1e-6), (turned, 2e-4, 1 / 30)):
        assert np.abs(other.position - ply.splats.position).max() <= position
        assert np.abs(np.log(other.scale / ply.splats.scale)).max() <= scale
        assert np.abs(other.opacity - ply.splats.opacity).max() < 0.005
        assert np.abs(other.harmonics[:, 0] - ply.splats.harmonics[:, 0]).max() < 0.014
    # y and z of the quaternions are opposite: that turns the frame and the axes of each gaussian, which have no direction.
    for other, flip in ((flat.splats, 1), (spz.splats, (1, -1, -1, 1))):
        assert np.abs(np.abs((other.rotation * flip * ply.splats.rotation).sum(1)) - 1).max() < 1e-4
    # The encoder keeps five bits of degree 1 and four of the others, and nothing beyond 1.
    rest = ply.splats.harmonics[:, 1:].clip(-1, 1)
    assert np.abs(turned.harmonics[:, 1:4] - rest[:, :3]).max() < 1 / 16
    assert np.abs(turned.harmonics[:, 4:] - rest[:, 3:]).max() < 1 / 8
    upright = [read_splats(f"{stem}.{suffix}").splats.position for suffix in ("ply", "splat", "spz")]
    assert np.abs(upright[0] - upright[1]).max() < 1e-6
    assert np.abs(upright[0] - upright[2]).max() < 2e-4


@pytest.mark.parametrize(
    "name", ["minimal-raw.spz", "minimal-v2.spz", "minimal-v3.spz", "minimal-v4.spz", "minimal.splat", "minimal.ksplat"]
)
def test_the_minimal_scene(name: str, folder: Path) -> None:
    """Four grey balls of 0.1 at the corners of a square of 1, opacity 230 / 255; versions 3 and 4 are in SPZ's axes."""
    loaded = read_splats(folder / "format_fixtures" / name, up="z")
    square = np.array([(-1, 0, -1), (0, 0, -1), (-1, 0, 0), (0, 0, 0)], float)
    if "v3" in name or "v4" in name:
        square = square * (1, -1, -1)
    assert np.array_equal(loaded.splats.position, square)
    assert np.abs(np.log(loaded.splats.scale / 0.1)).max() < 1 / 32  # half a step of SPZ's
    assert np.allclose(loaded.splats.opacity, 230 / 255, atol=1e-6)
    assert (loaded.dropped, loaded.warnings) == ({}, ())
    if "v2" in name or "raw" in name or "spz" not in name:
        assert np.allclose(loaded.splats.rotation[:, :2], 0.0, atol=0.005)


def test_eight_gaussians_of_version_4(folder: Path) -> None:
    loaded = read_splats(folder / "format_fixtures" / "minimal_v4_degree0.spz", up="z")
    number = np.arange(8)
    assert np.allclose(loaded.splats.position, np.stack([number * 0.25, number * -0.125, 1 + number * 0.0625], 1))
    assert np.allclose(loaded.splats.opacity, (32 + 20 * number) / 255)
    steps = np.stack([number - 16, np.full(8, -8), -number], 1)
    assert np.allclose(np.log(loaded.splats.scale), steps / 16, atol=1e-6)
    color = np.stack([96 + number, 112 + number, 128 + number], 1) / 255
    assert np.allclose(loaded.splats.harmonics[:, 0], (color - 0.5) / 0.15, atol=1e-6)


@pytest.mark.parametrize("name", ["minimal_ascii.ply", "minimal_binary.ply"])
def test_the_minimal_plys(name: str, folder: Path) -> None:
    splats = read_splats(folder / "format_fixtures" / name, up="z").splats
    assert np.allclose(splats.position, [(0, 0, 0.5), (0.1, 0.1, 1.2), (0, 0, -0.1)])
    assert np.allclose(splats.opacity, 1 / (1 + np.exp([-0.9, -0.8, -0.5])))
    assert np.allclose(splats.scale, np.exp([(1, 1, 1), (1.1, 1, 0.9), (1, 1, 1)]))
    assert np.allclose(splats.harmonics[:, 0], [(0.9, 0.2, 0.1), (0.7, 0.3, 0.2), (0.1, 0.1, 0.1)])


@pytest.mark.parametrize("suffix", [".ply", ".spz"])
def test_a_real_scene_survives_writing(suffix: str, folder: Path, tmp_path: Path) -> None:
    splats = read_splats(folder / "playbot_sog_lod", level=4).splats
    write_splats(splats, tmp_path / f"a{suffix}")
    again = read_splats(tmp_path / f"a{suffix}").splats
    assert len(again) == len(splats)
    exact = suffix == ".ply"
    assert np.abs(again.position - splats.position).max() < (1e-6 if exact else 1.3e-4)
    assert np.abs(np.log(again.scale / splats.scale.clip(np.exp(-10)))).max() < (1e-5 if exact else 1 / 30) or exact
    assert np.abs(again.opacity - splats.opacity).max() < (1e-6 if exact else 2e-3)
