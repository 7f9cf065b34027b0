"""L-BFGS: optima, budgets, and the compiled form against the readable one."""

# No postponed annotations here: Warp reads them.

from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy

from airworthy.core.native_kernel import MODULE_OPTIONS, quiet_launch, quiet_warp, shared_source
from airworthy.planners.common.lbfgs import Halt, LbfgsConfig, LbfgsStatus, lbfgs_source, lbfgs_work, minimise

SIZE = 8
_PROBLEM = """
struct Rosenbrock {
  int size;
  bool halt;
  double value(const double* x, double* g) {
    double sum = 0.0;
    for (int i = 0; i < size; ++i) g[i] = 0.0;
    for (int i = 0; i + 1 < size; ++i) {
      const double a = x[i + 1] - x[i] * x[i], b = 1.0 - x[i];
      sum += 100.0 * (a * a) + b * b;
      g[i] += -400.0 * (x[i] * a) - 2.0 * b;
      g[i + 1] += 200.0 * a;
    }
    return sum;
  }
};
"""
_BODY = """
Rosenbrock problem = {size, false};
double* x = xs.data + size * task;
Lbfgs solver = {size, 16, iterations, evaluations, tolerance, 0.0, work.data};
const int status = solver.minimise(problem, x);
found.data[4 * task] = status;
found.data[4 * task + 1] = solver.value;
found.data[4 * task + 2] = solver.iterations_done;
found.data[4 * task + 3] = solver.evaluations_done;
"""


@cache
def _kernel() -> Any:
    wp = quiet_warp()

    @wp.func_native("\n".join([shared_source("prelude.h"), _PROBLEM, lbfgs_source("Rosenbrock"), _BODY]))
    def native_rosenbrock(
        xs: wp.array[wp.float64],
        found: wp.array[wp.float64],
        work: wp.array[wp.float64],
        size: int,
        iterations: int,
        evaluations: int,
        tolerance: wp.float64,
        task: int,
    ): ...

    def airworthy_rosenbrock(
        xs: wp.array[wp.float64],
        found: wp.array[wp.float64],
        work: wp.array[wp.float64],
        size: int,
        iterations: int,
        evaluations: int,
        tolerance: wp.float64,
    ):
        native_rosenbrock(xs, found, work, size, iterations, evaluations, tolerance, wp.tid())

    return wp.kernel(airworthy_rosenbrock, module="unique", module_options=MODULE_OPTIONS)


def _function(x: np.ndarray) -> tuple[float, np.ndarray]:
    total, gradient = 0.0, np.zeros(SIZE)
    for i in range(SIZE - 1):
        a, b = x[i + 1] - x[i] * x[i], 1.0 - x[i]
        total += 100.0 * (a * a) + b * b
        gradient[i] += -400.0 * (x[i] * a) - 2.0 * b
        gradient[i + 1] += 200.0 * a
    return float(total), gradient


def test_finds_the_optimum() -> None:
    found = minimise(
        lambda x: (scipy.optimize.rosen(x), scipy.optimize.rosen_der(x)),
        np.full(SIZE, -1.2),
        LbfgsConfig(gradient_tolerance=1e-8),
    )
    assert found.status == LbfgsStatus.CONVERGED
    assert found.x == pytest.approx(np.ones(SIZE), abs=1e-6)
    # SciPy's L-BFGS-B has the same memory and line search.
    options = {"maxcor": 16, "gtol": 1e-6, "ftol": 0.0}
    theirs = scipy.optimize.minimize(
        scipy.optimize.rosen, np.full(SIZE, -1.2), jac=scipy.optimize.rosen_der, method="L-BFGS-B", options=options
    )
    assert found.evaluations < 1.5 * theirs.nfev


def test_budgets_and_halts() -> None:
    start = np.full(SIZE, -1.2)
    few = minimise(_function, start, LbfgsConfig(iterations=3))
    assert (few.status, few.iterations) == (LbfgsStatus.ITERATIONS, 3)
    fewer = minimise(_function, start, LbfgsConfig(evaluations=7))
    assert (fewer.status, fewer.evaluations) == (LbfgsStatus.EVALUATIONS, 7)
    assert fewer.value == _function(fewer.x)[0] < _function(start)[0]
    iterates: list[np.ndarray] = []

    def stopping(x: np.ndarray) -> tuple[float, np.ndarray]:
        iterates.append(x)
        if len(iterates) == 5:
            raise Halt
        return _function(x)

    stopped = minimise(stopping, start)
    assert stopped.status == LbfgsStatus.HALTED
    assert np.array_equal(stopped.x, iterates[-1])
    assert minimise(lambda x: (np.nan, x), start).status == LbfgsStatus.NOT_FINITE


def test_compiled_gives_the_same_bits_whatever_the_batch() -> None:
    wp = quiet_warp()
    rng = np.random.default_rng(0)
    starts = rng.uniform(-2, 2, (12, SIZE))
    config = LbfgsConfig(gradient_tolerance=1e-6)
    xs, found = starts.copy(), np.zeros((12, 4))
    arrays = [wp.array(a.reshape(-1), device="cpu", copy=False) for a in (xs, found, np.zeros(lbfgs_work(SIZE)))]
    numbers = [SIZE, config.iterations, config.evaluations, config.gradient_tolerance]
    quiet_launch(_kernel(), 12, [*arrays, *numbers], "cpu")
    for start, x, row in zip(starts, xs, found, strict=True):
        twin = minimise(_function, start, config)
        assert np.array_equal(x, twin.x)
        assert row.tolist() == [twin.status, twin.value, twin.iterations, twin.evaluations]
