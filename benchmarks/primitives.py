"""What the machine can do at most, and what the building blocks of a step cost by themselves."""

from __future__ import annotations

from functools import cache

import numpy as np
import warp as wp

from benchmarks import lanes
from benchmarks.hardware import last_level_cache_bytes

CHAINS = 16
"""Independent multiply-add chains: latency (4-5 cycles) times two units needs at least 10 of them, 32 registers allow 16."""

_NAMES = [f"x{k}" for k in range(CHAINS)]
_MULTIPLY_ADD = "\n".join(
    [
        "F scale = load(a), shift = load(a + 16);",
        *(f"F {x} = load(a) + {k}.0f;" for k, x in enumerate(_NAMES)),
        "for (int k = 0; k < count; ++k) {",
        *(f"  {x} = __builtin_elementwise_fma({x}, scale, shift);" for x in _NAMES),
        "}",
        f"store(b + 16 * index, {' + '.join(_NAMES)});",
    ]
)

_READ = """
const float* p = a + (long)stride * index;
F s0 = load(p), s1 = load(p + 16), s2 = load(p + 32), s3 = load(p + 48);
for (int k = 64; k < stride; k += 64) {
  s0 += load(p + k); s1 += load(p + k + 16); s2 += load(p + k + 32); s3 += load(p + k + 48);
}
store(b + 16 * index, s0 + s1 + s2 + s3);
"""

_UPDATE = """
float* p = b + (long)stride * index;
for (int k = 0; k < stride; k += 16) store(p + k, load(p + k) * 0.999f + 0.001f);
"""

THREEFRY = """
auto block = [](const U* key, U* x) INLINE {
  const unsigned char turns[8][2] = {{10, 26}, {11, 21}, {13, 27}, {23, 5}, {6, 20}, {17, 11}, {25, 10}, {18, 20}};
  for (int i = 0; i < 4; ++i) x[i] += key[i];
#pragma clang loop unroll(full)
  for (int r = 0; r < 13; ++r) {
    const unsigned int n = turns[r % 8][0], m = turns[r % 8][1];
    U &p = x[r % 2 ? 3 : 1], &q = x[r % 2 ? 1 : 3];
    x[0] += p; p = ((p << n) | (p >> (32u - n))) ^ x[0];
    x[2] += q; q = ((q << m) | (q >> (32u - m))) ^ x[2];
    if (r % 4 == 3) {
      const int s = r / 4 + 1;
      for (int i = 0; i < 4; ++i) x[i] += key[(s + i) % 5];
      x[3] += (U)(unsigned int)s;
    }
  }
};
"""
"""Threefry4x32 with 13 rounds (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011)."""

BOX_MULLER = """
auto pair = [=](U p, U q, F& first, F& second) INLINE {
  F uniform = __builtin_convertvector((I)(p >> 9u), F) * 1.1920928955078125e-7f + 5.9604645e-8f;
  U shifted = bits_of(uniform) - 0x3f3504f3u;
  F exponent = __builtin_convertvector((I)shifted >> 23, F);
  F x = float_of((shifted & 0x007fffffu) + 0x3f3504f3u) - 1.0f, xx = x * x;
  F series = (((-0.1015867f * x + 0.1613086f) * x - 0.1717890f) * x + 0.1991056f) * x - 0.2497996f;
  F logarithm = exponent * 0.6931472f + (x - 0.5f * xx + x * xx * (series * x + 0.3333475f));
  F radius = root(logarithm * -2.0f);
  F r = __builtin_convertvector((I)(q << 2u) >> 9, F) * 1.8725351e-7f, z = r * r;
  F sine = r + r * z * (-0.16666667f + z * (8.3333333e-3f + z * -1.984127e-4f));
  F cosine = 1.0f + z * (-0.5f + z * (4.1666667e-2f + z * (-1.3888889e-3f + z * 2.4801587e-5f)));
  I odd = (I)((q >> 30u) & 1u) != 0;
  first = radius * float_of(bits_of(odd ? sine : cosine) ^ ((q ^ (q << 1u)) & 0x80000000u));
  second = radius * float_of(bits_of(odd ? cosine : sine) ^ (q & 0x80000000u));
};
"""
"""Two normals from two words; logarithm and sine as polynomials without a division, good to about 1e-6."""

_START = """
U key[5];
for (int i = 0; i < 4; ++i) key[i] = bits_of(load(a + 16 * i));
key[4] = 0x1BD11BDAu ^ key[0] ^ key[1] ^ key[2] ^ key[3];
"""

_BLOCKS = (
    THREEFRY
    + _START
    + """
U sum = (U)0u;
for (int k = 0; k < count; ++k) {
  U x[4] = {(U)(unsigned int)k, (U)1u, (U)(unsigned int)index, (U)0u};
  block(key, x);
  sum ^= x[0] ^ x[1] ^ x[2] ^ x[3];
}
store(b + 16 * index, float_of(sum));
"""
)

_NORMALS = (
    THREEFRY
    + BOX_MULLER
    + _START
    + """
F sum = (F)0.0f, squares = (F)0.0f;
for (int k = 0; k < count; ++k) {
  U x[4] = {(U)(unsigned int)k, (U)1u, (U)(unsigned int)index, (U)0u};
  F n0, n1, n2, n3;
  block(key, x);
  pair(x[0], x[1], n0, n1);
  pair(x[2], x[3], n2, n3);
  sum += (n0 + n1) + (n2 + n3);
  squares += (n0 * n0 + n1 * n1) + (n2 * n2 + n3 * n3);
}
store(b + 32 * index, sum);
store(b + 32 * index + 16, squares);
"""
)

_SNIPPETS = {"multiply_add": _MULTIPLY_ADD, "read": _READ, "update": _UPDATE, "blocks": _BLOCKS, "normals": _NORMALS}


@cache
def kernel(name: str) -> wp.Kernel:
    """Return the kernel of a primitive: multiply_add, read, update, blocks or normals."""
    return lanes.lane_kernel(_SNIPPETS[name])


def flops_per_second(threads: int, seconds: float) -> float:
    """Single-precision multiply-add peak [flop/s], a multiply-add counted as two."""
    count = 400_000
    a = wp.full(32, value=0.5, dtype=wp.float32, device="cpu")
    outputs = [wp.zeros(lanes.LANES, dtype=wp.float32, device="cpu") for _ in range(threads)]
    commands = [c for out in outputs for c in lanes.recorded(kernel("multiply_add"), a, out, count, 0, 1, 1)]
    lanes.launch_all(commands)
    per_call = 2.0 * lanes.LANES * CHAINS * count * threads
    return per_call * lanes.rate(lambda: lanes.launch_all(commands), seconds)


def bytes_per_second(name: str, threads: int, seconds: float) -> float:
    """Sequential memory traffic [byte/s]: "read" sums an array, "update" reads and writes it; larger than the caches."""
    megabytes = max(128, 4 * last_level_cache_bytes() // 2**20)
    stride = 2**18
    chunks = max(threads, megabytes * 2**20 // (4 * stride))
    big = wp.full(chunks * stride, value=0.5, dtype=wp.float32, device="cpu")
    small = wp.zeros(chunks * lanes.LANES, dtype=wp.float32, device="cpu")
    a, b = (big, small) if name == "read" else (small, big)
    commands = lanes.recorded(kernel(name), a, b, 0, stride, chunks, threads)
    lanes.launch_all(commands)
    traffic = 4.0 * big.size * (1 if name == "read" else 2)
    return traffic * lanes.rate(lambda: lanes.launch_all(commands), seconds)


def draws_per_second(name: str, threads: int, seconds: float) -> float:
    """Return generator blocks of 4 words ("blocks"), or normal numbers ("normals", generator included), per second."""
    count, total = 2_000, 32 * threads
    a, b = key_words(), wp.zeros(2 * lanes.LANES * total, dtype=wp.float32, device="cpu")
    commands = lanes.recorded(kernel(name), a, b, count, 0, total, threads)
    lanes.launch_all(commands)
    per_call = lanes.LANES * count * total * (1 if name == "blocks" else 4)
    return per_call * lanes.rate(lambda: lanes.launch_all(commands), seconds)


def key_words() -> wp.array:
    """Four key words per lane, as bit patterns of floats."""
    numbers = np.arange(4 * lanes.LANES, dtype=np.uint32) * np.uint32(2654435761)
    return wp.array(numbers.view(np.float32), dtype=wp.float32, device="cpu")


def normal_moments() -> tuple[float, float, int]:
    """Mean, variance and number of normals drawn by the timed kernel: what says that it draws what it should."""
    count, total = 2_000, 32
    b = wp.zeros(2 * lanes.LANES * total, dtype=wp.float32, device="cpu")
    lanes.launch_all(lanes.recorded(kernel("normals"), key_words(), b, count, 0, total, 1))
    sums = b.numpy().astype(np.float64).reshape(total, 2, lanes.LANES).sum(axis=(0, 2))
    n = 4 * count * total * lanes.LANES
    mean = sums[0] / n
    return float(mean), float(sums[1] / n - mean**2), n
