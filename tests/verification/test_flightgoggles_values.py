"""What checks of flights, promises, markers and published tables feed to what they check, and how they judge: values, bars."""

# ruff: noqa: PLW0108 - functions are looked up when they are called, since names of their modules are replaced.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.verification.conftest import Compare

import airworthy.verification.capture as capture
import airworthy.verification.flightgoggles as flightgoggles
import airworthy.verification.promises as promises
import airworthy.verification.published as published
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import from_euler, rotate
from airworthy.verification.published import Figure, below, within, zero

MODULES = (capture, flightgoggles, promises, published)
CASES: dict[str, Callable[[], Any]] = {
    "hover": lambda: flightgoggles._hover(),
    "speeds": lambda: flightgoggles._speeds(),
    "motor step": lambda: iter([flightgoggles._motor_step()]),
    "filters": lambda: flightgoggles._filters(),
    "wrench noise": lambda: flightgoggles._wrench_noise(),
    "imu": lambda: flightgoggles._imu(),
    "allan": lambda: flightgoggles._allan(),
    "rate step": lambda: flightgoggles._rate_step(),
    "indicators": lambda: published._indicators(),
    "mixed": lambda: promises._mixed_failures(),
    "final states": lambda: promises.final_states([3, 700], 5),
    "restore": lambda: promises._restore_failures(4),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_asked_and_judged(case: str, compare: Compare) -> None:
    compare("flightgoggles.txt", case, MODULES, CASES[case], leave_out=("_samples", "rotate"))


def test_markers(compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "SEEDS", 2)
    compare("flightgoggles.txt", "markers", MODULES, lambda: capture.marker_figures())


# ---- how figures are judged -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("figure", "aim", "passed"),
    [
        (below("x", 1.0, 1.0, "m"), "at most 1", True),
        (below("x", np.nextafter(1.0, 2.0), 1.0), "at most 1", False),
        (below("x", float("nan"), 1.0), "at most 1", False),
        (within("x", 2.2, 2.0, 0.1000001), "2 +- 10 %", True),
        (within("x", 1.799, 2.0, 0.1), "2 +- 10 %", False),
        (within("x", 2.5, 2.0, 0.25), "2 +- 25 %", True),
        (within("x", -2.5, -2.0, 0.25), "-2 +- 25 %", True),
        (within("x", -2.51, -2.0, 0.25), "-2 +- 25 %", False),
        (zero("x", 0), "0", True),
        (zero("x", 1), "0", False),
        (zero("x", -1), "0", False),
    ],
)
def test_bars(figure: Figure, aim: str, passed: bool) -> None:
    assert (figure.aim, figure.passed) == (aim, passed)


# ---- flights ----------------------------------------------------------------------------------------------------------------


class Flown:
    """Stands for a simulator and its twin, whose answers are given."""

    def __init__(self, *given: Any, answers: Any):
        self.answers, self.told, self.steps = answers, [given], 0

    def reset(self, **given: Any) -> None:
        self.told.append(given)

    def advance(self, steps: int, command: Any) -> None:
        self.steps += steps

    def field(self, name: str) -> Any:
        return np.array([self.answers(name, self.steps)])

    @property
    def rate(self) -> Any:
        return self.field("rate")

    @property
    def attitude(self) -> Any:
        return self.field("attitude")


@pytest.mark.parametrize(
    ("share", "turned", "single", "passed"),
    [
        (0.4e-10, 0.5e-10, 4e-5, [True, True, True]),
        (0.6e-10, 0.5e-10, 4e-5, [False, True, True]),
        (0.4e-10, 1.5e-10, 4e-5, [True, False, True]),
        (0.4e-10, 0.5e-10, 6e-5, [True, True, False]),
    ],
)
def test_energy_and_momentum_without_torque(
    share: float, turned: float, single: float, passed: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rate that grows by a share has twice that share more energy; a body turned by an angle, that share of momentum."""

    def answers(name: str, steps: int) -> Any:
        if name == "attitude":
            return from_euler(turned, 0.0, 0.0) if steps else from_euler(0.0, 0.0, 0.0)
        return np.array([0.0, 0.0, 5.0]) * (1.0 + (share if steps else 0.0))

    kernel = Flown(answers=lambda name, steps: np.array([0.0, 0.0, 5.0]) * (1.0 + single) if name == "rate" else [0, 0, 0, 1.0])
    twin = Flown(answers=answers)
    monkeypatch.setattr(flightgoggles, "Simulator", lambda model, config: kernel.told.append((model, config)) or kernel)
    monkeypatch.setattr(flightgoggles, "Twin", lambda sim: twin)
    found = list(flightgoggles._conservation())
    assert [figure.passed for figure in found] == passed
    assert (twin.steps, kernel.steps) == (10_000, 10_000)
    model, config = kernel.told[1]
    assert (model.gravity, model.inertia, config.physics_rate) == (0.0, (2.5e-3, 2.1e-3, 4.3e-3, 0.0, 0.0, 0.0), 1000.0)
    assert kernel.told[2]["rate"] == [3.0, 1.0, 5.0]
    energy, momentum = flightgoggles._energy_momentum(
        np.array([1.0, 2.0, 3.0]), from_euler(0.1, 0.2, 0.3), np.array([4.0, 5.0, 6.0])
    )
    assert energy == pytest.approx(0.5 * (4.0 + 20.0 + 54.0))
    np.testing.assert_allclose(momentum, rotate(from_euler(0.1, 0.2, 0.3), np.array([4.0, 10.0, 18.0])))


def test_the_gain_of_a_discrete_filter() -> None:
    """A first-order lag in the first state: |b / (z - a)| at 30 Hz."""
    dt, a, b = 1.0 / 960.0, 0.8, 0.2
    z = np.exp(2j * np.pi * 30.0 * dt)
    found = flightgoggles._discrete_gain((a, 0.0, 0.0, 0.5, b, 0.0), dt)
    assert found == pytest.approx(20.0 * np.log10(abs(b / (z - a))))
    assert flightgoggles._decibel(0.1j) == pytest.approx(-20.0)


def test_semi_kinematic_flight_is_held_against_a_finer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Twin:
        def __init__(self, config: Any):
            self.config, self.told = config, []
            made.append(self)

        def advance(self, steps: int, command: Any) -> None:
            self.told.append((steps, command))

        def field(self, name: str) -> Any:
            number = made.index(self)
            return (
                np.array([[3e-7, 4e-7, 0.0]]) * (1 + number) if name == "position" else np.array([[0.0, 0.0, 0.0, 1.0 + 5e-10]])
            )

    monkeypatch.setattr(published, "Simulator", lambda model, config: config)
    monkeypatch.setattr(published, "SemiKinematicTwin", Twin)
    drift, norm, gap = published._semi_kinematic()
    assert (drift.measured, norm.measured, gap.measured) == (
        pytest.approx(5e-7),
        pytest.approx(5e-10, rel=1e-3),
        pytest.approx(5e-7),
    )
    model = published.vehicle("carl")
    weight = model.mass * model.gravity
    hover, coarse, fine = made
    assert hover.told == [(1000, [pytest.approx(weight), 0.0, 0.0, 0.0])]
    assert coarse.told == [(200, [pytest.approx(1.1 * weight), 0.8, -0.6, 0.4])]
    assert fine.told == [(2000, coarse.told[0][1])]
    assert (hover.config.physics_rate, coarse.config.physics_rate, fine.config.physics_rate) == (100.0, 100.0, 1000.0)
    assert (hover.config.dynamics, hover.config.level, hover.config.control_rate) == ("semi_kinematic", "rate_thrust", 20.0)


def test_published_references(compare: Compare, data_dir: Any) -> None:
    compare("flightgoggles.txt", "courses", MODULES, lambda: published._courses(data_dir / "sousvide"))
    path = data_dir / "boundary_predictor" / "reference_vectors.json"
    compare("flightgoggles.txt", "segments", MODULES, lambda: published._segments(path))
    compare("flightgoggles.txt", "effectiveness", MODULES, lambda: published._effectiveness(data_dir / "aerial_gym"))


def test_indicators_off_the_table_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = published.indicators
    for name, by in (("thrust_to_weight", 0.2), ("alpha_xy_max", 0.0), ("alpha_z_max", 0.0)):

        def spoilt(model: Any, name: str = name, by: float = by) -> Any:
            found = {key: getattr(plain(model), key) for key in ("thrust_to_weight", "alpha_xy_max", "alpha_z_max")}
            return SimpleNamespace(**{**found, name: found[name] + by if by else 1.01 * found[name]})

        monkeypatch.setattr(published, "indicators", spoilt)
        assert [figure.passed for figure in published._indicators()] == [not by, bool(by)]


def test_what_is_published_is_checked_where_its_files_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("_indicators", "_semi_kinematic", "_courses", "_segments", "_effectiveness"):
        monkeypatch.setattr(published, name, lambda *given, name=name: iter([(name, *given)]))
    monkeypatch.setattr(published, "data_dir", lambda: None)
    assert list(published.published_figures()) == [("_indicators",), ("_semi_kinematic",)]
    monkeypatch.setattr(published, "data_dir", lambda: tmp_path)
    assert list(published.published_figures())[2:] == [
        ("_courses", tmp_path / "sousvide"),
        ("_segments", tmp_path / "boundary_predictor" / "reference_vectors.json"),
        ("_effectiveness", tmp_path / "aerial_gym"),
    ]


# ---- promises ---------------------------------------------------------------------------------------------------------------


def test_flights_that_depend_on_others_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fresh processes, flights alone, another order: each spoilt once."""
    spoilt: dict[str, Any] = {}

    def flown(ids: Any) -> Any:
        ids = np.asarray(ids)
        rows = np.stack([ids, 2.0 * ids], axis=1).astype(float)
        if len(ids) == 1 and ids[0] in spoilt.get("alone", ()):
            rows += 1.0
        if len(ids) == 1024 and ids[0] != 0:
            rows[: spoilt.get("order", 0)] -= 1.0
        return rows

    digests = iter("aabbcc")
    monkeypatch.setattr(promises, "_flown", flown)
    monkeypatch.setattr(promises, "_digest_in_fresh_process", lambda: spoilt.get("digest") or next(digests))
    monkeypatch.setattr(promises, "_restore_failures", lambda: 7)
    monkeypatch.setattr(promises, "_containment", lambda batch: iter([zero("contained", 0)]))
    monkeypatch.setattr(promises, "_mixed_failures", lambda: 3)
    monkeypatch.setattr(promises, "_soak", lambda: iter([zero("soak", 0)]))
    monkeypatch.setattr(
        promises.np.random, "default_rng", lambda seed: SimpleNamespace(permutation=lambda n: np.roll(np.arange(n), 1))
    )
    assert [figure.measured for figure in promises.promise_figures()] == [0.0, 0.0, 0.0, 7.0, 0.0, 3.0, 0.0]
    spoilt |= {"alone": (17, 1023), "order": 5}
    monkeypatch.setattr(promises, "_digest_in_fresh_process", iter("xy").__next__)
    assert [figure.measured for figure in promises.promise_figures()] == [1.0, 2.0, 5.0, 7.0, 0.0, 3.0, 0.0]


def test_a_neighbour_that_notices_is_seen() -> None:
    clean = promises.final_states(range(promises._COUNT))
    kept, labelled = promises._containment(clean)
    assert (kept.measured, labelled.measured) == (0.0, 0.0)
    other = clean.copy()
    other[[7, 8, 5]] += 1.0  # the last is one that was spoiled
    assert next(iter(promises._containment(other))).measured == 2.0


def test_states_that_are_not_restored_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = promises.Simulator.restore

    def forgetful(self: Any, point: Any) -> None:
        plain(self, point)
        self.step([9.81, 0.4, 0.2, -0.1])

    monkeypatch.setattr(promises.Simulator, "restore", forgetful)
    assert promises._restore_failures(3) == 3


@pytest.mark.parametrize(("grown", "passed"), [(1000, True), (1010, True), (1011, False), (900, True)])
def test_memory_may_grow_by_a_hundredth(grown: int, passed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promises, "vehicle_names", lambda: ["carl"])
    told = iter([1000, grown])
    monkeypatch.setattr(promises, "_resident", lambda: next(told))
    escapes, memory = promises._soak(2000.0)
    assert escapes.name == "Numbers that are not, in 2e+03 random steps of 1 vehicles"
    assert memory.measured == pytest.approx(max(0.0, (grown - 1000) / 10.0))
    assert (escapes.passed, memory.passed) == (True, passed)


# ---- markers ----------------------------------------------------------------------------------------------------------------


def test_what_a_similarity_is_off() -> None:
    wanted = capture._lost(np.random.default_rng(2))
    places = np.random.default_rng(3).uniform(-3.0, 3.0, (20, 3))
    assert capture._off(wanted, wanted, places) == (pytest.approx(0.0, abs=1e-9), pytest.approx(0.0, abs=1e-6))
    moved = replace(wanted, translation=np.add(wanted.translation, [0.03, 0.0, 0.04]))
    assert capture._off(moved, wanted, places)[0] == pytest.approx(0.05)


def test_what_is_refused_is_infinitely_far_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise AirworthyError("No.")

    assert capture._errors_of(refused, 3) == (np.inf, np.inf)
    monkeypatch.setattr(capture, "SEEDS", 3)
    monkeypatch.setattr(capture, "_from_positions", lambda seed: (1e-3 * seed, np.radians(0.04) * seed))
    monkeypatch.setattr(capture, "_from_corners", lambda seed: (4e-4 * seed, np.radians(0.06) * seed))
    found = list(capture.marker_figures())
    assert [figure.measured for figure in found] == pytest.approx([2.0, 0.08, 0.8, 0.12])
    assert [figure.passed for figure in found] == [False, True, True, False]
    assert found[0].name.startswith("SOUS VIDE 6, similarity from 60 places, 30 % of them wrong, 3 cases:")


def test_corners_of_a_marker_by_a_pinhole() -> None:
    position, turn = capture._cameras(np.random.default_rng(4))
    assert position.shape == (60, 3)
    away = np.linalg.norm(position, axis=1)
    assert away.min() >= 1.0
    assert away.max() <= 3.0
    assert (position[:, 2] > 0.0).all()
    pixels = capture._projected(position, turn)
    corners = capture.marker_corners(capture.SIDE)
    for k in (0, 30, 59):
        for corner, (u, v) in zip(corners, pixels[k], strict=True):
            x, y, z = rotate(turn[k] * (-1.0, -1.0, -1.0, 1.0), corner - position[k])
            assert (u, v) == (pytest.approx(1400.0 * x / z + 540.0), pytest.approx(1410.0 * y / z + 960.0))
