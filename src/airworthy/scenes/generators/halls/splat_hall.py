"""The hall as Gaussian splats: the furnished hall `mid_gate` in soft light, photographed and trained, shipped with the package.

Colours come from the splats; depth, labels and contact come from the meshes that they were made of, so the place is metric. The
recipe of how the file was made, and the figures measured of it, lie beside it (`scenes/assets/hall/hall.toml`).
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import packaged_toml
from airworthy.scenes.generators.halls.layouts import mid_gate
from airworthy.scenes.record import GateFrame, Instance, Scene, SplatPlacement, Vector3
from airworthy.scenes.splats.editing import EditBox, brightened, cropped
from airworthy.scenes.splats.geometry import splat_box, splat_geometry
from airworthy.scenes.splats.placing import add_splats, placed, stood
from airworthy.scenes.splats.read import read_splats
from airworthy.scenes.splats.record import Splats

CLOUD = "hall"
"""Name of the cloud, and of its file."""
_FOLDER = files("airworthy.scenes").joinpath("assets", "hall")


def hall(index: int = 0, seed: int = 0) -> Scene:
    """Return the furnished flight hall as Gaussian splats, converted from its rendering, over the meshes of `mid_gate`
    (robustness).

    Args:
        index: 0: the splats were made in one configuration.
        seed: 0.

    Raises:
        AirworthyError: The index or the seed is another.
        AssetError: The package's file of splats is missing or damaged.
    """
    if (index, seed) != (0, 0):
        raise AirworthyError(
            f"The splats of the hall were made of one configuration, 'hall'; index {index} and seed {seed} have none, but"
            f" 'mid_gate:{max(index, 0)}@{seed}' is such a hall of meshes."
        )
    base = mid_gate()
    return replace(
        base,
        name="hall",
        instances=tuple(map(_covered, base.instances)),
        clouds={CLOUD: hall_splats()},
        splats=(SplatPlacement(CLOUD, name=CLOUD),),
        description="Furnished flight hall of Gaussian splats: a gate, a ladder to fly under, a monitor (course robustness).",
        source="generated, lit, rendered and trained by airworthy; our own work, Apache-2.0",
        facts={**base.facts, "gaussians": float(len(hall_splats()))},
    )


def _covered(item: Instance) -> Instance:
    """Met by rays and bodies, and seen as splats; a pane of glass is neither seen nor covered."""
    return replace(item, covered=True, visible=False) if item.visible else item


@cache
def hall_splats() -> Splats:
    """Return the hall's gaussians, in its frame [m]; read once."""
    try:
        with as_file(_FOLDER.joinpath("hall.spz")) as path:
            return read_splats(path).splats
    except OSError as error:
        raise AssetError(f"The package's splats of the hall cannot be read ({error}); install airworthy again.") from None


@cache
def hall_recipe() -> dict[str, Any]:
    """Return how the splats were made, and what was measured of them: the tables of hall.toml."""
    return packaged_toml("airworthy.scenes", "assets/hall/hall.toml")


# ---- Real statues and a village sign in the hall of splats: captured things in a place that is metric -----------------------
#
# The files are those of the reference data (MIT, see their SOURCES.md), read from where they lie; none is part of the package.
# What was cut out of the captures, and where everything stands, is fixed here, so that everyone flies in the same place.

FLOOR = 0.01
"""Top of the mats [m]."""
CELL = 0.03
"""Edge of the cells whose surface is hit [m]."""


@dataclass(frozen=True)
class Statue:
    """One that stands in the hall."""

    name: str
    file: str
    position: tuple[float, float]
    yaw: float
    """[rad]"""
    brightness: float
    """Factor on its light: the captures were exposed by themselves, each in the light of its museum."""
    scale: float = 0.5
    """Metres per unit: about 2 m tall."""


STATUES = (
    Statue("kneeling_angel", "angel-kneeling.sog", (-2.5, 1.45), math.pi, 1.0),
    Statue("angel", "angel.sog", (-2.3, -1.5), math.pi, 1.0),
    Statue("bust", "massa.sog", (1.7, -1.25), 0.0, 1.0),
    Statue("narcissus", "narcissus.sog", (4.3, 2.6), 0.0, 1.0),
    Statue("trumpeter", "trumpet.sog", (7.0, -0.5), 0.5 * math.pi, 1.0),
)
SIGN_BRIGHTNESS = 0.8
SIGN_FOLDER = "flowers_sog_chunks"
SIGN_SCALE = 5.0
SIGN_PLACE, SIGN_YAW = (0.9, 3.0), math.pi
FLOWERS_PLACE = (-0.55, 3.3)
_SIGN_MIDDLE, _SIGN_HEADING = (-0.0169, -0.0210), 2.5705
"""Between the two posts of the capture, and the direction from the one to the other, units and rad of the capture."""
_SIGN_FLOOR, _SIGN_BOARD = 0.035, 0.170
"""Heights of the ground at the posts and of the lower edge of the board."""
_SIGN_INSIDE = 0.100
"""Half the distance between the posts."""


def hall_statues(index: int = 0, seed: int = 0) -> Scene:
    """Return the hall of splats with real statues and a sign as a second gate, from the files that AIRWORTHY_DATA names.

    Raises:
        AirworthyError: AIRWORTHY_DATA is unset, or an index or a seed other than 0 is given.
        AssetError: A file is missing or damaged.
    """
    if (index, seed) != (0, 0):
        raise AirworthyError(f"The hall with statues is one place; index {index} and seed {seed} have none, only 0 and 0.")
    data = os.environ.get("AIRWORTHY_DATA", "")
    if not data:
        raise AirworthyError(
            "The hall with statues needs captured splats, and AIRWORTHY_DATA is unset: set it to the folder of the reference"
            " files (it holds splats/statues_sog and splats/flowers_sog_chunks), or use the scene 'hall'."
        )
    return hall_with_statues(Path(data) / "splats")


@cache
def hall_with_statues(folder: Path) -> Scene:
    """Return the hall of splats, in it five statues of about 2 m, a sign whose posts and board are a gate, and its flower bed.

    Everything can be hit: a closed mesh stands around what is opaque. Statues stand beside the course `robustness`, which
    stays as free as it is.

    Args:
        folder: Holds `statues_sog` with five statues and `flowers_sog_chunks` with the sign.

    Raises:
        AssetError: A file is missing or damaged.
    """
    folder = Path(folder)
    missing = [name for name in _needed(folder) if not (folder / name).exists()]
    if missing:
        raise AssetError(f"The hall with statues needs {missing[0]!r} in {str(folder)!r}, which is not there.")
    scene = hall()
    for one in STATUES:
        splats = brightened(read_splats(folder / "statues_sog" / one.file).splats, one.brightness)
        scene = _stand(scene, one.name, splats, one.position, one.yaw, one.scale, "object")
    sign, flowers = (brightened(part, SIGN_BRIGHTNESS) for part in _sign_parts(read_splats(folder / SIGN_FOLDER).splats))
    scene = _stand(scene, "sign", sign, SIGN_PLACE, SIGN_YAW - _SIGN_HEADING, SIGN_SCALE, "gate")
    scene = _stand(scene, "flowers", flowers, FLOWERS_PLACE, SIGN_YAW - _SIGN_HEADING, SIGN_SCALE, "object")
    return replace(
        scene,
        name="hall_statues",
        gates=(*scene.gates, _opening()),
        description="The hall of splats with five captured statues and a sign as a second gate, for the course robustness.",
        source=f"{scene.source}; statues and sign: captures published by PlayCanvas, MIT, from files of the user",
    )


def _needed(folder: Path) -> list[str]:
    return [*(f"statues_sog/{one.file}" for one in STATUES), SIGN_FOLDER]


def _stand(
    scene: Scene, name: str, splats: Splats, spot: tuple[float, float], yaw: float, scale: float, semantic: str
) -> Scene:
    """Return one more thing on the floor, seen and hit."""
    item = stood(name, splats, (*spot, FLOOR), yaw, scale)
    there = placed(splats, item)
    low, high = splat_box(there)
    # What a capture has below the floor is the hall's own.
    low[2] = max(low[2], FLOOR)
    # Groups of fewer cells are strays, which no body should run into.
    mesh = splat_geometry(there, CELL, low, high, support=40).mesh
    shape = f"{name}/surface"
    scene = add_splats(scene, splats, name, item.position, item.attitude, item.scale)
    surface = Instance(shape, name=name, semantic=semantic, visible=False, covered=True)
    return replace(scene, shapes={**scene.shapes, shape: mesh}, instances=(*scene.instances, surface))


def _sign_parts(splats: Splats) -> tuple[Splats, Splats]:
    """Return the posts with their board, and the flowers that grow between them; the lawn is left out."""
    turn = (0.0, 0.0, math.sin(0.5 * _SIGN_HEADING), math.cos(0.5 * _SIGN_HEADING))

    def box(along: tuple[float, float], across: float, height: tuple[float, float]) -> EditBox:
        # Boxes are turned with the sign, which stands aslant in its capture.
        middle = frames.rotate(np.array(turn), np.array([0.5 * (along[0] + along[1]), 0.0, 0.0]))
        center = (_SIGN_MIDDLE[0] + middle[0], _SIGN_MIDDLE[1] + middle[1], 0.5 * (height[0] + height[1]))
        return EditBox(center, (along[1] - along[0], across, height[1] - height[0]), turn)

    end, top = 0.16, 0.30
    board = box((-end, end), 0.08, (_SIGN_BOARD, top))
    posts = [box(span, 0.05, (_SIGN_FLOOR, _SIGN_BOARD)) for span in ((-end, -_SIGN_INSIDE), (_SIGN_INSIDE, end))]
    flowers = box((-0.095, 0.095), 0.2, (_SIGN_FLOOR, _SIGN_BOARD))
    return cropped(splats, [board, *posts]), cropped(splats, flowers)


def _opening() -> GateFrame:
    """Return what is between the posts, under the board, to be flown through towards larger y.

    Corners: counter-clockwise from the upper right as seen in flight, since the sign stands turned by half a turn.
    """
    half, low = SIGN_SCALE * _SIGN_INSIDE, FLOOR
    high = FLOOR + SIGN_SCALE * (_SIGN_BOARD - _SIGN_FLOOR)
    c, s = math.cos(SIGN_YAW), math.sin(SIGN_YAW)

    def corner(along: float, z: float) -> Vector3:
        return (round(SIGN_PLACE[0] + c * along, 4), round(SIGN_PLACE[1] + s * along, 4), round(z, 4))

    corners = (corner(-half, high), corner(half, high), corner(half, low), corner(-half, low))
    return GateFrame("sign", corners, (round(s, 9) + 0.0, round(-c, 9) + 0.0, 0.0), (SIGN_PLACE[0], SIGN_PLACE[1]))
