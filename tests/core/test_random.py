"""Random numbers: published vectors, native code against its twin, distribution, independence of everything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from airworthy.core.arrays import Array, ArrayAny, ArrayU32
from airworthy.core.random import Stream, flight_key, normals, threefry4x32, uniforms, words

ONES = (0xFFFFFFFF,) * 4
PI_COUNTER = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)
PI_KEY = (0xA4093822, 0x299F31D0, 0x082EFA98, 0xEC4E6C89)

DRAWS = 1_000_000


@pytest.mark.parametrize(
    ("rounds", "counter", "key", "expected"),
    [
        (13, (0,) * 4, (0,) * 4, "531c7e4f 39491ee5 2c855a92 3d6abf9a"),
        (13, ONES, ONES, "c4189358 1c9cc83a d5881c67 6a0a89e0"),
        (13, PI_COUNTER, PI_KEY, "4aa71d8f 734738c2 431fc6a8 ae6debf1"),
        (20, (0,) * 4, (0,) * 4, "9c6ca96a e17eae66 fc10ecd4 5256a7d8"),
    ],
)
def test_known_answers_of_random123(rounds: int, counter: tuple[int, ...], key: tuple[int, ...], expected: str) -> None:
    """Source: tests/kat_vectors of Random123 1.14 (D. E. Shaw Research), lines `threefry4x32`."""
    drawn = threefry4x32(np.array(key, np.uint32), np.array(counter, np.uint32), rounds)
    assert " ".join(f"{w:08x}" for w in drawn) == expected


def test_keys_and_counters_broadcast() -> None:
    rng = np.random.default_rng(0)
    key = rng.integers(0, 2**32, (5, 1, 4), np.uint32)
    counter = rng.integers(0, 2**32, (7, 4), np.uint32)
    together = threefry4x32(key, counter)
    assert together.shape == (5, 7, 4)
    for i in range(5):
        for j in range(7):
            np.testing.assert_array_equal(together[i, j], threefry4x32(key[i, 0], counter[j]))


def test_arguments_are_left_alone() -> None:
    key, counter = np.zeros(4, np.uint32), np.zeros(4, np.uint32)
    threefry4x32(key, counter)
    assert not key.any()
    assert not counter.any()


# ---- native code against the twin ------------------------------------------------------------------------------------


def _keys(count: int) -> ArrayU32:
    """Key words and step per environment, shape (5, count); the first few at the ends of their ranges."""
    rows = np.random.default_rng(1).integers(0, 2**32, (5, count), np.uint32)
    rows[:, 0], rows[:, 1], rows[:, 2] = 0, 0xFFFFFFFF, 0x80000000
    return rows


@pytest.mark.parametrize("path", ["lanes", "scalar"])
def test_native_draws_equal_the_twin(path: str, probe: Callable[..., dict[str, ArrayAny]]) -> None:
    """The probe draws block 7 of stream 3: words and uniforms to the bit, normals to float32."""
    keys = _keys(160_000)
    rows = probe(path, np.zeros((3, keys.shape[1]), np.float32), keys)
    counter = np.stack([keys[4], *(np.full_like(keys[4], k) for k in (3, 7, 0))], axis=-1)
    np.testing.assert_array_equal(rows["words"].T, threefry4x32(keys[:4].T, counter))
    key = keys[:4].T
    np.testing.assert_array_equal(rows["uniforms"].T, uniforms(key, keys[4], Stream.WIND, 32)[:, 28:].astype(np.float32))
    exact = normals(key, keys[4], Stream.WIND, 32)[:, 28:]
    # Logarithm, sine and cosine are short series: good to about 1e-6, 50 times below what 1e6 draws could show.
    np.testing.assert_allclose(rows["normals"].T, exact, rtol=2e-6, atol=2e-6)


# ---- distribution ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn() -> Array:
    """A million normals of one flight."""
    return normals(flight_key(2024, 0), np.arange(DRAWS // 20), Stream.SENSOR_AND_WRENCH, 20).ravel()


def test_normals_have_the_moments_of_a_normal(drawn: Array) -> None:
    """Within four standard errors: the data are fixed, so this cannot flicker."""
    root = np.sqrt(DRAWS)
    assert abs(drawn.mean()) < 4.0 / root
    assert abs(drawn.var() - 1.0) < 4.0 * np.sqrt(2.0) / root
    assert abs((drawn**3).mean()) < 4.0 * np.sqrt(15.0) / root
    assert abs((drawn**4).mean() - 3.0) < 4.0 * np.sqrt(96.0) / root
    assert 4.5 < np.abs(drawn).max() <= 5.77


def test_normals_pass_kolmogorov_and_smirnov(drawn: Array) -> None:
    assert scipy.stats.kstest(drawn, "norm").pvalue > 0.01


def test_native_normals_pass_kolmogorov_and_smirnov(probe: Callable[..., dict[str, ArrayAny]]) -> None:
    keys = np.zeros((5, DRAWS // 4), np.uint32)
    keys[2] = np.arange(keys.shape[1])
    native = probe("lanes", np.zeros((3, keys.shape[1]), np.float32), keys)["normals"]
    assert np.isfinite(native).all()
    assert scipy.stats.kstest(native.ravel(), "norm").pvalue > 0.01


def test_uniforms_are_uniform_and_never_at_the_ends() -> None:
    u = uniforms(flight_key(7, np.arange(DRAWS // 8)), 0, Stream.PARAMETERS, 8).ravel()
    assert scipy.stats.kstest(u, "uniform").pvalue > 0.01
    assert 0.0 < u.min() < u.max() < 1.0
    np.testing.assert_array_equal(u.astype(np.float32).astype(np.float64), u)


def test_bits_are_fair_in_every_place() -> None:
    w = words(flight_key(1, np.arange(DRAWS // 8)), 3, Stream.RESET, 8)
    share = np.unpackbits(w.view(np.uint8).reshape(-1, 4), axis=1).mean(axis=0)
    assert np.abs(share - 0.5).max() < 5.0 * 0.5 / np.sqrt(DRAWS)  # 32 places, five standard errors


# ---- independence ----------------------------------------------------------------------------------------------------


def _series(**changed: Any) -> Array:
    """10,000 normals along the step of one flight, with one part of the key or counter changed."""
    at = {"seed": 5, "flight": 3, "episode": 0, "stream": Stream.WIND, "index": 0, "shift": 0} | changed
    key = flight_key(at["seed"], at["flight"], at["episode"])
    return normals(key, np.arange(10_000) + at["shift"], at["stream"], 8)[:, at["index"]]


@pytest.mark.parametrize(
    "changed",
    [
        {"shift": 1},
        {"stream": Stream.DISTURBANCE},
        {"flight": 4},
        {"episode": 1},
        {"seed": 6},
        {"seed": 5 + 2**32},
        {"index": 1},
        {"index": 2},
        {"index": 4},
        {"flight": 0, "episode": 3},
    ],
    ids=str,
)
def test_series_that_differ_in_one_number_are_uncorrelated(changed: dict[str, Any]) -> None:
    """Of 10,000 draws: correlation and that of squares below four standard errors, and nothing equal in place."""
    a, b = _series(), _series(**changed)
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.04
    assert abs(np.corrcoef(a * a, b * b)[0, 1]) < 0.04
    assert not (a == b).any()


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=12), st.integers(0, 11), st.integers(0, 2**64 - 1))
def test_a_flight_draws_the_same_in_any_batch(flights: list[int], place: int, seed: int) -> None:
    place %= len(flights)
    batch = normals(flight_key(seed, flights), 9, Stream.WIND, 6)[place]
    alone = normals(flight_key(seed, flights[place]), 9, Stream.WIND, 6)
    assert batch.tobytes() == alone.tobytes()


@given(st.integers(1, 24), st.integers(1, 24))
def test_earlier_numbers_do_not_depend_on_how_many_are_drawn(few: int, many: int) -> None:
    few, many = sorted((few, many))
    for draw in (uniforms, normals):
        assert (
            draw(flight_key(1, 2), 3, Stream.WIND, few).tobytes()
            == draw(flight_key(1, 2), 3, Stream.WIND, many)[:few].tobytes()
        )


def test_key_words_hold_the_whole_seed() -> None:
    np.testing.assert_array_equal(flight_key(0x0123456789ABCDEF, 7, 2), [0x89ABCDEF, 0x01234567, 7, 2])
    np.testing.assert_array_equal(flight_key(-1, 0), [0xFFFFFFFF, 0xFFFFFFFF, 0, 0])
    assert flight_key(1, np.arange(6).reshape(2, 3)).shape == (2, 3, 4)


def test_streams_keep_their_numbers() -> None:
    """They are part of every stored result."""
    expected = {"SENSOR_AND_WRENCH": 1, "DISTURBANCE": 2, "WIND": 3, "PARAMETERS": 4, "RESET": 5, "COURSE": 6}
    assert {s.name: int(s) for s in Stream}.items() >= expected.items()
    assert len({int(s) for s in Stream}) == len(Stream)


@pytest.mark.parametrize("step", [7, np.arange(5)])
def test_blocks_drawn_together_are_the_blocks_drawn_one_by_one(step: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of words come from one call of the cipher: one by one they took 35 ms for every generated room."""
    import airworthy.core.random as module

    key = flight_key(9, np.arange(5), 3)
    counter = np.zeros((*np.shape(step), 4), np.uint32)
    counter[..., 0], counter[..., 1] = step, Stream.RESET
    expected = []
    for index in range(40):
        counter[..., 2] = index
        expected.append(threefry4x32(key, counter))
    called = []
    monkeypatch.setattr(module, "threefry4x32", lambda *given: called.append(1) or threefry4x32(*given))
    np.testing.assert_array_equal(words(key, step, Stream.RESET, 160), np.concatenate(expected, axis=-1))
    assert len(called) == 1
