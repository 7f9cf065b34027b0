"""Pieces of an identification by hand, each of which a planted mistake went past."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.vehicles import vehicle
from airworthy.vehicles.identification import agreement, compared
from airworthy.vehicles.identification.agreement import LiftShare, refuse_unlike
from airworthy.vehicles.identification.compared import TRIMS, choose_trim, nearest_vehicle
from airworthy.vehicles.identification.excitation import word
from airworthy.vehicles.identification.fitting import importance
from airworthy.vehicles.identification.fitting.refine import _scatter
from airworthy.vehicles.identification.known import frame_vehicle
from airworthy.vehicles.uncertainty import _flies, uncertain_values, with_values


def test_only_what_is_beyond_chance_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for error, refused in ((0.2, False), (0.01, True)):
        shares = [LiftShare("a", 0.85, error), LiftShare("b", 1.2, error)]
        monkeypatch.setattr(agreement, "lift_shares", lambda flights, parts=1, shares=shares: shares)
        if refused:
            with pytest.raises(AirworthyError, match=r"'b' lifts 1\.41 times as much"):
                refuse_unlike([])
        else:
            refuse_unlike([])


def test_damping_is_a_share_of_each_rate() -> None:
    base = vehicle("cf2x_L250")
    state = 0.6 * base.rotors[0].speed_max
    made = with_values(base, uncertain_values(base, state) | {"damping": 0.7}, state)
    assert made.drag.angular_linear == pytest.approx([0.7 * moment for moment in made.inertia[:3]], rel=1e-9)


def test_thrust_that_falls_at_full_speed_flies_nothing() -> None:
    base = vehicle("cf2x_L250")
    full = base.rotors[0].speed_max
    lift = 3.0 * base.mass * base.gravity / base.rotor_count
    # Grows up to 0.6 of full, and falls from there; at full it still lifts three times the weight.
    bent = replace(base.rotors[0], thrust=(0.0, 6.0 * lift / full, -5.0 * lift / full**2))
    rotors = tuple(replace(rotor, thrust=bent.thrust) for rotor in base.rotors)
    assert not _flies(replace(base, rotors=rotors))
    assert _flies(base)


def test_the_words() -> None:
    assert [word(share, True) for share in (0.81, 0.79, 0.31, 0.29)] == ["identified", "supported", "supported", "prior"]
    assert word(0.99, False) == "assumed"


def test_the_best_trim_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fitted:
        rate = np.zeros((3, 5, 3))

    def missed(plant: object, windows: object, trim: tuple[float, float], push: object) -> np.ndarray:
        return np.full((3, 5, 3), 0.1 + abs(TRIMS.index(trim) - 2))

    monkeypatch.setattr(compared, "missed_push", lambda plant, windows: None)
    monkeypatch.setattr(compared, "trimmed_rates", missed)
    monkeypatch.setattr(compared, "replace", lambda fitted, fading: fitted)
    assert choose_trim([None], [Fitted()]) == TRIMS[2]  # type: ignore[list-item]


@pytest.mark.parametrize("turned", [(0, 1, 2, 3), (2, 3, 0, 1), (1, 3, 0, 2)])
def test_the_nearest_vehicle_has_its_rotors_in_the_bases_order(turned: tuple[int, ...]) -> None:
    base = frame_vehicle("quad_x:0.028", 0.027)
    base = replace(base, rotors=tuple(base.rotors[k] for k in turned))
    found = nearest_vehicle(base)
    assert found is not None
    for mine, theirs in zip(base.rotors, found.rotors, strict=True):
        angles = [math.atan2(*reversed(rotor.position[:2])) for rotor in (mine, theirs)]
        assert abs(math.remainder(angles[0] - angles[1], 2.0 * math.pi)) < 0.3


def test_few_stretches_make_the_scatter_larger() -> None:
    inverse, each = 0.1 * np.eye(3), np.random.default_rng(0).normal(size=(40, 3))
    many, few = (_scatter(inverse, each, np.eye(40), count, np.eye(3)) for count in (1e9, 5.4))
    alone = inverse @ inverse
    # 2.7 numbers are told of 5.4 stretches: twice the variance.
    assert np.allclose(few - alone, 2.0 * (many - alone))
    # What stands beside the windows does not scatter, whatever their count.
    beside = _scatter(inverse, each, np.eye(40), 5.4, np.diag([1.0, 1.0, 9.0]))
    assert np.allclose(beside - few, np.diag([0.0, 0.0, 8.0]) @ inverse @ inverse)


@dataclass
class Fitted:
    """A fit of nothing in particular."""

    problem: object
    theta: np.ndarray
    covariance: np.ndarray


def test_the_weights_of_samples_undo_what_they_were_drawn_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cost that is a t distribution's own: every set then counts alike."""
    size, freedom = 6, importance.FREEDOM

    parameters = SimpleNamespace(index=np.arange(size), sd=np.ones(size))
    fitted = Fitted(SimpleNamespace(parameters=parameters), np.zeros(size), 0.01 * np.eye(size))

    def cost(problem: object, theta: np.ndarray, shared: float) -> np.ndarray:
        return np.asarray(0.5 * (freedom + size) * np.log1p((theta**2).sum(axis=1) / 0.01 / freedom))

    monkeypatch.setattr(importance, "costs_of", cost)
    monkeypatch.setattr(importance, "curvature_of", lambda problem, theta: 100.0 * np.eye(size))
    _, sampled = importance.sample_fit(fitted, 0)  # type: ignore[arg-type]
    assert sampled.effective == pytest.approx(importance.SETS, rel=1e-6)


def test_values_of_which_a_log_tells_little_keep_their_priors(monkeypatch: pytest.MonkeyPatch) -> None:
    size = 3
    parameters = SimpleNamespace(index=np.arange(size), sd=np.ones(size))
    # Shares of 0.99, 0.5 and 0.2.
    fitted = Fitted(SimpleNamespace(parameters=parameters), np.zeros(size), np.diag([0.01, 0.5, 0.8]))
    monkeypatch.setattr(importance, "costs_of", lambda problem, theta, shared: 5.0 * (theta**2).sum(axis=1))
    monkeypatch.setattr(importance, "curvature_of", lambda problem, theta: np.diag([100.0, 2.0, 1.25]))
    _, sampled = importance.sample_fit(fitted, 0)  # type: ignore[arg-type]
    assert [float(ratio) == 1.0 for ratio in sampled.ratio] == [False, False, True]
