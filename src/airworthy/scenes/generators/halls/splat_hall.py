"""The hall as Gaussian splats: the furnished hall `mid_gate` in soft light, photographed and trained, shipped with the package.

Colours come from the splats; depth, labels and contact come from the meshes that they were made of, so the place is metric. The
recipe of how the file was made, and the figures measured of it, lie beside it (`scenes/assets/hall/hall.toml`).
"""

from __future__ import annotations

import tomllib
from dataclasses import replace
from functools import cache
from importlib.resources import as_file, files
from typing import Any

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.scenes.generators.halls.layouts import mid_gate
from airworthy.scenes.record import Instance, Scene, SplatPlacement
from airworthy.scenes.splats.read import read_splats
from airworthy.scenes.splats.record import Splats

CLOUD = "hall"
"""Name of the cloud, and of its file."""
_FOLDER = files("airworthy.scenes").joinpath("assets", "hall")


def hall(index: int = 0, seed: int = 0) -> Scene:
    """The furnished flight hall, photoreal: Gaussian splats over the meshes of `mid_gate`, for the course robustness.

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
    """The hall's gaussians, in its frame [m]; read once."""
    try:
        with as_file(_FOLDER.joinpath("hall.spz")) as path:
            return read_splats(path).splats
    except OSError as error:
        raise AssetError(f"The package's splats of the hall cannot be read ({error}); install airworthy again.") from None


@cache
def hall_recipe() -> dict[str, Any]:
    """How the splats were made, and what was measured of them: the tables of hall.toml."""
    return tomllib.loads(_FOLDER.joinpath("hall.toml").read_text(encoding="utf-8"))
