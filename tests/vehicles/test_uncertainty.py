"""Vehicles whose values are not sure: files, what a record may hold, and draws."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.vehicles import Uncertainty, Vehicle, check, read_vehicle, vehicle, write_vehicle
from airworthy.vehicles.record import UNCERTAIN
from airworthy.vehicles.uncertainty import uncertain_values, with_values

STATE = 1600.0
NAMES = ("mass", "thrust", "inertia_xx", "inertia_zz_ratio", "lag", "center_x")
SD = (0.02, 0.02, 0.05, 0.05, 0.1, 0.001)


def told(base: Vehicle, names: tuple[str, ...] = NAMES, sd: tuple[float, ...] = SD, related: float = 0.9) -> Vehicle:
    """A vehicle whose mass and thrust are uncertain together."""
    values = uncertain_values(base, STATE)
    matrix = np.eye(len(names))
    matrix[0, 1] = matrix[1, 0] = related
    scale = tuple(UNCERTAIN[name] for name in names)
    mean = tuple(math.log(values[n]) if s == "log" else values[n] for n, s in zip(names, scale, strict=True))
    rows = tuple(tuple(row) for row in matrix.tolist())
    return replace(base, uncertainty=Uncertainty(names, scale, mean, sd, rows, (0.9,) * len(names), STATE, "test", 1))  # type: ignore[arg-type]


@pytest.fixture
def craft() -> Vehicle:
    return replace(told(vehicle("cf2x_L250")), command_delay=0.012, rotor_range=(900.0, 2200.0))


def test_file_holds_everything(craft: Vehicle, tmp_path: Path) -> None:
    write_vehicle(craft, tmp_path / "a.toml")
    back = read_vehicle(tmp_path / "a.toml")
    assert back == craft
    assert back.uncertainty == craft.uncertainty
    assert "command_delay = 0.012  # s" in (tmp_path / "a.toml").read_text()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"names": ("mass", "colour")}, "uncertainty.names has 'colour'"),
        ({"sd": (0.1, -0.1)}, "uncertainty.sd has a negative entry"),
        ({"sd": (0.1,)}, "uncertainty.sd has 1 entries, but uncertainty.names has 2"),
        ({"transform": ("log", "linear")}, "uncertainty.transform of thrust is 'linear', but is 'log'"),
        ({"correlation": ((1.0, 1.5), (1.5, 1.0))}, "eigenvalue -0.5"),
        ({"correlation": ((1.0, 0.5), (0.4, 1.0))}, "must be symmetric"),
        ({"share": (0.5, 1.5)}, "share has an entry outside 0 to 1"),
        ({"state": 0.0}, "uncertainty.state is 0"),
        (
            {"mean": (900.0, 0.0)},
            r"tells mass as 900 \+- 0.02 of its logarithm, of which 6 deviations reach beyond all numbers",
        ),
        ({"sd": (0.02, 300.0)}, r"tells thrust as \S+ \+- 300 of its logarithm, of which"),
    ],
)
def test_what_is_no_distribution_is_refused(change: dict[str, object], said: str) -> None:
    good = told(vehicle("cf2x_L250"), NAMES[:2], SD[:2])
    assert good.uncertainty is not None
    with pytest.raises(AirworthyError, match=said):
        check(replace(good, uncertainty=replace(good.uncertainty, **change)))  # type: ignore[arg-type]


def test_delay_and_range_are_checked(craft: Vehicle) -> None:
    with pytest.raises(AirworthyError, match="command_delay is 2 s, but lies in 0 to 1"):
        check(replace(craft, command_delay=2.0))
    with pytest.raises(AirworthyError, match=r"rotor_range is \[3, 2\]"):
        check(replace(craft, rotor_range=(3.0, 2.0)))


def test_unknown_key_of_a_file_is_refused(craft: Vehicle, tmp_path: Path) -> None:
    write_vehicle(craft, tmp_path / "a.toml")
    text = (tmp_path / "a.toml").read_text().replace("\nshare = ", "\nshares = ")
    (tmp_path / "b.toml").write_text(text)
    with pytest.raises(AssetError, match="unknown key 'shares'"):
        read_vehicle(tmp_path / "b.toml")


def test_values_come_back(craft: Vehicle) -> None:
    values = {"mass": 0.04, "thrust": 0.06, "thrust_linear": 0.25, "torque_ratio": 0.005, "lag": 0.04, "command_delay": 0.02}
    values |= {
        "inertia_xx": 2e-5,
        "inertia_yy": 2.1e-5,
        "inertia_zz_ratio": 1.7,
        "center_x": 1e-3,
        "center_y": -1e-3,
        "damping": 0.5,
        "drag_x": 0.3,
        "drag_y": 0.35,
        "drag_z": 0.2,
        "sag": 0.7,
    }
    craft = replace(craft, command_sag=(1.0, 3.7))
    assert set(values) == set(UNCERTAIN)
    found = uncertain_values(with_values(craft, values, STATE), STATE)
    # The published polynomial has a thrust at standstill, which is not among what is linear or square.
    assert {k: v for k, v in found.items() if k != "thrust_linear"} == pytest.approx(
        {k: v for k, v in values.items() if k != "thrust_linear"}
    )
    # What is not named stays as it is, whatever becomes of the mass.
    heavier = with_values(craft, {"mass": 0.05, "drag_z": 0.2}, STATE)
    assert heavier.drag.linear == (*craft.drag.linear[:2], pytest.approx(0.01))
    assert heavier.command_sag == craft.command_sag


@pytest.mark.slow
def test_draws_have_the_moments_that_were_told(craft: Vehicle) -> None:
    drawn = craft.draw(4000, 7)
    assert drawn.rejected == 0
    mass = np.log([v.mass for v in drawn.vehicles])
    thrust = np.log([uncertain_values(v, STATE)["thrust"] for v in drawn.vehicles])
    assert mass.std() == pytest.approx(0.02, rel=0.03)
    assert np.corrcoef(mass, thrust)[0, 1] == pytest.approx(0.9, abs=0.01)
    # Together they stay near hover: drawn apart they would differ by 0.028.
    assert (mass - thrust).std() == pytest.approx(0.02 * math.sqrt(2.0 * 0.1), rel=0.05)
    assert craft.draw(5, 7).vehicles == drawn.vehicles[:5]
    assert craft.draw(5, 8).vehicles != drawn.vehicles[:5]


def test_draws_that_are_no_vehicles_are_counted() -> None:
    wild = told(vehicle("cf2x_L250"), ("mass", "thrust"), (0.5, 0.5), 0.0)
    drawn = wild.draw(200, 0)
    assert len(drawn.vehicles) == 200
    assert drawn.rejected > 5
    assert all(v.mass < 4 * 0.12 for v in drawn.vehicles)


def test_a_vehicle_without_uncertainty_draws_nothing() -> None:
    with pytest.raises(AirworthyError, match="tells no uncertainty to draw from"):
        vehicle("cf2x_L250").draw(3, 0)


def test_what_is_no_record_draws_nothing(craft: Vehicle) -> None:
    assert craft.uncertainty is not None
    far = replace(craft, uncertainty=replace(craft.uncertainty, mean=(900.0, *craft.uncertainty.mean[1:])))
    with pytest.raises(AirworthyError, match="uncertainty tells mass as 900"):
        far.draw(3, 0)


def test_too_wide_is_refused() -> None:
    hopeless = told(vehicle("cf2x_L250"), ("mass", "thrust"), (1e-3, 1e-3))
    assert hopeless.uncertainty is not None
    heavy = replace(hopeless, uncertainty=replace(hopeless.uncertainty, mean=(math.log(10.0), hopeless.uncertainty.mean[1])))
    with pytest.raises(AirworthyError, match="its uncertainty is too wide"):
        heavy.draw(3, 0)
