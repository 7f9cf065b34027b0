"""Films of scenes, as a hand would film them, with their truth: to try `airworthy capture video` on."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.capture.filming.film import FilmOptions, film_rig, film_scene, render_film
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["FilmOptions", "film_rig", "film_scene", "render_film"]
