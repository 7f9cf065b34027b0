"""RotorPy 3.0: rigid body and motor lag, without aerodynamic drag and motor noise, one call per sub-step.

`--mode batched`: PyTorch, float64, fixed-step RK4. `--mode single`: NumPy, SciPy's adaptive RK45 (its default).
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # waiting threads must not take the next side's cores

import numpy as np
import torch
from protocol import RATE_HZ, SUB_STEPS, Step, serve
from rotorpy.vehicles.crazyflie_params import quad_params
from rotorpy.vehicles.multirotor import BatchedMultirotor, BatchedMultirotorParams, Multirotor

_ARGUMENTS = argparse.ArgumentParser()
_ARGUMENTS.add_argument("--mode", choices=("batched", "single"), default="batched")
_ARGUMENTS.add_argument("--threads", type=int, default=1)
OPTIONS = _ARGUMENTS.parse_args()
HOVER = 1788.53


def build(env_count: int) -> Step:
    """Crazyflie parameters, constant rotor speeds."""
    torch.set_num_threads(OPTIONS.threads)
    return _batched(env_count) if OPTIONS.mode == "batched" else _single(env_count)


def _batched(env_count: int) -> Step:
    device = torch.device("cpu")
    widths = {"x": 3, "v": 3, "q": 4, "w": 3, "wind": 3, "rotor_speeds": 4}
    state = {name: torch.zeros(env_count, width, dtype=torch.float64, device=device) for name, width in widths.items()}
    state["q"][:, 3] = 1.0
    state["rotor_speeds"][:] = HOVER
    parameters = BatchedMultirotorParams([dict(quad_params)] * env_count, env_count, device)
    vehicle = BatchedMultirotor(parameters, env_count, state, device, aero=False, integrator="rk4")
    control = {"cmd_motor_speeds": torch.full((env_count, 4), HOVER, dtype=torch.float64, device=device)}
    everyone = np.arange(env_count)

    def step() -> None:
        nonlocal state
        with torch.no_grad():
            for _ in range(SUB_STEPS):
                state = vehicle.step(state, control, 1.0 / RATE_HZ, everyone)

    return step


def _single(env_count: int) -> Step:
    if env_count != 1:
        raise ValueError("the NumPy vehicle is a single one")
    vehicle = Multirotor(dict(quad_params), aero=False)
    state = vehicle.initial_state
    control = {"cmd_motor_speeds": np.full(4, HOVER)}

    def step() -> None:
        nonlocal state
        for _ in range(SUB_STEPS):
            state = vehicle.step(state, control, 1.0 / RATE_HZ)

    return step


serve(build, ("rotorpy", "torch", "torchdiffeq"))
