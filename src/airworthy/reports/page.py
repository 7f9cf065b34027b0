"""The frame, the parts and the numbers that all reports share: one HTML file that loads nothing, in one style.

A report is a template of its own package that extends `base.html.j2`; what it prints as cards, facts and numbers is made here,
so that a card or an interval reads the same whichever benchmark or training it is of.

Addresses inside a report: every heading, figure and table can be linked to, as `report.html#tracking-figure-1`.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from math import isfinite
from typing import Any

from airworthy import __version__
from airworthy.tasks import TrackingProtocol
from airworthy.tasks.declared_metrics import metric

__all__ = [
    "DASH",
    "TEMPLATE_FILE",
    "anchored",
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


_PART = re.compile(
    r"(?P<heading><h(?P<level>[23])(?P<given>[^>]*)>(?P<text>.*?)</h(?P=level)>)"
    r"|<(?P<tag>figure|table)(?P<own>[^>]*)>"
    r"|(?P<end></figcaption>|</figure>|</table>(?:</div>)?)"
    r"|(?P<raw><(?P<element>script|style|svg)\b.*?</(?P=element)>)",
    re.DOTALL,
)
_ID = re.compile(r'\bid="([^"]+)"')
_LETTERS = re.compile(r"[^a-z0-9]+")
# Ours: an address is read and typed, and a heading may be a sentence.
_LENGTH = 40


def anchored(page: str) -> str:
    """Give headings, figures and tables of an HTML page ids, where they have none, and links to themselves.

    Figures and tables are numbered within their heading, so that one more elsewhere does not change their address. Pictures and
    scripts are passed over.
    """
    here, taken = "", set(_ID.findall(page))
    numbers: Counter[str] = Counter()
    open_ids: list[str] = []
    linked: set[str] = set()

    def free(wanted: str) -> str:
        name, number = wanted, 1
        while name in taken:
            number += 1
            name = f"{wanted}-{number}"
        taken.add(name)
        return name

    def given(found: re.Match[str]) -> str:
        nonlocal here
        if found["raw"]:
            return found[0]
        if found["heading"]:
            own = _ID.search(found["given"])
            here = own[1] if own else free(_slug(found["text"]))
            attributes = found["given"] if own else f'{found["given"]} id="{here}"'
            return f"<h{found['level']}{attributes}>{found['text']}{_link(here)}</h{found['level']}>"
        if found["tag"]:
            own = _ID.search(found["own"])
            numbers[here + found["tag"]] += 1
            name = own[1] if own else free(f"{here or 'page'}-{found['tag']}-{numbers[here + found['tag']]}")
            open_ids.append(name)
            return found[0] if own else f'<{found["tag"]}{found["own"]} id="{name}">'
        if not open_ids:
            return found[0]
        if found[0] == "</figcaption>":
            linked.add(open_ids[-1])
            return f"{_link(open_ids[-1])}{found[0]}"
        name = open_ids.pop()
        return found[0] if name in linked else f"{found[0]}{_link(name, ' below')}"

    return _PART.sub(given, page)


def _slug(text: str) -> str:
    """Return a heading as an address: small letters and figures, joined by hyphens."""
    plain = html.unescape(re.sub(r"<[^>]*>", "", text)).lower()
    return _LETTERS.sub("-", plain).strip("-")[:_LENGTH].rstrip("-") or "part"


def _link(name: str, style: str = "") -> str:
    return f'<a class="anchor{style}" href="#{name}" aria-label="Link to this">#</a>'


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
    """Return `wind_speed_m_s` as "wind speed [m/s]"; a name without a unit only loses its underscores."""
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
    # A line breaks between "11 min" and "30 s", where both are wider than the card, and never before a unit.
    whole = re.sub(r"(?<=\d) (?=[a-z\u00b0%])", "\N{NO-BREAK SPACE}", value)
    return {"label": label, "value": whole, "unit": unit if value != DASH else "", "below": below, "tone": tone}


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
