"""The seven scenarios of FLYINGTRUST: ten configurations each, solvable, and harder from one to the next."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.scenes.generators.flyingtrust.parameters import CONFIGURATIONS, SCENARIOS, Scenario
    from airworthy.scenes.generators.flyingtrust.scenario import layout_of, scene_of
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["CONFIGURATIONS", "SCENARIOS", "Scenario", "layout_of", "scene_of"]
