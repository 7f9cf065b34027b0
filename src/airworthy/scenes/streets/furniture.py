"""What stands beside a road: lamps, poles and wires, signs, bins, benches, bollards, boxes; meshes to be placed many times.

Frames: on the ground at the origin, z up, metres; what has a front looks along -y.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from airworthy.core.arrays import Array
from airworthy.scenes.buildings.patches import PatchMesh

__all__ = ["FURNITURE", "FURNITURE_SURFACES", "LAMP_HEAD", "POLE_TOP", "furniture", "wire"]

FURNITURE_SURFACES = ("painted", "metal", "lamp glass", "planks", "matt", "soil")
_PAINT, _METAL, _LAMP, _WOOD, _MATT, _SOIL = range(len(FURNITURE_SURFACES))
LAMP_HEAD = (0.0, -1.25, 6.12)
"""Where a lamp's light comes from."""
POLE_TOP = 7.4
"""Height at which wires leave a pole [m]."""
_GREEN, _GREY, _BLACK = (0.03, 0.05, 0.042), (0.27, 0.28, 0.28), (0.022, 0.023, 0.025)


def _upright(patches: PatchMesh, rows: list[tuple[float, float]], color: tuple[float, float, float], sides: int = 14) -> None:
    """Add a round post by (height, radius)."""
    z, radius = np.array(rows).T
    patches.tube(np.stack([0.0 * z, 0.0 * z, z], -1), radius, _PAINT, color, sides)


def _lamp() -> PatchMesh:
    patches = PatchMesh()
    _upright(patches, [(0.0, 0.11), (0.9, 0.11), (0.95, 0.075), (3.5, 0.065), (6.15, 0.05)], _GREEN)
    patches.tube(np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.06]]), 0.17, _PAINT, _GREEN)
    angle = np.linspace(0.0, 0.5 * np.pi, 7)
    arm = np.stack([0.0 * angle, -0.9 * np.sin(angle), 5.9 + 0.35 * (1.0 - np.cos(angle)) / 1.0], -1)
    patches.tube(arm[:, :] * [1.0, 1.0, 1.0], 0.03, _PAINT, _GREEN, 10)
    patches.box((-0.11, -1.55, 6.18), (0.11, -0.85, 6.30), _PAINT, _GREEN)
    patches.box((-0.085, -1.5, 6.155), (0.085, -0.95, 6.18), _LAMP)
    patches.box((-0.06, -0.115, 0.35), (0.06, -0.09, 0.75), _PAINT, _BLACK)
    return patches


def _pole() -> PatchMesh:
    patches = PatchMesh()
    z = np.linspace(0.0, 7.9, 8)
    patches.tube(np.stack([0.0 * z, 0.0 * z, z], -1), np.linspace(0.15, 0.10, 8), _PAINT, (0.13, 0.095, 0.065), 14)
    patches.box((-0.06, -0.8, 7.3), (0.06, 0.8, 7.42), _WOOD, (0.7, 0.65, 0.6))
    for y in (-0.72, -0.4, 0.4, 0.72):
        patches.tube(np.array([[0.0, y, 7.42], [0.0, y, 7.5]]), 0.035, _PAINT, (0.55, 0.56, 0.55), 8)
    patches.tube(np.array([[0.24, 0.0, 6.2], [0.24, 0.0, 6.95]]), 0.16, _PAINT, _GREY, 12)
    return patches


def _bin() -> PatchMesh:
    patches = PatchMesh()
    patches.tube(np.array([[0.0, 0.0, 0.08], [0.0, 0.0, 0.85]]), 0.23, _PAINT, _GREEN, 16)
    patches.tube(np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.08]]), 0.2, _PAINT, _BLACK, 16)
    patches.tube(
        np.array([[0.0, 0.0, 0.85], [0.0, 0.0, 0.9], [0.0, 0.0, 1.06], [0.0, 0.0, 1.1]]),
        np.array([0.25, 0.25, 0.22, 0.12]),
        _PAINT,
        _GREEN,
        16,
    )
    patches.quad(
        np.array([[-0.12, -0.257, 0.88], [0.12, -0.257, 0.88], [0.12, -0.237, 1.0], [-0.12, -0.237, 1.0]]),
        _MATT,
        (0.006, 0.006, 0.006),
    )
    return patches


def _bench() -> PatchMesh:
    patches = PatchMesh()
    wood = (0.62, 0.50, 0.40)
    for k in range(4):
        patches.box((-0.9, -0.22 + 0.12 * k, 0.43), (0.9, -0.12 + 0.12 * k, 0.47), _WOOD, wood)
    for k in range(3):
        patches.box((-0.9, 0.25, 0.55 + 0.13 * k), (0.9, 0.28, 0.65 + 0.13 * k), _WOOD, wood)
    for x in (-0.78, 0.78):
        patches.box((x - 0.03, -0.22, 0.0), (x + 0.03, -0.16, 0.43), _PAINT, _BLACK)
        patches.box((x - 0.03, 0.22, 0.0), (x + 0.03, 0.27, 0.95), _PAINT, _BLACK)
        patches.box((x - 0.03, -0.22, 0.39), (x + 0.03, 0.24, 0.43), _PAINT, _BLACK)
        patches.box((x - 0.03, -0.2, 0.62), (x + 0.03, 0.24, 0.66), _PAINT, _BLACK)
    return patches


def _bollard() -> PatchMesh:
    patches = PatchMesh()
    _upright(
        patches,
        [(0.0, 0.075), (0.7, 0.065), (0.72, 0.085), (0.78, 0.085), (0.8, 0.06), (0.88, 0.075), (0.93, 0.05), (0.95, 0.01)],
        _BLACK,
    )
    return patches


def _sign_post() -> PatchMesh:
    """Return a post for a round sign, whose face is a card of its own."""
    patches = PatchMesh()
    _upright(patches, [(0.0, 0.03), (2.75, 0.03)], _GREY, 10)
    patches.tube(np.array([[0.0, -0.032, 2.4], [0.0, -0.04, 2.4]]), 0.285, _PAINT, _GREY, 24)
    return patches


def _cabinet() -> PatchMesh:
    patches = PatchMesh()
    patches.box((-0.55, -0.2, 0.12), (0.55, 0.2, 1.25), _PAINT, (0.20, 0.24, 0.21))
    patches.box((-0.5, -0.17, 0.0), (0.5, 0.17, 0.12), _MATT, (0.10, 0.10, 0.10))
    patches.box((-0.58, -0.23, 1.25), (0.58, 0.23, 1.3), _PAINT, (0.20, 0.24, 0.21))
    for x in (-0.28, 0.28):
        patches.quad(
            np.array([[x - 0.24, -0.203, 0.2], [x + 0.24, -0.203, 0.2], [x + 0.24, -0.203, 1.18], [x - 0.24, -0.203, 1.18]]),
            _PAINT,
            (0.17, 0.21, 0.18),
        )
    patches.quad(
        np.array([[-0.02, -0.206, 0.6], [0.02, -0.206, 0.6], [0.02, -0.206, 0.75], [-0.02, -0.206, 0.75]]),
        _MATT,
        (0.02, 0.02, 0.02),
    )
    return patches


def _planter() -> PatchMesh:
    patches = PatchMesh()
    for low, high in (
        ((-0.7, -0.35, 0.0), (0.7, -0.3, 0.55)),
        ((-0.7, 0.3, 0.0), (0.7, 0.35, 0.55)),
        ((-0.7, -0.3, 0.0), (-0.65, 0.3, 0.55)),
        ((0.65, -0.3, 0.0), (0.7, 0.3, 0.55)),
    ):
        patches.box(low, high, _WOOD, (0.55, 0.46, 0.38))
    patches.quad(np.array([[-0.65, -0.3, 0.48], [0.65, -0.3, 0.48], [0.65, 0.3, 0.48], [-0.65, 0.3, 0.48]]), _SOIL)
    return patches


def _wheelie_bin() -> PatchMesh:
    """Return a waste container on two wheels."""
    patches = PatchMesh()
    tone = (0.025, 0.045, 0.035)
    lower, upper = (0.20, 0.24), (0.27, 0.33)
    z0, z1 = 0.06, 0.95
    for k in range(4):
        signs = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
        (ax, ay), (bx, by) = signs[k], signs[(k + 1) % 4]
        corners = [
            [ax * lower[0], ay * lower[1], z0],
            [bx * lower[0], by * lower[1], z0],
            [bx * upper[0], by * upper[1], z1],
            [ax * upper[0], ay * upper[1], z1],
        ]
        patches.quad(np.array(corners), _PAINT, tone)
    patches.box((-0.29, -0.36, 0.95), (0.29, 0.34, 1.02), _PAINT, tone)
    for x in (-0.24, 0.24):
        patches.tube(np.array([[x - 0.03, 0.24, 0.1], [x + 0.03, 0.24, 0.1]]), 0.1, _MATT, _BLACK, 12)
    return patches


def _mail_box() -> PatchMesh:
    patches = PatchMesh()
    patches.tube(
        np.array(
            [
                [0.0, 0.0, 0.0],
                [0.0, 0.0, 0.15],
                [0.0, 0.0, 0.16],
                [0.0, 0.0, 1.35],
                [0.0, 0.0, 1.37],
                [0.0, 0.0, 1.45],
                [0.0, 0.0, 1.52],
            ]
        ),
        np.array([0.22, 0.22, 0.19, 0.19, 0.23, 0.22, 0.06]),
        _PAINT,
        (0.32, 0.02, 0.015),
        18,
    )
    patches.quad(
        np.array([[-0.1, -0.196, 1.12], [0.1, -0.196, 1.12], [0.1, -0.196, 1.15], [-0.1, -0.196, 1.15]]),
        _MATT,
        (0.005, 0.005, 0.005),
    )
    return patches


FURNITURE: dict[str, Callable[[], PatchMesh]] = {
    "lamp": _lamp,
    "pole": _pole,
    "bin": _bin,
    "bench": _bench,
    "bollard": _bollard,
    "sign_post": _sign_post,
    "cabinet": _cabinet,
    "planter": _planter,
    "wheelie_bin": _wheelie_bin,
    "mail_box": _mail_box,
}
"""What there is, by name."""


def furniture(name: str) -> PatchMesh:
    """Return a piece of street furniture.

    Raises:
        KeyError: There is none of this name in `FURNITURE`.
    """
    return FURNITURE[name]()


def wire(start: Array, end: Array, sag: float, radius: float = 0.009) -> PatchMesh:
    """Return a wire that hangs between two points (3,): a parabola, which a catenary of little sag is.

    Args:
        start: World [m].
        end: World [m].
        sag: How far its middle hangs below the straight line [m].
        radius: [m]
    """
    t = np.linspace(0.0, 1.0, 13)
    points = np.asarray(start, float) + t[:, None] * (np.asarray(end, float) - np.asarray(start, float))
    points[:, 2] -= 4.0 * sag * t * (1.0 - t)
    patches = PatchMesh()
    patches.tube(points, radius, _PAINT, _BLACK, 5, capped=False)
    return patches
