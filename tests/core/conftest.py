"""One small kernel for every test of generated code, built once: operations, aliasing, Jacobians, random numbers."""

# No postponed annotations here: Warp reads them.
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from airworthy.core import ops
from airworthy.core.arrays import ArrayAny, ArrayF32, ArrayU32
from airworthy.core.layout import Layout
from airworthy.core.native_kernel import MODULE_OPTIONS, quiet_launch, quiet_warp, shared_source
from airworthy.core.tracing import jacobian, trace

PATHS = {"lanes": 16, "scalar": 1}
"""How generated code runs on a CPU: 16 environments per vector, and one by one, as on a GPU."""

RECORD = Layout({"gain": (), "offset": (2,)})
"""Rows that the probe's macro reads as 1, 1.5 and 2."""


def _halved(a: Any, b: Any) -> Any:
    """Halve a number until its size is below 1, and count; by another that lanes differ in."""

    def step(state: Any, fixed: Any) -> Any:
        (x, count), (other, half) = state, fixed
        return x * half, count + ops.where(other > 0.0, 1.0, 0.5)

    value, count = ops.repeat(40, step, (a, 0.0), (b, 0.5), lambda state: ops.absolute(state[0]) >= 1.0)
    return value + count


def operations(a: Any, b: Any, c: Any) -> dict[str, Any]:
    """Every operation that can be traced, by name."""
    where, less, at_most = ops.where, a < b, b <= c
    sine, cosine = ops.sin_cos(a)
    return {
        "add": a + b,
        "subtract": a - b,
        "multiply": a * b,
        "divide": a / b,
        "negate": -(a + b),
        "square": a**2,
        "sqrt": ops.sqrt(a),
        "absolute": ops.absolute(a),
        "floor": ops.floor(a),
        "less": where(less, c, a),
        "less_equal": where(a <= b, c, a),
        "greater": where(a > b, c, a),
        "greater_equal": where(a >= b, c, a),
        "equal": where(a == b, c, a),
        "not_equal": where(a != b, c, a),
        "and": where(less & at_most, a, c),
        "or": where(less | at_most, a, c),
        "not": where(~less, a, c),
        # Products of their own: a compiler contracts one only where nothing else needs it.
        "multiply_add": b * c + a,
        "multiply_subtract": a * c - b,
        "negated_multiply_add": a - c * c,
        "add_constant": a + 0.1,
        "add_tie": a + (1.0 + 2.0**-24),
        "power_of_two": a / 8.0,
        "huge_power_of_two": a / -(2.0**127),
        "third": a / 3.0,
        "infinite": where(less, a, np.inf),
        "not_a_number": where(less, a, np.nan),
        "minimum": ops.minimum(a, b),
        "maximum": ops.maximum(a, b),
        "clip": ops.clip(a, -1.5, 2.5),
        "sign": ops.sign(a),
        "root_of_squares": ops.sqrt(a * a + b * b),
        "sin": sine,
        "cos": cosine,
        "arctan2": ops.arctan2(a, b),
        "exp": ops.exp(a),
        "log": ops.log(a),
        "softplus": ops.softplus(a),
        "tanh": ops.tanh(a),
        "arccos": ops.arccos(a),
        "repeat": _halved(a, b),
    }


OPERATIONS = tuple(operations(*np.ones(3)))


def with_record(v: Any, p: Any) -> tuple[Any, ...]:
    """Reads parameters; its results overwrite its argument in the probe."""
    return v[1] * p.gain + p.offset[0], v[2] + v[0], v[0] * p.offset[1]


def bent(x: Any, y: Any, z: Any) -> tuple[Any, ...]:
    """Roots, kinks and quotients, for Jacobians: a unit vector's components, |x| y, a choice, an angle."""
    length = ops.sqrt(x * x + y * y + z * z)
    return x / length, y / length, ops.absolute(x) * y, ops.where(x > y, x * x, y * z), ops.arctan2(y, x), ops.sin(z)


def bent_jacobian(x: Any, y: Any, z: Any) -> Any:
    return jacobian(bent, (x, y, z))


def _probe_source(path: str) -> str:
    blocks = [
        trace(lambda a, b, c: list(operations(a, b, c).values()), "operations", dict.fromkeys("abc"), {"out": len(OPERATIONS)}),
        trace(with_record, "with_record", {"v": 3}, {"out": 3}, {"p": (RECORD, "PAR")}, context="float unused"),
        trace(bent_jacobian, "bent", dict.fromkeys("xyz"), {"value": 6, "slope": 18}),
    ]
    head = "#define SCALAR_PATH\n" if path == "scalar" else ""
    body = """
      const int lane0 = block * LANES;
      const F a = N::load(values.data + lane0), b = N::load(values.data + stride + lane0);
      const F c = N::load(values.data + 2 * stride + lane0);
      F out[OPERATIONS + 35], *at = out + OPERATIONS;
      T::operations(a, b, c, out);
      at[0] = a; at[1] = b; at[2] = c;
      T::with_record(0.0f, at, at);
      T::bent(a, b, c, at + 3, at + 9);
      U key[5], drawn[4];
      for (int i = 0; i < 4; ++i) key[i] = N::load_u(keys.data + i * stride + lane0);
      Threefry::expand(key);
      Threefry::draw(key, N::load_u(keys.data + 4 * stride + lane0), 3, 7, drawn);
      for (int i = 0; i < 4; ++i) {
        N::store_u(words.data + i * stride + lane0, drawn[i]);
        at[27 + i] = Threefry::uniform(drawn[i]);
      }
      Threefry::normals(key, N::load_u(keys.data + 4 * stride + lane0), 3, 7, at + 31);
      for (int i = 0; i < OPERATIONS + 35; ++i) N::store(results.data + i * stride + lane0, out[i]);
      #undef LANES
      #undef INLINE
      #undef STAGES
      #undef PRAGMA_NOUNROLL
      #undef SCALAR_PATH
      #undef PAR
    """
    parts = f"#define PAR(r) N::c(1.0f + 0.5f * (float)(r))\nenum {{ OPERATIONS = {len(OPERATIONS)} }};\nstruct T {{\n"
    return "\n".join([head + shared_source("prelude.h", "random.h"), parts, *(b.source for b in blocks), "};", body])


def _probe_kernel() -> Any:
    wp = quiet_warp()

    @wp.func_native(_probe_source("lanes"))
    def probe_lanes(
        values: wp.array[wp.float32],
        keys: wp.array[wp.uint32],
        results: wp.array[wp.float32],
        words: wp.array[wp.uint32],
        stride: int,
        block: int,
    ): ...

    @wp.func_native(_probe_source("scalar"))
    def probe_scalar(
        values: wp.array[wp.float32],
        keys: wp.array[wp.uint32],
        results: wp.array[wp.float32],
        words: wp.array[wp.uint32],
        stride: int,
        block: int,
    ): ...

    def airworthy_probe(
        values: wp.array[wp.float32],
        keys: wp.array[wp.uint32],
        results: wp.array[wp.float32],
        words: wp.array[wp.uint32],
        stride: int,
        lanes: int,
        first: int,
    ):
        if lanes == 1:
            probe_scalar(values, keys, results, words, stride, first + wp.tid())
        else:
            probe_lanes(values, keys, results, words, stride, first + wp.tid())

    return wp.kernel(airworthy_probe, module="unique", module_options=MODULE_OPTIONS)


@pytest.fixture(scope="session")
def traced_operations() -> Callable[..., dict[str, Any]]:
    """The operations that the probe runs, to be run on NumPy."""
    return operations


@pytest.fixture(scope="session")
def bent_equation() -> Callable[..., Any]:
    """The equation whose Jacobian the probe runs."""
    return bent


@pytest.fixture(scope="session")
def probe_kernel() -> Any:
    """The kernel; arguments: values (3, stride), keys (5, stride), results, words (4, stride), stride, lanes, first block."""
    return _probe_kernel()


Rows = dict[str, ArrayAny]
Probe = Callable[[str, ArrayF32, ArrayU32 | None], Rows]


@pytest.fixture(scope="session")
def probe(probe_kernel: Any) -> Probe:
    """Runs generated code: (path, values (3, n), keys and step (5, n)) -> rows by name, n a multiple of 16."""
    wp = quiet_warp()

    def run(path: str, values: ArrayF32, keys: ArrayU32 | None = None) -> Rows:
        count = values.shape[1]
        keys = np.zeros((5, count), np.uint32) if keys is None else keys
        results = np.zeros((len(OPERATIONS) + 35, count), np.float32)
        words = np.zeros((4, count), np.uint32)
        arrays = [wp.array(x.ravel(), device="cpu", copy=False) for x in (values, keys, results, words)]
        quiet_launch(probe_kernel, count // PATHS[path], [*arrays, count, PATHS[path], 0], "cpu")
        rows: Rows = dict(zip(OPERATIONS, results, strict=False))
        ends = np.cumsum([len(OPERATIONS), 3, 6, 18, 4, 4])
        names = ("record", "bent", "bent_slopes", "uniforms", "normals")
        return rows | {n: results[a:b] for n, a, b in zip(names, ends[:-1], ends[1:], strict=True)} | {"words": words}

    return run
