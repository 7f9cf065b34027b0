"""How a validation is shown: the table of prediction errors, for terminals and for the report, and pictures as PNG files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.benchmarks.validation.errors import ErrorSamples, comparators
from airworthy.benchmarks.validation.imu import AllanDeviation
from airworthy.benchmarks.validation.logs import FlightLog
from airworthy.benchmarks.validation.motors import Bench, MotorMap, ThrustMap, lagged
from airworthy.benchmarks.validation.protocol import (
    FITTED,
    HELD,
    OURS,
    PUBLISHED,
    REFITTED,
    REFITTED_TRIMMED,
    TRIMMED,
    Experiment,
    below_all,
)
from airworthy.benchmarks.validation.structure import predict
from airworthy.benchmarks.validation.windows import HORIZONS, LogReference
from airworthy.core.arrays import Array
from airworthy.core.files import write_atomic

HEADINGS = ("position [mm]", "velocity [m/s]", "attitude [deg]", "rate [rad/s]")


def cells(samples: ErrorSamples) -> list[str]:
    """Return `RMS/median` per quantity and horizon, in the units of `HEADINGS`."""
    rms, median = samples.rms(), samples.median()
    return [
        f"{_short(rms[q, h] * factor)}/{_short(median[q, h] * factor)}"
        for q, factor in enumerate(_FACTORS)
        for h in range(len(HORIZONS))
    ]


def rows(experiment: Experiment) -> list[tuple[str, str, list[str]]]:
    """Return (model, variant, cells), ours first, then the published sets, then the yardstick without a model."""
    table = experiment.pooled()
    order = (
        [k for k in table if k[0] == OURS] + [k for k in table if k[0] not in (OURS, HELD)] + [k for k in table if k[0] == HELD]
    )
    return [(name, variant, cells(table[(name, variant)])) for name, variant in order]


def verdict(experiment: Experiment) -> str:
    """Return one sentence: in how many of the twelve columns our model is below every published set."""
    parts = []
    for ours, others in ((FITTED, (PUBLISHED, REFITTED)), (TRIMMED, (PUBLISHED, REFITTED, REFITTED_TRIMMED))):
        won = [int(np.sum(below_all(experiment, ours, others, statistic))) for statistic in ("rms", "median")]
        parts.append(
            f"{ours}: below every other set ({', '.join(others)}) in {won[0]} of 12 columns by RMS, {won[1]} by median"
        )
    return "; ".join(parts) + "."


def counts(experiment: Experiment) -> list[int]:
    """Return windows judged at each horizon."""
    return [int(n) for n in experiment.pooled()[(OURS, FITTED)].count()]


def print_tables(measured: Sequence[Experiment], pwm: Experiment) -> None:
    """Print the table of predictions fed with measured speeds, and the one fed with PWM."""
    _print("Open-loop prediction error, RMS/median, fed with measured rotor speeds, never on data fitted to", measured)
    _print("Open-loop prediction error, RMS/median, fed with PWM", [pwm])


def _print(title: str, experiments: Sequence[Experiment]) -> None:
    import sys

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    table.add_column("model", no_wrap=True)
    table.add_column("parameters", no_wrap=True)
    for quantity in HEADINGS:
        for index, horizon in enumerate(HORIZONS):
            heading = f"{quantity}\n{horizon:g} s" if index == 0 else f"\n{horizon:g} s"
            table.add_column(Text(heading), justify="right", no_wrap=True)
    for experiment in experiments:
        table.add_row(
            Text(experiment.name, style="italic"), Text("/".join(map(str, counts(experiment))) + " windows", style="italic")
        )
        before = ""
        for name, variant, values in rows(experiment):
            style = "bold" if name == OURS else "dim" if name == HELD else ""
            shown = name if name != before else ""
            table.add_row(Text(shown, style=style), Text(variant, style=style), *(Text(v, style=style) for v in values))
            before = name
        table.add_section()
    # A file has room for every cell; a terminal cuts what does not fit.
    console = Console() if sys.stdout.isatty() else Console(width=400)
    console.print(table)
    for experiment in experiments:
        console.print(f"{experiment.name} - {verdict(experiment)}", highlight=False)
    console.print()


def as_records(experiment: Experiment) -> list[dict[str, Any]]:
    """Return rows for files: model, variant, statistics per quantity and horizon."""
    from airworthy.benchmarks.validation.errors import as_dict

    return [{"model": name, "variant": variant, **as_dict(s)} for (name, variant), s in experiment.pooled().items()]


def _short(value: float) -> str:
    """Return three significant digits without exponents."""
    return f"{value:.0f}" if value >= 100.0 else f"{value:.3g}"


_COLORS = {OURS: "#c1272d", "RotorPy": "#1f77b4", "RotorPy brushless": "#17becf", "Crazyflow L250": "#2ca02c"}
_COLORS |= {"Crazyflow P250": "#98a81f", "Crazyflow 21B": "#8c564b", "gym-pybullet-drones": "#9467bd", HELD: "#777777"}
_STYLES = {FITTED: "-", TRIMMED: "--", PUBLISHED: ":", REFITTED: "-", "rates held": "-."}
_FACTORS = (1e3, 1.0, 1.0, 1.0)


def _figure(rows: int, columns: int, width: float, height: float) -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # No pyplot: a library must not touch the caller's backend.
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


def _save(figure: Any, path: Path) -> Path:
    return write_atomic(path, lambda temporary: figure.savefig(temporary, dpi=110))


def plot_errors(path: Path, experiments: Sequence[Experiment]) -> Path:
    """Return the RMS errors over the horizon, one row per experiment, one column per quantity."""
    figure, axes = _figure(len(experiments), 4, 15.0, 3.6 * len(experiments))
    for row, experiment in zip(axes, experiments, strict=True):
        for (name, variant), samples in experiment.pooled().items():
            if variant not in _STYLES:
                continue
            rms = samples.rms()
            for q, axis in enumerate(row):
                label = f"{name}, {variant}"
                strong = name == OURS
                axis.plot(
                    HORIZONS,
                    rms[q] * _FACTORS[q],
                    _STYLES[variant],
                    color=_COLORS[name],
                    lw=2.4 if strong else 1.2,
                    marker="o" if strong else ".",
                    zorder=3 if strong else 2,
                    label=label,
                )
        for q, axis in enumerate(row):
            axis.set(yscale="log", xlabel="horizon [s]", ylabel=f"RMS {HEADINGS[q]}", xticks=HORIZONS)
            axis.grid(alpha=0.3, which="both")
        row[0].set_title(experiment.name, loc="left", fontweight="bold")
        row[3].legend(fontsize=6.5, loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False)
    return _save(figure, path)


def plot_flight(path: Path, source: LogReference, experiment: Experiment, split: int) -> Path:
    """Return a flight that was held out: what happened, and half-second predictions from many starts.

    Args:
        path: Of the PNG.
        source: The log with its reference states.
        experiment: Its fits.
        split: Number of the split whose test part is shown.
    """
    windows, fitted = experiment.splits[split].test, experiment.fits[split]
    span = np.arange(windows.time[0], windows.time[-1], 0.02)
    states = source.states(span)
    quantities = [(f"position {axis} [m]", "position", index) for index, axis in enumerate("xyz")]
    quantities += [("velocity x [m/s]", "velocity", 0), ("velocity y [m/s]", "velocity", 1), ("roll rate [rad/s]", "rate", 0)]
    models = [fitted.model(), comparators(experiment.brushless)["Crazyflow L250"]]
    prediction = predict(windows, models)
    figure, axes = _figure(3, 2, 14.0, 9.0)
    for axis, (label, name, component) in zip(axes.T.ravel(), quantities, strict=True):
        real = np.where(states.valid, getattr(states, name)[:, component], np.nan)
        axis.plot(span, real, color="black", lw=1.5, label="motion capture and gyro", zorder=3)
        start = getattr(windows, name)[:, 0, component]
        for model, color, title in (
            (1, _COLORS["Crazyflow L250"], "Crazyflow L250 as published"),
            (0, _COLORS[OURS], "ours, not fitted to this flight"),
        ):
            path_values = np.concatenate([start[:, None], getattr(prediction, name)[model, :, :, component]], axis=1)
            times = windows.time[:, None] + np.array([0.0, *HORIZONS])
            axis.plot(times[::2].T, path_values[::2].T, color=color, lw=1.0, alpha=0.8, zorder=2 if model == 0 else 1)
            axis.plot([], [], color=color, label=title)
        margin = 0.35 * (np.nanmax(real) - np.nanmin(real)) + 0.02
        axis.set(ylabel=label, xlabel="time [s]", ylim=(np.nanmin(real) - margin, np.nanmax(real) + margin))
        axis.grid(alpha=0.3)
    axes[0, 0].legend(fontsize=8, loc="upper right")
    figure.suptitle(f"{source.log.name}: open-loop predictions over {HORIZONS[-1]:g} s, one every 0.2 s")
    return _save(figure, path)


def plot_thrust(path: Path, bench: Bench, thrust_map: ThrustMap, experiments: Sequence[Experiment]) -> Path:
    """Return thrust per rotor over speed: bench, its fit, maps fitted to flights, published maps.

    Args:
        path: Of the PNG.
        bench: Measurements of all four rotors together.
        thrust_map: That was fitted to them, of one rotor.
        experiments: The brushless flights first, then the brushed one.
    """
    figure, axes = _figure(1, 2, 14.0, 5.2)
    left, right = axes[0]
    top = int(np.argmax(bench.pwm))
    for rows, color, label in ((slice(0, top), "#999999", "bench, rising"), (slice(top, None), "#cccccc", "bench, falling")):
        keep = bench.good[rows]
        left.plot(bench.rotor_speed[rows][keep], 1e3 * bench.thrust[rows][keep] / 4.0, ".", ms=3, color=color, label=label)
    speed = np.linspace(300.0, 2500.0, 200)
    left.plot(speed, 1e3 * thrust_map.thrust(speed), color="black", lw=2, label="bench fit")
    for axis, experiment, flown in ((left, experiments[1], (1850.0, 2250.0)), (right, experiments[0], (1250.0, 2150.0))):
        for name, model in comparators(experiment.brushless).items():
            values = _thrust(model.vehicle.rotors[0].thrust, speed)
            axis.plot(speed, 1e3 * values, lw=1.1, ls="--", color=_COLORS[name], label=f"{name} (published)")
        inside = np.linspace(*flown, 50)
        for index, rotor in enumerate(experiment.fits[0].model().vehicle.rotors):
            once = "fitted to flight, four rotors" if index == 0 else None
            axis.plot(inside, 1e3 * _thrust(rotor.thrust, inside), color=_COLORS[OURS], lw=2.2, label=once, zorder=4)
        axis.axhline(1e3 * experiment.airframe.mass * 9.81 / 4.0, color="black", lw=0.7, ls=":")
        axis.set(xlabel="rotor speed [rad/s]", ylabel="thrust per rotor [mN]", title=experiment.airframe.name, ylim=(0, 220))
        axis.legend(fontsize=8)
        axis.grid(alpha=0.3)
    return _save(figure, path)


def _thrust(polynomial: tuple[float, float, float], speed: Array) -> Array:
    return polynomial[0] + polynomial[1] * speed + polynomial[2] * speed**2


def plot_motors(path: Path, flights: Sequence[tuple[FlightLog, MotorMap]]) -> Path:
    """Return the rotor speed measured and predicted from PWM by the map and lag fitted to that flight."""
    figure, axes = _figure(len(flights), 1, 13.0, 2.9 * len(flights))
    for axis, (log, motor_map) in zip(axes[:, 0], flights, strict=True):
        motor = motor_map.measured[0]
        step = float(np.median(np.diff(log.time)))
        target = motor_map.steady(log.pwm)
        predicted = lagged(target, log.rotor_speed[0], step, motor_map.rise, motor_map.fall)[:, motor]
        # The supply drifts slowly; the map alone would hide the lag behind that.
        slow = np.convolve(log.rotor_speed[:, motor] / predicted, np.ones(501) / 501, mode="same")[250:-250]
        inside = slice(250, -250)
        axis.plot(log.time[inside], (target[inside, motor] * slow), color="#bbbbbb", lw=0.7, label="steady speed of the PWM")
        axis.plot(log.time[inside], log.rotor_speed[inside, motor], color="black", lw=1.2, label="measured")
        axis.plot(log.time[inside], predicted[inside] * slow, color=_COLORS[OURS], lw=1.2, label="map and lag")
        lag = f"rise {1e3 * motor_map.rise:.0f} ms, fall {1e3 * motor_map.fall:.0f} ms"
        title = f"{log.name}, M{motor + 1}: {lag}, error {motor_map.error:.0f} rad/s RMS"
        low, high = np.percentile(log.rotor_speed[:, motor], [0.0, 100.0])
        axis.set(xlabel="time [s]", ylabel="rotor speed [rad/s]", title=title, ylim=(low - 60.0, high + 60.0))
        middle = log.time[len(log.time) // 3]
        axis.set_xlim(middle, middle + 3.0)
        axis.grid(alpha=0.3)
    axes[0, 0].legend(fontsize=8, ncols=3, loc="upper right")
    return _save(figure, path)


def plot_battery(path: Path, bench: Bench, sag: tuple[float, float], logs: Sequence[FlightLog]) -> Path:
    """Return the voltage over current on the bench, voltage over time in flight.

    Args:
        path: Of the PNG.
        bench: Measurements of voltage [V] and current [A].
        sag: Voltage without current [V], and resistance [ohm].
        logs: Flights; those without a measured voltage are left out.
    """
    figure, axes = _figure(1, 2, 13.0, 4.6)
    left, right = axes[0]
    left.plot(bench.current, bench.voltage, ".", ms=3, color="#999999", label="bench")
    current = np.linspace(0.0, bench.current.max(), 50)
    left.plot(
        current,
        sag[0] - sag[1] * current,
        color=_COLORS[OURS],
        lw=2,
        label=f"{sag[0]:.2f} V - {1e3 * sag[1]:.0f} mohm, full battery",
    )
    left.set(xlabel="current [A]", ylabel="battery [V]", title="sag on the bench (below the line: charge drawn)")
    for log in logs:
        if np.ptp(log.voltage) > 0.0:
            right.plot(log.time, log.voltage, lw=1.0, label=log.name)
    right.set(xlabel="time [s]", ylabel="battery [V]", title="in flight")
    for axis in (left, right):
        axis.legend(fontsize=8)
        axis.grid(alpha=0.3)
    return _save(figure, path)


def plot_allan(path: Path, curves: Mapping[str, AllanDeviation], sheet: Mapping[str, float]) -> Path:
    """Return Allan deviations, gyro and accelerometer, beside the data sheet's model.

    Args:
        path: Of the PNG.
        curves: By name; channels 0 to 2 of the gyro [rad/s], 3 to 5 of the accelerometer [m/s^2].
        sheet: The data sheet's noise densities and random walks, by group.
    """
    figure, axes = _figure(1, 2, 13.0, 5.0)
    for axis, group, title, unit, first in (
        (axes[0, 0], "gyroscope", "gyro", "rad/s", 0),
        (axes[0, 1], "accelerometer", "accelerometer", "m/s$^2$", 3),
    ):
        for index, (name, curve) in enumerate(curves.items()):
            for channel in range(3):
                label = name if channel == 0 else None
                axis.plot(curve.tau, curve.deviation[:, first + channel], color=f"C{index}", lw=1.4, label=label)
        tau = np.geomspace(5e-3, 30.0, 60)
        white, walk = sheet[f"{group}_noise_density"], sheet[f"{group}_random_walk"]
        axis.plot(
            tau, np.sqrt(white**2 / tau + walk**2 * tau / 3.0), "k--", lw=1.5, label="data sheet: white noise and bias walk"
        )
        axis.set(xscale="log", yscale="log", xlabel="averaging time [s]", ylabel=f"Allan deviation [{unit}]", title=title)
        axis.grid(alpha=0.3, which="both")
        axis.legend(fontsize=8)
    return _save(figure, path)
