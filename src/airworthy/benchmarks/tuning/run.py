"""`airworthy tune`: sweep, judge, choose, and write the gains with the evidence for them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from airworthy import __version__
from airworthy.benchmarks.tuning.sweep import (
    GAINS,
    STEPS,
    CandidateResults,
    GainCandidate,
    StepFigures,
    candidates_for,
    fly_candidates,
    gains_of,
    step_figures,
)
from airworthy.control.allocation import Priority
from airworthy.control.gain_sets import GEOMETRIC_GAINS, GainSet, write_gain_set
from airworthy.control.linear import CHANNELS, FREQUENCIES, LinearLoop, Margins, linear_loop
from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.errors import AirworthyError
from airworthy.core.files import make_folder, staged_folder, write_json, write_text
from airworthy.core.jobs.block_job import refuse_foreign
from airworthy.core.jobs.progress import command_line, progress
from airworthy.core.schema import SEED, SHARE, Bound, check_fields
from airworthy.reports.drawing import sheet
from airworthy.reports.page import card, markup, page_of
from airworthy.reports.svg import PALETTE, inline_svg
from airworthy.vehicles import Vehicle, read_vehicle, vehicle

GAINS_FILE, SUMMARY_FILE, REPORT_FILE = "gains.toml", "tuning.json", "report.html"
GAIN_MARGIN_DB, PHASE_MARGIN, SENSITIVITY_MAX = 6.0, math.radians(30.0), 2.0
"""Least margins of a choice: 6 dB and 30 degrees, and no disturbance amplified by more than 6 dB: the usual figures (Astrom and
Murray, Feedback Systems, section 10.3: a gain margin of 2 to 5, 30 to 60 degrees, a sensitivity of 1.2 to 2)."""
_COARSE = FREQUENCIES[::8]
"""Where the sweep looks: 100 a decade. Figures that are shown are of all frequencies."""
DAMPING_MIN = 0.4
"""Least damping ratio of a pole of a choice: the gains of "auto" keep 0.45 (`gains_for.LAG_BANDWIDTH`)."""
OVERSHOOT_MAX = 0.25
"""Of any step of a choice."""
SETTLING_SLACK = 1.5
"""A choice may take this much longer to settle than "auto": what follows a path best may be too damped for set-points."""
CHUNK = 64
"""Candidates flown in one batch."""


@dataclass(frozen=True)
class TuneConfig:
    """What to tune, and for what."""

    vehicle: str = "flightgoggles"
    """Catalogue name or vehicle TOML file."""
    candidates: Annotated[int, Bound(2, 100_000)] = 256
    """Sets of gains that are flown."""
    prefer: Annotated[float, SHARE] = 0.5
    """From 0, the calmest rotors, to 1, the smallest tracking error, among what is safe."""
    delay: Annotated[float, Bound(0.0, 1.0, "s")] = 0.0
    """Further delay from measurement to command that the margins count with [s]."""
    physics_rate: Annotated[float, Bound(50.0, 1e5, "Hz")] = 960.0
    """Steps per second, and the rate of the law [Hz]."""
    seed: Annotated[int, SEED] = 0
    """Of the candidates, noise and disturbances."""
    device: str = "cpu"
    """"cpu", or a CUDA device such as "cuda:0"."""
    priority: Priority | None = None
    """What allocation serves first where rotors saturate, as of airworthy fly; flown so, and written into the gains."""
    out: Path = Path("runs/tune")
    """Folder for gains.toml, tuning.json and report.html."""
    json: bool = False
    """Print tuning.json instead of a table."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, eq=False)
class Tuned:
    """What a sweep found."""

    vehicle: Vehicle
    candidates: list[GainCandidate]
    flown: CandidateResults
    loops: list[LinearLoop]
    """Of each candidate."""
    margins: list[dict[str, Margins]]
    """Of each candidate, by channel."""
    steps: list[dict[str, StepFigures]]
    """Of each candidate, by step."""
    safe: ArrayBool
    """Which hold every bound, (candidates,)."""
    front: ArrayBool
    """Safe ones than which no other safe one both follows better and moves the rotors less, (candidates,)."""
    chosen: int
    gains: GainSet
    physics_rate: float


def tune(config: TuneConfig, quiet: bool = True) -> Tuned:
    """Sweep gains of the geometric law for a vehicle and choose.

    Candidate 0 has the gains of "auto". A choice has every channel's margins (`GAIN_MARGIN_DB`, `PHASE_MARGIN`,
    `SENSITIVITY_MAX`), steps that settle with little overshoot, and lies on the Pareto front of tracking error and rotor
    effort, where `TuneConfig.prefer` says.

    Args:
        config: What for.
        quiet: Show no progress.

    Raises:
        AirworthyError: If the vehicle cannot hover level, or no candidate holds the bounds.
    """
    is_file = "/" in config.vehicle or config.vehicle.endswith(".toml")
    item = read_vehicle(config.vehicle) if is_file else vehicle(config.vehicle)
    refuse_foreign(config.out, SUMMARY_FILE)
    if not config.out.exists():  # what cannot be written is refused before minutes of flights
        make_folder(config.out).rmdir()
    candidates = candidates_for(config.candidates, config.seed)
    parts = [candidates[k : k + CHUNK] for k in range(0, len(candidates), CHUNK)]
    flights: list[CandidateResults] = []
    loops: list[LinearLoop] = []
    for part in progress(parts, "flying candidates", quiet=quiet):
        flights.append(fly_candidates(item, part, config.physics_rate, config.seed, config.device, config.priority))
        loops += [_loop(item, candidate, config) for candidate in part]
    margins = [{channel: loop.margins(channel, _COARSE) for channel in CHANNELS} for loop in loops]
    flown = _joined(flights)
    steps = [
        {name: step_figures(flown.time, flown.responses[:, k, s]) for s, (name, _) in enumerate(STEPS)}
        for k in range(len(candidates))
    ]
    slowest = {name: SETTLING_SLACK * f.settling for name, f in steps[0].items()}
    cases = zip(loops, margins, steps, ~flown.diverged, strict=True)
    safe = np.array([_is_safe(*case, slowest) for case in cases])
    if not safe.any():
        weak = [name for name in CHANNELS if not any(_holds(m[name]) for m in margins)]
        which = f"no set holds the bounds of {', '.join(weak)}" if weak else "each bound is held by some, all by none"
        raise AirworthyError(
            f"None of {len(candidates)} sets of gains holds {GAIN_MARGIN_DB:g} dB, {math.degrees(PHASE_MARGIN):g} degrees and a"
            f" sensitivity of {SENSITIVITY_MAX:g} on {item.name} ({which}); try more --candidates, less --delay, a higher"
            " --physics-rate, or a vehicle whose rotors can turn it about every axis."
        )
    front = pareto(flown.tracking_error, flown.effort, safe)
    chosen = choice(flown.tracking_error, flown.effort, front, config.prefer)
    for k in (0, chosen):
        margins[k] = {channel: loops[k].margins(channel) for channel in CHANNELS}
    gains = gains_of(item, candidates[chosen], config.physics_rate)
    named = GainSet(
        f"{item.name} tuned",
        "geometric",
        f"airworthy {__version__}, {command_of(config)}",
        {name: tuple(float(x) for x in gains[name]) for name in GAINS},
        {name: tuple(float(x) for x in gains[name]) for name in GAINS},
        priority=config.priority,
    )
    return Tuned(item, candidates, flown, loops, margins, steps, safe, front, chosen, named, config.physics_rate)


def write_tuned(tuned: Tuned, config: TuneConfig) -> Path:
    """Write gains.toml, tuning.json and report.html, all of them or none; returns the folder."""

    own = (GAINS_FILE, SUMMARY_FILE, REPORT_FILE)
    refuse_foreign(config.out, SUMMARY_FILE)
    with staged_folder(config.out, own.__contains__, SUMMARY_FILE) as folder:
        write_gain_set(tuned.gains, folder.path / GAINS_FILE)
        write_json(folder.path / SUMMARY_FILE, summary(tuned, config))
        write_report(folder.path / REPORT_FILE, tuned, config)
    return config.out


def summary(tuned: Tuned, config: TuneConfig) -> dict[str, Any]:
    """Return what tuning.json holds: the choice and "auto" beside each other, and every candidate's figures."""
    return {
        "version": 1,
        "command": command_of(config),
        "vehicle": tuned.vehicle.name,
        "candidates": len(tuned.candidates),
        "safe": int(tuned.safe.sum()),
        "chosen": _entry(tuned, tuned.chosen) | {"gains": tuned.gains.midpoint(), "priority": tuned.gains.priority},
        "auto": _entry(tuned, 0),
        "all": [
            {
                **asdict(candidate),
                "tracking_error_m": _number(tuned.flown.tracking_error[k]),
                "effort": _number(tuned.flown.effort[k]),
                "diverged": bool(tuned.flown.diverged[k]),
                "safe": bool(tuned.safe[k]),
                "front": bool(tuned.front[k]),
            }
            for k, candidate in enumerate(tuned.candidates)
        ],
    }


def command_of(config: TuneConfig) -> str:
    """Return the command that makes it again."""
    return command_line("airworthy tune", replace(config, json=False))


def _loop(item: Vehicle, candidate: GainCandidate, config: TuneConfig) -> LinearLoop:
    gains = gains_of(item, candidate, config.physics_rate)
    return linear_loop(item, physics_rate=config.physics_rate, gains=gains, delay=config.delay)


def _entry(tuned: Tuned, k: int) -> dict[str, Any]:
    return {
        "tracking_error_m": _number(tuned.flown.tracking_error[k]),
        "effort": _number(tuned.flown.effort[k]),
        "saturated_share": _number(tuned.flown.saturated[k]),
        "slowest_pole_1_s": _number(tuned.loops[k].poles[-1].real),
        "steps": {name: {n: _number(v) for n, v in asdict(f).items()} for name, f in tuned.steps[k].items()},
        "margins": {
            name: {
                "gain_db": _number(m.gain_db),
                "gain_reduction_db": _number(20.0 * math.log10(m.gain_reduction)) if m.gain_reduction > 0.0 else None,
                "phase_deg": _number(math.degrees(m.phase)),
                "delay_s": _number(m.delay),
                "sensitivity": _number(m.sensitivity),
                "crossover_rad_s": _number(m.crossover),
            }
            for name, m in tuned.margins[k].items()
        },
    }


def _number(value: float) -> float | None:
    """JSON has no infinity: what is never reached is null."""
    return float(value) if math.isfinite(value) else None


def _holds(m: Margins) -> bool:
    """Tell whether a loop keeps its margins; one that never reaches a gain of 1 has none that acts."""
    kept = m.gain_db >= GAIN_MARGIN_DB and m.gain_reduction <= 10.0 ** (-GAIN_MARGIN_DB / 20.0)
    return kept and m.phase >= PHASE_MARGIN and m.sensitivity <= SENSITIVITY_MAX and m.crossover > 0.0


def _is_safe(
    loop: LinearLoop,
    margins: Mapping[str, Margins],
    steps: Mapping[str, StepFigures],
    flew: bool,
    slowest: Mapping[str, float],
) -> bool:
    held = all(_holds(m) for m in margins.values())
    settled = all(
        math.isfinite(s.settling) and s.overshoot <= OVERSHOOT_MAX and not s.settling > slowest[name]
        for name, s in steps.items()
    )
    return bool(flew and held and settled and loop.damping >= DAMPING_MIN)


def pareto(error: Array, effort: Array, among: ArrayBool) -> ArrayBool:
    """Return which of those among are on the front: nobody else has less of one and no more of the other, (n,).

    Args:
        error: Tracking errors, (n,).
        effort: Rotor efforts, (n,).
        among: Candidates that may be on the front, (n,).
    """
    front = np.zeros(len(error), bool)
    ids = np.flatnonzero(among)
    best = math.inf
    # In order of error, a candidate is on the front where it beats all before it by effort.
    for k in ids[np.lexsort((effort[ids], error[ids]))]:
        if effort[k] < best:
            front[k], best = True, effort[k]
    return front


def choice(error: Array, effort: Array, front: ArrayBool, prefer: float) -> int:
    """Return the member of the front of least weighted sum; both scaled from 0 to 1 over the front, in their logarithms.

    Args:
        error: Tracking errors, (n,).
        effort: Rotor efforts, (n,).
        front: Its members, (n,).
        prefer: Weight of the error from 0 to 1; the effort has the rest.
    """
    ids = np.flatnonzero(front)

    def scaled(values: Array) -> Array:
        # Logarithms: twice the error weighs as much at a millimetre as at a metre.
        logs = np.log(np.maximum(values[ids], 1e-12))
        return np.asarray((logs - logs.min()) / max(float(np.ptp(logs)), 1e-12))

    distance = np.hypot(prefer * scaled(error), (1.0 - prefer) * scaled(effort))
    return int(ids[np.argmin(distance)])


def _joined(parts: Sequence[CandidateResults]) -> CandidateResults:
    return CandidateResults(
        parts[0].time,
        np.concatenate([p.responses for p in parts], axis=1),
        *(np.concatenate([getattr(p, name) for p in parts]) for name in ("tracking_error", "effort", "diverged", "saturated")),
    )


# ---- `report.html` of a tuning, readable offline: the front, step responses, Bode plots, margins ----------------------------

COLORS = {"auto": "warn", "chosen": "flown"}


def write_report(path: Path, tuned: Tuned, config: TuneConfig) -> Path:
    """Write the page.

    Args:
        path: Of the page.
        tuned: Candidates, their margins and flights.
        config: Of the run.
    """
    flown, k = tuned.flown, tuned.chosen
    change = 100.0 * (flown.tracking_error[k] / flown.tracking_error[0] - 1.0)
    effort = 100.0 * (flown.effort[k] / flown.effort[0] - 1.0)
    auto = "" if tuned.safe[0] else " The gains of auto break a bound."
    verdict = (
        f"Of {len(tuned.candidates)} sets of gains {int(tuned.safe.sum())} hold {GAIN_MARGIN_DB:g} dB, "
        f"{math.degrees(PHASE_MARGIN):g} degrees and a sensitivity of {SENSITIVITY_MAX:g} in every loop and settle; the chosen "
        f"one follows the path with {change:+.0f} % error and {effort:+.0f} % rotor effort against auto.{auto}"
    )
    least = min(tuned.margins[k].values(), key=lambda m: m.phase)
    error, effort_percent = 100.0 * flown.tracking_error, 100.0 * flown.effort
    delay = min(m.delay for m in tuned.margins[k].values())
    cards = [
        card("tracking error", f"{error[k]:.2f} cm", below=f"auto {error[0]:.2f} cm"),
        card("rotor effort", f"{effort_percent[k]:.1f} %", below=f"auto {effort_percent[0]:.1f} % of hover thrust"),
        card("least phase margin", f"{math.degrees(least.phase):.0f} deg", below=f"at {least.crossover:.1f} rad/s"),
        card("least delay margin", f"{1e3 * delay:.0f} ms", below="beside what is counted"),
    ]
    before, after = gains_of(tuned.vehicle, GainCandidate(), tuned.physics_rate), tuned.gains.midpoint()
    gains = [(name, unit, _triple(before[name]), _triple(after[name])) for name, (_, unit) in GEOMETRIC_GAINS.items()]
    text = page_of(
        "airworthy.benchmarks.tuning",
        vehicle=tuned.vehicle.name,
        verdict=verdict,
        cards=cards,
        front=markup(figure_front(tuned)),
        steps=markup(figure_steps(tuned)),
        bode=markup(figure_bode(tuned)),
        delay=f"{1e3 * tuned.loops[k].delay:.2f}",
        margins=[(name, *_margin_cells(tuned.margins[k][name])) for name in CHANNELS],
        gains=gains,
        fly=f"airworthy fly --vehicle {config.vehicle} --gains {config.out / GAINS_FILE}",
        command=command_of(config),
    )
    return write_text(path, text)


def figure_front(tuned: Tuned) -> str:
    """Return the tracking error over effort of every candidate, with the front."""
    with sheet(3.6) as figure:
        axes = figure.add_axes((0.07, 0.14, 0.91, 0.78))
        x, y = 100.0 * tuned.flown.effort, 100.0 * tuned.flown.tracking_error
        unsafe = ~tuned.safe & np.isfinite(y)
        axes.plot(
            x[unsafe],
            y[unsafe],
            "o",
            markersize=3.5,
            markerfacecolor="none",
            color=PALETTE["axis"],
            label="a bound is broken (others lie beyond)",
        )
        axes.plot(x[tuned.safe], y[tuned.safe], "o", markersize=3.5, color=PALETTE["second"], label="safe")
        ids = np.flatnonzero(tuned.front)
        ids = ids[np.argsort(x[ids])]
        axes.plot(x[ids], y[ids], "-", color=PALETTE["second"], linewidth=1.2, label="front")
        for name, k in (("auto", 0), ("chosen", tuned.chosen)):
            axes.plot(x[k], y[k], "D" if name == "auto" else "o", markersize=9.0, color=PALETTE[COLORS[name]], label=name)
        axes.set_xscale("log")
        axes.set_yscale("log")
        # Gains that barely fly lie decades away: the picture is of those that compete with "auto".
        near = tuned.safe.copy()
        near[0] = True
        for limits, values in ((axes.set_xlim, x), (axes.set_ylim, y)):
            limits(0.8 * np.nanmin(values), 2.0 * np.nanmax(values[near]))
        axes.set_xlabel("rotor effort: RMS change of thrust from hover, on the path [%], log")
        axes.set_ylabel("RMS tracking error [cm], log")
        axes.legend(loc="upper right", ncols=5)
        _plain_ticks(axes)
        return inline_svg(figure, "front", "Tracking error over rotor effort of all sets of gains")


def figure_steps(tuned: Tuned) -> str:
    """Return responses of auto and the choice to the four steps."""
    with sheet(2.6) as figure:
        for s, (name, _) in enumerate(STEPS):
            axes = figure.add_axes((0.05 + 0.245 * s, 0.18, 0.205, 0.68))
            axes.axhline(1.0, color=PALETTE["axis"], linewidth=0.8)
            for label, k in (("auto", 0), ("chosen", tuned.chosen)):
                axes.plot(tuned.flown.time, tuned.flown.responses[:, k, s], color=PALETTE[COLORS[label]])
            axes.set_title(f"{name}" + (", 1 m" if name != "yaw" else ", 45 degrees"))
            axes.set_ylim(-0.05, 1.35)
            axes.set_xlabel("time [s]")
        return inline_svg(figure, "steps", "Step responses along x, y, z and in yaw")


def figure_bode(tuned: Tuned) -> str:
    """Return size and phase of the loop gains."""
    every = slice(None, None, 20)
    w = FREQUENCIES[every]
    with sheet(4.2) as figure:
        for c, channel in enumerate(CHANNELS):
            size = figure.add_axes((0.05 + 0.245 * c, 0.56, 0.205, 0.36))
            turn = figure.add_axes((0.05 + 0.245 * c, 0.12, 0.205, 0.36))
            size.axhline(0.0, color=PALETTE["axis"], linewidth=0.8)
            turn.axhline(-180.0, color=PALETTE["axis"], linewidth=0.8)
            for label, k in (("auto", 0), ("chosen", tuned.chosen)):
                loop = tuned.loops[k].gain(channel, w)
                color = PALETTE[COLORS[label]]
                size.plot(w, 20.0 * np.log10(np.abs(loop)), color=color)
                phase = np.degrees(np.unwrap(np.angle(loop)))
                phase -= 360.0 * np.round((phase[np.argmin(np.abs(np.abs(loop) - 1.0))] + 120.0) / 360.0)
                turn.plot(w, phase, color=color)
            for axes in (size, turn):
                axes.set_xscale("log")
                axes.set_xlim(0.1, 300.0)
            size.set_ylim(-60.0, 60.0)
            turn.set_ylim(-360.0, 0.0)
            turn.set_yticks([-360.0, -270.0, -180.0, -90.0, 0.0])
            size.set_xticklabels([])
            size.set_title(channel + (": size [dB]" if c == 0 else ""))
            turn.set_xlabel("frequency [rad/s], log")
            if c == 0:
                turn.set_title("phase [deg]")
        return inline_svg(figure, "bode", "Bode plots of the loop gains of thrust, roll, pitch and yaw")


def _plain_ticks(axes: Any) -> None:
    """Numbers such as 2 and 30 on logarithmic axes, not powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())


def _margin_cells(m: Margins) -> tuple[str, ...]:
    fall = f"{20.0 * math.log10(m.gain_reduction):.1f}" if m.gain_reduction > 0.0 else "to nothing"
    grow = f"{m.gain_db:.1f}" if math.isfinite(m.gain) else "any"
    delay = f"{1e3 * m.delay:.0f}" if math.isfinite(m.delay) else "any"
    phase = f"{math.degrees(m.phase):.0f}" if math.isfinite(m.phase) else "any"
    return grow, fall, phase, delay, f"{m.crossover:.1f}", f"{m.sensitivity:.2f}"


def _triple(values: Any) -> str:
    return ", ".join(f"{float(x):.4g}" for x in np.ravel(values))
