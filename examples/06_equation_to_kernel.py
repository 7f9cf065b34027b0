"""How the physics gets fast: one plain function runs on NumPy, becomes a kernel, and is differentiated exactly."""

import numpy as np

from airworthy.core import MODULE_OPTIONS, jacobian, ops, quiet_launch, quiet_warp, shared_source, trace


def rise(speed, thrust):
    """Vertical speed after 10 ms, with quadratic drag; scalars, arrays, traced values or dual numbers."""
    return (speed + 0.01 * (thrust - 9.81 - 0.3 * speed * ops.absolute(speed)),)


# Traced with its two derivatives, it is C in which common terms are computed once ...
block = trace(lambda **both: jacobian(rise, tuple(both.values())), "rise", {"speed": None, "thrust": None}, {"out": 3})
print(f"{block.operation_count} operations:\n{block.source}")

# ... and the native code round it loads 16 environments at a time, or one per thread on a GPU.
SNIPPET = f"""{shared_source("prelude.h")} struct T {{ {block.source} }}; const int i = block * LANES; F out[3];
T::rise(N::load(x.data + i), N::load(x.data + n + i), out);
for (int k = 0; k < 3; ++k) N::store(y.data + k * n + i, out[k]);"""
wp, n = quiet_warp(), 1024


@wp.func_native(SNIPPET)
def step(x: wp.array[wp.float32], y: wp.array[wp.float32], n: int, block: int):
    """Return the native code."""


@wp.kernel(module="unique", module_options=MODULE_OPTIONS)
def kernel(x: wp.array[wp.float32], y: wp.array[wp.float32], n: int):  # noqa: D103 - Warp would take a docstring for code
    step(x, y, n, wp.tid())


x, y = np.random.default_rng(0).normal(0.0, 5.0, (2, n)), np.zeros((3, n), np.float32)
quiet_launch(kernel, n // 16, [wp.array(x.ravel(), wp.float32), wp.array(y.ravel(), copy=False), n], "cpu")
(value,), (slopes,) = jacobian(rise, x)  # the float64 twin
print(f"kernel and twin differ by {max(np.abs(a - b).max() for a, b in zip([value, *slopes], y, strict=True)):.1e}")
