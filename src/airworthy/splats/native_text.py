"""Native texts of the splat renderer and the numbers that they share with Python."""

from __future__ import annotations

import math
from importlib.resources import files

import numpy as np

from airworthy.core.native_kernel import CPU_LANES, shared_source

CHUNK = 512
"""Gaussians that are culled, and on a CPU projected, together."""
TILE = 16
"""Pixels along the side of a tile."""
GEOMETRY_ROWS = 13
"""Numbers of a Gaussian that every camera reads: mean (3), axes times their standard deviations (3 x 3), opacity."""
RECORD_SIZE = 12
PLANE_SIZE = 8
"""Numbers of a Gaussian's plane in the image: lean (2), normal (3), and three that round it up to a vector's load."""
BACK_SIZE = 16
"""Sums over a record's pixels: of the derivatives with respect to red, green, blue, depth; of that with respect to the
logarithm
of the opacity, times 1, dx^2, dx dy, dy^2, dx, dy; of that with respect to the lean, times dx, dy, 1; with respect to the
normal."""
SLOPE_ROWS = 15
"""Derivatives with respect to a Gaussian: mean (3), axes (3 x 3), opacity; then length of that with respect to its place in the
image, and how many images it was in."""
CAMERA = np.dtype(
    [
        ("rotation", "<f4", 9),
        ("position", "<f4", 3),
        ("intrinsics", "<f4", 4),
        ("slopes", "<f4", 4),
        ("background", "<f4", 3),
        ("first_chunk", "<i4"),
        ("chunk_count", "<i4"),
        ("slot", "<i4"),
        ("slot_count", "<i4"),
        ("more_first", "<i4"),
        ("more_count", "<i4"),
        ("lens", "<f4", 8),
        ("lens_limit", "<f4"),
        ("field", "<f4"),
        ("least_gain", "<f4"),
        ("steepest", "<f4"),
        ("kept", "<f4", 2),
        ("spread", "<f4", 2),
        ("spare", "<f4", 3),
    ]
)
CHUNK_ROW = np.dtype(
    [
        ("centre", "<f4", 3),
        ("radius", "<f4"),
        ("extent", "<f4"),
        ("reach", "<f4"),
        ("harmonics", "<i4"),
        ("coefficients", "<i4"),
    ]
)

LEAST_ALPHA = 1.0 / 255.0
"""What a Gaussian adds with less opacity than this at a pixel is left out there."""
MOST_ALPHA = 0.99
LEAST_LEFT = 1e-4
"""A pixel that lets less light pass than this is finished."""
PLANE_SPREAD = 0.1
"""Variance added to a Gaussian's form where the lean of its plane is asked for [px^2]. Ours: without it that of one seen
edge-on has no bound; with a pixel's whole 0.3 planes of Gaussians a pixel wide would lean a quarter too little."""
PLANE_MOST = 0.75
"""A pixel's ray meets a plane at 1 / (1 - PLANE_MOST) times its mean's depth at most: a plane that passes by the camera has
no depth there."""
FAR_LIMIT = 1e7
"""Means beyond are not seen [m]."""
STAGES = {"collect": 0, "sort": 1, "lists": 2}
"""Of arranging on a CPU, each with those before it; for measuring. On a GPU 0 writes keys, 1 finds each tile's list in them."""
FLAGS = {
    name: 1 << k
    for k, name in enumerate(
        (
            "rgb",
            "depth",
            "alpha",
            "expected",
            "median",
            "antialiased",
            "limit",
            "opencv",
            "fisheye",
            "reduced",
            "plane",
            "normal",
        )
    )
}
_NEEDED = {"project.h": ("lens.h", "project.h")}
"""Texts that stand on others."""

_WHOLE = {
    "CHUNK": CHUNK,
    "LANE_STRIDE": CPU_LANES,
    "GEOMETRY_ROWS": GEOMETRY_ROWS,
    "ROW_AXES": 3,
    "ROW_OPACITY": 12,
    "RECORD_SIZE": RECORD_SIZE,
    "PLANE_SIZE": PLANE_SIZE,
    "TILE": TILE,
    "TEST_SIDE": 4,
    "BLOCK_X": 4,
    "BLOCK_Y": 4,
    "DIGITS": 3,
    "DIGIT_BITS": 10,
    "AHEAD": 8,
    "BACK_SIZE": BACK_SIZE,
    "BACK_TILES": 0,
    "SLOPE_ROWS": SLOPE_ROWS,
    "STAGE_EMIT": 0,
    "STAGE_SORT": STAGES["sort"],
    "STAGE_LISTS": STAGES["lists"],
    **{f"FLAG_{name.upper()}": bit for name, bit in FLAGS.items()},
}
_REAL = {
    "LEAST_ALPHA": LEAST_ALPHA,
    "LEAST_PEAK": math.log2(LEAST_ALPHA),
    "MOST_ALPHA": MOST_ALPHA,
    "LEAST_LEFT": LEAST_LEFT,
    "FAR_LIMIT": FAR_LIMIT,
    "PLANE_SPREAD": PLANE_SPREAD,
    "PLANE_MOST": PLANE_MOST,
    "LN_2": math.log(2.0),
    "LOG2_E": math.log2(math.e),
    "HALF_LOG2_E": 0.5 * math.log2(math.e),
    "TOUCH_MARGIN": 0.01,  # rounding of the form at a tile's edge must not hide what a pixel would see
    # 2 to the power of r, |r| <= 1/2: fitted for the least largest relative error, 2.6e-6 before rounding.
    "EXP2_0": 0.9999992847442627,
    "EXP2_1": 0.6931217908859253,
    "EXP2_2": 0.240247443318367,
    "EXP2_3": 0.05591785907745361,
    "EXP2_4": 0.009570101276040077,
    # Area tangent of q over q by powers of q^2 <= 0.16: fitted for the least largest error, 1.3e-8 before rounding.
    "ATAN_0": 1.0,
    "ATAN_1": -0.3333292603492737,
    "ATAN_2": 0.19979040324687958,
    "ATAN_3": -0.1390335112810135,
    "ATAN_4": 0.08162977546453476,
}


def native_source(*names: str) -> str:
    """Return `prelude.h`, `lanes.h` and the named texts of this folder, with their numbers."""
    numbers = [f"#define {name} {value}" for name, value in _WHOLE.items()]
    numbers += [f"#define {name} ({value!r}f)" for name, value in _REAL.items()]
    folder = files("airworthy.splats").joinpath("native")
    wanted = ["lanes.h", *(part for name in names for part in _NEEDED.get(name, (name,)))]
    texts = [folder.joinpath(name).read_text() for name in wanted]
    return "\n".join([shared_source("prelude.h"), *numbers, *texts])
