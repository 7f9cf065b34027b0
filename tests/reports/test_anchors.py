"""Addresses inside a report."""

from __future__ import annotations

import re
from pathlib import Path

from airworthy.reports.page import anchored

PAGE = """<h1>T</h1><h2 id="near">How <b>close</b></h2><figure><svg id="s"><text>1</text></svg>
<figcaption>One.</figcaption></figure>
<figure class="x"><img></figure><h3>Flight by flight</h3><div class="scroll"><table class="n"><tr><th>a</th></tr></table></div>
<h3>Flight by flight</h3><table id="own"></table><script>"<table></table>"</script>"""


def test_headings_figures_and_tables_have_addresses_of_their_own() -> None:
    page = anchored(PAGE)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert ids == ["near", "near-figure-1", "s", "near-figure-2", "flight-by-flight", "flight-by-flight-table-1",
                   "flight-by-flight-2", "own"]  # fmt: skip
    links = re.findall(r'href="#([^"]+)"', page)
    assert sorted(links) == sorted(set(ids) - {"s"})
    assert '<figure class="x" id="near-figure-2"><img></figure><a class="anchor below" href="#near-figure-2"' in page
    assert "One.<a" in page
    assert '<script>"<table></table>"</script>' in page
    assert re.sub(r'<a class="anchor.*?</a>| id="[^"]*"', "", page) == re.sub(r' id="[^"]*"', "", PAGE)


def test_every_table_of_a_report_can_scroll(repository: Path) -> None:
    templates = list((repository / "src" / "airworthy").rglob("*.html.j2"))
    assert len(templates) > 10
    for template in templates:
        text = template.read_text(encoding="utf-8")
        assert len(re.findall(r"<table", text)) == len(re.findall(r'<div class="scroll">\s*<table', text)), template
