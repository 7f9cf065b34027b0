"""Equations of motion, their parameters and state, traced for kernels."""
