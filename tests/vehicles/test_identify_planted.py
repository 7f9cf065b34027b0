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
from airworthy.vehicles.identification.fitting import descent, importance
from airworthy.vehicles.identification.fitting.parameters import IZZ_RATIO_MAX, _hovering, believed_parameters
from airworthy.vehicles.identification.fitting.refine import LIFT, FitProblem, _scatter
from airworthy.vehicles.identification.fitting.start import start_values
from airworthy.vehicles.identification.known import Known, frame_vehicle
from airworthy.vehicles.identification.prediction.held_command import HeldCommand
from airworthy.vehicles.identification.prediction.signals import FlightSignals, Readings
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


def test_only_izz_has_an_end_that_no_body_passes() -> None:
    base = frame_vehicle("quad_x:0.028", 0.027)
    made = believed_parameters(base, Known((0.027, 0.0001), base), [True], 0.5, {})
    ends = {item.name: item.most for item in made.items if math.isfinite(item.most)}
    assert ends == {"inertia_zz_ratio": pytest.approx(math.log(IZZ_RATIO_MAX))}


def test_torque_over_thrust_is_that_of_the_curves_at_hover() -> None:
    """f = 2e-3 w + 1e-5 w^2 is 12 N at 1,000 rad/s, q = 2e-5 w + 1.1e-7 w^2 0.13 Nm."""
    base = frame_vehicle("quad_x:0.2", 4.0 * 12.0 / 9.81)
    rotors = tuple(
        replace(rotor, thrust=(0.0, 2e-3, 1e-5), torque=(0.0, 2e-5, 1.1e-7), speed_max=2000.0) for rotor in base.rotors
    )
    made = _hovering(replace(base, rotors=rotors), 800.0)
    for rotor in made.rotors:
        assert rotor.thrust == pytest.approx((0.0, 0.0, 12.0 / 800.0**2))
        assert rotor.torque[2] / rotor.thrust[2] == pytest.approx(0.13 / 12.0, rel=1e-6)


def test_what_a_start_leaves_of_the_force_is_an_acceleration() -> None:
    """Slow commands lift two masses alike; 0.3 m/s^2 of noise for a bin each are left of either."""
    rng = np.random.default_rng(5)
    period, bins = 0.025, 400
    commands = (0.5 + 0.1 * np.sin(3.0 * period * np.arange(bins)))[:, None] * np.ones(4)
    noise = 0.3 * rng.normal(size=bins)
    time = np.arange(0.0, bins * period, 0.005)
    at = np.minimum((time / period).astype(int), bins - 1)
    # A lag of 5 ms of what moves by up to 6 m/s^3 leaves 0.03 m/s^2.
    force = np.zeros((len(time), 3))
    force[:, 2] = 20.0 * commands[at, 0] + noise[at]
    still = Readings(time, np.zeros((len(time), 3)))
    held = HeldCommand(0.0, period, commands)
    flight = FlightSignals(
        "made", held, still, Readings(time, force), Readings(period * np.arange(bins), commands), ((0.02, 9.9),)
    )
    base = frame_vehicle("quad_x:0.1", 0.5)
    found = [start_values([flight], replace(base, mass=mass), 0.5, turning=False, cell=(0.005, 0.0)) for mass in (0.5, 2.0)]
    assert found[0].force_rms == pytest.approx(found[1].force_rms, rel=1e-9)
    assert found[0].force_rms == pytest.approx(0.3, rel=0.2)
    assert found[1].thrust[0] == pytest.approx(4.0 * found[0].thrust[0], rel=1e-9)


def test_descents_are_apart_by_deviations_of_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second value is further off, the third by more of its deviations; the first is not fitted."""
    ends = {"descend_by_gauss_newton": (np.zeros(3), 5.0), "descend_by_gradient": (np.array([9.0, 0.4, -0.03]), 6.0)}
    for name, (theta, cost) in ends.items():
        monkeypatch.setattr(descent, name, lambda problem, start, most, theta=theta, cost=cost: (theta, cost, 7))
    items = [SimpleNamespace(label=label) for label in ("mass", "thrust", "lag")]
    problem = SimpleNamespace(parameters=SimpleNamespace(index=np.array([1, 2]), items=items))
    fit = SimpleNamespace(problem=problem, sd=np.array([1.0, 0.5, 0.01]))
    best, other = descent.compared_descents(fit, np.zeros(3))  # type: ignore[arg-type]
    assert (best.method, best.apart, best.cost) == ("gauss-newton", 0.0, 5.0)
    assert (other.of, other.steps) == ("lag", 7)
    assert other.apart == pytest.approx(3.0)


@pytest.mark.parametrize("channel", range(6))
def test_errors_of_nothing_count_as_the_least_that_floats_tell(channel: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly all windows are predicted to the last bit, one is far off: what they count stays finite, and no more than that."""
    errors = np.zeros((1, 30, 4, 6))
    errors[0, 7] = 0.5
    monkeypatch.setattr(FitProblem, "errors", lambda problem, theta, flight: errors)
    monkeypatch.setattr(FitProblem, "lifts", lambda problem, theta, flight: errors[..., LIFT].mean(axis=2))
    windows = SimpleNamespace(step=0.002, start=0.3 * np.arange(30.0))
    made = FitProblem(None, (windows,), (True,) * 6).scaled(np.zeros(1))  # type: ignore[arg-type]
    least = (1e-4, 1e-3)[channel >= 3]
    sure = np.diag(made.whitening[0][channel])
    assert np.all((sure > 0.1 / least) & (sure < 1.5 / least))
    (level,) = made.levels
    assert level is not None
    assert level.weight.sum() == pytest.approx(1.0)
    assert level.weight[7] < 0.01
