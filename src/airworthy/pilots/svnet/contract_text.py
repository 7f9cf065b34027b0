"""What a contract of version 2 says in words and numbers besides shapes: enough to fly the policy without this package.

Everything here is fixed by the version: who changes a rule raises `contract.VERSION`. tests/pilots/contract_stranger.py flies
by this text alone.
"""

from __future__ import annotations

from typing import Any

from airworthy.pilots.svnet.features import HISTORY_SIZE, HISTORY_TICKS, OBJECTIVE_SIZE, ROW_SIZE
from airworthy.pilots.svnet.lite0 import BLOCKS
from airworthy.pilots.svnet.variants import (
    COMMAND,
    COMMAND_HIDDEN,
    ESTIMATE,
    FIRES,
    HEAD_HIDDEN,
    HISTORY_HIDDEN,
    POOLS,
    Variant,
)

__all__ = [
    "EARLY",
    "RATE_MAX",
    "command_table",
    "frames_table",
    "history_table",
    "network_table",
    "ports_of",
    "resize_table",
    "tick_table",
]

RATE_MAX = 5.0
"""Bound of each body rate [rad/s], as the expert's that policies learn from; thrust is bound to [0, 1] of full."""
# Ours: the clock is a sum of physics steps, and rounds; a tick missed by rounding would come a whole period late.
EARLY = 1e-3
"""Of a period: by as much the clock of a tick may be early."""


_SIGN = (
    "of state, history and the difference of two attitudes (after it is made): all four numbers are negated where w < 0, and"
    " only there; a sensed quaternion's own sign has no meaning (at w = 0: the one with a product of 0 or more with the"
    " quaternion of the tick before). Of the objective: as its rule says"
)
_SIGN_TOLD = (
    "of history and the difference of two attitudes (after it is made): all four numbers are negated where w < 0, and only"
    " there. Of state: as sensed at the first tick, which should have w >= 0, then at each tick the sign with a product of 0 or"
    " more with the quaternion of the tick before. Of the objective: as its rule says"
)


def frames_table(kind: Variant) -> dict[str, str]:
    """Return frames, signs and products.

    Args:
        kind: The variant.
    """
    return {
        "sensed": (
            "inputs of a decision, before they are turned: world z up, x and y level, right-handed; body x forward, y left, z"
            " up; quaternions x, y, z, w, Hamilton, unit length, turning vectors of the body into the world (v_world = q v_body"
            " q^-1); SI units"
        ),
        "network": (
            "all numbers of the network: world z down, body x forward, y right, z down; vectors of sensed frames become (x, -y,"
            " -z), quaternions (x, -y, -z, w), heights z become -z"
        ),
        "world": (
            "of the course: its origin is where the course has its own, z = 0 at the height of its floor; x is the direction"
            " that has yaw 0 in the course. A policy that sees is never told x and y, so that only the height of the origin and"
            " the direction of x count: velocities and attitudes are of this world"
        ),
        "quaternion_product": (
            "a b = (aw bx + ax bw + ay bz - az by, aw by - ax bz + ay bw + az bx, aw bz + ax by - ay bx + az bw, aw bw - ax bx"
            " - ay by - az bz); inverse of a unit quaternion: (-x, -y, -z, w)"
        ),
        "quaternion_sign": _SIGN if kind.vision else _SIGN_TOLD,
        "level": (
            "of a vehicle that hovers leaning, the body is the frame that is level in its hover: attitudes are of this frame,"
            " and commands in it"
        ),
        "precision": "inputs are computed in double precision and rounded once to float32",
    }


def tick_table(rate: float) -> dict[str, Any]:
    """Return when decisions are made, and with what.

    Args:
        rate: Decisions per second [Hz].
    """
    return {
        "rate_hz": rate,
        "early": EARLY,
        "rule": (
            "t is the time since the flight began [s], 0 at its first tick. A tick is due when floor(t rate_hz + early) is"
            " another number than at the last one; in between the last command is held. At each tick, in this order: (1) the"
            " state is sensed; (2) from the second tick on a row enters the history, also where there is no image; (3) where"
            " an image has arrived since the flight began, the newest one is used and the network decides; where none has,"
            " the command stays what it was. A flight begins with an idle command: thrust of the vehicle's weight, body rates 0"
        ),
        "latency": (
            "none is assumed beyond `setting.command_delay_s`: the image is of the same instant as the state, and the command"
            " acts from that instant on; later ones were not trained on, if training does not say so"
        ),
    }


def history_table(form: str) -> dict[str, Any]:
    """Return rows of the history and their order.

    Args:
        form: Of the position rows.
    """
    moved = "dt times the velocity of this tick [m]" if form == "paper" else "the velocity of this tick [m/s]"
    return {
        "form": form,
        "ticks": HISTORY_TICKS,
        "row_size": ROW_SIZE,
        "row": [
            {"at": [0, 1], "is": "dt: time since the tick before, by the clock and not by the rate [s]"},
            {"at": [1, 4], "is": f"{moved}, network's world"},
            {"at": [4, 7], "is": "velocity of this tick minus that of the tick before [m/s], network's world"},
            {
                "at": [7, 11],
                "is": (
                    "inverse of this tick's quaternion times that of the tick before, x, y, z, w, both as in the input `state`;"
                    " then negated where w < 0"
                ),
            },
            {
                "at": [11, 15],
                "is": (
                    "command in force since the tick before: the last decision's after clipping, in the network's frames;"
                    " before the first decision the idle command, (-weight over full thrust, 0, 0, 0)"
                ),
            },
        ],
        "order": (
            "input[5 i + j] is number i of the row of j ticks ago (j = 0 the newest): all five values of the first number, then"
            " of the second, and so on; zeros where there was no tick, and the first tick has no row"
        ),
    }


def command_table() -> dict[str, Any]:
    """Return bounds of the command and what it becomes."""
    return {
        "low": [-1.0, -RATE_MAX, -RATE_MAX, -RATE_MAX],
        "high": [0.0, RATE_MAX, RATE_MAX, RATE_MAX],
        "clip": "each number to its bounds, after the network; what was clipped enters the history",
        "thrust": (
            "collective thrust along the body's z axis, up [N] = -command[0] times full thrust: of all rotors at full command"
            " along the body's z axis, of the vehicle that flies, as its own record says; of the training's vehicle"
            " `setting.full_thrust_n`"
        ),
        "rates": "body rates in sensed frames, x, y, z [rad/s] = (command[1], -command[2], -command[3])",
    }


def resize_table(resized: tuple[int, int], corner: tuple[int, int], size: tuple[int, int]) -> dict[str, Any]:
    """Return how a whole image becomes the policy's view.

    Args:
        resized: Width and height of the resized image [px].
        corner: Column and row at which the cut begins.
        size: Width and height of the cut [px].
    """
    return {
        "resized": list(resized),
        "corner": list(corner),
        "size": list(size),
        "rule": (
            "a whole image of any size, 8 bits, is resized to `resized` (width, height; its aspect is not kept), and `size` cut"
            " out of it from column and row `corner` on. Resized is first down the columns, then along the rows, in float64,"
            " by weights w[i, h] = max(0, 1 - |h + 0.5 - (i + 0.5) s| / max(s, 1)), s = old size / new size, each row i of the"
            " weights divided by its sum: a triangle filter, antialiased; then x becomes floor(x + 0.500001), once, at the end,"
            " so that halves go up in whatever order sums are taken. An image that has the view's size already is taken as it"
            " is, and must have the view's intrinsics"
        ),
    }


_IMAGE_OF = {
    "order": "rows from the top, columns from the left, red, green, blue",
    "encoding": (
        "8 bits, sRGB (IEC 61966-2-1); training's images are linear radiance with 1 for white, the filmic curve of the"
        " renderer (identity up to 0.7), then sRGB; no gain, exposure or white balance is applied to what a camera gives"
    ),
    "scale": "(byte / 255 - mean) / std for each colour, in float32; the exported model does so itself",
}


def image_table(mean: tuple[float, ...], std: tuple[float, ...]) -> dict[str, Any]:
    """Return how bytes become numbers.

    Args:
        mean: Taken off red, green, blue in [0, 1].
        std: By which they are divided.
    """
    return {"mean": list(mean), "std": list(std), **_IMAGE_OF}


OBJECTIVE_RULE = (
    "constant in a flight. From the course sampled 20 times a second, ends included: its duration; last position minus first;"
    " first velocity; last velocity; first and last attitude, all in the network's frames. The attitude has the body's z axis"
    " (up, sensed frames) along the acceleration plus (0, 0, gravity), and the body's x axis in the plane of this axis and the"
    " heading (cos yaw, sin yaw, 0), on the heading's side; its quaternion has w >= 0 at the first sample, and from each sample"
    " to the next the sign for which their product is 0 or more: the last one may have w < 0 and stays so"
)


def network_table(kind: Variant) -> list[dict[str, Any]]:
    """Return the network block by block: what each reads, its tensors, and what it gives.

    Args:
        kind: The variant.
    """
    found: list[dict[str, Any]] = []
    reads = ["state", "objective"]
    if kind.history != "none":
        found.append(_chain("latent", ["history"], "history.body", len(HISTORY_HIDDEN) + 1, True))
        found.append(_chain("estimate", ["latent"], "history.estimate", 0, False))
        reads.append(kind.history)
    if kind.vision:
        found.append({"gives": "scores", "reads": ["image"], "layers": _backbone(kind), "cells": kind.cells, "then": _MEAN})
        found.append({"gives": "vision_state", "reads": ["state"], "columns": [0, 4, 5, 6, 7]})
        found.append(_chain("features", ["scores", "vision_state"], "vision.head", len(HEAD_HIDDEN) + 1, False))
        reads.append("features")
    found.append(_chain("command", reads, "command", len(COMMAND_HIDDEN) + 1, False))
    return found


_MEAN = (
    "the mean over each cell's pixels of each channel, all channels of the first cell, then of the next: cells by cells of"
    " them, row by row from the upper left; of a side of n pixels cell k has those from floor(k n / cells) to ceil((k + 1) n /"
    " cells) - 1"
)
_LINEAR = "joined in this order, then x becomes weight x + bias for each tensor; negative numbers become 0"


def _chain(gives: str, reads: list[str], name: str, count: int, rectified: bool) -> dict[str, Any]:
    """Return a chain of linear layers, of `name.0` on; of count 0 the one layer is `name`."""
    tensors = [f"{name}.{k}" for k in range(count)] if count else [name]
    after = "after every one" if rectified else "after every one but the last"
    return {"gives": gives, "reads": reads, "tensors": tensors, "rule": f"{_LINEAR} {after}", "last_rectified": rectified}


def _backbone(kind: Variant) -> list[dict[str, Any]]:
    """Return trunk and classifier, layer by layer."""
    layers = _lite0() if kind.trunk == "lite0" else _squeezenet()
    return [*layers, {"convolution": "vision.backbone.classifier.1", "stride": 1, "padding": 0}]


_SAME = (
    "weight (out, in, rows, columns), or (channels, 1, rows, columns) of `depthwise`, which filters each channel by its own"
    " weights alone; plus bias. Padded with zeros: of a side of n pixels max((ceil(n / stride) - 1) stride + rows - n, 0), half"
    " of them, rounded down, before it and the others behind it. Numbers outside of 0 to 6 become 0 or 6 behind `stem`,"
    " `expand` and `depthwise`; not behind `project`"
)


def _lite0() -> list[dict[str, Any]]:
    """Return EfficientNet-Lite0 up to block 10."""
    first = "vision.backbone.features."
    layers: list[dict[str, Any]] = [{"stem": f"{first}stem", "stride": 2, "rule": _SAME}]
    for number, block in enumerate(BLOCKS):
        parts = ["expand"] * (block.expanded != block.given) + ["depthwise", "project"]
        rule = "tensors of `parts` in this order, 1 x 1 but `depthwise`" + "; what went in is added" * block.adds
        layers.append({"block": f"{first}{number}", "parts": parts, "stride": block.stride, "adds": block.adds, "rule": rule})
    return layers


def _squeezenet() -> list[dict[str, Any]]:
    """Return SqueezeNet 1.1."""
    first = "vision.backbone."
    layers: list[dict[str, Any]] = [
        {
            "convolution": f"{first}features.0",
            "stride": 2,
            "padding": 0,
            "rule": "weight (out, in, rows, columns), plus bias; negative numbers become 0, as after every convolution here",
        }
    ]
    for number in sorted((*FIRES, *POOLS), key=int):
        name = f"{first}features.{number}"
        if number in POOLS:
            rule = "largest of 3 x 3 pixels, every second one, from the upper left corner; a last window that reaches over"
            layers.append({"pool": 3, "stride": 2, "rule": f"{rule} the edge counts what it has (ceiling)"})
            continue
        layers.append(
            {
                "fire": name,
                "rule": ".squeeze (1 x 1); of its result .expand1x1 and .expand3x3 (padding 1), channels joined in this order",
            }
        )
    return layers


# -----------------------------------------------------------------------------------------------------------------------------
# The policy's inputs and outputs, one by one: names, shapes, units and frames, as its contract says them.


def ports_of(kind: Variant, image: tuple[int, int] | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return inputs and outputs of a variant, in order; the batch axis, which comes first, is not in the shapes.

    Args:
        kind: The variant.
        image: Rows and columns of the image, of a variant that sees.
    """
    inputs = [_state(kind), _port("objective", OBJECTIVE_SIZE, _OBJECTIVE)]
    if kind.history != "none":
        inputs.append(_port("history", HISTORY_SIZE, _HISTORY))
    if kind.vision and image is not None:
        inputs.append({"name": "image", "shape": [*image, 3], "type": "uint8", "meaning": _IMAGE})
    outputs = [_port("command", COMMAND, _COMMAND)]
    if kind.history != "none":
        outputs.append(_port("estimate", ESTIMATE, "mass [kg]; force of one rotor at full command [N]"))
    return inputs, outputs


_IMAGE = "red, green, blue, sRGB, rows from the top; the network divides by 255, takes image.mean off and divides by image.std"
_COMMAND = "thrust as a share of full thrust, -1 full to 0 none; body rates x, y, z [rad/s]; not clipped; network's frames"
_OBJECTIVE = (
    "of the course: duration [s]; displacement from start to end (3) [m]; velocity at the start (3) and at the end (3) [m/s];"
    " quaternion at the start (4) and at the end (4); network's frames"
)
_HISTORY = (
    f"the last {HISTORY_TICKS} ticks, newest first, all ticks of the first number, then of the second, and so on; rows as"
    " `history` says; network's frames"
)


def _state(kind: Variant) -> dict[str, Any]:
    if kind.vision:
        about = "z (1) [m], down; velocity (3) [m/s], world; quaternion (4); network's frames; no lateral position"
    else:
        about = "time on the course (1) [s]; position (3) [m]; velocity (3) [m/s], world; quaternion (4); network's frames"
    return _port("state", kind.state_size, about)


def _port(name: str, size: int, meaning: str) -> dict[str, Any]:
    return {"name": name, "shape": [size], "type": "float32", "meaning": meaning}
