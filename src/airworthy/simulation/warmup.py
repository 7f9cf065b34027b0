"""Compiles the kernels that flying needs into Warp's cache: `python -m airworthy.simulation.warmup`."""

from __future__ import annotations

import sys
import time

from airworthy.core.native_kernel import quiet_warp
from airworthy.dynamics.parameters import ROTOR_COUNTS
from airworthy.simulation.step_kernel import semi_kinematic_kernel, step_kernel


def warm_up(device: str = "cpu") -> float:
    """Compile what is not in the cache yet; returns the seconds it took."""
    wp = quiet_warp()
    start = time.perf_counter()
    with wp.ScopedLogLevel(wp.LOG_ERROR):
        for count in ROTOR_COUNTS:
            wp.load_module(step_kernel(count).module, device=device)
        wp.load_module(semi_kinematic_kernel(ROTOR_COUNTS[0]).module, device=device)
    return time.perf_counter() - start


if __name__ == "__main__":
    print(f"Kernels ready after {warm_up(*sys.argv[1:2]):.1f} s.")
