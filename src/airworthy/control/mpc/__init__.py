"""The expert's tracking MPC: thousands of box-constrained problems per call, no compiler and no solver to install."""

from airworthy.control.mpc.solver import MpcReference, MpcSolution, MpcSolver
from airworthy.control.mpc.stage import MPC_PRESETS, MpcConfig, mpc_preset

__all__ = ["MPC_PRESETS", "MpcConfig", "MpcReference", "MpcSolution", "MpcSolver", "mpc_preset"]
