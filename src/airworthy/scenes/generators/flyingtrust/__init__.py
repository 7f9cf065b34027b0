"""The seven scenarios of FLYINGTRUST: ten configurations each, solvable, and harder from one to the next."""

from airworthy.scenes.generators.flyingtrust.parameters import CONFIGURATIONS, SCENARIOS, Scenario
from airworthy.scenes.generators.flyingtrust.scenario import layout_of, scene_of

__all__ = ["CONFIGURATIONS", "SCENARIOS", "Scenario", "layout_of", "scene_of"]
