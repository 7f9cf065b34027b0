"""Many looks of one place: each environment with its own sky, surfaces and plants, over the same things that are hit."""

from __future__ import annotations

from dataclasses import dataclass, replace

from airworthy.core.errors import AirworthyError
from airworthy.scenes.dressing import dressed, has_dress
from airworthy.scenes.generators.seeding import checked, generator
from airworthy.scenes.record import Scene
from airworthy.scenes.sky.weather import DEFAULT_VARIATION, SkyVariation, varied
from airworthy.scenes.vegetation.kinds import SEASONS, Season

__all__ = ["LookVariety", "other_look"]


@dataclass(frozen=True)
class LookVariety:
    """What differs from one look of a place to the next.

    Raises:
        AirworthyError: There is no season to choose from, or an unknown one.
    """

    sky: SkyVariation | None = DEFAULT_VARIATION
    """Time of day, turbidity, clouds, haze; None: as the scene has them."""
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
    """
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
    return made if variety.sky is None else varied(made, number, seed, variety.sky)
