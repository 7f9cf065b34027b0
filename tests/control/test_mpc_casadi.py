"""The tracking MPC beside an interior-point solver of nonlinear programmes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.control.test_mpc import FULL, line, starts

from airworthy.control.mpc import MpcConfig, MpcSolver

pytest.importorskip("casadi")


def test_optima_of_ipopt() -> None:
    """Twelve steps, so that the programme is small; offsets that touch the bounds."""
    from benchmarks.mpc import casadi_solver

    config = MpcConfig(horizon=12, iterations=60)
    x0, full = starts(6, 11, 0.8), FULL * np.linspace(0.7, 1.5, 6)
    solve = casadi_solver(line(), config)
    found = MpcSolver(6, line(), config).solve(x0, full, 0)
    for k in range(6):
        cost, inputs = solve(x0[k], float(full[k]))
        assert abs(float(found.cost[k]) / cost - 1.0) <= 1e-4
        assert np.abs(found.inputs[k, 0] - inputs[0]).max() <= 1e-2
