"""Figures of an identified vehicle: values before and after the logs, thrust, correlations, parts, held-out errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from airworthy.logs import LogSegments
from airworthy.reports.drawing import DASHES, DOTS, band, named_lines, sheet, top_key, whisker
from airworthy.reports.svg import PALETTE, inline_svg
from airworthy.vehicles import Identified
from airworthy.vehicles.identification.compared import COLUMNS

__all__ = ["correlation_figure", "curve_figure", "held_figure", "parts_figure", "values_figure"]

WIDE = 1.645
"""Deviations on either side that hold 90 %."""
LOOKS: dict[str, dict[str, Any]] = {
    "hold": {"color": PALETTE["muted"], "linewidth": 1.2, "linestyle": DASHES},
    "nearest": {"color": PALETTE["warn"], "linewidth": 1.1},
    "start": {"color": PALETTE["axis"], "linewidth": 1.1, "linestyle": DOTS},
    "identified": {"color": PALETTE["flown"], "linewidth": 1.6},
    "trimmed": {"color": PALETTE["second"], "linewidth": 1.3},
}


def values_figure(found: Identified) -> str:
    """Draw what was believed of each value before the logs, and what after them, in deviations of the belief.

    Args:
        found: What was identified.
    """
    uncertainty = found.vehicle.uncertainty
    assert uncertainty is not None
    rows = []
    for name, mean, sd in zip(uncertainty.names, uncertainty.mean, uncertainty.sd, strict=True):
        prior = found.prior(name)
        if prior.sd > 1e-8:
            rows.append((name, (mean - prior.mean) / prior.sd, sd / prior.sd))
    reach = max(2.2, *(abs(at) + WIDE * wide for _, at, wide in rows)) if rows else 2.2
    reach = min(reach, 4.0)
    with sheet(0.24 * len(rows) + 0.8, 6.6) as figure:
        axes = figure.subplots()
        for k, (_, at, wide) in enumerate(rows):
            whisker(axes, k, -WIDE, WIDE, level=True, color=PALETTE["grid"], linewidth=7.0, solid_capstyle="butt")
            whisker(axes, k, at - WIDE * wide, at + WIDE * wide, level=True, color=PALETTE["flown"], linewidth=2.4)
            axes.plot([np.clip(at, -reach, reach)], [k], "o", color=PALETTE["flown"], markersize=4.0)
        axes.axvline(0.0, color=PALETTE["axis"], linewidth=0.8)
        axes.set_xlim(-reach, reach)
        axes.set_xlabel("deviations of what was believed before")
        named_lines(axes, [name for name, _, _ in rows])
        figure.tight_layout()
        return inline_svg(figure, "values", "Each value before and after the logs, with 90 % intervals.")


def curve_figure(found: Identified) -> str:
    """Draw thrust of a rotor over its command, with its band.

    Args:
        found: What was identified.
    """
    command, thrust, sd = (np.array(column) for column in zip(*found.curve, strict=True))
    with sheet(2.5, 4.0) as figure:
        axes = figure.subplots()
        band(
            axes, 100.0 * command, (thrust - WIDE * sd, thrust + WIDE * sd), thrust, PALETTE["flown"], marker="o", markersize=3
        )
        if np.isfinite(found.hover):
            axes.axvline(100.0 * found.hover, color=PALETTE["muted"], linewidth=1.0, linestyle=DOTS)
        axes.set_ylim(0.0, None)
        axes.set_title("thrust of a rotor [N]")
        axes.set_xlabel("command [%]; dotted: hover")
        figure.tight_layout()
        return inline_svg(figure, "curve", "Thrust of a rotor over its command.")


def correlation_figure(found: Identified) -> str:
    """Draw correlations of the values that are not fixed.

    Args:
        found: What was identified.
    """
    uncertainty = found.vehicle.uncertainty
    assert uncertainty is not None
    kept = [k for k, sd in enumerate(uncertainty.sd) if sd > 0.0]
    names = [uncertainty.names[k] for k in kept]
    with sheet(4.0, 5.2) as figure:
        axes = figure.subplots()
        for i, a in enumerate(kept):
            for j, b in enumerate(kept[:i]):
                related = uncertainty.correlation[a][b]
                color = PALETTE["flown"] if related > 0.0 else PALETTE["bad"]
                axes.add_patch(_square(j, i, color, min(abs(related), 1.0)))
                if abs(related) >= 0.3:
                    axes.text(j, i, f"{related:.1f}".replace("0.", "."), ha="center", va="center", fontsize=6.5)
        axes.set_xlim(-0.5, len(kept) - 1.5)
        axes.set_xticks(range(len(kept) - 1), names[:-1], rotation=60, ha="right", rotation_mode="anchor")
        named_lines(axes, names)
        axes.set_ylim(len(kept) - 0.5, 0.5)
        axes.grid(visible=False)
        figure.tight_layout()
        return inline_svg(figure, "correlation", "Correlations of the values; red is negative.")


def _square(x: int, y: int, color: str, alpha: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, facecolor=color, alpha=0.75 * alpha, linewidth=0.0)


def held_figure(found: Identified, windows: str = "excited") -> str:
    """Draw held-out errors over the horizon, beside simpler models.

    Args:
        found: What was identified, with a table.
        windows: "excited", "quiet" or "all".
    """
    assert found.table is not None
    rows = [r for r in found.table.rows if r.windows == windows] or list(found.table.rows)
    quantities = [q for q in ("rate", "force") if any(r.quantity == q for r in rows)]
    titles = {"rate": "body rate [rad/s]", "force": "specific force along z [m/s\N{SUPERSCRIPT TWO}]"}
    with sheet(2.6) as figure:
        for axes, quantity in zip(figure.subplots(1, len(quantities), squeeze=False)[0], quantities, strict=True):
            of = [r for r in rows if r.quantity == quantity]
            time = [1e3 * r.horizon for r in of]
            for name in COLUMNS:
                values = [r.rms[name] for r in of]
                if np.isfinite(values).any():
                    axes.plot(time, values, marker="o", markersize=2.6, **LOOKS[name])
            known = [r.rms[name] for r in of for name in ("hold", "identified", "trimmed") if np.isfinite(r.rms[name])]
            axes.set_ylim(0.0, 1.3 * max(known, default=1.0))
            axes.set_xlim(0.0, 1.05 * max(time))
            axes.set_title(titles[quantity])
            axes.set_xlabel("horizon [ms]")
        figure.tight_layout(rect=(0.0, 0.0, 1.0, 0.9))
        nearest = f"nearest: {found.table.nearest}" if found.table.nearest else "nearest"
        top_key(figure, [(LOOKS[name], nearest if name == "nearest" else name) for name in COLUMNS])
        return inline_svg(figure, "held", "Held-out errors over the horizon.")


def parts_figure(names: Sequence[str], segments: Sequence[LogSegments], held: Sequence[tuple[float, float] | None]) -> str:
    """Draw which parts of each log were fitted, held out and left out.

    Args:
        names: Of the logs.
        segments: Of each.
        held: Part of each that was held out [s]; None: nothing.
    """
    with sheet(0.34 * len(names) + 0.75) as figure:
        axes = figure.subplots()
        for k, (of, part) in enumerate(zip(segments, held, strict=True)):
            for span in of.rejected:
                axes.broken_barh([(span.start, span.stop - span.start)], (k - 0.28, 0.56), color=PALETTE["warn"], alpha=0.35)
            for span in of.usable:
                cut = span.stop if part is None else min(max(part[0], span.start), span.stop)
                axes.broken_barh([(span.start, cut - span.start)], (k - 0.28, 0.56), color=PALETTE["flown"])
                axes.broken_barh([(cut, span.stop - cut)], (k - 0.28, 0.56), color=PALETTE["second"])
        axes.set_xlabel("[s]")
        named_lines(axes, list(names))
        figure.tight_layout(rect=(0.0, 0.0, 1.0, 1.0 - 0.2 / (0.34 * len(names) + 0.75)))
        looks = [("flown", 1.0, "fitted"), ("second", 1.0, "held out"), ("warn", 0.35, "flown, and not usable")]
        top_key(figure, [({"color": PALETTE[c], "linewidth": 6.0, "alpha": a}, word) for c, a, word in looks])
        return inline_svg(figure, "parts", "Parts of the logs that were fitted, held out and left out.")
