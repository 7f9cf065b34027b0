"""The table of prediction errors, for terminals and for the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from airworthy.benchmarks.validation.errors import ErrorSamples
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
from airworthy.benchmarks.validation.windows import HORIZONS

HEADINGS = ("position [mm]", "velocity [m/s]", "attitude [deg]", "rate [rad/s]")
_FACTORS = (1e3, 1.0, 1.0, 1.0)


def cells(samples: ErrorSamples) -> list[str]:
    """`RMS/median` per quantity and horizon, in the units of `HEADINGS`."""
    rms, median = samples.rms(), samples.median()
    return [
        f"{_short(rms[q, h] * factor)}/{_short(median[q, h] * factor)}"
        for q, factor in enumerate(_FACTORS)
        for h in range(len(HORIZONS))
    ]


def rows(experiment: Experiment) -> list[tuple[str, str, list[str]]]:
    """(model, variant, cells), ours first, then the published sets, then the yardstick without a model."""
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
    """Windows judged at each horizon."""
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
    console = Console() if sys.stdout.isatty() else Console(width=210)
    console.print(table)
    for experiment in experiments:
        console.print(f"{experiment.name} - {verdict(experiment)}", highlight=False)
    console.print()


def as_records(experiment: Experiment) -> list[dict[str, Any]]:
    """Rows for files: model, variant, statistics per quantity and horizon."""
    from airworthy.benchmarks.validation.errors import as_dict

    return [{"model": name, "variant": variant, **as_dict(s)} for (name, variant), s in experiment.pooled().items()]


def _short(value: float) -> str:
    """Return three significant digits without exponents."""
    return f"{value:.0f}" if value >= 100.0 else f"{value:.3g}"
