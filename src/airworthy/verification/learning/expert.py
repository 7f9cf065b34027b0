"""The expert: item 3 of SOUS VIDE's acceptance list (specification, sections 4 and 12).

Data synthesis: items 4 and 5 of SOUS VIDE's acceptance list (specification, sections 5, 6 and 12).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.control.mpc import MpcConfig, MpcReference, MpcSolver
from airworthy.control.mpc.stage import step
from airworthy.core.arrays import Array, ArrayInt, ArrayU8
from airworthy.core.files import read_json, sha256_file
from airworthy.core.frames import to_matrix, z_down_attitude, z_down_vector
from airworthy.core.idle_options import without_idle
from airworthy.evaluation.metrics import path_distance
from airworthy.geometry import Sphere
from airworthy.learning.datasets import DatasetConfig, ExpertDataset, Made, synthesize_dataset
from airworthy.learning.datasets.config import IDLE_RULES, PAIRS_FILE, ROLLOUTS_FILE
from airworthy.learning.synthesis import RolloutPlan, SynthesisConfig, roll_out
from airworthy.pilots.expert import expert_reference
from airworthy.pilots.svnet.features import to_command, z_down
from airworthy.scenes import Instance, Material, Scene, Sky, write_scene
from airworthy.simulation import SemiKinematicTwin, Simulator, SimulatorConfig
from airworthy.trajectories import course, kinematic_state
from airworthy.vehicles import vehicle
from airworthy.verification.published import Figure, below, zero

__all__ = [
    "FULL_FORCE",
    "MASS",
    "closing_figures",
    "dynamics_figures",
    "expert_figures",
    "instant_figures",
    "made_small",
    "planner_figures",
    "published_set_figures",
    "repetition_figures",
    "warm_figures",
]


# ---- Dynamics and planner: items 1 and 2 of SOUS VIDE's acceptance list (specification, section 12) -------------------------

COURSES = ("robustness", "extended", "cluttered", "infinity", "line", "hover", "sigmoid")
FULL_FORCE, MASS = 27.6, 1.144
"""The reference drone's k_th [N] and m [kg], written here again: the record of the vehicle is under test, too."""
RATE_MAX = 5.0
CLOCK = SimulatorConfig(dynamics="semi_kinematic", level="rate_thrust", physics_rate=100.0, control_rate=20.0)
DRONES, TICKS = 64, 200
"""Of the flights under random commands; 10 s."""


# ---- 1: dynamics --------------------------------------------------------------------------------------------------------


def dynamics_figures() -> Iterator[Figure]:
    """Check hover, quaternions and the Runge-Kutta step, of the float64 twin and of the float32 kernel that flies."""
    kinds = {"float64 twin": (_twin_flight, 1e-6, 1e-9), "float32 kernel": (_kernel_flight, 1e-6, _ROUNDED)}
    for name, (flight, drift, norm) in kinds.items():
        hover = np.tile([_share_of_hover() * FULL_FORCE, 0.0, 0.0, 0.0], (TICKS, 1, 1))
        yield below(
            f"SOUS VIDE 1, {name}: drift of hover at f = m g / k_th in 10 s", _distance(flight(hover, 100.0)[-1]), drift, "m"
        )
        attitude = np.stack([state[:, 3:] for state in flight(_commands(), 100.0)])
        off = float(np.abs(np.linalg.norm(attitude, axis=-1) - 1.0).max())
        yield below(f"SOUS VIDE 1, {name}: norm of quaternions off 1 in 10 s at up to 5 rad/s, worst", off, norm)
    few = _commands()[:40]
    fine = _twin_flight(few, 1000.0)[-1]
    gaps = {name: _distance(flight(few, 100.0)[-1] - fine) for name, (flight, _, _) in kinds.items()}
    label = "Runge-Kutta at 100 Hz against 1,000 Hz in float64, 2 s, worst"
    yield below(f"SOUS VIDE 1, float64 twin: {label}", gaps["float64 twin"], 1e-6, "m")
    # They tumble and fall twenty metres, of which a float32 keeps 2e-6 m, and of 20 m/s as much for the steps that are left.
    yield below(f"SOUS VIDE 1, float32 kernel: {label}", gaps["float32 kernel"], 1e-5, "m")


_ROUNDED = 3e-7
"""Four components of float32, each rounded to 6e-8 and the length divided out in float32."""


def _share_of_hover() -> float:
    return MASS * vehicle("carl").gravity / FULL_FORCE


def _commands() -> Array:
    """(TICKS, DRONES, 4) thrust [N] and rates [rad/s], drawn anew at every tick."""
    drawn = np.random.default_rng(0).uniform(-1.0, 1.0, (TICKS, DRONES, 4))
    hover = _share_of_hover() * FULL_FORCE
    return np.concatenate([hover * (1.0 + 0.5 * drawn[..., :1]), RATE_MAX * drawn[..., 1:]], axis=-1)


def _twin_flight(commands: Array, rate: float) -> list[Array]:
    """Positions and quaternions (n, 7) after every tick."""
    twin = SemiKinematicTwin(Simulator(vehicle("carl"), replace(CLOCK, physics_rate=rate), commands.shape[1]))
    found = []
    for command in commands:
        twin.advance(round(rate / CLOCK.control_rate), command)
        found.append(np.concatenate([twin.field("position"), twin.field("attitude")], axis=1))
    return found


def _kernel_flight(commands: Array, rate: float) -> list[Array]:
    simulator = Simulator(vehicle("carl"), replace(CLOCK, physics_rate=rate), commands.shape[1])
    found = []
    for command in commands:
        simulator.step(command)
        found.append(np.concatenate([simulator.position, simulator.attitude], axis=1).astype(np.float64))
    return found


def _distance(state: Array) -> float:
    return float(np.linalg.norm(state[:, :3], axis=1).max())


# ---- 2: planner ---------------------------------------------------------------------------------------------------------


def planner_figures(folder: Path) -> Iterator[Figure]:
    """Check every course against its `reference_*.csv`.

    Args:
        folder: With these files.
    """
    units = {"positions": "m", "velocities": "m/s", "quaternions": "", "thrust shares and body rates": ""}
    worst = dict.fromkeys(units, 0.0)
    for name in COURSES:
        rows = np.loadtxt(folder / f"reference_{name}.csv", delimiter=",", skiprows=1)
        for key, gap in zip(worst, _planned_gaps(name, rows), strict=True):
            worst[key] = max(worst[key], float(np.abs(gap).max()))
    for key, value in worst.items():
        yield below(
            f"SOUS VIDE 2, {len(COURSES)} planned courses against references: {key} off, worst", value, 1e-4, units[key]
        )


def _planned_gaps(name: str, rows: Array) -> tuple[Array, ...]:
    sample = course(name).trajectory().sample(rows[:, 0])
    state = kinematic_state(sample)
    wanted = z_down_attitude(rows[:, 7:11])
    sign = np.where(np.sum(state.attitude * wanted, axis=1, keepdims=True) < 0.0, -1.0, 1.0)
    inputs = np.concatenate([(state.thrust * MASS / FULL_FORCE)[:, None], state.body_rate], axis=1)
    return (
        sample.position - z_down_vector(rows[:, 1:4]),
        sample.velocity - z_down_vector(rows[:, 4:7]),
        sign * state.attitude - wanted,
        inputs - to_command(rows[:, 11:15]),
    )


# -----------------------------------------------------------------------------------------------------------------------------

PROBLEMS, WARM_TICKS, CHECKED, COMPARED = 1_000, 20, 10, 256
"""Problems of one call; ticks of the closed loop, the one whose solutions are judged, and how many of them."""
LEAST_COST = 0.01
"""Below it a drone is on its course, the cost vanishes, and float32 keeps few digits of it: it is not compared."""


def expert_figures(path: Path | None) -> Iterator[Figure]:
    """Check published optima, and many problems in one call.

    Args:
        path: Of `mpc_reference.json`; None: there is none.
    """
    if path is not None:
        yield from _optima(path)
    yield from _one_call()
    yield from warm_figures()


def _optima(path: Path) -> Iterator[Figure]:
    problems = read_json(path)["problems"]
    start, cost, first = (np.array([problem[name] for problem in problems], np.float64) for name in ("x0", "cost", "u0"))
    found = MpcSolver(len(start), _line()).solve(z_down(start), FULL_FORCE / MASS, 0)
    error = float(np.abs(found.cost / cost - 1.0).max())
    yield below(f"SOUS VIDE 3, {len(start)} published MPC problems: cost off the optimum, worst, relative", error, 1e-4)
    off = float(np.abs(found.inputs[:, 0] - to_command(first)).max())
    yield below(f"SOUS VIDE 3, {len(start)} published MPC problems: first command off, worst", off, 1e-2)


def _line() -> MpcReference:
    """Along x at 1 m/s, 1 m up, level."""
    states = np.tile([0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (41, 1))
    states[:, 0] = np.arange(41) * 0.05
    return MpcReference(states, np.full(41, 9.81), np.zeros((41, 3)))


@dataclass(frozen=True, eq=False)
class _Problems:
    """Drones of +-30 % off the course."""

    reference: MpcReference
    state: Array
    full: Array
    row: ArrayInt


def _problems(count: int) -> _Problems:
    reference, rng = expert_reference(course("robustness")).table, np.random.default_rng(0)
    row = rng.integers(0, len(reference) - WARM_TICKS - 1, count)
    state = reference.states[row] + rng.uniform(-1.0, 1.0, (count, 10)) * np.repeat([0.4, 0.2], [6, 4])
    state[:, 6:] /= np.linalg.norm(state[:, 6:], axis=1, keepdims=True)
    full = FULL_FORCE / MASS * rng.uniform(0.7, 1.3, count) / rng.uniform(0.7, 1.3, count)
    return _Problems(reference, state, full, row)


def _one_call() -> Iterator[Figure]:
    some = _problems(PROBLEMS)
    found = MpcSolver(PROBLEMS, some.reference).solve(some.state, some.full, some.row)
    together = {name: np.array(getattr(found, name)) for name in ("inputs", "cost", "iterations", "failed")}
    yield zero(f"SOUS VIDE 3, {PROBLEMS:,} MPC problems in one call: without a solution", int(together["failed"].sum()))
    alone, other = MpcSolver(1, some.reference), 0
    for k in range(PROBLEMS):
        alone.reset()
        one = alone.solve(some.state[k : k + 1], some.full[k : k + 1], some.row[k : k + 1])
        other += any(np.asarray(getattr(one, name))[0].tobytes() != together[name][k].tobytes() for name in together)
    yield zero(f"SOUS VIDE 3, {PROBLEMS:,} MPC problems in one call: solved otherwise one at a time", other)
    limit = MpcConfig().iterations
    most = int(together["iterations"].max())
    label = f"SOUS VIDE 3, {PROBLEMS:,} MPC problems in one call: iterations, most"
    yield Figure(label, most, f"under {limit}, where it stops", most < limit)


def warm_figures(drones: int = 1_024) -> Iterator[Figure]:
    """Check the closed loop of the expert: shifted starts, as `benchmarks/mpc.py` flies them for longer."""
    some = _problems(drones)
    solver = MpcSolver(drones, some.reference)
    _closed_loop(solver, some)  # compiles, and finds out how to share the work
    solver.reset()
    flown = _closed_loop(solver, some)
    warm, cold = float(np.mean(flown["iterations"][1:])), flown["iterations"][0]
    label = f"SOUS VIDE 3, closed loop of {drones:,} drones: iterations of a warm solve, mean"
    yield Figure(label, warm, f"under {cold:.3g}, those of the first", warm < cold)
    cost, first = _off_the_optimum(some, flown)
    yield below(f"SOUS VIDE 3, closed loop, tick {CHECKED}: cost off one iterated to the end, worst, relative", cost, 1e-4)
    yield below(f"SOUS VIDE 3, closed loop, tick {CHECKED}: first command off one iterated to the end, worst", first, 1e-2)
    rate = drones * (WARM_TICKS - 1) / sum(flown["seconds"][1:])
    yield Figure("SOUS VIDE 3, closed loop: warm solves of 40 steps", rate, "over 10,000", rate > 1e4, "1/s")


def _closed_loop(solver: MpcSolver, some: _Problems) -> dict[str, Any]:
    state, seconds, iterations, kept = some.state, [], [], {}
    for tick in range(WARM_TICKS):
        begun = time.perf_counter()
        found = solver.solve(state, some.full, some.row + tick)
        seconds.append(time.perf_counter() - begun)
        iterations.append(float(found.iterations.mean()))
        first = np.array(found.inputs[:, 0], np.float64)
        if tick == CHECKED:
            kept = {"state": state, "cost": np.array(found.cost), "first": first}
        begun = time.perf_counter()
        solver.shift()
        seconds[-1] += time.perf_counter() - begun
        state = np.stack(step(tuple(state.T), tuple(first.T), some.full, 9.81, 0.05), axis=-1)
        state[:, 6:] /= np.linalg.norm(state[:, 6:], axis=1, keepdims=True)
    return {"seconds": seconds, "iterations": iterations, **kept}


def _off_the_optimum(some: _Problems, flown: dict[str, Any]) -> tuple[float, float]:
    """Worst relative cost and first command off those that are iterated to the end from the reference's inputs."""
    few = slice(0, COMPARED)
    count = len(flown["cost"][few])
    end = MpcSolver(count, some.reference, MpcConfig(iterations=100, tolerance=0.0))
    done = end.solve(flown["state"][few], some.full[few], some.row[few] + CHECKED)
    compared = done.cost > LEAST_COST
    cost = np.abs(flown["cost"][few] / done.cost - 1.0)[compared].max()
    return float(cost), float(np.abs(flown["first"][few] - done.inputs[:, 0]).max())


PUBLISHED = {"rollouts": 4_500, "pairs": 180_000}
"""Of the 15 s course, before any is left out."""
BALLS = np.array([[0.5 + 9.0 * np.cos(a), 9.0 * np.sin(a), z] for a in np.arange(24) * np.pi / 12 for z in (-1.5, 1.0, 3.5)])
"""(72, 3) red balls all round the course."""
RADIUS, REACH = 0.15, 16.0
"""Of a ball [m]; how far around its pixel red is looked for, and how far from the edge and from others it must be [px]."""
# StanfordMSL/SousVide, configs/frame/carl.json: camera (x right, y up, z backward) to body (x forward, y right, z down).
MOUNT = np.array([[0.0, 0.0, -1.0, 0.10], [1.0, 0.0, 0.0, -0.03], [0.0, -1.0, 0.0, -0.01]])
POLICY_VIEW = (185.182, 329.246, 113.230, 112.842)
"""fx, fy, cx, cy [px] of the policy's image (specification, section 6)."""
SMALL = DatasetConfig(per_second=1.0, repetitions=1, length=0.4, keep_within=0.0, shard=5)
"""15 roll-outs of 8 pairs in 3 shards, with images of 224 x 224; the scene is put in."""


# ---- 4: synthesis -------------------------------------------------------------------------------------------------------


def published_set_figures(
    folder: Path, config: DatasetConfig | None = None, expected: dict[str, int] | None = None, again: bool = False
) -> Iterator[Figure]:
    """Make the published set without images, and count.

    Args:
        folder: Empty, for the data.
        config: Other than the published one (tests).
        expected: Its `rollouts`, and `pairs` of all of them.
        again: Also compare it with one that two processes make, in other groups.
    """
    config, expected = config or DatasetConfig(view="none"), expected or PUBLISHED
    made = _made(config, folder / "set")
    rollouts, kept = made.total("rollouts"), made.total("kept")
    pairs = rollouts * config.ticks
    for name, count in (("rollouts", rollouts), ("pairs", pairs)):
        aim = f"{expected[name]:,}, as published"
        kind = name.replace("rollouts", "roll-outs")
        yield Figure(f"SOUS VIDE 4, data of robustness: {kind}", count, aim, count == expected[name])
    # Nothing is published about how many are left out; an expert that works loses few.
    share = 100.0 * kept / rollouts
    yield Figure("SOUS VIDE 4, data of robustness: roll-outs kept", share, "at least 95", share >= 95.0, "%")
    yield below(f"SOUS VIDE 4, data of robustness: making {pairs:,} pairs without images", made.seconds, 180.0, "s")
    if again:
        _made(config, folder / "again", workers=2)
        other = _different(_contents(folder / "set"), _contents(folder / "again"))
        yield zero(f"SOUS VIDE 4, {pairs:,} pairs made again by two processes: files with other bytes", other)


def closing_figures(every: int = 20) -> Iterator[Figure]:
    """Measure where the expert is, two seconds after it began off the course.

    Args:
        every: Take every so many of the published roll-outs.
    """
    plan = RolloutPlan(SynthesisConfig())
    flown = roll_out(plan, np.arange(0, plan.count, every))
    path = plan.paths[0]
    line = path.sample(np.linspace(0.0, path.duration, 3001)).position
    start, end = (path_distance(flown.state[:, k, :3], line) for k in (0, -1))
    label = f"SOUS VIDE 4, expert 2 s after up to 0.4 m and 0.4 m/s per axis off, {len(end)} roll-outs: off the course"
    yield Figure(
        "SOUS VIDE 4, starts of these roll-outs: off the course, worst", float(start.max()), "over 0.4", start.max() > 0.4, "m"
    )
    yield below(f"{label}, median", 100.0 * float(np.median(end)), 2.0, "cm")
    yield below(f"{label}, worst", 100.0 * float(end.max()), 7.0, "cm")  # that of the keep rule
    yield zero("SOUS VIDE 4, expert: ticks of these roll-outs without a solution", int(flown.failures.sum()))


def made_small(folder: Path) -> ExpertDataset:
    """Return a small set with images, seen in a black place with red balls; `folder` gets `scene` and `small`."""
    config = replace(SMALL, scene=str(write_scene(_scene(), folder / "scene")))
    _made(config, folder / "small")
    return ExpertDataset.open(folder / "small")


def repetition_figures(data: ExpertDataset, folder: Path) -> Iterator[Figure]:
    """Check the same seed once more, by two processes; and its tables once more without images, all shards flown together.

    Args:
        data: Of `made_small`.
        folder: For the others.
    """
    _made(data.config, folder / "by_two", workers=2)
    first = _contents(data.folder)
    other = _different(first, _contents(folder / "by_two"))
    yield zero(f"SOUS VIDE 4, the same seed by one process and by two: of {len(first)} files, with other bytes", other)
    _made(without_images(data.config), folder / "together")
    tables = {name: digest for name, digest in first.items() if Path(name).name in (PAIRS_FILE, ROLLOUTS_FILE)}
    found = {name: digest for name, digest in _contents(folder / "together").items() if name in tables}
    label = f"SOUS VIDE 4, the same seed, shards flown alone and together: of {len(tables)} tables, with other bytes"
    yield zero(label, _different(tables, found))


def without_images(config: DatasetConfig) -> DatasetConfig:
    """Return the same roll-outs without images, and without what would say how those look: it would be refused as idle."""
    return without_idle(replace(config, view="none"), IDLE_RULES)


def _made(config: DatasetConfig, folder: Path, workers: int = 1) -> Made:
    made = synthesize_dataset(config, folder, workers=workers)
    if made.interrupted:  # it keeps what is finished and ends; here nobody would go on with it
        raise KeyboardInterrupt
    return made


def _contents(folder: Path) -> dict[str, str]:
    """SHA-256 of every file by its path."""
    return {str(path.relative_to(folder)): sha256_file(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def _different(a: dict[str, str], b: dict[str, str]) -> int:
    return sum(a.get(name) != b.get(name) for name in {*a, *b})


# ---- 5: image and state are of one instant ------------------------------------------------------------------------------


def _scene() -> Scene:
    red = Material(base_color=(0.0, 0.0, 0.0, 1.0), emissive=(1.0, 0.0, 0.0))
    balls = tuple(
        Instance("ball", tuple(position.tolist()), materials=("red",), name=f"ball {k}") for k, position in enumerate(BALLS)
    )
    black = Sky((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    return Scene("red_balls", {"ball": Sphere(RADIUS)}, {"red": red}, instances=balls, lights=(), sky=black)


def instant_figures(data: ExpertDataset) -> Iterator[Figure]:
    """Measure where each image shows the balls, beside where the state of its own pair puts them, and those of its neighbours.

    Args:
        data: Of `made_small`.
    """
    images = data.images
    assert images is not None
    pixels = [_projected(state[1:]) for state in data.sensed]
    gaps: dict[int, list[Array]] = {-1: [], 0: [], 1: []}
    for k in range(data.count):
        image = np.asarray(images[k])
        for shift, found in gaps.items():
            other = k + shift
            if 0 <= other < data.count and data.rollout[other] == data.rollout[k]:
                found.append(_off(image, pixels[other]))
    own, before, after = (np.concatenate(gaps[shift]) for shift in (0, -1, 1))
    yield Figure(f"SOUS VIDE 5, balls seen in {data.count} images", len(own), "at least 100", len(own) >= 100)
    label = "SOUS VIDE 5, balls in images: off the projection of"
    # The middle of a ball's image is off the image of its middle by some hundredths of a pixel.
    yield below(f"{label} the pair's own state, median", float(np.median(own)), 0.2, "px")
    yield below(f"{label} the pair's own state, 98 %", float(np.quantile(own, 0.98)), 0.5, "px")
    for kind, neighbours in (("state a tick earlier", before), ("state a tick later", after)):
        middle = float(np.median(neighbours))
        yield Figure(f"{label} the {kind}, median", middle, "over 1", middle > 1.0, "px")


def _projected(state: Array) -> Array:
    """Pixels (balls, 2) by the specification's formulas, T_WC = T_WB T_BC with z down; NaN behind the camera."""
    body = to_matrix(z_down_attitude(state[6:]))
    turn, position = body @ MOUNT[:, :3], z_down_vector(state[:3]) + body @ MOUNT[:, 3]
    x, y, z = turn.T @ (z_down_vector(BALLS) - position).T
    fx, fy, cx, cy = POLICY_VIEW
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(z < -0.5, np.array([cx - fx * x / z, cy + fy * y / z]), np.nan).T


def _off(image: ArrayU8, pixels: Array) -> Array:
    """Distance [px] from each ball that stands free in the image to the middle of the red around its pixel."""
    red, size = image[..., 0].astype(np.float64), np.array(image.shape[1::-1])
    apart = np.linalg.norm(pixels[:, None] - pixels[None], axis=-1)
    np.fill_diagonal(apart, np.inf)
    inside = (pixels > REACH).all(axis=1) & (pixels < size - REACH).all(axis=1)
    found = []
    for pixel in pixels[inside & (np.nan_to_num(apart, nan=np.inf).min(axis=1) > 2.0 * REACH)]:
        left, top = np.floor(pixel - REACH).astype(int)
        right, bottom = np.ceil(pixel + REACH).astype(int)
        v, u = np.mgrid[top:bottom, left:right] + 0.5
        weight = red[top:bottom, left:right] * (np.hypot(u - pixel[0], v - pixel[1]) < REACH)
        total = weight.sum()
        middle = np.array([(weight * u).sum(), (weight * v).sum()]) / total if total else pixel + REACH
        found.append(np.linalg.norm(middle - pixel))
    return np.array(found)
