"""Pages of reports: a package's own template in the style that all of them share."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from airworthy import __version__

__all__ = ["TEMPLATE_FILE", "page_of"]

TEMPLATE_FILE = "report.html.j2"


def page_of(package: str, **content: Any) -> str:
    """A report as one HTML file that loads nothing.

    Args:
        package: Whose `report.html.j2` it is ("airworthy.learning.gates").
        content: What the template names, all of it; `css` and `version` are there besides. Text is escaped.
    """
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(files(package).joinpath(TEMPLATE_FILE).read_text("utf-8"))
    css = Markup(files("airworthy.evaluation").joinpath("report.css").read_text("utf-8"))  # noqa: S704
    return template.render(css=css, version=__version__, **content)
