"""Whether a vehicle fits along the course of an evaluation."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from tests.benchmarks.tracking_stage import PLACE, on_stage

from airworthy.benchmarks.tracking.conditions import expanded
from airworthy.benchmarks.tracking.room_check import warn_where_tight
from airworthy.core.errors import AssetWarning
from airworthy.scenes import scene
from airworthy.vehicles import vehicle
from airworthy.vehicles.record import CollisionBody


def test_who_does_not_fit_along_the_course_is_told_so_once_before_flying() -> None:
    """The hovering course of the stage is 0.75 m from a post and 1 m above the floor."""
    on_stage(Path())
    conditions, scenes = expanded(("baseline", "payload")), {PLACE: scene(PLACE)}
    wide = replace(vehicle("carl"), name="wide", body=CollisionBody("box", (0.8, 0.1, 0.1)))
    with pytest.warns(AssetWarning) as told:
        warn_where_tight(wide, conditions, "hover", PLACE, scenes)
    (warning,) = told
    assert str(warning.message) == (
        "'wide' reaches 0.80 m from its centre, and the course 'hover' in 'tracking_stage' passes the gate at 0.75 m: it"
        " touches them where it follows the path exactly (2 of 2 conditions)."
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_where_tight(vehicle("carl"), conditions, "hover", PLACE, scenes)
