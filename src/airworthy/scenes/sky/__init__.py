"""The sky by daylight, from noon to night: its light, its sun, haze, and weather that is drawn for every environment."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.scenes.sky.haze import visibility
    from airworthy.scenes.sky.solar_position import sun_position
    from airworthy.scenes.sky.tables import sky_sun
    from airworthy.scenes.sky.weather import SKIES, SkyVariation, Weather, sky_at, under_sky, varied, weather_named
else:
    # fmt: off
    __getattr__, __dir__ = lazy_names(__name__)
    # fmt: on

__all__ = [
    "SKIES", "SkyVariation", "Weather", "sky_at", "sky_sun", "sun_position", "under_sky", "varied", "visibility",
    "weather_named",
]  # fmt: skip
