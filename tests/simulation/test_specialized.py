"""A kernel that is compiled for one configuration alone gives the bits of the one that serves all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airworthy.core.native_kernel import native_kernel
from airworthy.dynamics.state import Effects
from airworthy.simulation import Ground, Imu, Simulator, SimulatorConfig, family
from airworthy.vehicles import vehicle

QUIET = Imu(accelerometer_noise=(1e-3,) * 3, gyroscope_noise=(1e-4,) * 3)
BARE = SimulatorConfig(physics_rate=960.0, control_rate=96.0, wrench_noise=False, disturbance=False)
WHOLE = SimulatorConfig(
    physics_rate=480.0,
    control_rate=48.0,
    integrator="euler",
    level="rate_thrust:flightgoggles",
    imu=QUIET,
    gyro_feedback=True,
    ground=Ground(),
)


def flown(config: SimulatorConfig, craft: str) -> tuple[Any, Any]:
    simulator = Simulator(vehicle(craft), config, env_count=19, seed=3)
    simulator.reset(position=(0.0, 0.0, 0.4))
    rng = np.random.default_rng(5)
    for _ in range(12):
        if config.level == "rotor_speed":
            command = simulator.field("rotor_speed") * rng.uniform(0.8, 1.1, (19, 1))
        else:
            command = np.concatenate([rng.uniform(4.0, 11.0, (19, 1)), rng.normal(0.0, 1.0, (19, 3))], axis=1)
        simulator.step(command)
    return simulator._arrays.state().copy(), simulator._arrays.keys().copy()


@pytest.mark.parametrize(("config", "craft"), [(BARE, "carl"), (WHOLE, "flightgoggles")], ids=["bare", "whole"])
def test_the_bits_are_those_of_the_kernel_for_everything(config: SimulatorConfig, craft: str) -> None:
    for mine, others in zip(flown(replace(config, specialized=True), craft), flown(config, craft), strict=True):
        np.testing.assert_array_equal(mine.view(np.uint32), others.view(np.uint32))


def test_what_is_fixed_is_a_constant_of_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only whether a launch goes on after this part is still asked for."""
    made: list[tuple[str, str]] = []
    monkeypatch.setattr(family, "native_kernel", lambda name, source, arguments: made.append((name, source)))
    only = family.Specialization(int(Effects.IMU | Effects.DRAG), 3, 1)
    family.step_kernel.__wrapped__(4, only)
    family.semi_kinematic_kernel.__wrapped__(4, only)
    family.step_kernel.__wrapped__(4)
    family.step_kernel.__wrapped__(4, None, True)
    names = [name for name, _ in made]
    assert names == [
        f"step_4_{int(Effects.IMU | Effects.DRAG)}_3_1",
        f"semi_kinematic_{int(Effects.IMU | Effects.DRAG)}_3_1",
        "step_4",
        "step_4_irregular",
    ]
    assert made[0][1].startswith(
        f"const int asked = flags & {1 << 21};\n{{\nint flags = {(1 << 3) + (1 << 16)} | asked, level = 3"
    )
    assert made[0][1].endswith(made[2][1] + "\n}")


def test_each_configuration_has_a_kernel_of_its_own_and_others_share_one() -> None:
    assert family.step_kernel(4, family.Specialization(1, 0, 0)) is not family.step_kernel(4, family.Specialization(3, 0, 0))
    assert family.step_kernel(4, None) is family.step_kernel(4, None)
    assert native_kernel is family.native_kernel
