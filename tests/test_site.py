"""The site of the documentation: every page is in its navigation, and what strangers look for is two clicks away."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import tomllib
import types
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

import airworthy

REPOSITORY = Path(__file__).resolve().parents[1]
DOCS = REPOSITORY / "docs"
NAVIGATION = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PATHS = re.compile(r"(?<![\w/.-])((?:src/airworthy|tests)/[\w./*-]*[\w*])")
"""Of the repository, wherever they stand."""
IN_ROOMS = re.compile(r"`((?:[a-z_]+/)+\w+\.(?:py|toml|h|html|css|js|j2))`")
"""Below the package; those whose first folder is no room are a reader's own."""


HOOKS = tool("site_hooks")
PICTURE = tool("rooms_picture")
EXISTING = tuple(room for room in airworthy.ROOMS if (REPOSITORY / "src/airworthy" / room / "__init__.py").exists())


def test_every_entry_of_the_navigation_is_a_page_and_stands_there_once() -> None:
    named = re.findall(r"([\w/]+\.md)", NAVIGATION)
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert len(named) == len(set(named))
    assert set(named) <= pages | set(HOOKS.PAGES) | {"api/index.md"}


def test_pages_that_the_navigation_does_not_name_join_the_section_of_their_folder() -> None:
    titles = re.findall(r"^  - ([\w-]+):", NAVIGATION, re.MULTILINE)
    nav = [{title: [{"deep": ["howto/video.md"]}] if title == "How-to" else []} for title in titles]
    HOOKS.on_config(types.SimpleNamespace(nav=nav))
    found = {title: entries for section in nav for title, entries in section.items()}
    assert "howto/scenes.md" in found["How-to"]
    assert "howto/video.md" not in found["How-to"]
    assert "architecture.md" in found["Concepts"]
    assert [next(iter(entry)) for entry in found["API"]] == list(EXISTING)
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert HOOKS.pages_named(nav) == pages | {f"api/{room}.md" for room in EXISTING}


@pytest.mark.parametrize(
    ("page", "heading"),
    [
        ("howto/vehicles.md", "## Add your own vehicle"),
        ("howto/sensors.md", "## Adding one"),
        ("howto/scenes.md", "## Add your own"),
        ("howto/add_planner.md", "# Add a planner"),
        ("howto/add_metric.md", "# Add a metric"),
    ],
)
def test_what_is_added_is_two_clicks_from_the_start(page: str, heading: str) -> None:
    reached = {"index.md"}
    for _ in range(2):
        for name in list(reached):
            links = re.findall(r"\]\(([^)#\s]+\.md)", (DOCS / name).read_text(encoding="utf-8"))
            there = {os.path.normpath(Path(name).parent / link) for link in links}
            reached |= {place for place in there if (DOCS / place).exists() and not place.startswith("..")}
    assert page in reached
    assert heading in (DOCS / page).read_text(encoding="utf-8").splitlines()


def test_the_api_has_a_page_for_every_room() -> None:
    assert HOOKS.rooms() == PICTURE.rooms() == EXISTING
    pages = HOOKS.api_pages()
    assert set(pages) == {"api/index.md", *(f"api/{room}.md" for room in EXISTING)}
    assert "::: airworthy.control" in pages["api/control.md"]


HELD = {"index.md", "concepts/runs.md", "examples/README.md", "examples/01_hover.py", "howto/video.md"}


@pytest.mark.parametrize(
    ("target", "source", "led"),
    [
        ("../concepts/runs.md", "howto/video.md", "[x](../concepts/runs.md#a)"),
        ("../../examples/01_hover.py", "concepts/runs.md", "[x](../examples/01_hover.py#a)"),
        ("01_hover.py", "examples/README.md", "[x](01_hover.py#a)"),
        ("docs/concepts/runs.md", "CHANGELOG.md", "[x](concepts/runs.md#a)"),
        ("../../README.md", "concepts/runs.md", "[x](../index.md#a)"),
        ("../../Makefile", "concepts/runs.md", "x (`Makefile`)"),
        ("nowhere.md", "concepts/runs.md", None),
        ("../../../../etc/hosts", "concepts/runs.md", None),
    ],
)
def test_links_of_the_repository_lead_to_the_same_file_in_the_site(target: str, source: str, led: str | None) -> None:
    assert HOOKS.led("[x]", target, "#a", source, HELD) == led


def test_rooms_stand_above_what_they_import_and_implied_imports_are_not_drawn() -> None:
    graph = {"a": set(), "b": {"a"}, "c": {"a", "b"}, "d": {"a"}}
    assert PICTURE.floors(graph) == {"a": 0, "b": 1, "c": 2, "d": 1}
    assert PICTURE.direct(graph) == [("b", "a"), ("c", "b"), ("d", "a")]


def test_the_picture_of_the_rooms_shows_the_code() -> None:
    assert PICTURE.main(["--check", str(DOCS / "images" / "rooms.svg")]) == 0, (
        "python tools/rooms_picture.py docs/images/rooms.svg"
    )


def test_the_table_of_rooms_is_in_their_order() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8").partition("## Rooms")[2].partition("\n## ")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == EXISTING


def test_make_docs_installs_what_the_extra_names() -> None:
    extra = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]["docs"]
    line = re.search(r"--constraint constraints-docs.txt (mkdocs.*)", (REPOSITORY / "Makefile").read_text())
    assert line is not None
    assert line[1].replace('"', "").split() == [re.split(r"[<>=]", name)[0] for name in extra]


@pytest.mark.parametrize("page", sorted(path.relative_to(DOCS).as_posix() for path in (DOCS / "tutorials").glob("*.md")))
def test_python_of_the_tutorials_runs(page: str) -> None:
    for code in re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        ast.parse(code)
        exec(compile(code, page, "exec"), {})


def stale_paths(text: str) -> list[str]:
    """Paths of a document to files of the source or the tests that do not exist; a word in capitals stands for any name."""
    named = [path for path in PATHS.findall(text) if not re.search(r"/[A-Z]{3,}", path)]
    stale = [path for path in named if not any(REPOSITORY.glob(path))]
    inside = [path for path in IN_ROOMS.findall(text) if path.partition("/")[0] in airworthy.ROOMS]
    return stale + [
        path for path in inside if not any((top / path).exists() for top in (REPOSITORY / "src/airworthy", REPOSITORY))
    ]


def test_paths_that_documents_name_exist() -> None:
    """Not those of CHANGELOG.md, which tells what was."""
    assert stale_paths(
        "`src/airworthy/no.toml`, `gates/no.py`, `yard/scene.toml`, `src/airworthy/planners/NAME/`, `tests/`"
    ) == [
        "src/airworthy/no.toml",
        "gates/no.py",
    ]
    documents = [*DOCS.rglob("*.md"), REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md"]
    found = {str(page.relative_to(REPOSITORY)): stale_paths(page.read_text(encoding="utf-8")) for page in documents}
    assert {page: paths for page, paths in found.items() if paths} == {}


def stale_names(text: str) -> list[str]:
    """Dotted names of a document, from a room on, that no file of the source has: `sensors.camera.Nothing`."""
    return [name for name in DOTTED.findall(text) if not name.endswith(FILES) and not declared(name.split("."))]


def declared(parts: list[str]) -> bool:
    """Whether a room, a file or what stands in it has this name; fields that a class inherits count as there."""
    place = REPOSITORY / "src" / "airworthy"
    while parts and (place / parts[0] / "__init__.py").exists():
        place, parts = place / parts[0], parts[1:]
    if parts and (place / f"{parts[0]}.py").exists():
        file, parts = place / f"{parts[0]}.py", parts[1:]
    else:
        file = place / "__init__.py"
    inherits, body = False, ast.parse(file.read_text(encoding="utf-8")).body
    for k, name in enumerate(parts):
        found = bound(body).get(name)
        if found is None:
            # What a class has of others is not looked for.
            return k > 0 and inherits
        if not isinstance(found, ast.ClassDef):
            return True
        inherits, body = bool(found.bases), found.body
    return True


def bound(body: Sequence[ast.AST]) -> dict[str, ast.AST]:
    """Names that statements bind, with what binds them."""
    found: dict[str, ast.AST] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0]: node for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {name.id: node for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        elif isinstance(node, ast.If | ast.Try):
            found |= bound(node.body) | bound(node.orelse)
    return found


ROOMS_THERE = [room for room in airworthy.ROOMS if (REPOSITORY / "src" / "airworthy" / room).is_dir()]
DOTTED = re.compile(rf"`(?:airworthy\.)?((?:{'|'.join(ROOMS_THERE)})(?:\.[A-Za-z_]\w*)+)(?:\([^`]*\))?`")
FILES = (".json", ".toml", ".ply", ".py", ".html", ".parquet")


def test_names_of_the_package_that_documents_name_exist() -> None:
    """Not those of CHANGELOG.md, which tells what was."""
    wrong = ["control.allocation.holds_yaw", "sensors.Nothing", "simulation.config.SimulatorConfig.nothing"]
    right = ["control.effectors.holds_yaw", "gates.read_labels", "simulation.SimulatorConfig", "core.jobs", "gates.json"]
    right += ["simulation.config.SimulatorConfig.specialized", "trajectories.course(name)"]
    assert stale_names(" ".join(f"`{room}{name}`" for name in wrong + right for room in ("airworthy.", ""))) == [
        name for name in wrong for _ in range(2)
    ]
    documents = [*DOCS.rglob("*.md"), REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md"]
    found = {str(page.relative_to(REPOSITORY)): stale_names(page.read_text(encoding="utf-8")) for page in documents}
    assert {page: names for page, names in found.items() if names} == {}


CATALOGUES = {"vehicle": airworthy.vehicle, "course": airworthy.course, "scene": airworthy.scene}


def test_what_docstrings_show_and_name_exists(repository: Path) -> None:
    """The API's pages print docstrings: calls of the front door name things of the catalogues, pages are where it says."""
    calls, pages = [], set()
    for path in sorted((repository / "src" / "airworthy").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        pages |= {page for page in re.findall(r"\bdocs/[\w/.-]+\.md", text) if not (repository / page).exists()}
        # Statements of Python itself cannot begin like this: nothing imports the package under its short name here.
        code = "\n".join(line.strip() for line in text.splitlines() if line.startswith("    aw."))
        calls += [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    assert pages == set()
    named = 0
    for call in calls:
        if not isinstance(call.func, ast.Attribute) or ast.unparse(call.func.value) != "aw":
            continue
        call_names = {keyword.arg: keyword.value for keyword in call.keywords}
        if call.func.attr == "fly" and call.args:
            call_names["vehicle"] = call.args[0]
        for kind, find in CATALOGUES.items():
            if kind in call_names:
                assert find(ast.literal_eval(call_names[kind])) is not None
                named += 1
    assert named >= 2


def test_the_site_searches_without_a_server_and_reaches_no_network() -> None:
    settings = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")
    assert "\n  - offline" in settings
    # The plugin looks for this name before it adds the address of one on the network.
    assert "polyfills: [assets/iframe-worker.js]" in settings
    for name in re.findall(r"assets/[\w.-]+", settings):
        assert (DOCS / name).is_file()
        assert "http" not in (DOCS / name).read_text(encoding="utf-8")
