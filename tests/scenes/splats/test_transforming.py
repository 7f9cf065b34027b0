"""Harmonics against an independent form of them, and how splats turn, move and grow as a whole."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
import splat_building as build
from hypothesis import given
from hypothesis import strategies as st

from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.scenes.splats import Splats, record, transformed
from airworthy.scenes.splats.editing import UP_TURNS, up_turn

COMPONENT = st.floats(-1, 1, allow_nan=False, width=32)
TURNS = st.tuples(COMPONENT, COMPONENT, COMPONENT, COMPONENT).filter(lambda q: np.linalg.norm(q) > 1e-3)


def directions(count: int, seed: int = 0) -> np.ndarray:
    d = np.random.default_rng(seed).normal(size=(count, 3))
    return d / np.linalg.norm(d, axis=1, keepdims=True)


def test_the_basis_is_the_real_part_of_the_complex_harmonics() -> None:
    """Y_l0; sqrt 2 Re Y_lm for m > 0 and sqrt 2 Im Y_l|m| for m < 0, with the Condon-Shortley phase as it is in Y."""
    d = directions(200)
    polar, azimuth = np.arccos(d[:, 2]), np.arctan2(d[:, 1], d[:, 0])
    wanted = []
    for degree in range(4):
        for order in range(-degree, degree + 1):
            value = scipy.special.sph_harm_y(degree, abs(order), polar, azimuth)
            part = value.real if order >= 0 else value.imag
            wanted.append(part * (np.sqrt(2) if order else 1.0))
    # Constants are given to 16 digits, the angles of arccos lose some near the poles.
    assert np.abs(record.basis(d) - np.stack(wanted, 1)).max() < 1e-9


def test_the_first_colours() -> None:
    values = np.zeros((4, 3))
    values[0] = (1.0, 0.0, -4.0)
    values[3, 0] = 1.0
    # Red: 0.5 + C0 - C1 x; green grey; blue 0.5 - 4 C0, below 0 and clamped.
    assert np.allclose(record.colors(values, (1.0, 0.0, 0.0)), (0.5 + 0.28209479 - 0.48860251, 0.5, 0.0), atol=1e-8)


@given(TURNS)
def test_turned_harmonics_give_the_colour_from_the_turned_direction(turn: tuple[float, ...]) -> None:
    """The colour of turned splats from d is that of the splats from R^-1 d, to 1e-5 in float32."""
    splats = build.random_splats(5, 3)
    quaternion = frames.normalize(np.array(turn))
    d = directions(20)
    new = record.colors(transformed(splats, turn).harmonics[:, None], d)
    old = record.colors(splats.harmonics[:, None], frames.rotate_inverse(quaternion, d))
    assert np.abs(new - old).max() < 1e-5


@given(TURNS)
def test_turns_of_harmonics_are_orthogonal_and_keep_degrees_apart(turn: tuple[float, ...]) -> None:
    matrix = record.turn_matrix(frames.normalize(np.array(turn)))
    assert np.abs(matrix @ matrix.T - np.eye(16)).max() < 1e-12
    for degree in range(4):
        assert np.allclose(
            record.turn_matrix(frames.normalize(np.array(turn)), degree),
            matrix[: (degree + 1) ** 2][:, : (degree + 1) ** 2],
            atol=1e-12,
        )


@given(TURNS, TURNS)
def test_turns_compose(first: tuple[float, ...], second: tuple[float, ...]) -> None:
    a, b = (frames.normalize(np.array(turn)) for turn in (first, second))
    both = record.turn_matrix(frames.multiply(b, a))
    assert np.abs(record.turn_matrix(b) @ record.turn_matrix(a) - both).max() < 1e-12


def test_a_half_turn_about_x_flips_signs() -> None:
    """What SPZ and PLY differ by; the signs are those of y and z to their powers in each function."""
    wanted = [1, -1, -1, 1, -1, 1, 1, -1, 1, -1, 1, -1, -1, 1, -1, 1]
    assert np.allclose(record.turn_matrix((1, 0, 0, 0)), np.diag(wanted), atol=1e-12)


@given(TURNS, st.floats(0.1, 10))
def test_means_and_covariances_follow(turn: tuple[float, ...], scale: float) -> None:
    splats = build.random_splats(6, 2)
    offset = np.array([1.0, -2.0, 3.0])
    result = transformed(splats, turn, offset, scale)
    matrix = frames.to_matrix(frames.normalize(np.array(turn)))
    # float32 results of positions to 40 m and variances to 10 m^2.
    assert np.abs(result.position - (scale * splats.position @ matrix.T + offset)).max() < 1e-5 * max(scale, 1)
    assert np.abs(covariances(result) - scale**2 * matrix @ covariances(splats) @ matrix.T).max() < 1e-5 * max(scale**2, 1)
    assert np.abs(np.linalg.norm(result.rotation, axis=1) - 1).max() < 1e-6


def covariances(splats: Splats) -> np.ndarray:
    root = frames.to_matrix(splats.rotation.astype(float)) * splats.scale.astype(float)[:, None]
    return root @ root.transpose(0, 2, 1)


def test_there_and_back() -> None:
    splats = build.random_splats(20, 3)
    turn = frames.from_rotation_vector((0.2, -1.5, 0.7))
    there = transformed(splats, turn, (1, 2, 3), 2.0)
    back = transformed(there, frames.conjugate(turn), -frames.rotate_inverse(turn, (1, 2, 3)) / 2, 0.5)
    for name in ("position", "rotation", "scale", "harmonics"):
        assert np.abs(getattr(back, name) - getattr(splats, name)).max() < 3e-6, name  # a few roundings of float32
    assert np.array_equal(back.opacity, splats.opacity)


def test_nothing_asked_changes_nothing() -> None:
    splats = build.random_splats(20, 3)
    same = transformed(splats)
    for name in ("position", "rotation", "scale", "opacity", "harmonics"):
        assert np.array_equal(getattr(same, name), getattr(splats, name))


@pytest.mark.parametrize("up", UP_TURNS)
def test_what_is_up_becomes_z(up: str) -> None:
    axis = np.eye(3)["xyz".index(up[-1])] * (-1 if up[0] == "-" else 1)
    assert np.allclose(frames.rotate(np.array(up_turn(up)), axis), (0, 0, 1), atol=1e-12)


@pytest.mark.parametrize(
    "arguments",
    [
        {"rotation": (0, 0, 0, 0)},
        {"rotation": (0, 0, 1)},
        {"rotation": (0, 0, np.nan, 1)},
        {"translation": (0, np.inf, 0)},
        {"translation": (0, 0)},
        {"scale": 0.0},
        {"scale": -1.0},
        {"scale": np.nan},
    ],
)
def test_what_is_no_similarity(arguments: dict) -> None:
    with pytest.raises(AirworthyError, match="of splats"):
        transformed(build.random_splats(), **arguments)


def test_other_degrees_and_shapes() -> None:
    with pytest.raises(AirworthyError, match="degree 4"):
        record.basis((0, 0, 1), 4)
    with pytest.raises(AirworthyError, match="shape"):
        record.colors(np.zeros((5, 3)), (0, 0, 1))
