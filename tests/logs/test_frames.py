"""Frames of others: 20 random rotations, each converted vector held against matrices."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.core.frames import FRAMES, flu_enu, normalize, rotate, to_matrix

FRD = np.diag([1.0, -1.0, -1.0])  # FLU <- FRD
NED = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])  # ENU <- NED
BODY = {"flu": np.eye(3), "frd": FRD}
WORLD = {"enu": np.eye(3), "ned": NED}
ROTATIONS = normalize(np.random.default_rng(3).normal(size=(20, 4)))


@pytest.mark.parametrize("frame", ["flu->enu", "frd->ned", "frd->enu", "flu->ned"])
def test_attitudes_turn_the_same_arrow(frame: str) -> None:
    """R' = W R B^-1: an arrow of the body points to the same place of the world, whatever the axes are called."""
    body, world = frame.split("->")
    expected = WORLD[world] @ to_matrix(ROTATIONS) @ BODY[body].T
    assert np.allclose(to_matrix(flu_enu(ROTATIONS, frame)), expected, atol=1e-15)


@pytest.mark.parametrize("frame", ["flu", "frd", "enu", "ned"])
def test_vectors(frame: str) -> None:
    vectors = np.random.default_rng(4).normal(size=(20, 3))
    assert np.array_equal(flu_enu(vectors, frame), vectors @ {**BODY, **WORLD}[frame].T)


def test_a_rotated_vector_stays_itself() -> None:
    v = np.random.default_rng(5).normal(size=(20, 3))
    in_ned = rotate(ROTATIONS, v)
    ours = rotate(flu_enu(ROTATIONS, "frd->ned"), flu_enu(v, "frd"))
    assert np.allclose(ours, flu_enu(in_ned, "ned"), atol=1e-14)


def test_unknown_frames() -> None:
    assert len(FRAMES) == 8
    with pytest.raises(ValueError, match="nwu"):
        flu_enu([1.0, 0.0, 0.0], "nwu")
