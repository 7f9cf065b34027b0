"""What learning to avoid computes, number by number: flights, cost, curriculum, log, forests and how flights are judged."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tests.fixtures.snapshots import check_snapshot, condensed

from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.learning import timed_training
from airworthy.learning.avoid import evaluation, forests, places, run
from airworthy.learning.avoid.config import AvoidOptions
from airworthy.learning.avoid.evaluation import AvoidProtocol, ForestFlights
from airworthy.learning.avoid.flights import AvoidFlights, _fading
from airworthy.learning.avoid.kernel import Looks
from airworthy.learning.avoid.loss import AvoidTick, window_loss
from airworthy.learning.avoid.network import AvoidNet
from airworthy.learning.avoid.trainer import AvoidTraining
from airworthy.learning.timed_training import TimedTraining
from airworthy.pilots.avoid_policy.sight import REACH, rays
from airworthy.planners.common.interface import Mission

SNAPSHOTS = Path(__file__).parent.parent / "snapshots"
TINY = AvoidOptions(seed=3, iterations=200, env_count=8, window=3, windows_per_flight=2, hidden=16, place_count=2)


def _net(hidden: int = 16) -> AvoidNet:
    """A network whose weights are NumPy's: torch need not draw the same everywhere."""
    net, rng = AvoidNet(hidden), np.random.default_rng(11)
    with torch.no_grad():
        for tensor in net.parameters():
            tensor.copy_(torch.from_numpy((0.2 * rng.normal(size=tuple(tensor.shape))).astype(np.float32)))
    return net


# ---- flights ---------------------------------------------------------------------------------------------------------


def test_where_flights_begin() -> None:
    flights = AvoidFlights(40, places.draw_places(3, 5), 8, 12.0, threads=1)
    rng = np.random.default_rng(6)
    flights.level[:] = np.linspace(0.03, 1.0, 40)
    flights.begin(np.arange(40), rng)
    check_snapshot(SNAPSHOTS / "avoid.txt", flights.arrays(), 1e-5, 1e-5, part="begin")
    before = flights.arrays()
    flights.begin(np.array([3, 17]), rng)
    after = flights.arrays()
    check_snapshot(
        SNAPSHOTS / "avoid.txt", {k: np.take(a, [3, 17], a.shape.index(40)) for k, a in after.items()}, 1e-5, 1e-5, part="anew"
    )
    others = np.delete(np.arange(40), [3, 17])
    for name, a in after.items():
        np.testing.assert_array_equal(np.take(a, others, a.shape.index(40)), np.take(before[name], others, a.shape.index(40)))
    speed = flights.speed.numpy()[:, 0]
    assert (speed >= 1.5 + 11.0 * np.arange(40) / 40 - 1e-5).all()
    assert (speed <= 1.5 + 11.0 * (np.arange(40) + 1) / 40 + 1e-5).all()


@pytest.mark.parametrize("blind", [False, True])
def test_decisions(blind: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three decisions by a network of known weights, with noise of NumPy's: what is flown, seen and told."""
    numbers = np.random.default_rng(8)

    def randn(*shape: int, generator: Any) -> torch.Tensor:
        return torch.from_numpy(numbers.normal(size=shape).astype(np.float32))

    monkeypatch.setattr(torch, "randn", randn)
    flights = AvoidFlights(12, places.draw_places(2, 5), 16, 9.0, blind, 1)
    rng = np.random.default_rng(6)
    flights.level[:] = 0.9
    flights.begin(np.arange(12), rng)
    # Two of them are near their goals: they get others; one of the two only just.
    flights.goal[:2] = flights.p[:2] + torch.tensor([[1.9, 0.3, 0.1], [2.1, 0.3, 0.1]])
    values: dict[str, Any] = {}
    for k in range(3):
        tick = flights.tick(_net(), torch.Generator(), rng)
        values |= {f"{k} {name}": x.detach().numpy() for name, x in vars(tick).items()}
    flights.detach(flights.v[None])
    values |= flights.arrays()
    check_snapshot(SNAPSHOTS / "avoid.txt", values, 1e-3, 1e-3, part=f"decisions {'blind' if blind else 'seeing'}")


def test_a_flight_is_rated_at_half_its_speed() -> None:
    flights = AvoidFlights(4, places.draw_places(1, 5), 8, 9.0, threads=1)
    flights.speed[:], flights.level[:] = 4.0, [0.5, 0.5, 0.99, 0.04]
    flights.hit[3] = True
    flights.progress[:] = torch.tensor([4.0, 4.01, 9.0, 9.0])
    flights.rate(np.arange(4), 2.0)
    np.testing.assert_allclose(flights.level, [0.5, 0.53, 1.0, 0.03])


def test_slopes_fade() -> None:
    x = torch.tensor([2.0], requires_grad=True)
    assert float(_fading(x).detach()) == pytest.approx(2.0)
    (slope,) = torch.autograd.grad(_fading(x), x)
    assert float(slope) ** 15 == pytest.approx(0.4, rel=1e-5)
    still = torch.tensor([2.0])
    assert _fading(still) is still


def test_views_and_clearances() -> None:
    looks = Looks(places.draw_places(2, 4), rays(), 6, 3, REACH, 0.03, 1)
    rng = np.random.default_rng(1)
    looks.layout[:], looks.counts[:] = (
        [0, 1, 0, 1, 0, 1],
        [(460, 0, 0), (0, 32, 0), (0, 0, 32), (460, 32, 32), (1, 1, 1), (0, 0, 0)],
    )
    looks.offset[:], looks.position[:] = rng.uniform(0.0, 32.0, (6, 2)), rng.uniform(0.5, 3.0, (6, 3))
    looks.camera[:] = np.eye(3)
    looks.points[:] = looks.position[:, None] + rng.normal(0.0, 2.0, (6, 3, 3))
    looks.look()
    check_snapshot(SNAPSHOTS / "avoid.txt", {"depth": looks.depth, "nearest": looks.nearest}, 1e-4, 1e-4, part="looks")


# ---- cost ------------------------------------------------------------------------------------------------------------


def test_what_a_window_costs_by_loops() -> None:
    rng = np.random.default_rng(2)
    drawn = {name: rng.normal(0.0, 2.0, (4, 2, 3)) for name in ("velocity", "wanted", "asked", "acting", "misjudged")}
    clearance, before = rng.uniform(0.0, 0.8, (4, 2, 5)), rng.normal(size=(29, 2, 3))
    ticks = [
        AvoidTick(clearance=torch.tensor(clearance[t]), **{name: torch.tensor(x[t]) for name, x in drawn.items()})
        for t in range(4)
    ]
    cost, parts = window_loss(ticks, torch.tensor(before), 5.0, 3.0)
    speeds, whole = [], np.concatenate([before, drawn["velocity"]])
    for t in range(4):
        for k in range(2):
            off = np.linalg.norm(whole[t : t + 30, k].mean(axis=0) - drawn["wanted"][t, k])
            speeds.append(0.5 * off**2 if off < 1.0 else off - 0.5)
    wanted = {"speed": np.mean(speeds), "command": (drawn["asked"] ** 2).sum(2).mean()}
    wanted["jerk"] = (((drawn["acting"][1:] - drawn["acting"][:-1]) * 15.0) ** 2).sum(2).mean()
    wanted["estimate"] = (drawn["misjudged"] ** 2).mean()
    for name, value in wanted.items():
        assert parts[name] == pytest.approx(value, rel=1e-9), name
    whole_cost = parts["speed"] + 5.0 * parts["collision"] + 3.0 * parts["nearness"]
    whole_cost += 2.0 * parts["estimate"] + 0.01 * parts["command"] + 0.001 * parts["jerk"]
    assert float(cost) == pytest.approx(whole_cost, rel=1e-9)


def test_the_network_by_its_equations() -> None:
    net, rng = _net(), np.random.default_rng(3)
    image, state, memory = rng.normal(size=(3, 192)), rng.normal(size=(3, 10)), rng.normal(size=(3, 16))
    w = {name: tensor.detach().numpy().astype(float) for name, tensor in net.named_parameters()}

    def leaky(x: Any) -> Any:
        return np.where(x > 0.0, x, 0.05 * x)

    def sigmoid(x: Any) -> Any:
        return 1.0 / (1.0 + np.exp(-x))

    seen = leaky(image @ w["image.weight"].T + w["image.bias"] + state @ w["state.weight"].T)
    new, old = seen @ w["input.weight"].T + w["input.bias"], memory @ w["memory.weight"].T + w["memory.bias"]
    reset, update = sigmoid(new[:, :16] + old[:, :16]), sigmoid(new[:, 16:32] + old[:, 16:32])
    candidate = np.tanh(new[:, 32:] + reset * old[:, 32:])
    after = (1.0 - update) * candidate + update * memory
    with torch.no_grad():
        out, kept = net(*(torch.from_numpy(x.astype(np.float32)) for x in (image, state, memory)))
    np.testing.assert_allclose(kept, after, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(out, leaky(after) @ w["out.weight"].T + w["out.bias"], rtol=1e-4, atol=1e-4)


def test_first_weights_are_small_where_it_says() -> None:
    """Torch draws each from U(-1/sqrt(n), 1/sqrt(n)); of the state's half is left, of the last a hundredth."""
    net = AvoidNet(256)
    assert float(net.state.weight.detach().abs().max()) == pytest.approx(0.5 / math.sqrt(10.0), rel=0.02)
    assert float(net.out.weight.detach().abs().max()) == pytest.approx(0.01 / 16.0, rel=0.02)
    assert (net.out.bias == 0.0).all()


# ---- training --------------------------------------------------------------------------------------------------------


def test_the_rate_rises_and_falls() -> None:
    training = AvoidTraining(TINY, 1)
    found = []
    for iteration in (0, 24, 48, 49, 50, 100, 150, 199):
        training.iteration = iteration
        found.append(training._rate_share())
    fall = [0.01 + 0.99 * 0.5 * (1.0 + math.cos(math.pi * k / 200)) for k in (0, 24, 48, 49, 50, 100, 150, 199)]
    rise = [1 / 50, 25 / 50, 49 / 50, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert found == pytest.approx([a * b for a, b in zip(rise, fall, strict=True)], rel=1e-12)
    assert training.top_speeds == pytest.approx([1.5 + 11.0 * share for share in (0.125, 0.375, 0.625, 0.875)])


def test_which_flights_are_rated_and_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    training, told = AvoidTraining(replace(TINY, windows_per_flight=3), 1), []
    monkeypatch.setattr(training.flights, "rate", lambda ids, seconds: told.append(("rate", ids.tolist(), seconds)))
    monkeypatch.setattr(training.flights, "begin", lambda ids, rng: told.append(("begin", ids.tolist(), float(rng.random()))))
    for iteration in (1, 2, 3, 4):
        training.iteration = iteration
        training._renew()
    drawn = [float(np.random.default_rng([3, k, 0]).random()) for k in (1, 2, 3, 4)]
    seconds = 3 * 3 / 15.0
    assert told == [
        ("begin", [1, 4, 7], drawn[0]),
        ("begin", [2, 5], drawn[1]),
        ("rate", [0, 3, 6], pytest.approx(seconds)),
        ("begin", [0, 3, 6], drawn[2]),
        ("rate", [1, 4, 7], pytest.approx(seconds)),
        ("begin", [1, 4, 7], drawn[3]),
    ]


def test_a_window_whose_gradient_is_no_number_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    training = AvoidTraining(TINY, 1)
    before = {name: w.copy() for name, w in training.weights.items()}
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", lambda parameters, most: torch.tensor(float("nan")))
    training.step()
    assert (training.skipped, training.iteration, training.env_steps) == (1, 1, 24)
    assert all((before[name] == w).all() for name, w in training.weights.items())
    assert training.metrics(2.5)["skipped"] == 1


def test_a_step_is_adams_along_a_gradient_of_at_most_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """First step of AdamW: every weight moves by the rate against its slope's sign, but for the share that decays."""
    training, seen = AvoidTraining(TINY, 1), []
    clip = torch.nn.utils.clip_grad_norm_
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", lambda p, most: seen.append(most) or clip(p, most))
    before = {name: w.detach().numpy().copy() for name, w in training.net.named_parameters()}
    training.step()
    rate = 1.5e-3 / 50
    for name, w in training.net.named_parameters():
        assert w.grad is not None
        slope = w.grad.numpy()
        large = np.abs(slope) > 1e-5
        wanted = before[name] * (1.0 - rate * 1e-3) - rate * np.sign(slope)
        np.testing.assert_allclose(w.detach().numpy()[large], wanted[large], atol=2e-7)
    assert seen == [1.0]
    assert training.parts["gradient_norm"] > 0.0


def test_the_log_tells_of_quarters() -> None:
    training = AvoidTraining(TINY, 1)
    f = training.flights
    f.level[:], f.hit[:] = np.arange(8) / 10.0, torch.tensor([True] * 3 + [False] * 5)
    f.v[:] = torch.tensor([[3.0, 4.0, 0.0]]) * torch.arange(8)[:, None]
    row = training.metrics(1.5)
    assert row["level"] == [0.05, 0.25, 0.45, 0.65]
    assert row["speed_m_s"] == [2.5, 12.5, 22.5, 32.5]
    assert (row["cost"], row["skipped"], row["touched_share"]) == (1.5, 0, 0.375)
    contract = training.contract
    told = {"iterations": 0, "env_steps": 0, "options": asdict(TINY)}
    assert (contract.hidden, contract.margin, contract.blind) == (16, 0.25, False)
    assert contract.training == told


class _Work:
    """A training whose steps cost what they are numbered."""

    def __init__(self, iterations: int):
        self.iteration, self.options = 0, SimpleNamespace(iterations=iterations)
        self.restored: list[Any] = []

    finished = property(lambda self: self.iteration >= self.options.iterations)
    env_steps = property(lambda self: 10 * self.iteration)

    def step(self) -> float:
        self.iteration += 1
        return float(self.iteration)

    def metrics(self, cost: float) -> dict[str, Any]:
        return {"cost": cost, "level": [0.25, 0.5]}

    def save(self) -> Checkpoint:
        return Checkpoint(self.iteration, {"x": np.ones(2)}, {"skipped": 4})

    def restore(self, checkpoint: Checkpoint) -> None:
        self.restored.append(checkpoint)


def test_at_most_a_thousand_rows_and_the_last(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter(np.arange(0.0, 1e6, 0.25).tolist())
    monkeypatch.setattr(timed_training.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(timed_training.time, "perf_counter", lambda: 7.0)
    monkeypatch.setattr(timed_training.time, "process_time", lambda: 9.0)
    work: Any = _Work(2501)
    held = TimedTraining(work, 1000, run._line(2501))
    held.wall_s, held.cpu_s = 3.5, 4.5
    assert list(held.steps(lambda: False)) == list(range(1, 2502))
    rows = [row["iteration"] for row in held.metrics]
    assert rows == [*range(2, 2501, 2), 2501]
    assert held.metrics[0] == {
        "iteration": 2, "env_steps": 20, "wall_s": 3.5, "cpu_s": 4.5, "cost": 2.0, "level": [0.25, 0.5]
    }  # fmt: skip
    lines = capsys.readouterr().err.splitlines()
    # The clock goes on by a quarter second whenever it is asked, once per row: each fortieth row, and the last.
    assert len(lines) == 1251 // 40 + 1
    assert "2,501 of 2,501 steps, 0.03 M decisions in 4 s, cost 2501.00, densities mastered by speed [%] 25 50" in lines[-1]
    saved = held.save()
    assert (saved.number, saved.notes["skipped"], saved.notes["wall_s"], saved.notes["cpu_s"]) == (2501, 4, 3.5, 4.5)
    other = TimedTraining(_Work(2501), 1000)
    other.restore(saved)
    assert (other.metrics, other.wall_s, other.cpu_s) == (held.metrics, 3.5, 4.5)
    assert not list(TimedTraining(_Work(5), 1000).steps(lambda: True))


# ---- places and forests ----------------------------------------------------------------------------------------------


def test_places_and_forests_of_seeds() -> None:
    drawn = places.draw_places(2, 9)
    values: dict[str, Any] = {"trunks": drawn.trunks, "balls": drawn.balls, "boxes": drawn.boxes}
    for area in (2.5, 8.0):
        values[f"forest {area}"] = forests.draw_trunks(3, 1, area)
    scene = forests.forest_scene(3, 1, 30.0)
    values["scene"] = [scene.name, condensed(scene.shapes), condensed(list(scene.instances)), scene.bounds]
    check_snapshot(SNAPSHOTS / "avoid.txt", values, 1e-6, 1e-6, part="places")


def test_trunks_that_do_not_fit_are_inside_out() -> None:
    candidates = np.array([[[1.0, 1.0, 0.2], [1.9, 1.0, 0.2], [2.01, 1.0, 0.2], [31.9, 1.0, 0.2]]], np.float32)
    found = places.set_trunks(candidates, 3)
    # The second is 0.5 m from the first, the third 0.61 m; the fourth is 0.7 m off, over the edge of the square.
    np.testing.assert_array_equal(found[0], candidates[0][[0, 2, 3]])
    np.testing.assert_array_equal(places.set_trunks(candidates, 4)[0, 3], np.float32([0.0, 0.0, -1000.0]))
    np.testing.assert_array_equal(places.set_trunks(candidates, 2, 0.4)[0], candidates[0][:2])


# ---- judgement -------------------------------------------------------------------------------------------------------


class _Guide:
    """Commands nothing; says of one flight at one tick that it failed."""

    camera = None

    def __init__(self, fails: tuple[int, int] | None = None):
        self.fails, self.asked = fails, list[np.ndarray]()

    def command(self, simulator: Any, mounted: Any, active: np.ndarray) -> tuple[np.ndarray, list[str]]:
        self.asked.append(active.copy())
        causes = [""] * len(active)
        if self.fails and self.fails[0] == len(self.asked):
            causes[self.fails[1]] = "no way"
        return np.full((len(active), 3), float(len(self.asked))), causes


class _Simulator:
    """Flights along x at speeds of their own; one is lost to a tree, one leaves the box, one leaves the numbers."""

    def __init__(self, start: np.ndarray, velocity: np.ndarray, touches: dict[int, int], diverges: dict[int, int]):
        self.position, self._velocity, self._touches, self._diverges = start.copy(), velocity, touches, diverges
        self.ticks, self.commands = 0, list[np.ndarray]()

    def step(self, command: np.ndarray) -> None:
        self.ticks += 1
        self.commands.append(np.array(command))
        self.position = self.position + self._velocity / 100.0

    def field(self, name: str) -> np.ndarray:
        assert name == "status"
        return np.array([2.0 if 0 < self._touches.get(k, 0) <= self.ticks else 1.0 for k in range(len(self.position))])

    @property
    def diverged(self) -> np.ndarray:
        return np.array([0 < self._diverges.get(k, 0) <= self.ticks for k in range(len(self.position))])


def _mission(count: int, protocol: AvoidProtocol | None = None) -> Mission:
    return evaluation._mission(protocol or AvoidProtocol(flights=count), 4.0)


def test_what_becomes_of_flights() -> None:
    """One comes through, one touches, one leaves sideways, one fails, one diverges, one is late, one climbs too high."""
    mission = _mission(7)
    length = mission.goal[0, 0] - mission.start[0, 0]
    velocity = mission.goal - mission.start
    velocity *= 10.0 / length
    velocity[2] = (10.0, 9.0, 0.0)
    velocity[5] = 0.1 * velocity[5]
    velocity[6] = (10.0, 0.0, 5.0)
    guide = _Guide((20, 3))
    simulator: Any = _Simulator(mission.start, velocity, {1: 30}, {4: 40})
    flown = evaluation._flown(simulator, guide, None, mission)
    assert flown.success.tolist() == [True] + [False] * 6
    assert flown.touched.tolist() == [False, True, False, False, True, False, False]
    assert flown.left.tolist() == [False, False, True, True, False, False, True]
    assert flown.cause == ("", "", "", "no way", "", "", "")
    assert flown.speed[0] == pytest.approx(10.0, rel=0.01)
    assert np.isnan(flown.speed[1:5]).all()
    assert simulator.ticks == 3000  # the late one flies for thirty seconds
    # Wilson: (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4 n^2)) / (1 + z^2 / n) of 1 in 7, z = 1.95996.
    z, p, n = 1.959963984540054, 1.0 / 7.0, 7
    wide = z * np.sqrt(p * (1.0 - p) / n + z * z / (4.0 * n * n))
    wilson = [100.0 * (p + z * z / (2.0 * n) + side * wide) / (1.0 + z * z / n) for side in (-1.0, 1.0)]
    assert flown.figures == {
        "flights": 7, "success": 1, "success_interval_percent": pytest.approx(wilson), "touched": 2, "left": 3, "late": 1,
        "mean_speed_m_s": pytest.approx(flown.speed[0]),
    }  # fmt: skip
    # Who is decided stays where it was, and keeps its last command.
    decided = np.flatnonzero(~np.array([a[0] for a in guide.asked]))[0]
    np.testing.assert_array_equal(flown.track[decided + 1, 0], flown.track[-1, 0])
    assert np.linalg.norm(flown.track[-1, 0] - mission.goal[0]) < 1.0
    assert np.linalg.norm(flown.track[decided - 1, 0] - mission.goal[0]) >= 1.0
    assert simulator.commands[-1][0, 0] == decided
    assert simulator.commands[-1][5, 0] == 3000.0
    half = 0.5 * forests.FOREST_WIDTH
    out = int(np.flatnonzero(np.abs(flown.track[:, 2, 1]) > half)[0])
    np.testing.assert_array_equal(flown.track[out, 2], flown.track[-1, 2])
    assert not guide.asked[out][2]
    assert guide.asked[out - 1][2]


def test_a_flight_that_has_ended_everywhere_ends_the_rest() -> None:
    mission = _mission(2)
    simulator: Any = _Simulator(mission.start, 0.0 * mission.start, {0: 5, 1: 7}, {})
    flown = evaluation._flown(simulator, _Guide(), None, mission)
    assert simulator.ticks == 7
    assert flown.track.shape == (8, 2, 3)
    assert flown.figures["mean_speed_m_s"] is None
    none = np.zeros(3, bool)
    assert ForestFlights(none, none, none, np.full(3, np.nan), np.zeros((1, 3, 3))).figures["late"] == 3


def test_missions_and_guides(monkeypatch: pytest.MonkeyPatch) -> None:
    for speed in (3.9, 4.0, 4.1, 8.0):
        found = evaluation._mission(AvoidProtocol(flights=2), speed)
        np.testing.assert_allclose(found.acceleration, max(6.0, 1.5 * speed))
        np.testing.assert_allclose(found.speed, speed)
    few, many = _mission(3), _mission(9)
    np.testing.assert_array_equal(few.start, many.start[:3])
    check_snapshot(SNAPSHOTS / "avoid.txt", {k: v for k, v in vars(many).items() if v is not None}, part="mission")
    told: list[Any] = []
    monkeypatch.setattr(evaluation, "PlannerGuide", lambda *given: told.append(given))
    car = evaluation.vehicle("flightgoggles")
    for name in ("straight", "ego"):
        evaluation.planner_guide(name)(few, [car], 0.02)
    assert [given[3].perturb.depth_noise for given in told] == [0.0, 0.02]
    assert [given[3].pilots for given in told] == [("straight",), ("ego",)]
    flown = SimpleNamespace(figures={"flights": 2})
    monkeypatch.setattr(
        evaluation, "fly_forests", lambda make, protocol, speed, area, fleet: told.append((speed, area)) or flown
    )
    policy: Any = SimpleNamespace(contract=SimpleNamespace(fleet=None))
    rows = evaluation.judged(policy, AvoidProtocol(flights=2, speeds=(4.0, 8.0), areas=(5.0, 2.5)))
    assert told[2:] == [(4.0, 5.0), (4.0, 2.5), (8.0, 5.0), (8.0, 2.5)]
    assert rows[1] == {"speed_m_s": 4.0, "area_m2": 2.5, "flights": 2}
