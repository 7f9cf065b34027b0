"""Training of the boundary network from labels, stopped and gone on with at any time."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayLike
from airworthy.core.files import lock_folder, write_bytes, write_json, write_text
from airworthy.core.jobs.block_job import refuse_foreign
from airworthy.gates.planner.contract import CONTRACT_FILE, BoundaryContract, read_network, tensor_bytes, write_network
from airworthy.gates.planner.network import Boundary
from airworthy.gates.training.data import LabelSubset, LabelTable, TrainingArrays, rows_of
from airworthy.gates.training.metrics import Skew, clipped, kept_limit, loss_minimum, loss_of, metrics_of, percent_error
from airworthy.gates.training.options import BoundaryOptions, BoundaryRunOptions, TrainedBoundary
from airworthy.gates.training.run import BoundaryRun
from airworthy.learning.machine import computing, machine_for
from airworthy.learning.timed_training import tell_lost_epochs
from airworthy.learning.training_folder import (
    FIGURES_FILE,
    IDENTITY_FILE,
    LAST_FILE,
    REPORT_FILE,
    TrainingCurves,
    TrainingFolder,
    TrainingNames,
    say,
    write_training_log,
)
from airworthy.reports.page import card, page_of, percent

__all__ = [
    "histogram",
    "loss_chart",
    "part_metrics",
    "train",
    "training_log_chart",
    "write_results",
    "write_training_report",
]

# ---- Figures of a training's report as inline SVG; colours are the style sheet's --------------------------------------------

WIDTH, HEIGHT = 460.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 14.0, 26.0, 40.0
# Ours: bars of five units are as fine as a page of this width shows.
BINS_MOST = 80
PERCENT_MOST = 200.0
"""Beyond it errors are counted in the last bar."""
_TEXT = 'font-size="12" fill="var(--muted)" font-family="var(--sans)"'


@dataclass(frozen=True)
class PlotAxes:
    """A plot's axes: values at its edges."""

    x0: float
    x1: float
    y0: float
    y1: float

    def at(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
        """Place on the page; what is above or below the frame is drawn at its edge."""
        u = (np.asarray(x, np.float64) - self.x0) / (self.x1 - self.x0)
        v = np.clip((np.asarray(y, np.float64) - self.y0) / (self.y1 - self.y0), 0.0, 1.0)
        return LEFT + u * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - v * (HEIGHT - TOP - BOTTOM)


def loss_chart(skew: Skew) -> str:
    """Return the loss of one error (eq. 9) with its minimum and its second zero marked; beside it the symmetric loss."""
    e = np.linspace(-0.3, 0.3, 241)
    value = loss_of(e, skew)
    at, least, crossing = loss_minimum(skew)
    room = float(np.ptp(value))
    frame = PlotAxes(-0.3, 0.3, float(value.min()) - 0.2 * room, float(value.max()) + 0.05 * room)
    parts = [_axes(frame, [-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3], "safe error e: too slow, too long to the right")]
    mean = 0.5 * (skew.safe + skew.unsafe)
    if skew.safe != skew.unsafe:
        other = loss_of(e, Skew(mean, mean, skew.alpha, skew.eps))
        parts.append(_path(frame, e, other, "axis", dashed=True))
    parts.append(_path(frame, e, value, "flown"))
    for x, y, colour, label in _marks(at, least, crossing):
        (u,), (v,) = frame.at([x], [y])
        parts.append(f'<circle cx="{u:.1f}" cy="{v:.1f}" r="4" fill="var(--{colour})"/>')
        below = colour == "bad"
        anchor = f'x="{u + 6:.1f}" y="{v + (20 if below else 15):.1f}" text-anchor="{"end" if below else "start"}"'
        parts.append(f"<text {anchor} {_TEXT}>{label}</text>")
    key = [(f"W_S {skew.safe:g}, W_U {skew.unsafe:g}", "flown", False)]
    key += [(f"both {mean:g}", "axis", True)] if skew.safe != skew.unsafe else []
    return _svg("Loss against the safe error", [*parts, _key(key)])


def _marks(at: float, least: float, crossing: float) -> list[tuple[float, float, str, str]]:
    if crossing == 0.0:
        return [(0.0, 0.0, "bad", "least: 0 at e = 0")]
    return [(at, least, "bad", f"least: {least:.5f} at e = {at:.4f}"), (crossing, 0.0, "second", f"zero again: {crossing:.4f}")]


def training_log_chart(training_log: Sequence[Mapping[str, Any]], best_epoch: int) -> str:
    """Return the loss by epoch, of the rows learnt from (with noise and dropout) and of those watched; the best epoch is
    marked."""
    if len(training_log) < 2:
        return ""
    x = np.array([row["epoch"] for row in training_log], np.float64)
    train, held = (np.array([row[key] for row in training_log], np.float64) for key in ("train_loss", "held_out_loss"))
    every = np.concatenate([train, held])
    # The first epochs would flatten the rest.
    high, low = float(np.quantile(every, 0.97)), float(every.min())
    room = 0.06 * max(high - low, 1e-6)
    frame = PlotAxes(float(x[0]), float(x[-1]), low - room, high + room)
    parts = [_axes(frame, np.unique(np.round(np.linspace(x[0], x[-1], 5))).tolist(), "epoch")]
    parts += [_path(frame, x, train, "second"), _path(frame, x, held, "flown")]
    if 0 < best_epoch <= len(training_log):
        (u,), (v,) = frame.at([best_epoch], [held[best_epoch - 1]])
        parts.append(f'<circle cx="{u:.1f}" cy="{v:.1f}" r="4" fill="var(--bad)"/>')
    return _svg("Loss by epoch", [*parts, _key([("held out", "flown", False), ("learnt from", "second", False)])])


def histogram(title: str, percent: ArrayLike, unsafe_above: bool) -> str:
    """Return counts of percent errors on a logarithmic axis, the unsafe side in another colour.

    Args:
        title: For those who do not see.
        percent: Any shape; what is not finite is left out.
        unsafe_above: Whether errors above zero are the unsafe ones (the speed's).
    """
    values = np.asarray(percent, np.float64).ravel()
    values = values[np.isfinite(values)]
    if not len(values):
        return ""
    edges = _edges(values)
    counts = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
    top = max(1.0, math.log10(counts.max()))
    frame = PlotAxes(float(edges[0]), float(edges[-1]), 0.0, top * 1.05)
    parts = [_axes(frame, _nice(edges), "error of the prediction [%]", decades=math.floor(top))]
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        if not count:
            continue
        # A bar of one is seen, too.
        (u0, u1), (v, _) = frame.at([low, high], [max(math.log10(count), 0.04 * top), 0.0])
        colour = "bad" if (low >= -1e-9) == unsafe_above else "second"
        box = f'x="{u0:.1f}" y="{v:.1f}" width="{max(u1 - u0 - 0.6, 0.6):.1f}" height="{HEIGHT - BOTTOM - v:.1f}"'
        parts.append(f'<rect {box} fill="var(--{colour})"/>')
    (u,), _ = frame.at([0.0], [0.0])
    parts.append(
        f'<line x1="{u:.1f}" x2="{u:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="var(--ink)" stroke-dasharray="3 3"/>'
    )
    return _svg(title, [*parts, _key([("safe", "second", False), ("unsafe", "bad", False)])])


def _edges(values: Array) -> Array:
    """Of bars, zero among them, as narrow as their number allows."""
    low, high = max(-100.0, float(values.min())), min(PERCENT_MOST, float(values.max()))
    low, high = min(low, -1e-6), max(high, 1e-6)
    for width in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0):
        first, last = math.floor(low / width), math.ceil(high / width)
        if last - first <= BINS_MOST:
            break
    edges: Array = np.asarray(np.arange(first, last + 1) * width, np.float64)
    return edges


def _nice(edges: Array) -> list[float]:
    """Up to nine round values between the edges."""
    return _round(float(edges[0]), float(edges[-1]), 8)


def _round(low: float, high: float, most: int) -> list[float]:
    """Round values from low to high, a few."""
    decade = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(s * decade for s in (1.0, 2.0, 5.0, 10.0) if (high - low) / (s * decade) <= most)
    return [k * step for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _axes(frame: PlotAxes, ticks: Sequence[float], across: str, decades: int = -1) -> str:
    """Grid lines and numbers; with decades, of a logarithmic axis upwards."""
    ups = list(range(decades + 1)) if decades >= 0 else _round(frame.y0, frame.y1, 5)
    parts = []
    for value in ups:
        _, (v,) = frame.at([frame.x0], [value])
        label = f"{10**value:,}" if decades >= 0 else f"{round(value, 9):g}"
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{v:.1f}" y2="{v:.1f}" stroke="var(--grid)"/>')
        parts.append(f'<text x="{LEFT - 7}" y="{v + 4:.1f}" text-anchor="end" {_TEXT}>{label}</text>')
    for value in ticks:
        (u,), _ = frame.at([value], [frame.y0])
        parts.append(f'<text x="{u:.1f}" y="{HEIGHT - BOTTOM + 15}" text-anchor="middle" {_TEXT}>{round(value, 6):g}</text>')
    if decades >= 0:
        parts.append(f'<text x="{LEFT - 7}" y="{TOP - 3}" text-anchor="end" {_TEXT}>log</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle:.1f}" y="{HEIGHT - 7}" text-anchor="middle" {_TEXT}>{html.escape(across)}</text>')
    return "".join(parts)


def _path(frame: PlotAxes, x: Array, y: Array, colour: str, dashed: bool = False) -> str:
    points = " ".join(f"{u:.1f},{v:.1f}" for u, v in zip(*frame.at(x, y), strict=True))
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return (
        f'<polyline points="{points}" fill="none" stroke="var(--{colour})" stroke-width="1.7" stroke-linejoin="round"{dash}/>'
    )


def _key(entries: Sequence[tuple[str, str, bool]]) -> str:
    parts, offset = [], LEFT
    for name, colour, dashed in entries:
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        line = f'stroke="var(--{colour})" stroke-width="3"{dash}'
        parts.append(f'<line x1="{offset:.1f}" x2="{offset + 18:.1f}" y1="10" y2="10" {line}/>')
        parts.append(f'<text x="{offset + 24:.1f}" y="14" {_TEXT}>{html.escape(name)}</text>')
        offset += 42.0 + 6.6 * len(name)
    return "".join(parts)


def _svg(title: str, parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img"><title>{html.escape(title)}</title>{"".join(parts)}</svg>'


# ---- The page that shows what a training came to: its losses, errors of speed and time, their unsafe shares -----------------

_NAMES = {"v": "speed through the gate", "t0": "time to the gate"}
_PARTS = {"test": "test", "watched": "watched for the end", "train": "learnt from"}


def write_training_report(
    folder: Path,
    figures: Mapping[str, Any],
    training_log: Sequence[Mapping[str, Any]],
    labels: Array,
    predicted: Array,
) -> Path:
    """Write `report.html`.

    Args:
        folder: Of the network.
        figures: What `report.json` holds.
        training_log: A row per epoch.
        labels: (n, 2) of the test rows, clipped.
        predicted: (n, 2)
    """
    percent = percent_error(labels, predicted)
    page = page_of(
        "airworthy.gates.training",
        figures=figures,
        options=figures["options"],
        verdict=_verdict(figures),
        cards=_cards(figures),
        training_log=training_log_chart(training_log, int(figures["best_epoch"])),
        loss=loss_chart(_skew(figures)),
        histograms=[
            (name, note, histogram(f"Percent errors of the {what}", percent[:, column], unsafe_above=column == 0))
            for column, (name, what) in enumerate(_NAMES.items())
            for note in [_note(figures["errors"]["test"][name], name)]
        ],
        names=_NAMES,
        rows=_rows(figures),
        left_out=_left_out(figures),
    )
    return write_text(folder / REPORT_FILE, page)


def _skew(figures: Mapping[str, Any]) -> Skew:
    return Skew(*(float(figures["options"][name]) for name in ("safe", "unsafe", "alpha", "eps")))


def _verdict(figures: Mapping[str, Any]) -> str:
    skew, test = _skew(figures), figures["errors"]["test"]
    speed, time = (test[name]["unsafe_beyond"].get("5") for name in ("v", "t0"))
    lead = (
        "The loss is symmetric."
        if skew.safe == skew.unsafe
        else f"Unsafe errors weigh {skew.unsafe / skew.safe:.3g} times safe ones."
    )
    return (
        f"{lead} Of the test situations, {percent(speed)} have a speed more than 5 % too high, and {percent(time)} a time"
        f" more than 5 % too short."
    )


def _cards(figures: Mapping[str, Any]) -> list[dict[str, str]]:
    test, rows = figures["errors"]["test"], figures["rows"]
    cards = [
        card("rows learnt from", f"{rows['train']:,}", below=f"{rows['watched']:,} watched, {rows['test']:,} tested"),
        card("epochs", f"{figures['epochs']:,}", below=f"weights of epoch {figures['best_epoch']:,}"),
        card("test loss", f"{test['loss']:.4f}", below=f"least there is: {figures['loss_minimum']['value']:.4f}"),
    ]
    for name, label in (("v", "speed too high"), ("t0", "time too short")):
        beyond = test[name]["unsafe_beyond"]
        cards.append(card(f"{label} by 5 %", percent(beyond.get("5")), below=f"by 10 %: {percent(beyond.get('10'))}"))
    if "keep_limit" in test:
        cards.append(card("pairs that keep the limit", percent(test["keep_limit"]), below="on both segments, as predicted"))
    took = f"forward and backward, {figures['seconds']:,.0f} s in all"
    cards.append(card("rows/s", f"{figures['rows_per_second']:,.0f}", below=took))
    return cards


def _note(table: Mapping[str, Any], name: str) -> str:
    if table["percent_mean"] is None:
        return "no labels above zero"
    middle = table["percent_quantiles"]["0.5"]
    note = f"median {middle:+.2f} %, mean {table['percent_mean']:+.2f} %"
    if table["skewness"] is not None:
        note += f", skewness {table['skewness']:+.2f}"
    if name == "v" and table["zero_labels"]:
        note += f"; {table['zero_labels']:,} labels of 0 left out, told {table['median_at_zero_labels']:.3f} m/s in the median"
    return note


def _rows(figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = []
    for part, label in _PARTS.items():
        errors = figures["errors"][part]
        for name, what in _NAMES.items():
            table = errors[name]
            shares = [percent(table["unsafe_beyond"].get(key)) for key in ("0", "5", "10")]
            middle = table["percent_quantiles"].get("0.5")
            found.append(
                {
                    "part": f"{label} ({errors['rows']:,})" if name == "v" else "",
                    "what": what,
                    "shares": shares,
                    "median": "-" if middle is None else f"{middle:+.2f} %",
                    "rms": f"{table['rms']:.4f} {'m/s' if name == 'v' else 's'}",
                }
            )
    return found


def _left_out(figures: Mapping[str, Any]) -> str:
    rows = figures["rows"]
    sentence = f"{rows['infeasible']:,} of {rows['situations']:,} situations have no admissible pair and are left out; "
    return sentence + f"{rows['clipped']:,} times were longer than the output and are clipped to where it ends."


# -----------------------------------------------------------------------------------------------------------------------------

# ---- What a training leaves behind: weights with their contract, the training log, figures, a report -------------------------

Weights = Mapping[str, ArrayF32]
# Ours: about twice the rows that are held out.
_TRAIN_SAMPLES = 20_000
"""Of the rows that were learnt from, at most, evenly chosen."""


def write_results(
    folder: Path, table: LabelTable, rows: TrainingArrays, work: BoundaryRun, about: Mapping[str, Any], command: str
) -> dict[str, Any]:
    """Judge the finished network and write its folder; `report.json` last: where it lies, all is done. Returns its content.

    Args:
        folder: Of the network.
        table: The labels.
        rows: The same, split and scaled.
        work: The finished training.
        about: Identity and machine, as they are written.
        command: As it was called.
    """
    chosen = work.weights(work.options.keep)
    contract = _contract(table, rows, about)
    network = Boundary(contract, chosen)
    found = {
        name: part_metrics(network, part, rows.scales, table.limit, work.options.skew, table.thrust)
        for name, part in _parts(rows).items()
    }
    at, value, crossing = loss_minimum(work.options.skew)
    seconds = work.notes["seconds"]
    figures = {
        "epochs": work.epoch,
        "best_epoch": work.notes["best_epoch"],
        "best_loss": work.notes["best_loss"],
        "loss_minimum": {"e": at, "value": value, "crossing": crossing},
        "rows": dict(rows.counts),
        "errors": found,
        "seconds": round(seconds, 1),
        "rows_per_second": round(work.notes["rows"] / max(seconds, 1e-9), 1),
        "command": command,
        **about,
    }
    write_training_log(folder, work.notes["journal"])
    write_bytes(folder / LAST_FILE, tensor_bytes(work.weights("last")))
    write_network(folder, contract, chosen)
    test = rows.parts["test"]
    labels = clipped(test.labels, rows.scales)
    write_training_report(folder, figures, work.notes["journal"], labels, network.predict(test.situations))
    # Last: where it lies, everything else does.
    write_json(folder / FIGURES_FILE, figures)
    return figures


def part_metrics(
    network: Boundary,
    part: LabelSubset,
    scales: tuple[float, float],
    limit: tuple[float, float] | None,
    skew: Skew,
    thrust: float | None = None,
) -> dict[str, Any]:
    """Return errors of a network on labelled situations, and how many of its pairs keep the limit on both segments.

    Args:
        network: To be judged.
        part: Situations and labels, of a grid or off it.
        scales: Speed and time at which its outputs end.
        limit: Of the search; None: not known, or none.
        skew: Numbers of the loss.
        thrust: Most thrust over mass of the search [m/s^2]; None: none. Without both nothing is judged.
    """
    predicted = network.predict(part.situations)
    found = metrics_of(part.labels, predicted, scales, skew)
    if limit is not None or thrust is not None:
        found["keep_limit"] = float(kept_limit(part.situations, predicted, limit or (np.inf, 0.0), thrust).mean())
    return found


def _parts(rows: TrainingArrays) -> dict[str, LabelSubset]:
    """Watched and tested rows, and some of those that were learnt from."""
    train = rows.parts["train"]
    # Evenly over the grid's order, so that every value of every field is met.
    some = np.unique(np.linspace(0, len(train.labels) - 1, min(len(train.labels), _TRAIN_SAMPLES)).astype(int))
    return {**rows.parts, "train": LabelSubset(train.situations[some], train.labels[some])}


def _contract(table: LabelTable, rows: TrainingArrays, about: Mapping[str, Any]) -> BoundaryContract:
    ranges = tuple((float(low), float(high)) for low, high in table.ranges)
    training = {**about, "search": dict(table.about), "rows": dict(rows.counts)}
    return BoundaryContract(ranges, rows.scales, table.heading, training, table.digest)


# -----------------------------------------------------------------------------------------------------------------------------

SCHEMA_VERSION = 1
KIND = "boundary"
_NAMED = TrainingNames("a network", "its labels were others", "its version was another", "epoch")


def train(
    labels: LabelTable,
    out: str | Path,
    options: BoundaryOptions,
    run: BoundaryRunOptions,
    command: str = "",
    quiet: bool = False,
) -> TrainedBoundary:
    """See `airworthy.gates.training.train_boundary`.

    Args:
        labels: Of the search.
        out: Folder of the network.
        options: What is learnt and how.
        run: Where, and for how long.
        command: As it was called, for the report.
        quiet: Print nothing.
    """
    refuse_foreign(out, IDENTITY_FILE, CONTRACT_FILE)
    rows = rows_of(labels, options)
    identity = {"schema_version": SCHEMA_VERSION, "network": KIND, "options": asdict(options), "data": labels.digest}
    with lock_folder(out) as where:
        folder = TrainingFolder(where, identity, options, _NAMED, quiet)
        if folder.done:
            done = folder.outcome(read_network, TrainedBoundary.of)
            tell_lost_epochs(where)
            return done
        machine = machine_for(run, before=folder.machine)
        with computing(machine) as device:
            # First of all: what cannot begin must not hold the folder for options that never worked.
            work = BoundaryRun(rows, options, device)
            if folder.begin(work, machine):
                say(quiet, f"Going on after epoch {work.epoch:,} of at most {options.epochs:,}.")
            if not _learnt(work, folder, run, quiet):
                return TrainedBoundary(where, finished=False, epochs=work.epoch)
            figures = write_results(where, labels, rows, work, folder.about, command)
        folder.clear()
        return TrainedBoundary.of(where, figures)


def _learnt(work: BoundaryRun, folder: TrainingFolder, run: BoundaryRunOptions, quiet: bool) -> bool:
    """Learn what is left; False: it is not finished, as was asked."""

    def saved() -> None:
        write_training_log(folder.folder, work.notes["journal"])
        _tell(work, quiet)

    curves = TrainingCurves(work.notes["journal"], _scalars)
    return folder.learn(work, work.epochs, work.options.epochs - work.epoch, run, saved=saved, curves=curves)


def _scalars(row: Mapping[str, Any]) -> tuple[int, Mapping[str, float]]:
    """Epoch and curves of a row of the training log."""
    return row["epoch"], {name: row[name] for name in ("train_loss", "held_out_loss", "rate")}


def _tell(work: BoundaryRun, quiet: bool) -> None:
    if not work.notes["journal"]:
        return
    row = work.notes["journal"][-1]
    speed = work.notes["rows"] / max(work.notes["seconds"], 1e-9)
    best = f"least {work.notes['best_loss']:.5f} in epoch {work.notes['best_epoch']}"
    loss = f"loss {row['train_loss']:.5f}, held out {row['held_out_loss']:.5f} ({best})"
    say(quiet, f"Epoch {work.epoch:,}: {loss}, {speed:,.0f} rows/s")
