"""The frame, the parts and the numbers that all reports share: one HTML file that loads nothing, in one style.

A report is a template of its own package that extends `base.html.j2`; what it prints as cards, facts and numbers is made here,
so that a card or an interval reads the same whichever benchmark or training it is of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from math import isfinite
from typing import Any

from airworthy import __version__
from airworthy.reports.anchors import anchored
from airworthy.tasks import TrackingProtocol
from airworthy.tasks.declared_metrics import metric

__all__ = [
    "DASH",
    "TEMPLATE_FILE",
    "card",
    "fact",
    "fixed",
    "heads",
    "interval",
    "labelled",
    "markup",
    "measured",
    "page_of",
    "percent",
    "share_interval",
]

TEMPLATE_FILE = "report.html.j2"
DASH = "\N{EN DASH}"
"""Between two bounds, and where there is no number."""

_UNITS = {
    ("m", "s"): "m/s",
    ("m", "s2"): "m/s\N{SUPERSCRIPT TWO}",
    ("rad", "s"): "rad/s",
    ("hz",): "Hz",
    ("kg",): "kg",
    ("m",): "m",
    ("n",): "N",
    ("rad",): "rad",
    ("s",): "s",
}


def labelled(name: str) -> str:
    """`wind_speed_m_s` as "wind speed [m/s]"; a name without a unit only loses its underscores."""
    parts = name.split("_")
    for suffix, unit in _UNITS.items():
        count = len(suffix)
        if len(parts) > count and tuple(parts[-count:]) == suffix:
            return f"{' '.join(parts[:-count])} [{unit}]"
    return " ".join(parts)


# ---- Numbers ----------------------------------------------------------------------------------------------------------------


def fixed(value: float | None, digits: int, absent: str = DASH, style: str = "") -> str:
    """Write a number with so many decimals.

    Args:
        value: The number; None, NaN and infinities are written as `absent`.
        digits: Decimals.
        absent: What stands where there is no number.
        style: Of Python's format language, before the decimals: "+" for a sign in any case, "," for groups of thousands.
    """
    return absent if value is None or not isfinite(value) else f"{value:{style}.{digits}f}"


def percent(share: float | None, digits: int = 2, absent: str = "-") -> str:
    """Write a share of 1 in percent, with the sign.

    Args:
        share: Of 1; None or not finite: `absent` stands instead.
        digits: Behind the point.
        absent: What is written for nothing.
    """
    return absent if share is None or not isfinite(share) else f"{100.0 * share:.{digits}f} %"


def interval(low: float, high: float, digits: int) -> str:
    """Write an interval as "0.12 – 0.34"; empty unless both of its bounds are finite.

    Args:
        low: Its lower bound.
        high: Its upper bound.
        digits: Behind the point.
    """
    return f"{low:.{digits}f} {DASH} {high:.{digits}f}" if isfinite(low) and isfinite(high) else ""


def share_interval(low: float, high: float) -> str:
    """Write an interval of shares of 1 in whole percent, "12 – 34"; empty unless both of its bounds are finite.

    Args:
        low: Its lower bound.
        high: Its upper bound.
    """
    return interval(100 * low, 100 * high, 0)


def measured(name: str, value: float | None, absent: str = DASH, style: str = "") -> str:
    """Write a metric's value in the unit and with the decimals that it is declared with.

    Args:
        name: Of the metric.
        value: In the unit of its name; None, NaN and infinities are written as `absent`.
        absent: What stands where there is no number.
        style: As of `fixed`.
    """
    item = metric(name)
    return fixed(None if value is None else item.factor * value, item.digits, absent, style)


# ---- Parts ------------------------------------------------------------------------------------------------------------------


def card(label: str, value: str, unit: str = "", below: str = "", tone: str = "") -> dict[str, str]:
    """Describe a card: a large number under its label, with its unit and a line below.

    Args:
        label: What is counted or measured.
        value: As it is written; a dash has no unit.
        unit: Beside the value, small.
        below: What it should be read with: an interval, a count, what was published.
        tone: "good" or "poor" colour it.
    """
    return {"label": label, "value": value, "unit": unit if value != DASH else "", "below": below, "tone": tone}


def fact(name: str, value: Any, is_hash: bool = False) -> dict[str, Any]:
    """Describe a line of a list of facts; a hash is set in letters of one width.

    Args:
        name: What it is called.
        value: What is shown.
        is_hash: Whether it is a hash.
    """
    return {"name": name, "value": value, "hash": is_hash}


def heads(names: Sequence[str], protocol: TrackingProtocol | None = None, short: bool = False) -> list[dict[str, str]]:
    """Describe the heads of metrics' columns: words with the unit, and what each is.

    Args:
        names: Of the metrics.
        protocol: Whose thresholds the words name; None: the defaults.
        short: Whether the columns are narrow.
    """
    return [{"label": metric(name).heading(short, protocol), "hint": metric(name).hint(protocol)} for name in names]


def markup(text: str) -> Any:
    """Pass text into a page as it is: figures and styles of our own, which escape what they were given."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704 - never with a user's text


# ---- Pages ------------------------------------------------------------------------------------------------------------------


def page_of(
    package: str,
    template: str = TEMPLATE_FILE,
    *,
    trim: bool = True,
    filters: Mapping[str, Callable[..., str]] | None = None,
    **content: Any,
) -> str:
    """Render a report as one HTML file that loads nothing.

    Args:
        package: Whose template it is ("airworthy.gates.labels").
        template: Its file.
        trim: Whether lines that hold only a block of the template leave nothing behind.
        filters: Of the template, by name.
        content: What the template names, all of it; `css`, `js` and `version` are there besides. Text is escaped.
    """
    import jinja2

    def source(name: str) -> str:
        return files(package if name == template else "airworthy.reports").joinpath(name).read_text("utf-8")

    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=trim,
        lstrip_blocks=trim,
        loader=jinja2.FunctionLoader(source),
    )
    environment.filters.update(filters or {})
    css, js = (markup(source(f"report.{kind}")) for kind in ("css", "js"))
    return anchored(environment.get_template(template).render({"css": css, "js": js, "version": __version__, **content}))
