"""What a flight remembers: counts that follow every cell, against those worked out from the states alone; balls; local maps."""

from __future__ import annotations

import numpy as np
import pytest
from tests.planners.mapping_cases import CAMERA, EVERY, looking, mission, wall_image

from airworthy.planners.known_free.known_space import (
    MET,
    OUTSIDE,
    REFUSED,
    UNSEEN,
    CellSource,
    Certifier,
    KnownSpace,
    ball_cells,
    merge,
    ring_nodes,
)
from airworthy.planners.known_free.known_space_twin import KnownSpaceTwin
from airworthy.planners.mapping import FREE, OCCUPIED, UNKNOWN, LocalMaps

KNOWN, LEAST, MOST = -100, -50, 50
CELLS = np.array([23, 17, 11], np.int32)
BOX = np.array([[0.0, 0.0, 0.0], [2.3, 1.7, 1.1]])


def made() -> KnownSpace:
    return KnownSpace(np.zeros(3), CELLS, 0.1, ball_cells(0.3, 0.1), ring_nodes(0.6, 1.0, 0.1))


def drawn(seed: int, occupied: float = 0.03, free: float = 0.5) -> CellSource:
    """Cells drawn at random, in a ring that begins anywhere."""
    draw = np.random.default_rng(seed)
    share = draw.random(CELLS)
    odds = np.where(share < occupied, MOST + 1, np.where(share < occupied + free, LEAST, KNOWN - 1)).astype(np.int16)
    shift = draw.integers(0, CELLS).astype(np.int32)
    return CellSource(np.roll(odds, shift, (0, 1, 2)).reshape(-1), CELLS, shift, np.zeros(3, np.int32), CELLS)


def check(space: KnownSpace) -> None:
    twin = KnownSpaceTwin(space)
    np.testing.assert_array_equal(space.blocking, twin.blocking())
    np.testing.assert_array_equal(space.node & ~REFUSED, twin.node())
    np.testing.assert_array_equal(space.crowd, twin.crowd())
    np.testing.assert_array_equal(space.column, twin.column())


def test_counts_follow_cells_that_come_and_go() -> None:
    space = made()
    changed = [int(merge([space], [drawn(seed)], KNOWN, LEAST, MOST, 27)[0]) for seed in (1, 2, 3)]
    assert min(changed) > 500
    check(space)
    assert {int(s) for s in np.unique(space.state)} == {UNKNOWN, FREE, OCCUPIED}
    # All free: nothing is left of what was occupied, and what was refused is pardoned.
    assert space.refuse(np.array([1.0, 1.0, 0.5]), 0.3, False) > 10
    merge([space], [drawn(4, 0.0, 1.0)], KNOWN, LEAST, MOST, 27)
    check(space)
    assert not any(counts.any() for counts in (space.blocking, space.crowd, space.column))
    assert not (space.node & REFUSED).any()


def test_holes_that_rays_leave_are_filled_and_frontiers_stay() -> None:
    space = made()
    source = drawn(6, 0.01, 0.85)
    merge([space], [source], KNOWN, LEAST, MOST, 27)
    wanted = KnownSpaceTwin(space).filled(np.zeros(3, int), CELLS)
    assert (wanted != space.state).sum() > 10
    merge([space], [source], KNOWN, LEAST, MOST)
    np.testing.assert_array_equal(space.state, wanted)
    check(space)
    half = np.full(CELLS, KNOWN - 1, np.int16)
    half[:10, :9] = LEAST
    space = made()
    merge(
        [space], [CellSource(half.reshape(-1), CELLS, np.zeros(3, np.int32), np.zeros(3, np.int32), CELLS)], KNOWN, LEAST, MOST
    )
    np.testing.assert_array_equal(space.state == FREE, half == LEAST)


def test_between_free_and_occupied_a_cell_stays_what_it_was() -> None:
    space = made()
    merge([space], [drawn(1)], KNOWN, LEAST, MOST, 27)
    before = space.state
    unsure = np.zeros(CELLS, np.int16)
    source = CellSource(unsure.reshape(-1), CELLS, np.zeros(3, np.int32), np.zeros(3, np.int32), CELLS)
    assert merge([space], [source], KNOWN, LEAST, MOST, 27)[0] == 0
    np.testing.assert_array_equal(space.state, before)


def test_balls_are_those_of_the_twin_and_the_first_that_fails_is_told() -> None:
    space = made()
    merge([space], [drawn(5, 0.002, 0.99)], KNOWN, LEAST, MOST, 27)
    twin, draw = KnownSpaceTwin(space), np.random.default_rng(0)
    points = draw.uniform([-0.1, -0.1, -0.1], [2.4, 1.8, 1.2], (300, 3))
    wide, sure = draw.uniform(0.05, 0.35, 300), draw.uniform(0.05, 0.3, 300)
    first, why = Certifier().check(space, BOX, [p[None] for p in points], wide, sure)
    for k, point in enumerate(points):
        inside = bool(((point >= BOX[0]) & (point <= BOX[1])).all())
        assert why[k] == (twin.meets(point, wide[k], sure[k]) if inside else OUTSIDE)
        assert first[k] == (1 if why[k] == 0 else 0)
    assert {int(w) for w in np.unique(why)} == {0, UNSEEN, MET, OUTSIDE}
    good = points[why == 0][:2]
    path = [np.concatenate([good, points[why == MET][:1], good])]
    found = Certifier().check(space, BOX, path, [wide[why == MET][0]], [0.0])
    assert found[0][0] <= 2


def test_a_ball_exactly_as_wide_as_a_slit_fits_and_a_wider_one_does_not() -> None:
    """Seven free cells between two walls: 0.35 m on both sides of the middle."""
    state = np.full(CELLS, LEAST, np.int16)
    state[:, :4], state[:, 11:] = MOST + 1, MOST + 1
    space = made()
    source = CellSource(state.reshape(-1), CELLS, np.zeros(3, np.int32), np.zeros(3, np.int32), CELLS)
    merge([space], [source], KNOWN, LEAST, MOST, 27)
    middle = np.array([[1.0, 0.75, 0.55]])
    assert Certifier().check(space, BOX, [middle, middle], [0.349, 0.351], 0.0)[1].tolist() == [0, MET]
    assert space.has_room(middle)[0]
    assert not space.has_room(middle + np.array([0.0, 0.1, 0.0]))[0]


def test_local_maps_hand_over_what_they_saw() -> None:
    """A wall 2 m before the camera: the memory holds what the view shows, and keeps it when the window has moved on."""
    maps = LocalMaps(EVERY, mission([(-20, -5, 0)], [(20, 5, 4)]), CAMERA)
    boxes = maps.boxes
    space = KnownSpace(boxes.origin[0], boxes.cells[0], boxes.resolution, ball_cells(0.3, 0.1), ring_nodes(0.6, 1.0, 0.1))
    assert maps.touched(0).images == 0
    for x in (-15.0, 9.0):
        for _ in range(8):
            maps.update([0], wall_image(1), [(x, 0.2, 1.5)], [looking(0.1)])
        odds, side, first, last, images, _ = maps.touched(0)
        merge(
            [space], [CellSource(odds, side, np.zeros(3, np.int32), first, last)], maps.rules.least, -4096, maps.rules.occupied
        )
        view, state = maps.view(0), space.state
        corner = np.round((view.origin - space.origin) / 0.1).astype(int)
        part = state[tuple(slice(c, c + s) for c, s in zip(corner, view.shape, strict=True))]
        np.testing.assert_array_equal(part[view.cells != UNKNOWN], view.cells[view.cells != UNKNOWN])
    assert images == 16
    occupied = space.origin + 0.1 * (np.argwhere(space.state == OCCUPIED) + 0.5)
    assert occupied[:, 0].min() < -10.0
    assert occupied[:, 0].max() > 8.0


def test_a_view_is_taken_over_as_well() -> None:
    maps = LocalMaps(EVERY, mission([(-6, -6, 0)], [(6, 6, 3)]), CAMERA)
    for _ in range(8):
        maps.update([0], wall_image(1), [(-3.0, 0.2, 1.5)], [looking(0.1)])
    view, boxes = maps.view(0), maps.boxes
    space = KnownSpace(boxes.origin[0], boxes.cells[0], boxes.resolution, ball_cells(0.3, 0.1), ring_nodes(0.6, 1.0, 0.1))
    source = CellSource.of_view(view, boxes.origin[0], boxes.cells[0], (LEAST, MOST + 1))
    merge([space], [source], KNOWN, LEAST, MOST, 27)
    corner = np.round((view.origin - space.origin) / 0.1).astype(int)
    part = space.state[tuple(slice(c, c + s) for c, s in zip(corner, view.shape, strict=True))]
    np.testing.assert_array_equal(part, view.cells)


@pytest.mark.parametrize("radius", [0.3, 0.25, 0.5])
def test_blocked_cells_are_those_within_the_body(radius: float) -> None:
    cells = ball_cells(radius, 0.1)
    gap = np.maximum(np.abs(cells) - 0.5, 0.0) * 0.1
    assert (np.linalg.norm(gap, axis=1) < radius).all()
    assert (np.abs(cells).max(0) == np.abs(cells).max()).all()
    assert len(np.unique(cells, axis=0)) == len(cells)


# ---- What comes into space that was seen before ----------------------------------------------------------------------------


def shown(cells: np.ndarray, level: int) -> CellSource:
    """Some cells at a level of log-odds, nothing of the others."""
    odds = np.full(CELLS, KNOWN - 1, np.int16)
    odds[tuple(np.atleast_2d(cells).T)] = level
    none = np.zeros(3, np.int32)
    return CellSource(odds.reshape(-1), CELLS, none, none, CELLS)


EVERYWHERE = np.argwhere(np.ones(CELLS, bool))


def test_what_comes_into_seen_space_is_told_and_what_was_there_is_not() -> None:
    space, inner, face = made(), np.array([10, 8, 5]), np.array([15, 8, 5])
    wall = np.argwhere(np.ones((1, 17, 11), bool)) + np.array([16, 0, 0])
    merge([space], [shown(wall, MOST + 1)], KNOWN, LEAST, MOST, 27)
    assert not len(space.entered)
    before_wall = EVERYWHERE[EVERYWHERE[:, 0] < 16]
    merge([space], [shown(before_wall, LEAST)], KNOWN, LEAST, MOST, 27)
    # A ray that ends in a cell beside the wall, seen free before by others that grazed it, has found the wall.
    merge([space], [shown(np.stack([inner, face]), MOST + 1)], KNOWN, LEAST, MOST, 27)
    assert space.entered.tolist() == [inner.tolist()]
    assert space.state[tuple(inner)] == space.state[tuple(face)] == OCCUPIED
    check(space)
    merge([space], [shown(inner, MOST + 1)], KNOWN, LEAST, MOST, 27)
    assert not len(space.entered), "it was there already"


def test_space_that_was_only_supposed_to_be_free_is_not_entered() -> None:
    space, inner = made(), np.array([10, 8, 5])
    merge([space], [shown(EVERYWHERE, LEAST)], KNOWN, LEAST, MOST, 27, seen_through=False)
    merge([space], [shown(inner, MOST + 1)], KNOWN, LEAST, MOST, 27)
    assert not len(space.entered)
    assert space.state[tuple(inner)] == OCCUPIED


def test_what_is_followed_by_somebody_else_is_told_once_and_no_part_of_the_memory() -> None:
    space, inner = made(), np.array([10, 8, 5])
    merge([space], [shown(EVERYWHERE, LEAST)], KNOWN, LEAST, MOST, 27)
    space.follows = True
    for told in (1, 0):
        merge([space], [shown(inner, MOST + 1)], KNOWN, LEAST, MOST, 27)
        assert len(space.entered) == told
        assert space.state[tuple(inner)] == FREE
    # It has left and comes again.
    merge([space], [shown(inner, LEAST)], KNOWN, LEAST, MOST, 27)
    merge([space], [shown(inner, MOST + 1)], KNOWN, LEAST, MOST, 27)
    assert len(space.entered) == 1
    # It is followed no more: it stands.
    space.block_around(np.array([1.05, 0.85]), 0.2)
    assert space.state[tuple(inner)] == OCCUPIED
    assert space.follows
    check(space)


def test_what_came_before_it_was_followed_leaves_the_memory() -> None:
    space, inner, far = made(), np.array([10, 8, 5]), np.array([19, 8, 5])
    merge([space], [shown(EVERYWHERE, LEAST)], KNOWN, LEAST, MOST, 27)
    merge([space], [shown(np.stack([inner, far]), MOST + 1)], KNOWN, LEAST, MOST, 27)
    space.free_entered(np.array([1.05, 0.85]), 0.3)
    assert space.state[tuple(inner)] == FREE
    assert space.state[tuple(far)] == OCCUPIED
    check(space)
