"""A place under another sky: by name, by time, or drawn anew for every environment.

`under_sky` puts a scene under a sky by daylight and gives it that sky's sun; `SkyVariation` says between which numbers skies
and haze vary, and `varied` draws one of them for a scene by a seed and a number: time of day, turbidity, cloud and haze.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated

from airworthy.core import random
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.schema import SHARE, Bound, check_fields
from airworthy.scenes.record import Haze, Light, Rain, Scene, Sky, Snow, Sun
from airworthy.scenes.sky.haze import VISIBLE
from airworthy.scenes.sky.snow import in_snow
from airworthy.scenes.sky.solar_position import sun_position
from airworthy.scenes.sky.stars import moonlight
from airworthy.scenes.sky.tables import sky_sun

__all__ = ["SKIES", "SkyVariation", "Weather", "sky_at", "under_sky", "varied", "weather_named"]


@dataclass(frozen=True)
class Weather:
    """A sky and the haze under it."""

    sky: Sky
    haze: Haze = field(default_factory=Haze)
    rain: Rain = field(default_factory=Rain)
    snow: Snow = field(default_factory=Snow)


def _daylight(degrees: float, azimuth: float, **more: float | tuple[float, float]) -> Sky:
    return Sky(model="daylight", elevation=math.radians(degrees), azimuth=azimuth, **more)  # type: ignore[arg-type]


# Ours: hours as people name them; the low sun stands to the left of what looks along world x and y.
SKIES: dict[str, Weather] = {
    "noon": Weather(_daylight(58.0, 2.5)),
    "morning": Weather(_daylight(14.0, -0.6, turbidity=3.0)),
    "evening": Weather(_daylight(9.0, 1.9, turbidity=3.0)),
    "dusk": Weather(_daylight(-4.0, 1.2, turbidity=3.0)),
    "night": Weather(_daylight(-25.0, 0.5, night=2e-3)),
    "fair": Weather(_daylight(52.0, 2.5, cumulus=0.3, cirrus=0.25, drift=(5500.0, 0.0))),
    "cloudy": Weather(_daylight(48.0, 2.5, cumulus=0.6, cirrus=0.2, drift=(9000.0, 0.0))),
    "starry": Weather(_daylight(-30.0, 0.5, night=4e-4, stars=1.0, moon_elevation=0.35, moon_azimuth=-1.9)),
    "overcast": Weather(_daylight(40.0, 2.5, cover=1.0)),
    "rain": Weather(_daylight(38.0, 2.5, cover=1.0, cumulus=0.9), Haze(VISIBLE / 4000.0, 300.0), Rain(10.0, 1.0, 0.3)),
    "wet": Weather(_daylight(42.0, 2.5, cumulus=0.6, cirrus=0.2, drift=(9000.0, 0.0)), rain=Rain(0.0, 1.0, 0.3)),
    "wet_dusk": Weather(_daylight(-4.0, 1.2, turbidity=3.0, cumulus=0.4), rain=Rain(0.0, 1.0, 0.3)),
    "snow": Weather(_daylight(24.0, 2.5, cover=1.0), Haze(VISIBLE / 3000.0, 200.0), snow=Snow(0.9)),
    "snow_sun": Weather(_daylight(16.0, 2.5, turbidity=2.0), snow=Snow(0.75)),
    "hazy": Weather(_daylight(35.0, 2.5, turbidity=6.0), Haze(VISIBLE / 800.0, 120.0)),
    "fog": Weather(_daylight(30.0, 2.5, cover=1.0), Haze(VISIBLE / 70.0, 60.0)),
    "dust": Weather(_daylight(45.0, 1.2, turbidity=8.0), Haze(VISIBLE / 150.0, 80.0, color=(0.95, 0.76, 0.52))),
}
"""Weather by name."""
_HOME = (47.397742, 8.545594)
"""Latitude and longitude where none is named [deg]: the default home of simulated vehicles (`sensors.navigation.Home`)."""


def weather_named(text: str) -> Weather:
    """Return weather by its name in `SKIES`, or the clear sky of a time: "2026-06-21T18:30+02:00", with "@LATITUDE,LONGITUDE"
    in degrees where it is not the default home.

    Raises:
        AirworthyError: There is no such name, time or place.
    """
    if text in SKIES:
        return SKIES[text]
    if not text[:1].isdigit():
        raise unknown_name("sky", text, SKIES, "A time works as well: 2026-06-21T18:30+02:00@47.4,8.5.", len(SKIES))
    when, _, where = text.partition("@")
    parts = where.split(",") if where else [str(value) for value in _HOME]
    try:
        time, (latitude, longitude) = datetime.fromisoformat(when), (float(part) for part in parts)
    except ValueError:
        raise AirworthyError(
            f"The sky {text!r} is neither a name nor a time; write 2026-06-21T18:30+02:00, and @LATITUDE,LONGITUDE in degrees"
            " behind it for another place than the default home."
        ) from None
    return Weather(sky_at(time, latitude, longitude))


def sky_at(time: datetime, latitude: float, longitude: float, sky: Sky | None = None) -> Sky:
    """Return a sky by daylight with the sun where it stands at a time and place; world x is east, y north.

    Args:
        time: With its time zone.
        latitude: [deg], north positive.
        longitude: [deg], east positive.
        sky: Its other numbers; None: the defaults.

    Raises:
        AirworthyError: As `sun_position`.
    """
    elevation, azimuth = sun_position(time, latitude, longitude)
    return replace(sky or Sky(), model="daylight", elevation=elevation, azimuth=azimuth)


def under_sky(scene: Scene, sky: Sky, haze: Haze | None = None, rain: Rain | None = None, snow: Snow | None = None) -> Scene:
    """Return a scene under a sky by daylight, its suns replaced by that of the sky, and in a haze.

    Args:
        scene: The place; its other lights stay as they are.
        sky: By daylight.
        haze: None: the scene's own.
        rain: None: the scene's own.
        snow: None: the scene's own; the ground below the horizon whitens with one that is given.

    Raises:
        AirworthyError: The sky is a gradient.
    """
    sun = sky_sun(sky) or moonlight(sky)
    others = tuple(light for light in scene.lights if not isinstance(light, Sun))
    lights: tuple[Light, ...] = others if sun is None else (sun, *others)
    haze, rain = scene.haze if haze is None else haze, scene.rain if rain is None else rain
    made = replace(scene, sky=sky, lights=lights, haze=haze, rain=rain)
    return made if snow is None else in_snow(made, snow.cover)


# ---- Another sky for every environment --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SkyVariation:
    """Between which numbers the sky and the haze of environments vary, each drawn evenly and independently of the others.

    Raises:
        AirworthyError: A range is the wrong way round, or beyond what a sky takes.
    """

    elevation: Annotated[tuple[float, float], Bound(-math.pi / 2, math.pi / 2, "rad")] = (0.1, 1.1)
    """Of the sun [rad]: from early to late; below 0 dusk and night."""
    azimuth: Annotated[tuple[float, float], Bound(-math.pi, math.pi, "rad")] = (-math.pi, math.pi)
    """Of the sun, counter-clockwise from world x [rad]."""
    turbidity: Annotated[tuple[float, float], Bound(1.0, 10.0)] = (2.0, 6.0)
    """In steps of 0.25, so that environments share what is computed for one."""
    overcast: Annotated[float, SHARE] = 0.25
    """Share of environments under thick cloud; the others are clear."""
    hazy: Annotated[float, SHARE] = 0.3
    """Share of environments in haze."""
    visibility: Annotated[tuple[float, float], Bound(1.0, 1e6, "m")] = (50.0, 2000.0)
    """In that haze [m]; drawn evenly by its logarithm."""
    intensity: Annotated[tuple[float, float], Bound(0.0, 1e3)] = (1.0, 1.0)
    """Factor on the light of sky and sun, drawn evenly by its logarithm: what an exposure that is not quite right does."""
    cloudy: Annotated[float, SHARE] = 0.0
    """Share of environments with heaps and wisps of cloud, each its own part of the pattern."""
    cumulus: Annotated[tuple[float, float], SHARE] = (0.1, 0.8)
    """Share of the sky that heaps take there."""
    cirrus: Annotated[tuple[float, float], SHARE] = (0.0, 0.6)
    """How much of it wisps take."""
    rainy: Annotated[float, SHARE] = 0.0
    """Share of environments whose ground is wet; on half of them it rains."""
    rate: Annotated[tuple[float, float], Bound(0.0, 300.0, "mm/h")] = (1.0, 30.0)
    """Of that rain [mm/h]; drawn evenly by its logarithm."""
    puddles: Annotated[tuple[float, float], SHARE] = (0.0, 0.5)
    """About what share of level ground stands under water there."""
    snowy: Annotated[float, SHARE] = 0.0
    """Share of environments under snow, which are never wet."""
    snow: Annotated[tuple[float, float], SHARE] = (0.2, 1.0)
    """Its cover there."""

    def __post_init__(self) -> None:
        check_fields(self, "SkyVariation.")
        for name in (
            "elevation",
            "azimuth",
            "turbidity",
            "cumulus",
            "cirrus",
            "rate",
            "puddles",
            "snow",
            "visibility",
            "intensity",
        ):
            low, high = getattr(self, name)
            if low > high:
                raise AirworthyError(f"SkyVariation.{name} reaches from {low:g} down to {high:g}; expected the smaller first.")
        for name in ("intensity", "rate"):
            if getattr(self, name)[0] <= 0.0:
                raise AirworthyError(f"SkyVariation.{name} begins at 0; its logarithm needs more than 0.")


_FARTHEST = 5e4
"""To which drawn clouds have drifted at most [m]."""
DEFAULT_VARIATION = SkyVariation()


def varied(scene: Scene, number: int, seed: int = 0, variation: SkyVariation = DEFAULT_VARIATION) -> Scene:
    """Return a scene under a sky that is drawn: a function of the seed and the number alone.

    Args:
        scene: The place; meshes, materials and textures are shared, not copied.
        number: Of the environment, or of its episode.
        seed: Of the series.
        variation: Between which numbers.
    """
    drawn = drawn_weather(number, seed, variation, scene.sky)
    return under_sky(scene, drawn.sky, drawn.haze, drawn.rain, drawn.snow if drawn.snow != Snow() else None)


def drawn_weather(number: int, seed: int = 0, variation: SkyVariation = DEFAULT_VARIATION, sky: Sky | None = None) -> Weather:
    """Return the weather of an environment.

    Args:
        number: Of the environment, or of its episode.
        seed: Of the series.
        variation: Between which numbers.
        sky: Whose ground and night stay; None: the defaults.
    """
    u = random.uniforms(random.flight_key(seed, number), 0, random.Stream.SKY, 16)
    made = replace(
        sky or Sky(),
        model="daylight",
        elevation=_between(variation.elevation, u[0]),
        azimuth=_between(variation.azimuth, u[1]),
        turbidity=min(max(round(4.0 * _between(variation.turbidity, u[2])) / 4.0, 1.0), 10.0),
        cover=1.0 if u[3] < variation.overcast else 0.0,
        intensity=_by_logarithm(variation.intensity, u[4]),
    )
    if u[7] < variation.cloudy:
        made = replace(
            made,
            cumulus=_between(variation.cumulus, u[8]),
            cirrus=_between(variation.cirrus, u[9]),
            drift=(_between((-_FARTHEST, _FARTHEST), u[10]), _between((-_FARTHEST, _FARTHEST), u[11])),
        )
    haze = Haze(VISIBLE / _by_logarithm(variation.visibility, u[6])) if u[5] < variation.hazy else Haze()
    rain = Rain()
    if u[12] < variation.rainy:
        # After rain as often as in it.
        rate = _by_logarithm(variation.rate, u[13]) if u[14] < 0.5 else 0.0
        rain = Rain(rate, 1.0, _between(variation.puddles, u[15]))
    # Numbers of another step: those above are the same with and without it.
    more = random.uniforms(random.flight_key(seed, number), 1, random.Stream.SKY, 2)
    if more[0] < variation.snowy:
        return Weather(made, haze, Rain(), Snow(_between(variation.snow, more[1])))
    return Weather(made, haze, rain)


def _between(ends: Sequence[float], share: float) -> float:
    return float(ends[0] + (ends[1] - ends[0]) * share)


def _by_logarithm(ends: Sequence[float], share: float) -> float:
    return float(math.exp(_between((math.log(ends[0]), math.log(ends[1])), share)))
