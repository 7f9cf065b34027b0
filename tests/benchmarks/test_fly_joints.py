"""`airworthy fly` with vehicles that have joints: what it takes them for, how it places them, what it records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.benchmarks.fly.config import FlyConfig
from airworthy.benchmarks.fly.job import run_fly, settled, simulator_config
from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.simulation import read_flight
from airworthy.vehicles import vehicle


def test_a_chain_follows_a_path_with_its_centre_of_mass(tmp_path: Path) -> None:
    config = FlyConfig(
        vehicle=("snakey",), waypoints=("0,0,1", "1,0,1.2"), hold=1.0, out=tmp_path / "run", report=False,
        randomize=("mass=0.02",), envs=2, imu="vn100",
    )  # fmt: skip
    result = run_fly(config)
    assert [flight["outcome"] for flight in result.summary["flights"]] == ["success"] * 2
    table = read_flight(tmp_path / "run")[0]
    flight = table.flight(0)
    assert np.abs(flight.vector("position")[0] - (0.0, 0.0, 1.0)).max() < 1e-5
    assert np.linalg.norm(flight.vector("position")[-1] - (1.0, 0.0, 1.2)) < 0.1  # masses are drawn, and it is pushed
    assert flight.joints.shape == (flight.row_count, 6)
    assert np.abs(flight.joints[-1] - np.array((np.pi / 2, 0.0) * 3)).max() < 0.05


def test_a_chain_turns_a_corner_at_the_speed_that_is_set_for_any_vehicle(tmp_path: Path) -> None:
    """It lost its way while its force was one without yaw: where joints sag, that left rotors with nothing."""
    config = FlyConfig(vehicle=("snakey",), waypoints=("0,0,1", "1,0,1", "1,1,1.5"), out=tmp_path / "run", report=False)
    (flight,) = run_fly(config).summary["flights"]
    assert flight["outcome"] == "success"
    assert flight["tracking_error_m"] < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["morphy", "snakey"])
def test_the_expert_flies_vehicles_with_joints(tmp_path: Path, name: str) -> None:
    """MPC asks for thrust and rates, which the law gives at the angles that the joints have."""
    config = FlyConfig(
        vehicle=(name,), pilot="mpc", waypoints=("0,0,1", "1,0,1.2"), hold=1.0, out=tmp_path / "run", report=False
    )  # fmt: skip
    (flight,) = run_fly(config).summary["flights"]
    assert flight["outcome"] == "success"
    assert flight["tracking_error_m"] < 0.1


@pytest.mark.parametrize("contact", ["freeze", "respond"])
def test_links_meet_a_scene(tmp_path: Path, contact: Any) -> None:
    """Into a trunk: evidence tells how near links came and how often they hit, not how far the centre was."""
    config = FlyConfig(
        vehicle=("morphy",), scene="forest:3", waypoints=("6.4,0,1", "8.2,0,1"), hold=0.2, out=tmp_path / "run",
        report=False, contact=contact, course_check="warn",
    )  # fmt: skip
    with pytest.warns(AssetWarning, match="into the tree"):
        (flight,) = run_fly(config).summary["flights"]
    assert flight["touches"] == flight["collisions"] >= 1
    assert -1e-3 < flight["link_clearance_min_m"] < 2e-3
    if contact == "freeze":
        assert flight["outcome"] == "collision"
        assert "cylinder" in flight["cause"]
    columns = read_flight(tmp_path / "run")[0].columns
    assert "clearance_m" not in columns
    assert columns["link_clearance_m"][0] == pytest.approx(0.81, abs=0.05)
    assert columns["touches"][0] == 0


@pytest.mark.parametrize(
    ("names", "changes", "dynamics", "integrator", "joints"),
    [
        (("morphy",), {}, "articulated", "midpoint", 8),
        (("snakey",), {}, "articulated", "extrapolated", 6),
        (("morphy",), {"physics_rate": 300.0}, "articulated", "extrapolated", 8),
        (("snakey",), {"dynamics": "rigid", "joints": "ring"}, "rigid", "auto", 0),
        (("snakey", "lmf2"), {}, "auto", "auto", 0),
        (("lmf2",), {}, "auto", "auto", 0),
        (("lmf2",), {"dynamics": "semi_kinematic"}, "semi_kinematic", "auto", 0),
    ],
)
def test_what_is_flown(names: tuple[str, ...], changes: dict[str, Any], dynamics: str, integrator: str, joints: int) -> None:
    config, flown = settled(FlyConfig(vehicle=names, **changes), [vehicle(name) for name in names])
    assert (config.dynamics, config.integrator, flown[0].joint_count) == (dynamics, integrator, joints)
    if dynamics == "rigid" and changes:
        assert flown[0].center_of_mass == pytest.approx((0.0, 0.5, 0.0), abs=1e-9)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"vehicle": ("lmf2",), "joints": "ring"}, "has no joints"),
        ({"vehicle": ("morphy",), "joints": "1,a"}, "an angle for each joint"),
        ({"vehicle": ("morphy",), "joints": "0.1,0.2"}, "has 8 joints"),
        ({"vehicle": ("morphy",), "joints": "bent"}, "set of joint angles"),
        ({"vehicle": ("morphy",), "pilot": "crazyflie"}, "mixes motors by the firmware's own table"),
        ({"vehicle": ("morphy",), "pilot": "avoid:nowhere"}, "keeps clear by one sphere"),
        ({"vehicle": ("morphy",), "pilot": "ego", "scene": "forest:3"}, "keeps clear by one sphere"),
        ({"vehicle": ("morphy",), "wind": (1.0, 0.0, 0.0)}, "Wind without drag of links"),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(AirworthyError, match=words):
        run_fly(FlyConfig(course="hover", out=tmp_path / "run", report=False, **changes))


def test_the_mild_mix_has_no_wind_where_nothing_feels_it(tmp_path: Path) -> None:
    for craft, wind in (("morphy", 0.0), ("lmf2", 1.0)):
        given = FlyConfig(vehicle=(craft,), randomize=("default",), out=tmp_path / "run")
        config, flown = settled(given, [vehicle(craft)])
        assert simulator_config(config, "position", flown).randomization.wind == wind
    with pytest.raises(AirworthyError, match="Wind without drag of links"):
        run_fly(FlyConfig(vehicle=("morphy",), randomize=("wind=1",), out=tmp_path / "run", report=False))
