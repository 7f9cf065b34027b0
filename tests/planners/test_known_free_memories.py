"""Memories of flights: begun in a ball, thought about with each image and without one for a while, given back."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.planners.known_free_cases import ConeMaps, box_world, mission_of

from airworthy.planners.known_free.config import KnownFreeSettings
from airworthy.planners.known_free.memories import THINK, Memories

START, GOAL = np.array([[1.5, 2.0, 1.2], [1.5, 2.0, 1.2]]), np.array([[8.5, 2.0, 1.2], [8.5, 2.0, 1.2]])


def begun() -> tuple[Memories, Any]:
    worlds = [box_world((10.0, 4.0, 3.0)) for _ in range(2)]
    memories = Memories(mission_of(worlds, START, GOAL), KnownFreeSettings())
    assert memories.begin(np.array([0, 1]), START).tolist() == [0, 1]
    return memories, ConeMaps(worlds)


def test_a_memory_begins_with_the_ball_in_which_the_vehicle_rests() -> None:
    memories, _ = begun()
    assert memories.exist().all()
    known = memories.of(0)
    assert known.has_room(START[:1]).all()
    free = (known.state == 0).sum() * 0.1**3
    np.testing.assert_allclose(free, 4.0 / 3.0 * np.pi * 0.9**3, rtol=0.05)
    assert not len(memories.begin(np.array([0, 1]), START))


def test_there_is_something_to_think_about_with_each_image_and_without_one_for_a_while() -> None:
    memories, maps = begun()
    both, time = np.array([0, 1]), np.zeros(2)
    assert not len(memories.see(both, time, maps))  # no image yet
    for flight in both:
        maps.see(int(flight), START[flight], 0.0)
    assert memories.see(both, time, maps).tolist() == [0, 1]
    assert not len(memories.see(both, time + 0.5 * THINK, maps))
    maps.see(1, START[1], 0.0)
    assert memories.see(both, time + 0.6 * THINK, maps).tolist() == [1]
    assert memories.see(both, time + THINK, maps).tolist() == [0]
    np.testing.assert_allclose(memories.thought, [THINK, 0.6 * THINK])


def test_a_flight_that_is_over_gives_its_memory_back() -> None:
    memories, _ = begun()
    memories.forget(np.array([1]))
    assert memories.exist().tolist() == [True, False]
    assert memories.begin(np.array([0, 1]), START).tolist() == [1]
