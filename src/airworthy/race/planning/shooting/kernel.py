"""The kernel of `twin`: one problem per thread, in double precision, from one text for a CPU and a GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.native_kernel import Launcher, native_kernel, quiet_warp
from airworthy.core.tracing import TracedBlock, trace
from airworthy.race.planning.horizon import LEG, HorizonOptions
from airworthy.race.planning.minimum_time_program import TURNING_COST, YAW_COST
from airworthy.race.planning.racer import INPUTS, STATES, RacerModel
from airworthy.race.planning.shooting import curvature, iterate, twin
from airworthy.race.planning.shooting.problem import STATE_ROWS, WINDOW, ShootingProblem

_TEXTS = ("step.h", "rows.h", "assemble.h", "riccati.h", "descend.h", "solve.cpp")
_ARGUMENTS = """
    given: float64[]  # as of `_Layout.given`, one problem behind the other
    # output
    found: float64[]
    work: float64[]
"""
_LEGS, _LOOKS = 4, 4
"""Room in each kernel at least, which is that of the default: fewer gates and looks need no kernel of their own."""
_COLUMNS = STATES + INPUTS + 1


class _Layout:
    """Names and sizes of what a problem has, for NumPy and for C alike.

    Args:
        model: Who flies.
        options: Bounds, and how much there is at most.
    """

    def __init__(self, model: RacerModel, options: HorizonOptions) -> None:
        # One kernel for all that ask for no more than is usual.
        legs, looks = max(options.ahead, _LEGS), max(options.glances, _LOOKS)
        steps, rotors = legs * options.bounds.nodes, len(model.mixer)
        rows_u = 2 * (INPUTS - 1) + 2 * rotors
        border = -(-(1 + 2 * legs + looks) // 8) * 8
        rows = steps * (STATE_ROWS + rows_u) + 3 * legs + 2 * looks
        wide = -(-_COLUMNS // 8) * 8
        self.numbers = {
            "NX": STATES, "NU": INPUTS, "NZ": _COLUMNS, "ZP": wide, "ACTIVE": curvature.ACTIVE, "FLOW": curvature.FLOW,
            "SIGHT": curvature.SIGHT, "ROWS_X": STATE_ROWS, "ROWS_U": rows_u, "LEGS": legs, "LOOKS": looks, "STEPS": steps,
            "MM": border, "FILTER": twin.FILTER_MAX, "HALVINGS": twin.HALVINGS,
        }  # fmt: skip
        self.given = {
            "legs": 1, "nodes": 1, "looks": 1, "iterations": 1, "rate": 3, "height": 1, "leg": 2, "turning": 1, "yaw": 1,
            "price": 2, "vehicle": curvature.VEHICLE, "input_rows": rows_u * INPUTS, "input_offset": rows_u,
            "plane": legs * 4, "beside": steps + 1, "window_rows": (steps + 1) * 12, "window_offset": (steps + 1) * 4,
            "capped": steps + 1, "cap": steps + 1, "target": looks * 3, "counts": looks * steps, "needed": looks, "soft": 1,
        }  # fmt: skip
        self.found = {
            "x": (steps + 1) * STATES, "u": steps * INPUTS, "t": legs, "b": legs, "lack": looks, "status": 1, "count": 1,
        }  # fmt: skip
        step = (steps + 1) * STATES
        self.work = {
            "slack": rows, "dual": rows, "value": rows, "weight": rows, "push": rows, "trial": rows, "dslack": rows,
            "ddual": rows, "costate": step, "held": legs, "worth": looks * steps, "defect": steps * STATES,
            "slopes": steps * STATES * wide, "curves": steps * _COLUMNS * wide, "node_curve": step * STATES,
            "node_slope": step * border, "input_slope": steps * INPUTS * border, "border": border * border, "pull_x": step,
            "pull_u": steps * INPUTS, "pull_t": legs, "pull_b": legs, "value_curve": step * STATES,
            "value_slope": step * border, "gain": steps * INPUTS * STATES, "offset": steps * INPUTS * border, "theta": border,
            "dx": step, "du": steps * INPUTS, "dcostate": step, "dheld": legs, "dlack": looks, "x": step,
            "u": steps * INPUTS, "t": legs, "b": legs,
        }  # fmt: skip


def _struct(name: str, fields: Mapping[str, int]) -> str:
    return f"struct {name} {{\n" + "".join(f"  double {field}[{size}];\n" for field, size in fields.items()) + "};\n"


def _blocks(axial: bool) -> list[TracedBlock]:
    active: dict[str, int | None] = {"active": curvature.ACTIVE}
    vehicle: dict[str, int | None] = {"vehicle": curvature.VEHICLE}
    place: dict[str, int | None] = {"place": curvature.SIGHT, "target": 3, "soft": None}
    step: dict[str, int | None] = {"state": STATES, "control": INPUTS, "duration": None}
    flow, sight, drag = curvature.FLOW, curvature.SIGHT, {"axial": axial}
    slopes: dict[str, int | None] = {"values": flow, "slopes": flow * curvature.ACTIVE}
    curves: dict[str, int | None] = {"curves": curvature.ACTIVE**2}
    return [
        trace(curvature.flow_slopes, "flow_slopes", {**active, **vehicle}, slopes, constants=drag),
        trace(curvature.flow_curves, "flow_curves", {**active, "weight": flow, **vehicle}, curves, constants=drag),
        trace(curvature.advance, "advance", {**step, **vehicle}, {"after": STATES}, constants=drag),
        trace(curvature.sight, "sight", place, {"worth": None}),
        trace(curvature.sight_curves, "sight_curves", place, {"slopes": sight, "curves": sight**2}),
    ]


def _source(layout: _Layout, axial: bool) -> str:
    folder = files("airworthy.race.planning.shooting").joinpath("native")
    text = "".join(folder.joinpath(name).read_text() for name in _TEXTS)
    text = text.replace("TRACED_BLOCKS", "".join(block.source for block in _blocks(axial)))
    statuses = {f"STATUS_{word}": k for k, word in enumerate(("SOLVED", "NEARLY", "LIMIT", "LOST"))}
    numbers = "enum { " + ", ".join(f"{name} = {number}" for name, number in {**layout.numbers, **statuses}.items()) + " };\n"
    constants = {
        "SOFT_EQUALITY": iterate.SOFT_EQUALITY, "MU_FIRST": twin.MU_FIRST, "MU_LAST": twin.MU_LAST, "TOLERANCE": twin.TOLERANCE,
        "OFF_MAX": twin.OFF_MAX, "PRODUCT_MAX": twin.PRODUCT_MAX, "NEARLY": twin.NEARLY, "NEARLY_OFF": twin.NEARLY_OFF,
        "SLACK_LEAST": twin.SLACK_LEAST, "WIDE_FIRST": twin.WIDE_FIRST, "LACK_FIRST": twin.LACK_FIRST, "KEEP": twin.KEEP,
        "RIDGE_FIRST": twin.RIDGE_FIRST, "RIDGE_MAX": twin.RIDGE_MAX, "SHARE_OFF": twin.SHARE_OFF, "GROWTH": twin.GROWTH,
    }  # fmt: skip
    defined = "".join(f"#define {name} {value!r}\n" for name, value in constants.items())
    structs = [_struct("Given", layout.given), _struct("Found", layout.found), _struct("Work", layout.work)]
    return "".join([defined, numbers, *structs, text])


def _sliced(table: Mapping[str, int], numbers: Array) -> dict[str, Array]:
    ends = np.cumsum(list(table.values()))
    return dict(zip(table, np.split(numbers, ends[:-1], axis=1), strict=True))


class ShootingKernel:
    """Solves up to `count` problems at once.

    Args:
        model: Who flies.
        options: Bounds; what problems have at most.
        count: Problems.
        device: `cpu`, or a CUDA device of Warp.
        threads: Most threads of a CPU; None: as many as the machine allows.
    """

    def __init__(
        self, model: RacerModel, options: HorizonOptions, count: int = 1, device: str = "cpu", threads: int | None = None
    ) -> None:
        self.count, self.device, self.options = count, device, options
        layout = _Layout(model, options)
        self._steps = layout.numbers["STEPS"]
        self._given_numbers = np.zeros((count, sum(layout.given.values())))
        self._found_numbers = np.zeros((count, sum(layout.found.values())))
        self._given, self._found = _sliced(layout.given, self._given_numbers), _sliced(layout.found, self._found_numbers)
        wp = quiet_warp()
        self._arrays = [
            wp.array(numbers.reshape(-1), dtype=wp.float64, device="cpu", copy=False)
            for numbers in (self._given_numbers, self._found_numbers)
        ]
        if device != "cpu":
            self._arrays = [array.to(device) for array in self._arrays]
        work = wp.zeros(count * sum(layout.work.values()), dtype=wp.float64, device=device)
        kernel = native_kernel("shooting", _source(layout, model.has_axial_drag), _ARGUMENTS)
        self._launcher = Launcher(kernel, count, [*self._arrays, work], device, threads)

    def solve(
        self, problems: Sequence[tuple[ShootingProblem, Array, Array, Array]], iterations: int | Sequence[int]
    ) -> list[twin.Solved]:
        """Solve problems.

        Args:
            problems: At most `count`: each with the states (N + 1, 13), inputs (N, 4) and legs (L,) that it begins with.
            iterations: At most, of all or of each.
        """
        most = [iterations] * len(problems) if isinstance(iterations, int) else iterations
        for row, (problem, states, inputs, legs) in enumerate(problems):
            self._fill(row, problem, most[row])
            for name, value in (("x", states), ("u", inputs), ("t", legs)):
                self._found[name][row, : value.size] = value.ravel()
        # What is beyond the problems solves none.
        self._given["legs"][len(problems) :] = 0.0
        if self.device != "cpu":
            for array, numbers in zip(self._arrays, (self._given_numbers, self._found_numbers), strict=True):
                array.assign(numbers.reshape(-1))
        self._launcher.launch()
        if self.device != "cpu":
            self._found_numbers[...] = self._arrays[1].numpy().reshape(self._found_numbers.shape)
        return [self._answer(row, problem) for row, (problem, *_) in enumerate(problems)]

    def _fill(self, row: int, p: ShootingProblem, iterations: int) -> None:
        bounds = p.options.bounds
        numbers: dict[str, Any] = {
            "legs": p.legs, "nodes": p.nodes, "looks": len(p.needed), "iterations": iterations,
            "rate": p.state_offset[1, 0:6:2], "height": bounds.height_min, "leg": LEG,
            "turning": 2.0 * TURNING_COST / iterate.TURN_SCALE**2, "yaw": 2.0 * YAW_COST,
            "price": (p.options.window_price, p.options.glance_price), "vehicle": curvature.vehicle_numbers(p.model),
            "input_rows": p.input_rows,
            "input_offset": p.input_offset, "plane": p.plane, "beside": p.beside, "window_rows": p.state_rows[:, WINDOW, :3],
            "window_offset": p.state_offset[:, WINDOW],
            "capped": p.state_rows[:, WINDOW.stop, 3], "cap": p.state_offset[:, WINDOW.stop],
            "target": p.target, "needed": p.needed, "soft": p.soft,
        }  # fmt: skip
        for name, value in numbers.items():
            flat = np.ravel(value)
            self._given[name][row, : flat.size] = flat
        stride = self._steps
        for look, counts in enumerate(p.counts):
            self._given["counts"][row, look * stride : look * stride + len(counts)] = counts

    def _answer(self, row: int, p: ShootingProblem) -> twin.Solved:
        found = {name: value[row] for name, value in self._found.items()}
        x, u = found["x"][: (p.steps + 1) * STATES].reshape(-1, STATES), found["u"][: p.steps * INPUTS].reshape(-1, INPUTS)
        t, b, lack = found["t"][: p.legs], found["b"][: p.legs], found["lack"][: len(p.needed)]
        return twin.Solved(
            x.copy(), u.copy(), t.copy(), b.copy(), lack.copy(), twin.STATUS[int(found["status"][0])], int(found["count"][0])
        )
