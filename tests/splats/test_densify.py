"""Growth by derivatives: what is cloned, split, removed, and how many there may be."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.core import frames
from airworthy.scenes.splats.record import Splats
from airworthy.splats.training.densify import FADED, SHRINK, densified, faded
from airworthy.splats.training.fields import LOGIT, MOVED, RENDERED, SCALE, SHIFT, TURN, GaussianFields, fields_of, opacities


def strained(n: int = 40, small: float = 0.005, large: float = 0.05) -> GaussianFields:
    """Half of them small and half large in a scene of reach 1; the last quarter of each under strain."""
    rng = np.random.default_rng(2)
    scale = np.where(np.arange(n)[:, None] < n // 2, small, large) * np.array([1.0, 0.5, 0.1])
    turn = rng.normal(size=(n, 4))
    turn /= np.linalg.norm(turn, axis=1, keepdims=True)
    found = fields_of(Splats(rng.normal(size=(n, 3)), turn, scale, np.full(n, 0.4), rng.normal(size=(n, 1, 3))))
    found.raw[:, RENDERED] = 5.0
    found.raw[:, SHIFT] = 5.0 * np.where(np.arange(n) % (n // 2) >= n // 4 + n // 8, 1e-2 + 1e-4 * np.arange(n), 1e-4)
    found.moments[:] = 1.0
    return found


def test_small_ones_are_cloned_and_large_ones_split() -> None:
    before = strained()
    where, scale = before.position.copy(), np.exp(before.raw[:, SCALE : SCALE + 3])
    found, gone = densified(strained(), np.random.default_rng(0), 100, 1e-3, 1.0)
    assert gone == 0
    assert len(found) == 50  # five clones, and five that became two
    assert not found.raw[:, [SHIFT, RENDERED]].any()
    clones, halves = found.taken(slice(40, 45)), found.taken(slice(45, 50))
    np.testing.assert_array_equal(clones.position, where[15:20])
    np.testing.assert_array_equal(found.position[:35], where[:35])
    assert not clones.moments.any()
    assert found.moments[15:20].all()  # the one that was cloned goes on
    for part in (halves, found.taken(slice(35, 40))):
        np.testing.assert_allclose(np.exp(part.raw[:, SCALE : SCALE + 3]), scale[35:40] / SHRINK, rtol=1e-5)
        # Drawn from the one they were: within four standard deviations along each of its axes.
        inside = frames.rotate(frames.conjugate(part.raw[:, TURN : TURN + 4].astype(float)), part.position - where[35:40])
        assert (np.abs(inside) < 4.5 * scale[35:40]).all()
        assert np.abs(part.position - where[35:40]).max() > 1e-3
    assert (found.number[40:] == -1).all()


@pytest.mark.parametrize(("count", "made"), [(40, 0), (43, 3), (1000, 10), (10, 0)])
def test_the_most_strained_come_first_up_to_the_budget(count: int, made: int) -> None:
    found, _ = densified(strained(), np.random.default_rng(0), count, 1e-3, 1.0)
    assert len(found) == 40 + made
    if made == 3:  # the last three are the most strained, and large
        assert (np.exp(found.raw[[37, 38, 39], SCALE]) < 0.04).all()
        assert (np.exp(found.raw[[35, 36], SCALE]) > 0.04).all()


def test_what_shows_nothing_goes() -> None:
    before = strained()
    before.raw[:10, LOGIT] = -7.0
    before.raw[10, SCALE] = np.nan
    found, gone = densified(before, np.random.default_rng(0), 100, 1e9, 1.0)
    assert (gone, len(found)) == (11, 29)
    nothing = strained()
    nothing.raw[:, LOGIT] = -7.0
    assert len(densified(nothing, np.random.default_rng(0), 100, 1e-3, 1.0)[0]) == 40  # a cloud of none cannot be rendered


def test_fading_lowers_opacities_alone() -> None:
    before, found = strained(), faded(strained())
    np.testing.assert_allclose(opacities(found.raw), FADED, rtol=1e-5)
    found.raw[:, LOGIT] = before.raw[:, LOGIT]
    np.testing.assert_array_equal(found.raw, before.raw)
    assert not found.moments[:, [MOVED - 1, 2 * MOVED - 1]].any()
    assert (found.moments == 0.0).sum() == 80
