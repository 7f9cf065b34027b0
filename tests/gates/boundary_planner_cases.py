"""An oracle by itself for tests of the planner: the fastest admissible pair by sampling the limit, in plain NumPy."""

from __future__ import annotations

import numpy as np

TAU = np.linspace(0.0, 1.0, 101)
H1 = 140 * TAU**3 - 420 * TAU**4 + 420 * TAU**5 - 140 * TAU**6
H2 = 420 * TAU**2 - 1680 * TAU**3 + 2100 * TAU**4 - 840 * TAU**5
A1 = 1 - 80 * TAU**3 + 225 * TAU**4 - 216 * TAU**5 + 70 * TAU**6
A2 = -240 * TAU**2 + 900 * TAU**3 - 1080 * TAU**4 + 420 * TAU**5
B1 = -60 * TAU**3 + 195 * TAU**4 - 204 * TAU**5 + 70 * TAU**6
B2 = -180 * TAU**2 + 780 * TAU**3 - 1020 * TAU**4 + 420 * TAU**5


def oracle(situations: np.ndarray) -> np.ndarray:
    """Speed and duration of the admissible candidate with the least duration (section 6); NaN where there is none."""
    return np.array([_fastest(*row) for row in np.asarray(situations, float)])


def _fastest(v_prev, z_prev, d0, theta0, z_i, df, thetaf, z_next):  # type: ignore[no-untyped-def]
    u = lambda b: np.array([np.sin(b), np.cos(b), 0.0])  # noqa: E731
    first = d0 * u(theta0) + (0.0, 0.0, z_i - z_prev)
    second = df * u(theta0 + thetaf) + (0.0, 0.0, z_next - z_i)
    v = np.repeat(np.linspace(0.0, 2.0, 10), 7)
    linear = np.where(v_prev + v < 1e-10, 1.5, 2.0 * d0 / np.maximum(v_prev + v, 1e-10))
    t0 = linear * np.tile(np.linspace(0.5, 1.1, 7), 10)
    tf = np.where(v < 1e-10, 2.0 * df, 2.0 * df / np.maximum(v, 1e-10))
    here = v[:, None] * u(theta0)
    fine = _keeps(first, v_prev * u(0.0)[None], here, t0) & _keeps(second, here, np.zeros((1, 3)), tf)
    if not fine.any():
        return np.nan, np.nan
    best = int(np.argmin(np.where(fine, t0, np.inf)))
    return v[best], t0[best]


def _keeps(step: np.ndarray, before: np.ndarray, after: np.ndarray, times: np.ndarray) -> np.ndarray:
    t = times[:, None, None]
    s, a, b = step[None, :, None], before[..., None], after[..., None]
    speed = np.linalg.norm(s * H1 / t + a * A1 + b * B1, axis=1)
    push = np.linalg.norm(s * H2 / t**2 + a * A2 / t + b * B2 / t, axis=1)
    return np.all(push < 2.0 - 0.3 * speed**3, axis=1)
