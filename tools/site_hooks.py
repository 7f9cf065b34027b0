"""Hooks of the documentation's site: pages that are made from the code, and links that leave `docs/`.

mkdocs calls `on_config`, `on_files` and `on_page_markdown`. The API gets one page per room, in the rooms' order; the
changelog and the examples are taken from where they are, and links to them lead there.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "src" / "airworthy"
PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md")
"""Pages outside `docs/` that are pages of the site."""
SECTIONS = {"start": "Start", "tutorials": "Tutorials", "howto": "How-to", "results": "Results", "benchmarks": "Benchmarks"}
"""Section of the navigation that a folder's pages belong to; all others are concepts."""
LINK = re.compile(r"(\[[^\]\[]*\])\(([^)#\s:]+)(#[^)\s]*)?\)")


def rooms() -> tuple[str, ...]:
    """Give the package's rooms that exist, ground floor first, read without importing the package."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "ROOMS":
            named = ast.literal_eval(node.value)
            return tuple(room for room in named if (PACKAGE / room / "__init__.py").exists())
    raise SystemExit("src/airworthy/__init__.py: expected an assignment of ROOMS; tools/site_hooks.py reads the rooms there.")


def first_sentence(room: str) -> str:
    """Give the first line of a room's docstring."""
    text = (PACKAGE / room / "__init__.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(text)) or room).splitlines()[0]


def api_pages() -> dict[str, str]:
    """Give the pages of the API: path under `docs/` to Markdown."""
    table = "\n".join(f"| [`airworthy.{room}`]({room}.md) | {first_sentence(room)} |" for room in rooms())
    pages = {"api/index.md": f"# API\n\n{API}\n\n| room | |\n| --- | --- |\n{table}\n\n::: airworthy\n"}
    return pages | {f"api/{room}.md": f"# airworthy.{room}\n\n::: airworthy.{room}\n" for room in rooms()}


API = """The front door is `import airworthy`; one room of the package per subject behind it. A page shows a room's face: what
its `__init__` exports. Frames and units are those of the [conventions](../concepts/conventions.md), the order of the rooms and
the reasons for their walls are in [architecture](../architecture.md)."""


def pages_named(entries: Any) -> set[str]:
    """Give all pages that a part of the navigation names, however deep."""
    if isinstance(entries, str):
        return {entries}
    if isinstance(entries, dict):
        entries = list(entries.values())
    return {page for entry in entries for page in pages_named(entry)}


def on_config(config: Any) -> Any:
    """Add the rooms' pages to the navigation, and pages that it does not name at the end of their folder's section."""
    sections = {title: entries for section in config.nav for title, entries in section.items()}
    sections["API"].extend({room: f"api/{room}.md"} for room in rooms())
    named = pages_named(config.nav)
    for path in sorted((REPOSITORY / "docs").rglob("*.md")):
        page = path.relative_to(REPOSITORY / "docs").as_posix()
        if page not in named:
            sections[SECTIONS.get(page.partition("/")[0], "Concepts")].append(page)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add pages of the API, and those outside `docs/`; examples become text files beside their page."""
    from mkdocs.structure.files import File

    for name, text in api_pages().items():
        files.append(File.generated(config, name, content=text))
    outside = [*PAGES, *(f"examples/{path.name}" for path in sorted((REPOSITORY / "examples").glob("*.py")))]
    for name in outside:
        files.append(File.generated(config, name, abs_src_path=str(REPOSITORY / name)))
    return files


def led(label: str, target: str, anchor: str, source: str, held: set[str]) -> str | None:
    """Lead a link of the repository to the same file in the site.

    Args:
        label: what the link shows, as Markdown.
        target: what it leads to, relative to the file in the repository.
        anchor: the heading, with its `#`, or nothing.
        source: the page's path in the site, which is its path in the repository less `docs/`.
        held: paths of all files of the site.

    Returns:
        The link as Markdown; label and path in the repository where the site does not hold the file; None where the target is
        no file at all, which is for mkdocs to say.
    """
    base = REPOSITORY / ("" if source in PAGES else "docs") / Path(source).parent
    found = Path(os.path.normpath(base / target))
    if not found.is_relative_to(REPOSITORY) or not found.exists():
        return None
    relative = found.relative_to(REPOSITORY).as_posix()
    page = "index.md" if relative == "README.md" else relative.removeprefix("docs/")
    if page not in held:
        return f"{label.strip('[]')} (`{relative}`)"
    return f"{label}({os.path.relpath(page, Path(source).parent)}{anchor})"


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lead links of the repository to pages of the site; what the site does not hold is named instead."""
    source = page.file.src_uri
    if source.startswith("api/"):
        return markdown
    held = {file.src_uri for file in files}
    return LINK.sub(lambda found: led(found[1], found[2], found[3] or "", source, held) or found[0], markdown)
