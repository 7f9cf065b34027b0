"""The film of a learning: what is drawn, where, and in which colour."""

from __future__ import annotations

import re

import numpy as np

from airworthy.learning.gradient.film import FilmedStage, stage_svg
from airworthy.vehicles import vehicle


def test_a_flight_is_drawn_where_it_was_and_a_lost_one_in_red() -> None:
    level = np.broadcast_to([0.0, 0.0, 0.0, 1.0], (3, 2, 4))
    position = np.zeros((3, 2, 3))
    position[:, 1, 2] = [0.0, 1.0, 1000.0]  # the second one rises, far out of the picture
    svg = stage_svg(vehicle("cf2x_L250"), FilmedStage("<first>", position, level, np.array([False, True])), 2.0)
    assert "<title>&lt;first&gt;: 1 of 2 flights kept</title>" in svg
    kept, lost = (drone.split(";") for drone in re.findall(r'values="(.*?)"', svg))
    # 400 units are 4 m: a metre up is a hundred units, less the cosine of the 14 degrees that the camera looks down.
    assert [picture.partition("l")[0] for picture in kept] == ["M200 200"] * 3
    assert [picture.partition("l")[0] for picture in lost] == ["M200 200", "M200 103", "M200 -1600"]
    assert re.findall(r'class="drone" d="[^"]*" stroke="var\(--(\w+)\)"', svg) == ["flown", "bad"]
    # Arms of a level vehicle: a tenth of half the picture at most, opposite ones opposite.
    arms = np.array(re.findall(r"l(-?\d+) (-?\d+)", kept[0]), int)
    assert arms.shape == (4, 2)
    np.testing.assert_allclose(arms.sum(axis=0), 0, atol=2)
    assert 10 <= np.linalg.norm(arms, axis=1).max() <= 21
    assert 'dur="0.1s"' in svg


def test_an_arm_turns_with_its_vehicle() -> None:
    upright = np.broadcast_to([0.0, 0.0, 0.0, 1.0], (1, 1, 4))
    turned = np.broadcast_to([1.0, 0.0, 0.0, 0.0], (1, 1, 4))  # on its back: left is right
    item, place = vehicle("cf2x_L250"), np.zeros((1, 1, 3))
    drawn = [stage_svg(item, FilmedStage("", place, q, np.array([False])), 2.0) for q in (upright, turned)]
    found = [re.findall(r"l(-?\d+) (-?\d+)", re.findall(r'values="(.*?)"', svg)[0]) for svg in drawn]
    assert found[0] != found[1]
    assert len(found[0]) == len(found[1]) == 4
