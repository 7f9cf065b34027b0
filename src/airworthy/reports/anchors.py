"""Addresses inside a report: every heading, figure and table can be linked to, as `report.html#tracking-figure-1`."""

from __future__ import annotations

import html
import re
from collections import Counter

__all__ = ["anchored"]

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
