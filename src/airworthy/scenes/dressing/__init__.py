"""Places of the benchmark as a film shows them: what is hit stays, what is seen are looks over it."""

from __future__ import annotations

from dataclasses import replace

from airworthy.core.errors import AirworthyError
from airworthy.scenes.record import Scene, Snow
from airworthy.scenes.sky.weather import under_sky, weather_named
from airworthy.scenes.vegetation.kinds import Season

__all__ = ["dressed", "has_dress"]

DRESSES = ("forest", "urban")
"""Generators whose places have a dress."""
_HAZE = {"forest": 0.0003, "urban": 0.0012}
"""Of the air [1/m]: a contrast is halved after 2,300 and 580 m. Haze glows in shade as in the sun: more of it pales a wood."""


def has_dress(scene: Scene) -> bool:
    """Tell whether `dressed` knows what a scene could wear."""
    return scene.name.partition(":")[0] in DRESSES and not scene.looks


def dressed(scene: Scene, season: Season | None = None, sky: str = "noon", look: int = 0) -> Scene:
    """Return a place of the benchmark as a film shows it; what is hit, ranged and labelled stays, to the byte.

    A forest gets grown trees, litter, hedges of leaves and a wood around; a district façades, streets and a town around.

    Args:
        scene: As `scene("forest:3")` or `scene("urban:1")`.
        season: Of leaves, where some grow; None: winter under snow, else summer.
        sky: As `weather_named` has it, with a little haze where it brings none; "": the scene's own light.
        look: Seed of what grows where in a forest, from 0 on; districts have one dress.

    Raises:
        AirworthyError: The scene has no dress, or wears looks already.
    """
    if not has_dress(scene):
        raise AirworthyError(
            f"There is no dress for the scene {scene.name!r}; forests and districts of the benchmark have one, as 'forest:3'"
            " and 'urban:1'."
        )
    if not sky:
        return _made(scene, season or "summer", look)
    weather = weather_named(sky)
    snowy = weather.snow != Snow()
    made = _made(scene, season or ("winter" if snowy else "summer"), look)
    air = (
        replace(weather.haze, density=_HAZE[scene.name.partition(":")[0]], height=60.0)
        if weather.haze.density == 0.0
        else weather.haze
    )
    return under_sky(made, weather.sky, air, weather.rain, weather.snow if snowy else None)


def _made(scene: Scene, season: Season, look: int) -> Scene:
    # Each brings much that the others do not need.
    if scene.name.startswith("urban"):
        from airworthy.scenes.dressing.urban import dressed_urban

        return dressed_urban(scene)
    from airworthy.scenes.dressing.forest import dressed_forest

    return dressed_forest(scene, season, look)
