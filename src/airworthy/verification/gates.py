"""The acceptance list of flying gate to gate (specification of the boundary predictor): `airworthy verify --only gates`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.control import (
    BodyState,
    MellingerState,
    Reference,
    mellinger_control,
    mellinger_parameters,
    mixer_for,
    motor_commands,
    si_gains,
    speed_of_command,
)
from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.files import data_dir, read_json
from airworthy.gates.labels.candidates import candidates, fastest, segment_admissible
from airworthy.gates.labels.controller_model import make_controller_model
from airworthy.gates.labels.kernel import RolloutLanes, fly_lanes, make_lanes
from airworthy.gates.labels.labels import Labels, label
from airworthy.gates.labels.options import RANDOMISATIONS, Choices, SearchOptions
from airworthy.gates.labels.rollouts import fly, second_duration
from airworthy.gates.labels.situations import PAPER, draw
from airworthy.gates.planner.contract import PAPER_RANGES, shipped_networks, tensor_shapes
from airworthy.gates.planner.network import Boundary, loss_minimum, loss_of
from airworthy.gates.planner.planner import BoundaryPlan, plan
from airworthy.trajectories import TRACKING_ENVELOPE, course, septic, septic_through
from airworthy.trajectories.polynomial import (
    BASIS_END_SPEED,
    BASIS_START_SPEED,
    BASIS_STEP,
    differentiate,
    evaluate,
    in_seconds,
)
from airworthy.vehicles import vehicle
from airworthy.verification.published import Figure, below, zero

__all__ = [
    "COURSES",
    "controller_figures",
    "gain_figures",
    "gate_figures",
    "gates_left_out",
    "grid_figures",
    "loss_figures",
    "network_figures",
    "oracle",
    "plan_figures",
    "pruning_figures",
    "search_figures",
    "segment_figures",
    "speed_figures",
    "twin_figures",
    "vector_figures",
]

# -----------------------------------------------------------------------------------------------------------------------------
# The search of gate-to-gate labels: counts of the whole grid, pruning, kernel and twin, speed (sections 5, 6 and 10).

ADMISSIBLE, WITHOUT, SATURATED = 3_035_608, 912, 2_688
"""Of the published grid by the limit alone: candidates, situations without any, situations whose fastest takes over 2 s."""
FIRST, FIRST_KEPT, SECOND = 189_000, 73_553, 540
"""Distinct first segments, how many of them keep the limit, distinct second ones."""
T_MAX = 2.0
"""[s]"""
CHUNK = 12_960
"""Situations at once."""
PRUNED, ALL_PRUNED = 200, 2_000
"""Random situations that are searched both ways."""
SHORT = np.array(
    [
        [1.0, 0.3, 0.8, 0.4, 0.525, 0.8, -0.3, 0.3],
        [0.6, 0.525, 0.9, -0.5, 0.525, 0.8, 0.6, 0.525],
        [1.0, 0.3, 0.8, 0.0, 0.3, 0.8, 0.0, 0.3],
    ]
)
SHORT_SPEED, SHORT_TIME = np.array([1.4, 1.2, 1.6]), np.array([0.7, 1.0, 0.65])
"""Fast pairs over short legs: few steps, for the twin takes milliseconds for each [m/s, s]."""
ROLLOUTS = 4_096
"""Of the speed's measurement."""


def search_figures(everything: bool = False) -> Iterator[Figure]:
    """Check all of them.

    Args:
        everything: 2,000 situations are searched both ways instead of 200.
    """
    yield from grid_figures()
    yield from segment_figures()
    yield from pruning_figures(ALL_PRUNED if everything else PRUNED)
    yield from twin_figures()
    yield from speed_figures(8 * ROLLOUTS if everything else ROLLOUTS)


def oracle(situations: Array) -> Array:
    """Return speed and duration of the fastest pair that the limit admits, (k, 2); NaN where there is none."""
    found = candidates(situations)
    choice = fastest(found)
    at = np.maximum(choice, 0)[:, None]
    pair = np.concatenate([np.take_along_axis(part, at, axis=1) for part in (found.v, found.t0)], axis=1)
    return np.where((choice >= 0)[:, None], pair, np.nan)


def _exactly(name: str, measured: int, wanted: int) -> Figure:
    return Figure(name, float(measured), f"{wanted:,}", measured == wanted)


# ---- the limit ------------------------------------------------------------------------------------------------------------


def grid_figures() -> Iterator[Figure]:
    """Check the whole published grid, 129,600 situations of 70 candidates, without simulation."""
    admissible = without = saturated = 0
    for at in range(0, PAPER.size, CHUNK):
        found = candidates(PAPER.situations(np.arange(at, min(at + CHUNK, PAPER.size))))
        times = np.where(found.admissible, found.t0, np.inf).min(axis=1)
        admissible += int(found.admissible.sum())
        without += int(np.isinf(times).sum())
        saturated += int((np.isfinite(times) & (times > T_MAX)).sum())
    yield _exactly("Gates 6: candidates of the grid that keep the limit", admissible, ADMISSIBLE)
    yield _exactly("Gates 6: situations without any", without, WITHOUT)
    yield _exactly("Gates 6: situations whose fastest takes more than 2 s", saturated, SATURATED)


def segment_figures() -> Iterator[Figure]:
    """Check distinct segments of the grid, each judged once: first by (v_prev, d0, theta0, rise, candidate), second by (df,
    thetaf, rise, speed)."""
    c = Choices()
    v_prev, low, d0, theta0, high, df, thetaf, _ = (np.array(values) for values in PAPER.values)
    rises = np.unique(np.round(high[:, None] - low[None], 12))
    speeds, ratios = np.linspace(0.0, c.speed_max, c.speeds), np.linspace(c.ratio_min, c.ratio_max, c.ratios)
    v, d, turn, rise, speed, ratio = (x.ravel() for x in np.meshgrid(v_prev, d0, theta0, rises, speeds, ratios, indexing="ij"))
    total = v + speed
    pace = np.where(total > 0.0, 2.0 * d / np.where(total > 0.0, total, 1.0), 1.5) * ratio
    first = _kept(d, turn, rise, np.stack([v, 0.0 * v], 1), speed[:, None] * _along(turn), pace, c)
    yield _exactly("Gates 6: distinct first segments", first.size, FIRST)
    yield _exactly("Gates 6: distinct first segments that keep the limit", int(first.sum()), FIRST_KEPT)
    d, turn, rise, speed = (x.ravel() for x in np.meshgrid(df, thetaf, rises, speeds, indexing="ij"))
    second = _kept(d, turn, rise, np.stack([speed, 0.0 * speed], 1), np.zeros((len(d), 2)), second_duration(d, speed), c)
    yield _exactly("Gates 6: distinct second segments", second.size, SECOND)


def _along(turn: Array) -> Array:
    """Return unit vectors of clockwise bearings, seen from a heading along x."""
    return np.stack([np.cos(turn), -np.sin(turn)], axis=1)


def _kept(d: Array, turn: Array, rise: Array, start: Array, end: Array, times: Array, c: Choices) -> ArrayBool:
    leg = np.concatenate([d[:, None] * _along(turn), rise[:, None]], axis=1)
    parts = [slice(at, at + 1_024) for at in range(0, len(d), 1_024)]
    return np.concatenate([segment_admissible(leg[k], start[k], end[k], times[k], c) for k in parts])


# ---- the flights ----------------------------------------------------------------------------------------------------------


def pruning_figures(count: int) -> Iterator[Figure]:
    """Check random situations of the grid, searched with pruning and exhaustively.

    Args:
        count: Of situations.
    """
    numbers = np.random.default_rng(1).choice(PAPER.size, count, replace=False)
    situations, options = PAPER.situations(numbers), SearchOptions()
    pruned = label(situations, options, numbers)
    full = label(situations, replace(options, exhaustive=True), numbers)
    other = np.zeros(count, bool)
    for item in fields(Labels):
        if item.name not in ("tried", "steps"):
            a, b = getattr(pruned, item.name), getattr(full, item.name)
            other |= (a != b) & ~((a != a) & (b != b))  # NaN is NaN
    yield zero(f"Gates 6: of {count:,} situations, other labels by pruning than exhaustively", int(other.sum()))
    share = 100.0 * float(pruned.tried.sum() / max(full.tried.sum(), 1))
    yield Figure("Gates 6: candidates that pruning still flew", share, "below 20", share < 20.0, "%")


def twin_figures() -> Iterator[Figure]:
    """Check the compiled flight beside its float64 twin, under strong randomisation."""
    options = SearchOptions(randomisation=RANDOMISATIONS["strong"])
    drawn = draw(make_controller_model(options), options.randomisation, 3, np.arange(len(SHORT)))
    ours, slow = (fly(SHORT, SHORT_SPEED, SHORT_TIME, options, draws=drawn, twin=twin) for twin in (False, True))
    gap = float(np.abs(ours.error_mean - slow.error_mean).max())
    # Positions in float32 lie within 1e-7 m; the loop damps what they add up to.
    yield below(f"Gates 10: mean errors of {len(SHORT)} flights off their float64 twin, worst", gap, 1e-5, "m")
    other = sum(int(np.sum(getattr(ours, name) != getattr(slow, name))) for name in ("steps", "crashed", "skipped"))
    yield zero("Gates 10: the same, steps, crashes and skipped gates that differ", other)


def speed_figures(rollouts: int) -> Iterator[Figure]:
    """Measure how fast the fused flight is here: rollouts of the search's own mix of lengths, Table I's randomisation.

    Args:
        rollouts: How many.
    """
    options = SearchOptions()
    controller_model, lanes = make_controller_model(options), _lanes(options, rollouts)
    limit, walls, cores, steps = np.full(len(lanes), np.inf), [], [], 0
    for _ in range(2):
        begun, spent = time.perf_counter(), time.process_time()
        steps = int(fly_lanes(lanes, controller_model, options, limit)[1].sum())
        walls.append(time.perf_counter() - begun)
        cores.append(time.process_time() - spent)
    wall, core = max(min(walls), 1e-9), max(min(cores), 1e-9)
    asked = "not judged; asked for: over 5e7 on two cores"
    yield Figure("Gates: steps of the control loop per second, all cores by the clock", steps / wall, asked, True, "1/s")
    yield Figure("Gates: the same, per second of processor time", steps / core, "not judged", True, "1/s")
    yield Figure("Gates: rollouts per second, by the clock", len(lanes) / wall, "not judged", True, "1/s")


def _lanes(options: SearchOptions, count: int) -> RolloutLanes:
    rng = np.random.default_rng(0)
    numbers = np.sort(rng.choice(PAPER.size, count, replace=False))
    situations = PAPER.situations(numbers)
    found = candidates(situations, options.choices)
    rows, choice = np.nonzero(found.admissible)
    kept = np.sort(rng.choice(len(rows), min(count, len(rows)), replace=False))
    rows, choice = rows[kept], choice[kept]
    controller_model = make_controller_model(options)
    drawn = draw(controller_model, options.randomisation, options.seed, numbers[rows])
    v, t0, tf = (getattr(found, name)[rows, choice] for name in ("v", "t0", "tf"))
    return make_lanes(situations[rows], v, t0, tf, drawn, controller_model, options)


# -----------------------------------------------------------------------------------------------------------------------------

# ---- Network, loss, and plans with their certificates (specification, sections 7, 8 and 11) ---------------------------------

COURSES = ("straight_8", "straight_8_heights", "circle_8", "circle_12_heights", "snake_8", "snake_10_hard", "mixed_10")
"""Of the catalogue: those of the specification's section 12."""
PARAMETERS = 145_282
SAMPLES = 4_001
"""Of each plan."""
ROUNDING = 1e-9
"""By which samples may miss what is proven."""
SLACK = 5e-3
"""How far a proven bound may lie above what samples meet [m/s^2]: its tolerance is a thousandth of 2, and samples miss a
maximum by less than that."""


# ---- network and loss -----------------------------------------------------------------------------------------------------


def loss_figures() -> Iterator[Figure]:
    """Check the size of the network, and where its loss is least, found from its slope and by dense search."""
    count = sum(int(np.prod(shape)) for shape in tensor_shapes().values())
    yield Figure("Gates 7: numbers that the network learns", float(count), f"{PARAMETERS:,}", count == PARAMETERS)
    at, value, crossing = loss_minimum()
    for title, found, stated, digits in (
        ("loss is least at an error of", at, 0.0443, 4),
        ("its least value", value, -0.01306, 5),
        ("it is zero again at", crossing, 0.0916, 4),
    ):
        yield Figure(f"Gates 7: {title}", found, f"{stated:+g}", round(found, digits) == stated)
    errors = np.linspace(-1.0, 1.0, 200_001)
    yield below("Gates 7: least loss above that of 200,001 errors", value - float(loss_of(errors).min()), 1e-15)
    slope = float(loss_of(1e-5) - loss_of(-1e-5)) / 2e-5
    yield below("Gates 7: slope at zero off (0.8 - 2.0) / 2", abs(slope + 0.6), 1e-8)


def network_figures(networks: Sequence[tuple[str, Path]], repeats: int = 200) -> Iterator[Figure]:
    """Measure how long networks take for one gate, everything included.

    Args:
        networks: Name and folder of each.
        repeats: Of which the shortest counts.
    """
    for name, folder in networks:
        network, least = Boundary.read(folder), np.inf
        row = np.mean(np.array(PAPER_RANGES), axis=1)
        for _ in range(repeats):
            begun = time.thread_time()
            network.predict(row)
            least = min(least, time.thread_time() - begun)
        yield below(f"Gates 7: network {name}, a gate predicted, processor time of one thread", 1e6 * float(least), 100.0, "us")


# ---- certificates ---------------------------------------------------------------------------------------------------------


def plan_figures(names: Sequence[str] = COURSES) -> Iterator[Figure]:
    """Check courses planned with the fastest pairs that the limit admits, their certificates held against dense samples.

    Args:
        names: Of courses.
    """
    plans = [plan(course(name), oracle) for name in names]
    refused = sum(not (made.flyable and made.certificate is not None and made.certificate.proven) for made in plans)
    yield zero(f"Gates 8: of {len(plans)} courses, without a proven plan", refused)
    checked = np.array([_checked(made) for made in plans if made.trajectory is not None and made.certificate is not None])
    if not len(checked):
        return
    worst = checked.max(axis=0)
    label = f"Gates 8, {SAMPLES:,} samples of each plan"
    yield below(f"{label}: |a| + 0.3 |v|^3, most", float(worst[0]), 2.0, "m/s^2")
    yield below(f"{label}: |a| + 0.3 |v|^3 beyond its proven bound, most", float(worst[1]), ROUNDING, "m/s^2")
    yield below(f"{label}: proven bound beyond what samples meet, most", float(worst[2]), SLACK, "m/s^2")
    yield below(f"{label}: below the proven height, most", float(worst[3]), ROUNDING, "m")
    yield below(f"{label}: nearer to a frame than proven, most", float(worst[4]), ROUNDING, "m")
    yield below("Gates 8: gates missed by the plan, position and velocity, worst", float(worst[5]), 1e-9)


def _checked(made: BoundaryPlan) -> tuple[float, ...]:
    """Return what samples use of the limit; by how much they break bounds; how much above them the limit's is; misses at
    gates.
    """
    path, sure = made.trajectory, made.certificate
    assert path is not None
    assert sure is not None
    flat = path.sample(np.linspace(0.0, path.duration, SAMPLES))
    used = float(np.max(np.linalg.norm(flat.acceleration, axis=1) + 0.3 * np.linalg.norm(flat.velocity, axis=1) ** 3))
    bound = sure.limit.checks[0].bound
    low = sure.floor.bound - float(flat.position[:, 2].min())
    near = sure.clearance.bound - _clearance(flat.position, made)
    at = path.sample(np.cumsum(made.durations)[:-1])
    through = np.array([gate.normal for gate in made.gates]) * made.speeds[1:-1, None]
    miss = max(
        float(np.abs(at.position - [gate.position for gate in made.gates]).max()), float(np.abs(at.velocity - through).max())
    )
    return used, used - bound, bound - used, low, near, miss


def _clearance(points: Array, made: BoundaryPlan) -> float:
    """Least distance of points (m, 3) from every bar of every gate [m]."""
    least = np.inf
    bars: list[Any] = [bar for gate in dict.fromkeys(made.gates) for bar in gate.bars()]
    for bar in bars:
        x, y, z = (points - bar.center).T
        c, s = np.cos(bar.yaw), np.sin(bar.yaw)
        local = np.stack([c * x + s * y, c * y - s * x, z], axis=1)
        gap = np.linalg.norm(np.maximum(np.abs(local) - bar.half_size, 0.0), axis=1)
        least = min(least, float(gap.min()))
    return least


# -----------------------------------------------------------------------------------------------------------------------------
# Segments, yaw, limit, loss and gains beside the reference files; the controller beside the firmware (sections 3, 4, 7,
# 9).

SETS = ("firmware", "crazyswarm", "crazyflow")
NAMES = {"kp": "kp", "kd": "kd", "ki": "ki", "integral_max": "i_range", "attitude_gain": "kR", "rate_gain": "kw"}
"""Of gains: ours -> in the file."""
LEVEL = BodyState((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0))
CRAZYFLIES = ("cf2x_L250", "cf2x_P250", "rotorpy_crazyflie")
CORNERS = ((1, -1), (-1, -1), (-1, 1), (1, 1))
"""m1 front right, m2 back right, m3 back left, m4 front left: signs of x and y."""


def vector_figures(path: Path) -> Iterator[Figure]:
    """Check all of `reference_vectors.json`.

    Args:
        path: The file.
    """
    known = read_json(path)
    coefficients, samples = _segments(known["segments"])
    yield below("Gates 3: segments off the reference vectors, x, v, a, j, worst", samples, 1e-9)
    yield below("Gates 3: coefficients off the reference vectors, relative, worst", coefficients, 1e-9)
    basis = {"h": BASIS_STEP, "g0": BASIS_START_SPEED, "g1": BASIS_END_SPEED}
    gap = max(float(np.abs(ours - known["unit_basis"][name]).max()) for name, ours in basis.items())
    yield below("Gates 3: the basis off the reference", gap, 0.0)
    # Headings are printed with six digits.
    yield below("Gates 4: yaw ramp off the reference, worst", _yaw(known["yaw"]), 1e-6, "rad")
    assert TRACKING_ENVELOPE.envelope is not None
    most, cubic = TRACKING_ENVELOPE.envelope
    gap = max(abs(most - cubic * item["v"] ** 3 - item["a_max"]) for item in known["limit"])
    yield below("Gates 6: the limit off the reference, worst", gap, 1e-9, "m/s^2")
    gap = max(abs(float(loss_of(item["e"])) - item["value"]) for item in known["loss"])
    yield below("Gates 7: loss off the reference, worst", gap, 1e-9)


def _segments(given: Any) -> tuple[float, float]:
    """Worst errors of coefficients, relative where they are above 1, and of samples."""
    coefficients = samples = 0.0
    for item in given:
        span = float(item["T"])
        c = septic(item["b0"], item["bf"], span)
        stated = np.array(item["coefficients_p7_to_p0"])
        coefficients = max(
            coefficients, float(np.max(np.abs(in_seconds(c, span)[::-1] - stated) / np.maximum(1.0, np.abs(stated))))
        )
        for sample in item["samples"]:
            for order, name in enumerate("xvaj"):
                value = float(evaluate(differentiate(c, order), sample["t"] / span)) / span**order
                samples = max(samples, abs(value - sample[name]))
    return coefficients, samples


def _yaw(given: Any) -> float:
    worst = 0.0
    for item in given:
        points, ahead = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 1.0]]), np.tile([1.0, 0.0, 0.0], (2, 1))
        path = septic_through(points, ahead, np.zeros(2), np.array([item["T"]]), np.array([item["psi0"], item["psi1"]]))
        worst = max(worst, abs(float(path.sample(np.array([item["t"]])).yaw[0]) - item["psi"]))
    return worst


# ---- the controller -------------------------------------------------------------------------------------------------------


def gain_figures(path: Path) -> Iterator[Figure]:
    """Check all of `mellinger_gains.json`.

    Args:
        path: The file.
    """
    table = read_json(path)
    other = sum(_other_gains(mellinger_parameters(f"mellinger_{name}"), table[name], table) for name in SETS)
    yield Figure(f"Gates 9: gains of {len(SETS)} published sets that differ", float(other), "0", other == 0)
    si = si_gains(mellinger_parameters(), 0.12, 0.03253, 0.00735)
    pairs = (
        (si.attitude_gain[0], "kR_xy_Nm_per_rad"),
        (si.rate_gain[0], "kw_xy_Nms"),
        (si.attitude_gain[2], "kR_z_Nm_per_rad"),
        (si.rate_gain[2], "kw_z_Nms"),
    )
    worst = max(abs(value / table["si_equivalents"][name] - 1.0) for value, name in pairs)
    # Printed with three or four digits.
    yield below("Gates 9: gains in newton metres off the published ones, worst", 100.0 * worst, 0.2, "%")


def _other_gains(p: Any, published: Mapping[str, float], table: Any) -> int:
    wrong = sum(
        getattr(p, ours) != (published[f"{theirs}_xy"],) * 2 + (published[f"{theirs}_z"],) for ours, theirs in NAMES.items()
    )
    wrong += p.attitude_integral_gain[2] != published["ki_m_z"]
    wrong += p.attitude_integral_max[2] != published["i_range_m_z"]
    wrong += p.rate_derivative_gain != (published["kd_omega_rp"],) * 2 + (0.0,)
    wrong += p.thrust_scale != published["massThrust"]
    return int(wrong + (p.moment_max != (table["torque_command_limit"],) * 3))


def controller_figures() -> Iterator[Figure]:
    """Check the mixer as the firmware prints it, and the hover of the competition's vehicle through its chain."""
    worst = max(_mixer_gap(name) for name in CRAZYFLIES)
    yield below(f"Gates 9: mixer of {len(CRAZYFLIES)} Crazyflies off the firmware's, worst", worst, 1e-6, "of 65,535")
    body, p = vehicle("cf2x_scg_iros2022"), mellinger_parameters(gravity=9.8, mass=0.027)
    memory = MellingerState((0.0,) * 3, (0.0,) * 3, (0.0,) * 3)
    thrust, moment, _ = mellinger_control(LEVEL, Reference(), (0.0,) * 3, memory, 1.0, 0.002, p)
    speeds = [float(speed_of_command(c, body.voltage_chain)) for c in motor_commands(thrust, moment, mixer_for(body))]
    lift = sum(body.rotors[0].thrust[2] * speed**2 for speed in speeds) / (body.mass * 9.8)
    title = "Gates 9: lift over weight in hover, a controller of 27 g through the legacy chain, 34.54 g"
    yield Figure(title, lift, "1.06 +- 0.02", abs(lift - 1.06) <= 0.02)


def _mixer_gap(name: str) -> float:
    body, thrust, moment = vehicle(name), 30_000.0, (900.0, -2_100.0, 3_300.0)
    # As printed, in the firmware's axes: its pitch has the other sign.
    r, p, y = moment[0] / 2.0, -moment[1] / 2.0, -moment[2]
    stated = (thrust - r + p + y, thrust - r - p - y, thrust + r - p + y, thrust + r + p - y)
    mine = [(int(np.sign(rotor.position[0])), int(np.sign(rotor.position[1]))) for rotor in body.rotors]
    found = motor_commands(thrust, moment, mixer_for(body))
    return max(abs(float(c) - stated[CORNERS.index(at)]) for at, c in zip(mine, found, strict=True))


# -----------------------------------------------------------------------------------------------------------------------------


def gate_figures(everything: bool = False) -> Iterator[Figure]:
    """Run the checks one after the other; those without their reference files or a shipped network are left out.

    Args:
        everything: 2,000 situations are searched both ways instead of 200, and the speed is that of eight times the rollouts.
    """
    folder = _references()
    if folder is not None:
        yield from vector_figures(folder / "reference_vectors.json")
        yield from gain_figures(folder / "mellinger_gains.json")
    yield from controller_figures()
    yield from search_figures(everything)
    yield from loss_figures()
    yield from network_figures(list(shipped_networks().items()))
    yield from plan_figures()


def _references() -> Path | None:
    """Return the folder of reference files; None: there is none."""
    data = data_dir()
    return data / "boundary_predictor" if data is not None and (data / "boundary_predictor").is_dir() else None


def gates_left_out() -> list[str]:
    """Return what is not measured here for want of something, one sentence each."""
    lines = []
    if data_dir() is not None and _references() is None:
        lines.append("AIRWORTHY_DATA has no folder 'boundary_predictor': comparisons with its reference files were left out.")
    if not shipped_networks():
        lines.append("No boundary network comes with the package: how long it takes for a gate was left out.")
    return lines
