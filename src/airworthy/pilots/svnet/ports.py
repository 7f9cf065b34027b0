"""The policy's inputs and outputs, one by one: names, shapes, units and frames, as its contract says them."""

from __future__ import annotations

from typing import Any

from airworthy.pilots.svnet.features import HISTORY_SIZE, HISTORY_TICKS, OBJECTIVE_SIZE
from airworthy.pilots.svnet.variants import COMMAND, ESTIMATE, Variant

__all__ = ["ports_of"]

_FRAMES = "world x forward, y right, z down; body x forward, y right, z down; quaternions x, y, z, w, body to world"


def ports_of(kind: Variant, image: tuple[int, int] | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Inputs and outputs of a variant, in order; the batch axis, which comes first, is not in the shapes.

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
_COMMAND = "thrust as a share of full thrust, -1 full to 0 none; body rates x, y, z [rad/s], z down; not clipped"
_OBJECTIVE = (
    "of the course: duration [s]; displacement from start to end (3) [m]; velocity at the start (3) and at the end (3) [m/s];"
    f" quaternion at the start (4) and at the end (4); {_FRAMES}"
)
_HISTORY = (
    f"the last {HISTORY_TICKS} ticks, newest first, all ticks of the first number, then of the second, and so on; of each tick"
    " time since the tick before [s], movement (3) [m], change of velocity (3) [m/s], quaternion from the attitude before to"
    f" this one (4), the command given at the tick before (4); zeros where there was no tick; {_FRAMES}"
)


def _state(kind: Variant) -> dict[str, Any]:
    if kind.vision:
        about = f"z (1) [m], down; velocity (3) [m/s], world; quaternion (4); {_FRAMES}; no lateral position"
    else:
        about = f"time (1) [s]; position (3) [m]; velocity (3) [m/s], world; quaternion (4); {_FRAMES}"
    return _port("state", kind.state_size, about)


def _port(name: str, size: int, meaning: str) -> dict[str, Any]:
    return {"name": name, "shape": [size], "type": "float32", "meaning": meaning}
