"""Rows of training's arrays: what a Gaussian holds beside what the renderer reads, and the numbers of a step."""

from __future__ import annotations

import math

from airworthy.core.random import Stream

RAW_ROWS = 12
"""Logarithms of scales (3), quaternion x, y, z, w (4), logit of the opacity, powers of the two decays (how often it has moved),
sum of the lengths of its derivatives in the image, in how many images it was."""
SCALE, TURN, LOGIT, FIRST, SECOND, SHIFT, SEEN = 0, 3, 7, 8, 9, 10, 11
MOVED = 11
"""Numbers of a Gaussian that have moments, harmonics aside: mean (3), logarithms of scales (3), quaternion (4), logit."""

SETTINGS = (
    "first_decay",
    "second_decay",
    "epsilon",
    "place_rate",
    "place_share",
    "scale_rate",
    "turn_rate",
    "opacity_rate",
    "color_rate",
    "rest_rate",
    "opacity_pull",
    "scale_pull",
    "noise",
    "least_scale",
    "most_scale",
    "most_logit",
)
NOISE_STEEPNESS, NOISE_MIDDLE = 100.0, 0.005
NOISE_STREAM = int(Stream.SPLATS)
SSIM = (0.01**2, 0.03**2)
"""Constants of the structural similarity of values in [0, 1]."""


def step_numbers() -> str:
    """The same for the native texts."""
    whole = {"RAW_ROWS": RAW_ROWS, "MOVED": MOVED, "NOISE_STREAM": f"{NOISE_STREAM}u"}
    whole |= {"RAW_SCALE": SCALE, "RAW_TURN": TURN, "RAW_LOGIT": LOGIT, "RAW_FIRST": FIRST, "RAW_SECOND": SECOND}
    whole |= {"RAW_SHIFT": SHIFT, "RAW_SEEN": SEEN}
    whole |= {f"SET_{name.upper()}": index for index, name in enumerate(SETTINGS)}
    real = {"NOISE_STEEPNESS": NOISE_STEEPNESS, "NOISE_MIDDLE": NOISE_MIDDLE, "SSIM_1": SSIM[0], "SSIM_2": SSIM[1]}
    lines = [f"#define {name} {value}" for name, value in whole.items()]
    return "\n".join([*lines, *(f"#define {name} ({value!r}f)" for name, value in real.items())])


def window() -> list[float]:
    """Eleven weights of a Gaussian of 1.5 px that sum to 1 (Wang et al., Image quality assessment, 2004)."""
    weights = [math.exp(-0.5 * ((k - 5) / 1.5) ** 2) for k in range(11)]
    return [weight / sum(weights) for weight in weights]
