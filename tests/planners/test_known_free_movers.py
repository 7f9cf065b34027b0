"""What moves: outlines and filters against closed forms, ways out, and flights across the way of things that move."""

from __future__ import annotations

import numpy as np
import pytest
from tests.planners.known_free_cases import ConeMaps, box_world, fly, mission_of

from airworthy.core.arrays import Array
from airworthy.planners.common.interface import OCCUPIED, Motion
from airworthy.planners.known_free import KnownFreePlanner, movers
from airworthy.planners.known_free.candidates import brakes, candidates
from airworthy.planners.known_free.evading import Evasion, clear_of, rays_around, room_of, ways
from airworthy.planners.known_free.known_space import ENTERED_ROOM, CellSource, KnownSpace, ball_cells, merge, ring_nodes
from airworthy.planners.known_free.motion import StoppingPlans
from airworthy.planners.known_free.movers import FollowedMover, Look, MoversSeen, outline

SIZE = (20.0, 10.0, 3.0)
OPEN = box_world(SIZE)
START, GOAL = np.array([[1.5, 5.0, 1.2]]), np.array([[18.5, 5.0, 1.2]])


# ---- outlines ----------------------------------------------------------------------------------------------------------------


def near_side(middle: Array, radius: float, camera: Array) -> Array:
    """Points on the side of a circle that a camera sees."""
    turn = np.arctan2(*(camera - middle)[::-1]) + np.linspace(-1.3, 1.3, 41)
    return middle + radius * np.stack([np.cos(turn), np.sin(turn)], 1)


@pytest.mark.parametrize("radius", [0.15, 0.3, 0.6])
@pytest.mark.parametrize("bearing", [-0.4, 0.0, 0.5])
def test_an_outline_is_that_of_the_circle(radius: float, bearing: float) -> None:
    camera, heading = np.array([2.0, -1.0]), 2.8
    turn = heading + bearing
    middle = camera + 3.0 * np.array([np.cos(turn), np.sin(turn)])
    found, wide = outline(near_side(middle, radius, camera), Look(camera, heading, 1.0), 0.1)
    # What is seen of a circle from near is a little less than its width.
    assert wide == pytest.approx(radius, rel=0.05)
    np.testing.assert_allclose(found, middle, atol=0.03)


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_what_the_image_cuts_keeps_its_width_and_the_side_that_is_seen(side: float) -> None:
    camera, middle = np.zeros(2), 3.0 * np.array([np.cos(0.6), side * np.sin(0.6)])
    look = Look(camera, 0.0, 0.6)
    seen = near_side(middle, 0.3, camera)
    seen = seen[np.abs(look.bearing(seen)) < look.sight]
    found, wide = outline(seen, look, 0.3)
    assert wide == pytest.approx(0.3, abs=0.01)
    np.testing.assert_allclose(found, middle, atol=0.07)


def test_bearings_know_no_seam() -> None:
    look = Look(np.zeros(2), np.pi - 0.1, 1.0)
    points = np.array([[-1.0, 0.0], [np.cos(-3.0), np.sin(-3.0)]])
    np.testing.assert_allclose(look.bearing(points), [0.1, np.pi - 3.0 + 0.1])


# ---- the filter --------------------------------------------------------------------------------------------------------------


def test_a_filter_finds_the_velocity_and_foretells() -> None:
    draw, velocity = np.random.default_rng(3), np.array([0.4, -1.1])
    errors, ahead = [], []
    for _ in range(40):
        mover = FollowedMover(np.zeros((2, 2)), 0.0, 0.0, 0.3)
        for k in range(1, 25):
            mover.to(0.05 * k)
            mover.measure(velocity * 0.05 * k + draw.normal(0.0, movers._NOISE, 2), 0.3)
        errors.append(mover.state[1] - velocity)
        ahead.append(mover.middle(np.array([2.2]))[0] - 2.2 * velocity)
    deviation = np.sqrt(mover.covariance[1, 1])
    assert np.abs(np.mean(errors, axis=0)).max() < 3.0 * deviation / np.sqrt(40)
    # It moves evenly, and is not pushed as the filter supposes: errors are no larger than it says, and not much smaller.
    assert 0.4 * deviation < np.std(errors) < 1.1 * deviation
    assert np.std(ahead) < 0.6
    assert np.linalg.eigvalsh(mover.covariance).min() > 0.0


def test_without_measures_it_goes_straight_on_and_doubts_more() -> None:
    mover = FollowedMover(np.array([[1.0, 2.0], [0.5, 0.0]]), 0.0, 0.0, 0.3, np.diag([0.01, 0.04]))
    mover.to(2.0)
    np.testing.assert_allclose(mover.state[0], [2.0, 2.0])
    # P + t^2 V + q t^3 / 3, of constant velocity.
    assert mover.covariance[0, 0] == pytest.approx(0.01 + 4.0 * 0.04 + movers._PUSH**2 * 8.0 / 3.0)
    assert mover.covariance[0, 1] == pytest.approx(2.0 * 0.04 + movers._PUSH**2 * 4.0 / 2.0)
    assert mover.covariance[1, 1] == pytest.approx(0.04 + movers._PUSH**2 * 2.0)


def test_a_width_is_forgotten_slowly() -> None:
    mover = FollowedMover(np.zeros((2, 2)), 0.0, 0.0, 0.4)
    mover.measure(np.zeros(2), 0.2)
    assert mover.radius == pytest.approx(0.36)
    mover.measure(np.zeros(2), 0.5)
    assert mover.radius == 0.5


@pytest.mark.parametrize(
    ("velocity", "images", "sure"),
    [
        ((1.0, 0.0), 12, True),
        ((1.0, 0.0), movers._LOOKS - 1, False),
        ((0.2, 0.0), 60, False),
        ((0.0, 0.0), 60, False),
    ],
)
def test_it_is_sure_by_way_speed_and_images(velocity: tuple[float, float], images: int, sure: bool) -> None:
    mover = FollowedMover(np.array([[0.0, 0.0], velocity]), 0.0, 0.0, 0.3)
    for k in range(images):
        mover.to(0.1 * k)
        mover.measure(np.array(velocity) * 0.1 * k, 0.3)
    assert mover.sure == sure


def test_what_trembles_or_is_broad_is_not_sure() -> None:
    still = FollowedMover(np.zeros((2, 2)), 0.0, 0.0, 0.3)
    broad = FollowedMover(np.array([[0.0, 0.0], [1.0, 0.0]]), 0.0, 0.0, 0.3)
    for k in range(40):
        for mover, x, radius in ((still, 0.12 * (-1.0) ** k, 0.3), (broad, 0.1 * k, movers._BROAD)):
            mover.to(0.1 * k)
            mover.measure(np.array([x, 0.0]), radius)
    assert not still.sure
    assert not broad.sure
    assert broad.is_none
    assert FollowedMover(np.array([[0.0, 0.0], [0.0, movers._FASTEST + 0.1]]), 0.0, 0.0, 0.3).is_none


# ---- what is followed, and what becomes of it --------------------------------------------------------------------------------

CELLS = np.array([60, 60, 12], np.int32)


def seen_open() -> KnownSpace:
    """A memory of 6 x 6 x 1.2 m, all of it seen to be free."""
    space = KnownSpace(np.zeros(3), CELLS, 0.1, ball_cells(0.3, 0.1), ring_nodes(0.6, 1.0, 0.1))
    merge([space], [column_source(np.zeros((0, 2)))], -100, -50, 50)
    return space


def column_source(*middles: Array | list[float], radius: float = 0.3) -> CellSource:
    """Columns among free cells."""
    xy = (np.moveaxis(np.indices(CELLS[:2]), 0, -1) + 0.5) * 0.1
    odds = np.full(CELLS, -60, np.int16)
    for middle in middles:
        if len(middle):
            odds[np.linalg.norm(xy - np.asarray(middle), axis=2) < radius] = 100
    none = np.zeros(3, np.int32)
    return CellSource(odds.reshape(-1), CELLS, none, none, CELLS, free=-50)


def shown(seen: MoversSeen, space: KnownSpace, time: float, *middles: list[float], radius: float = 0.3) -> None:
    source = column_source(*middles, radius=radius)
    merge([space], [source], -100, -50, 50)
    seen.see(0, time, Look(np.array([0.5, 3.0]), 0.0, 1.2), space, source)


def followed() -> tuple[MoversSeen, KnownSpace, float]:
    """Something that has gone at 1 m/s for a second, to (4, 3.5)."""
    seen, space = MoversSeen(1), seen_open()
    for k in range(11):
        shown(seen, space, 0.1 * k, [4.0, 2.5 + 0.1 * k])
    return seen, space, 1.0


def test_what_moves_is_followed_and_leaves_the_memory() -> None:
    seen, space, _ = followed()
    assert seen.any(0)
    assert seen.found[0] == 1
    (mover,) = seen.sure(0)
    np.testing.assert_allclose(mover.state, [[4.0, 3.5], [0.0, 1.0]], atol=0.2)
    assert mover.radius == pytest.approx(0.3, abs=0.1)
    assert space.follows
    assert not (space.state[40, 30:37, 2:9] == OCCUPIED).any()


def test_what_stops_stands() -> None:
    seen, space, time = followed()
    for k in range(1, 25):
        shown(seen, space, time + 0.1 * k, [4.0, 3.5])
    assert not seen.of(0)
    assert not space.follows
    assert (space.state[40, 33:37, 2:9] == OCCUPIED).all()


def test_what_is_out_of_sight_is_given_up_where_it_was() -> None:
    seen, space, time = followed()
    for k in range(1, 40):
        # Nothing is shown of where it is.
        none, unseen = np.zeros(3, np.int32), np.full(CELLS.prod(), -(1 << 15), np.int16)
        nothing = CellSource(unseen, CELLS, none, none, CELLS)
        merge([space], [nothing], -100, -50, 50)
        seen.see(0, time + 0.1 * k, Look(np.array([0.5, 3.0]), 0.0, 1.2), space, nothing)
        assert seen.any(0) == (0.1 * k <= movers._UNSEEN + 1e-9)
    assert not seen.of(0)


def test_what_is_broad_is_left_to_the_memory() -> None:
    """A fence of 2.2 m that comes nearer."""
    seen, space = MoversSeen(1), seen_open()
    for k in range(6):
        odds = np.full(CELLS, -60, np.int16)
        odds[50 - k, 20:42, 2:9] = 100
        source = CellSource(odds.reshape(-1), CELLS, np.zeros(3, np.int32), np.zeros(3, np.int32), CELLS, free=-50)
        merge([space], [source], -100, -50, 50)
        assert movers._ENOUGH < len(space.entered) < ENTERED_ROOM
        seen.see(0, 0.1 * k, Look(np.array([0.5, 3.0]), 0.0, 1.2), space, source)
        assert not seen.of(0)
    assert (space.state[45, 20:42, 2:9] == OCCUPIED).all()


def test_a_few_cells_are_left_to_the_memory() -> None:
    seen, space = MoversSeen(1), seen_open()
    odds = np.full(CELLS, -60, np.int16)
    odds[40, 30, 4 : 4 + movers._ENOUGH - 1] = 100
    source = CellSource(odds.reshape(-1), CELLS, np.zeros(3, np.int32), np.zeros(3, np.int32), CELLS, free=-50)
    merge([space], [source], -100, -50, 50)
    assert len(space.entered) == movers._ENOUGH - 1
    seen.see(0, 0.0, Look(np.array([0.5, 3.0]), 0.0, 1.2), space, source)
    assert not seen.of(0)
    assert (space.state[40, 30, 4 : 4 + movers._ENOUGH - 1] == OCCUPIED).all()


@pytest.mark.parametrize("follows", [False, True])
def test_more_than_can_be_told_stands(follows: bool) -> None:
    """Where so much comes at once the own position has jumped: nothing is withheld from the memory."""
    seen, space = MoversSeen(1), seen_open()
    space.follows = follows
    source = column_source([3.0, 3.0], radius=2.0)
    merge([space], [source], -100, -50, 50)
    assert len(space.entered) == ENTERED_ROOM
    seen.see(0, 0.0, Look(np.array([0.5, 3.0]), 0.0, 1.2), space, source)
    assert not seen.of(0)
    occupied = source.odds.reshape(CELLS) > 50
    assert ((space.state == OCCUPIED) == occupied).all()


def test_what_is_not_sure_yet_keeps_its_room_while_it_is_in_no_memory() -> None:
    seen, space, time = followed()
    here = np.tile([1.5, 1.5, 0.5], (1, 2, 1))
    far = seen.gap(0, here, np.array([1.0, 1.1]), 0.3)
    for k in (1, 2):
        shown(seen, space, time + 0.1 * k, [4.0, 3.5 + 0.1 * k], [2.5, 1.5])
    assert [mover.sure for mover in seen.of(0)] == [True, False]
    assert space.state[25, 15, 5] != OCCUPIED
    # 1 m between the middles, 0.6 m of both bodies.
    gap = seen.gap(0, here, np.array([1.2, 1.3]), 0.3)
    assert gap.max() < 0.4 < far.min()
    # The one that moved is gone: what is left stands.
    seen.of(0)[0].seen = -10.0
    shown(seen, space, time + 0.3, [2.5, 1.5])
    assert not space.follows
    assert space.state[25, 15, 5] == OCCUPIED


def test_room_shrinks_with_doubt_but_not_without_end() -> None:
    seen, here = MoversSeen(1), np.zeros((1, 3, 3))
    seen.of(0).append(FollowedMover(np.array([[2.0, 0.0], [0.0, 0.0]]), 0.0, 0.0, 0.3, sure=True))
    gap = seen.gap(0, here, np.array([0.0, 1.0, 60.0]), 0.3)
    doubts = movers._SPARE, movers._SPARE + movers._DOUBT, movers._DOUBT_MOST
    assert gap[0].tolist() == pytest.approx([2.0 - 0.3 - 0.3 - doubt for doubt in doubts])


# ---- ways --------------------------------------------------------------------------------------------------------------------


def planner_at_rest() -> KnownFreePlanner:
    planner = KnownFreePlanner()
    planner.reset(mission_of([OPEN], START, GOAL, ("virt_05",)))
    return planner


def test_ways_are_where_trajectories_are() -> None:
    planner = planner_at_rest()
    here = np.stack([START[0], np.array([1.0, 0.2, 0.0]), np.zeros(3)])
    path = here[0] + np.arange(40)[:, None] * np.array([0.1, 0.0, 0.0])
    offered = candidates(here, path, 39, planner.limits.of(0))
    times = np.array([0.0, 0.4, 1.1, 30.0])
    found = ways(offered.coefficients, offered.duration, times)
    plans = StoppingPlans(START)
    for k in (0, len(offered) - 1):
        plans.put(0, offered.trajectory(k, 5.0))
        plans.settle(np.array([5.0]))
        for at, point in zip(times, found[k], strict=True):
            np.testing.assert_allclose(point, plans.state(np.array([0]), np.array([5.0 + at]))[0][0], atol=1e-9)


def test_who_has_too_little_room_may_have_no_less_and_enough_at_the_end() -> None:
    gap = np.array([[1.0, 0.5, 0.1], [1.0, -0.1, 0.4], [-0.2, -0.1, 0.3], [-0.2, -0.3, 0.3], [-0.2, -0.1, -0.05]])
    assert clear_of(gap).tolist() == [True, False, True, False, False]


def test_room_is_worth_something_up_to_half_a_metre() -> None:
    far, near, leaves = np.full(10, 5.0), np.full(10, 0.4), np.append(np.full(3, -1.0), np.full(7, 0.5))
    worth = room_of(np.stack([far, near, leaves]))
    assert worth[0] > worth[1]
    assert worth[0] == room_of(np.full((1, 10), 0.5))[0]
    assert worth[2] > room_of(np.append(np.full(3, -1.0), np.full(7, 0.1))[None])[0]


def test_ways_out_leave_the_way_of_what_comes() -> None:
    planner = planner_at_rest()
    seen, plans = MoversSeen(1), StoppingPlans(START)
    evasion = Evasion(seen, plans, 0.3)
    assert not evasion.is_threatened(0, 0.0)
    # It comes from behind and to the left at 1 m/s, and will be there in two seconds.
    seen.of(0).append(FollowedMover(np.array([[1.5 - 2.0, 5.0 + 0.2], [1.0, 0.0]]), 0.0, 0.0, 0.3, sure=True))
    assert evasion.is_threatened(0, 0.0)
    here = np.stack([START[0], np.zeros(3), np.zeros(3)])
    rays = rays_around(here[0])
    offered = evasion.ways_out(0, 0.0, here, rays, np.full(len(rays), 24), planner.limits.of(0))
    plans.put(0, offered.trajectory(0, 0.0))
    plans.settle(np.zeros(1))
    assert not evasion.is_threatened(0, 0.0)
    # Nothing is offered where nothing is known to be free but standing still, which is no better.
    assert not len(evasion.ways_out(0, 0.0, here, rays, np.zeros(len(rays), int), planner.limits.of(0)))
    assert len(brakes(here, planner.limits.of(0))) > 0


def test_the_camera_turns_to_what_moves_but_not_from_where_it_flies() -> None:
    seen, here = MoversSeen(1), np.zeros(3)
    assert seen.heading(0, here, 0.3) == 0.3
    seen.of(0).append(FollowedMover(np.array([[0.0, 3.0], [0.0, 0.0]]), 0.0, 0.0, 0.3, sure=True))
    assert seen.heading(0, here, 0.0) == pytest.approx(0.4)
    assert seen.heading(0, here, 0.9) == pytest.approx(0.9 + np.pi / 2 - 0.9 - 0.4)
    assert seen.heading(0, here, 1.5) == pytest.approx(1.5)
    seen.of(0)[0].state[0] = 0.0, 7.0
    assert seen.heading(0, here, 0.0) == 0.0


# ---- flights -----------------------------------------------------------------------------------------------------------------


class Crossing(ConeMaps):
    """Columns of 0.6 m that go to and fro across the way; 0.1 s pass between images."""

    speed = 1.2

    def middles(self) -> Array:
        y = [2.0 + abs((s + self.speed * 0.1 * self.images[0]) % 12.0 - 6.0) for s in (0.5, 4.5, 8.0)]
        return np.stack([[6.0, 10.0, 14.0], y], 1)

    def see(self, flight: int, position: Array, yaw: float) -> None:
        world = OPEN.copy()
        middle = (np.moveaxis(np.indices(world.shape[:2]), 0, -1) + 0.5) * 0.1
        for x, y in self.middles():
            world[np.hypot(middle[..., 0] - x, middle[..., 1] - y) < 0.3] = True
        self.worlds[flight] = world
        super().see(flight, position, yaw)


class Watched(KnownFreePlanner):
    """Notes how near it came."""

    def watch(self, maps: Crossing) -> Watched:
        self.maps, self.nearest = maps, np.inf
        return self

    def update(self, motion: Motion, *rest: object) -> dict[str, Array]:
        away = np.linalg.norm(motion.position[0, :2] - self.maps.middles(), axis=1) - 0.3
        self.nearest = min(self.nearest, float(away.min()))
        return super().update(motion, *rest)  # type: ignore[arg-type]


def crossed(vehicle: str) -> tuple[Watched, bool]:
    maps = Crossing([OPEN])
    planner = Watched().watch(maps)
    flown = fly(planner, [OPEN], mission_of([OPEN], START, GOAL, (vehicle,)), 40.0, maps=maps)
    return planner, bool(flown.arrived.all())


def test_it_crosses_the_way_of_what_moves_and_is_not_met(monkeypatch: pytest.MonkeyPatch) -> None:
    planner, arrived = crossed("virt_05")
    assert arrived
    assert planner.movers.found[0] >= 2
    assert planner.nearest > 0.3
    # Who takes what moves for standing is met by it.
    monkeypatch.setattr(MoversSeen, "see", lambda *_: None)
    assert crossed("virt_05")[0].nearest < 0.3


def test_nothing_is_followed_where_nothing_moves() -> None:
    worlds = [box_world(SIZE, (9.5, 10.3, 4.6, 5.4, 0.0, 3.1))]
    planner = KnownFreePlanner()
    assert fly(planner, worlds, mission_of(worlds, START, GOAL, ("virt_05",)), 20.0).arrived.all()
    assert planner.movers.found[0] == 0
