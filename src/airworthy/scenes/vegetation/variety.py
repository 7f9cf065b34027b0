"""Many looks of one place: each environment with its own sky, lamps, surfaces and plants, over the same things that are hit.

A look has a name, too: `scene("other_look:mid_gate:3@1")` is that hall in look 3 of seed 1, wherever a place is named.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import SHARE, Bound, check_fields
from airworthy.scenes.catalogue import has_named, is_path, parse_name, scene
from airworthy.scenes.dressing import dressed, has_dress
from airworthy.scenes.generators.seeding import checked, generator
from airworthy.scenes.record import Light, Scene, Sun
from airworthy.scenes.sky.atmosphere import WAVELENGTHS, rgb_of
from airworthy.scenes.sky.weather import DEFAULT_VARIATION, SkyVariation, varied
from airworthy.scenes.vegetation.kinds import SEASONS, Season

__all__ = ["LampVariation", "LookVariety", "look_named", "other_look"]

OTHER_LOOK = "other_look"
"""Before the name of a place, and a colon: that place in another look."""


@dataclass(frozen=True)
class LampVariation:
    """Between which numbers lamps of places vary, each drawn evenly and independently of the others; all are ours.

    Raises:
        AirworthyError: A range is the wrong way round, or out of bounds.
    """

    level: Annotated[tuple[float, float], Bound(1e-3, 1e3)] = (0.5, 1.6)
    """Factor on all lamps of a place, drawn evenly by its logarithm."""
    spread: Annotated[tuple[float, float], Bound(1e-3, 1e3)] = (0.8, 1.25)
    """Further factor on each lamp, drawn alike."""
    temperature: Annotated[tuple[float, float], Bound(1000.0, 4e4, "K")] = (3500.0, 7500.0)
    """Of the black body whose colour tints all lamps of a place, as a camera sees it that is balanced for 6,500 K [K]; drawn
    evenly by its inverse, in which eyes tell steps alike."""
    out: Annotated[float, SHARE] = 0.15
    """Share of lamps that give no light; in each place one at least does."""

    def __post_init__(self) -> None:
        check_fields(self, "LampVariation.")
        for name in ("level", "spread", "temperature"):
            low, high = getattr(self, name)
            if low > high:
                raise AirworthyError(f"LampVariation.{name} reaches from {low:g} down to {high:g}; expected the smaller first.")


DEFAULT_LAMPS = LampVariation()


@dataclass(frozen=True)
class LookVariety:
    """What differs from one look of a place to the next.

    Raises:
        AirworthyError: There is no season to choose from, or an unknown one.
    """

    sky: SkyVariation | None = DEFAULT_VARIATION
    """Time of day, turbidity, clouds, haze; None: as the scene has them."""
    lamps: LampVariation | None = DEFAULT_LAMPS
    """Level, colour, and which of them are out; None: as the scene has them."""
    surfaces: bool = True
    """Level, hue, roughness, relief and scale of every material (`Material.varied`); maps are shared."""
    plants: bool = True
    """What grows where, in places that have a dress; False: those keep to what is given."""
    seasons: tuple[Season, ...] = ("spring", "summer", "autumn")
    """Of plants; each has its own leaves in memory."""

    def __post_init__(self) -> None:
        seasons = self.seasons
        if not isinstance(seasons, tuple | list) or not seasons or any(season not in SEASONS for season in seasons):
            raise AirworthyError(
                f"Seasons of a variety of looks are {str(seasons)[:50]!r}, not some of {', '.join(SEASONS)}, as a tuple."
            )


DEFAULT_VARIETY = LookVariety()


def other_look(scene: Scene, number: int, seed: int = 0, variety: LookVariety = DEFAULT_VARIETY) -> Scene:
    """Return a place as it could look as well: a function of the seed and the number alone.

    What is hit, ranged and labelled is the scene's own. Meshes and maps are shared by all looks, so that a batch of many holds
    them once: `SceneBatch([other_look(place, k) for k in range(64)])`.

    Args:
        scene: The place, as `scene("forest:3")`.
        number: Of the look, from 0 on: of the environment, or of its episode.
        seed: Of the series.
        variety: What differs.

    Raises:
        AirworthyError: The place holds splats, or number or seed is no whole number from 0 on.
    """
    if scene.splats:
        raise AirworthyError(
            f"The place {scene.name!r} holds splats, whose light and surfaces are those of its photographs: other looks are of"
            " places of meshes, as mid_gate or forest:3."
        )
    rng = generator("look", checked("seed", seed, 0), checked("number", number, 0))
    season = variety.seasons[int(rng.random() * len(variety.seasons))]
    plants, first = (int(value) for value in rng.integers(1, 1 << 30, 2))
    made = scene
    if variety.plants and has_dress(scene):
        made = dressed(scene, season, "noon" if variety.sky is None else "", plants)
    if variety.surfaces:
        made = replace(
            made,
            materials={name: item.varied(first + order) for order, (name, item) in enumerate(sorted(made.materials.items()))},
        )
    if variety.lamps is not None:
        # Drawn by a stream of their own, so that everything else is the same with and without them.
        made = replace(made, lights=_varied_lamps(made.lights, generator("lamps", seed, number), variety.lamps))
    return made if variety.sky is None else varied(made, number, seed, variety.sky)


def look_named(name: str) -> Scene:
    """Return another look of a place, with the index of the place's name as its number and with its seed.

    Args:
        name: Of the place, as "mid_gate:3@1", which gives look 3 of seed 1; names without an index, and paths of files, give
            look 0 of seed 0.

    Raises:
        AirworthyError: There is no such place, it holds splats, or it is a look of another place already.
    """
    if name.startswith(f"{OTHER_LOOK}:"):
        raise AirworthyError(f"{name[:80]!r} is a look of a place already: name the place behind {OTHER_LOOK!r} itself.")
    place = scene(name)
    _, index, seed = (name, 0, 0) if is_path(name) or has_named(name) else parse_name(name)
    return replace(other_look(place, index or 0, seed), name=f"{OTHER_LOOK}:{place.name}")


def _varied_lamps(lights: Sequence[Light], rng: np.random.Generator, variation: LampVariation) -> tuple[Light, ...]:
    """Return lights in their order, lamps among them brighter or darker, of another colour, or out."""
    level, heat = rng.random(2)
    cold, hot = (1.0 / kelvin for kelvin in variation.temperature)
    tint = black_body(1.0 / (cold + (hot - cold) * heat)) * _by_logarithm(variation.level, level)
    lamps = [k for k, light in enumerate(lights) if not isinstance(light, Sun)]
    drawn = rng.random((len(lamps), 2))
    made = list(lights)
    for k, (own, chance) in zip(lamps, drawn, strict=True):
        light = lights[k]
        assert not isinstance(light, Sun)
        color = np.array(light.color) * tint * _by_logarithm(variation.spread, own)
        most = float(color.max()) or 1.0
        red, green, blue = (color / most).tolist()
        # The one that chance is kindest to burns in any case.
        burns = chance >= variation.out or chance == drawn[:, 1].max()
        made[k] = replace(light, color=(red, green, blue), intensity=light.intensity * most if burns else 0.0)
    return tuple(made)


def black_body(temperature: float) -> Array:
    """Return the linear RGB (3,) of a black body, its luminance 1, for eyes and cameras that take 6,500 K for white.

    Planck's law over the visible bands, and the matching functions of `scenes.sky.atmosphere`.

    Args:
        temperature: [K].
    """
    metres = 1e-9 * WAVELENGTHS
    # The second radiation constant (CODATA 2018) [m K].
    color = rgb_of(metres**-5 / np.expm1(1.438776877e-2 / (metres * temperature)))
    return np.asarray(color / (color @ np.array([0.2126, 0.7152, 0.0722])))


def _by_logarithm(ends: tuple[float, float], share: float) -> float:
    low, high = (math.log(end) for end in ends)
    return math.exp(low + (high - low) * share)
