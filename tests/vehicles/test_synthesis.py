"""Synthesised vehicles: scaling laws, every static check, and the recovered recipe of the published fleet."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.vehicles import Vehicle, indicators, read_vehicle, synthesize, vehicle, write_vehicle
from airworthy.vehicles.synthesis import arm_length, static_faults

# FlyingTrust 3.1: arm lengths that the printed indicators of UAV 1..16 imply [m].
RECOVERED = [0.160, 0.175, 0.185, 0.225, 0.210, 0.250, 0.240, 0.275, 0.265, 0.300, 0.290, 0.325, 0.310, 0.350, 0.375, 0.340]
SYNTHETIC = [f"virt_{i:02d}" for i in range(1, 19) if i not in (2, 5)]


def test_the_base_comes_back_from_its_own_numbers() -> None:
    base = vehicle("virt_05")
    made = synthesize("virt_05", base.mass, 0.26, 1.0, "again")
    assert replace(made, name=base.name) == base


def test_scaling_laws() -> None:
    base, made = vehicle("virt_05"), synthesize("virt_05", 1.4, 0.3, 1.1, "bigger")
    ratio = 0.3 / 0.26
    np.testing.assert_allclose(made.inertia[:3], np.array(base.inertia[:3]) * (1.4 / 0.98) * ratio**2)
    assert arm_length(made) == pytest.approx(0.3)
    assert made.rotors[0].speed_max == pytest.approx(1.1 * base.rotors[0].speed_max)
    assert made.rotors[0].thrust == base.rotors[0].thrust
    np.testing.assert_allclose(made.drag.quadratic_norm, np.array(base.drag.quadratic_norm) * ratio**2)
    assert made.body == base.body  # the benchmark's common sphere
    # alpha_xy = d F / J: force x 1.21, lever x ratio, inertia x mass ratio x ratio^2
    expected = indicators(base).alpha_xy_max * 1.21 / ((1.4 / 0.98) * ratio)
    assert indicators(made).alpha_xy_max == pytest.approx(expected)
    assert made.extra["base"] == "virt_05"
    assert "synthesize(base=virt_05" in made.sources["mass"]


def test_thrust_state_vehicles_scale_their_limit_with_the_square() -> None:
    base = vehicle("morphy_stiff")
    arm = arm_length(base)
    made = synthesize(base, 0.32, 1.2 * arm, 1.1, "morphy_big")
    assert made.rotors[0].speed_max == pytest.approx(2.0 * 1.21)
    np.testing.assert_allclose(made.body.size, np.array(base.body.size) * 1.2)


def test_the_recovered_recipe_gives_the_published_fleet() -> None:
    # Jxx = 0.04 m d^2, Jzz = 2 Jxx, kappa = d/20, F = alpha_xy Jxx / d: then TWR = 4 F / (m g) must be the printed one.
    for name, d in zip(SYNTHETIC, RECOVERED, strict=True):
        airframe = vehicle(name)
        jxx = 0.04 * airframe.mass * d * d
        np.testing.assert_allclose(airframe.inertia[:3], [jxx, jxx, 2 * jxx], rtol=1e-6)
        assert arm_length(airframe) == pytest.approx(d)
        force = float(airframe.extra["published_alpha_xy_max"]) * jxx / d
        rotor = airframe.rotors[0]
        assert rotor.thrust[2] * rotor.speed_max**2 == pytest.approx(force, rel=1e-5)
        # kappa was solved from the printed alpha_z, which is rounded to 0.1 (0.2 % of the smallest).
        assert rotor.torque[2] / rotor.thrust[2] == pytest.approx(d / 20, rel=2e-3)
        # The printed table rounds to 0.1 (UAV 6 misses alpha_xy / alpha_z = 20 by 0.055 / 46.5).
        assert 4 * force / (airframe.mass * 9.81) == pytest.approx(
            float(airframe.extra["published_thrust_to_weight"]), abs=0.05
        )
        assert float(airframe.extra["published_alpha_xy_max"]) / 20 == pytest.approx(
            float(airframe.extra["published_alpha_z_max"]), abs=0.06
        )
        # Propeller: Ct 0.1116, tip speed 200 m/s.
        diameter = math.pi / 200 * math.sqrt(force / (0.1116 * 1.225))
        assert rotor.radius == pytest.approx(diameter / 2, rel=1e-4)
        assert rotor.speed_max * rotor.radius == pytest.approx(200.0, rel=1e-4)


@pytest.mark.parametrize("name", SYNTHETIC)
def test_the_synthetic_fleet_passes_its_own_checks(name: str) -> None:
    assert static_faults(vehicle(name)) == []


FAULTS = {
    "mass 7 is outside 0.3 to 6": ("virt_05", 7.0, 0.5, 1.5),
    "thrust to weight 11.7 is outside": ("virt_05", 0.4, 0.2, 1.02),
    "Mach 0.80": ("virt_05", 1.2, 0.26, 1.2),
    "overlap on hubs": ("virt_05", 0.98, 0.09, 1.0),
    "cannot hover": ("virt_05", 4.9, 0.3, 1.0),
    "of a rotor's thrust, and 70% is the limit": ("real_05", 1.2, 0.27, 1.0),
    "mass 0.03 is outside": ("cf2x_L250", 0.03, 0.046, 1.0),
}


@pytest.mark.parametrize("reason", FAULTS)
def test_faulty_profiles_are_rejected_with_the_reason(reason: str) -> None:
    base, mass, arm, scale = FAULTS[reason]
    with pytest.raises(AirworthyError, match="is rejected: ") as error:
        synthesize(base, mass, arm, scale, "faulty")
    assert reason in str(error.value)


def test_inertia_faults_have_their_reason() -> None:
    base = vehicle("virt_05")
    assert "Jzz" in static_faults(replace(base, inertia=(2e-3, 2e-3, 4.1e-3, 0.0, 0.0, 0.0)))[0]
    assert "Jxx/(m d^2)" in static_faults(replace(base, inertia=(1e-3, 1e-3, 1e-3, 0.0, 0.0, 0.0)))[0]


@pytest.mark.parametrize(
    ("mass", "arm", "scale"), [(-1.0, 0.2, 1.0), (1.0, math.nan, 1.0), (1.0, 0.2, 0.0), (math.inf, 0.2, 1.0)]
)
def test_bad_arguments(mass: float, arm: float, scale: float) -> None:
    with pytest.raises(AirworthyError, match="must be a positive number"):
        synthesize("virt_05", mass, arm, scale, "bad")


def test_a_vehicle_without_arms_cannot_be_scaled() -> None:
    base = vehicle("virt_05")
    single = replace(base, rotors=(replace(base.rotors[0], position=(0.0, 0.0, 0.1)),))
    with pytest.raises(AirworthyError, match="has no arm length"):
        synthesize(single, 1.0, 0.2, 1.0, "single")


def test_the_flight_check_has_the_last_word() -> None:
    flown: list[Vehicle] = []

    def check_flight(airframe: Vehicle) -> list[str]:
        flown.append(airframe)
        return ["hover drifts 0.3 m in 5 s"]

    with pytest.raises(AirworthyError, match=r"tumbler is rejected: hover drifts 0\.3 m in 5 s\."):
        synthesize("virt_05", 1.0, 0.26, 1.0, "tumbler", flight_check=check_flight)
    assert [airframe.name for airframe in flown] == ["tumbler"]
    with pytest.raises(AirworthyError, match="Mach"):  # static faults come first: nothing is flown
        synthesize("virt_05", 1.0, 0.26, 1.3, "fast", flight_check=check_flight)
    assert len(flown) == 1
    assert synthesize("virt_05", 1.0, 0.26, 1.0, "fine", flight_check=lambda airframe: []).name == "fine"


def test_a_synthesised_vehicle_can_be_kept(tmp_path: Path) -> None:
    made = synthesize("flightgoggles", 0.9, 0.12, 1.0, "mine")
    write_vehicle(made, tmp_path / "mine.toml")
    assert read_vehicle(tmp_path / "mine.toml") == made
