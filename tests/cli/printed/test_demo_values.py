"""What the demo's page says of its parts, from summaries written here, and the commands that it calls: `airworthy.cli.demo`."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.transcripts import Transcript

from airworthy import __version__
from airworthy.benchmarks.tracking import figures as tracking_figures
from airworthy.cli import demo
from airworthy.cli.demo import page
from airworthy.cli.demo.page import DemoManifest, DemoPart
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.tasks.declared_metrics import CONDITION

FILES = Path(__file__).parent / "snapshots" / "demo"
Patch = pytest.MonkeyPatch


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Patch) -> Transcript:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(page, "describe_machine", lambda: {"processor": "one", "system": "two", "python": "", "more": "three"})
    return Transcript(capsys, {__version__: "VERSION"})


# ---- parts ------------------------------------------------------------------------------------------------------------------


def test_the_parts_are_commands(told: Transcript, monkeypatch: Patch) -> None:
    def parts(*given: Any) -> None:
        for part in page.parts_of(*given):
            print(f"{part.name}: {part.title}{': ' + part.left_out if part.left_out else ''}\n  {part.command_line}")

    for there in (True, False):
        monkeypatch.setattr(page, "find_spec", lambda name, there=there: object() if there else None)
        monkeypatch.setattr(page, "_has_statues", lambda there=there: there)
        for quick in (False, True):
            told.run(f"there: {there}, quick: {quick}", lambda quick=quick: parts(Path("out"), 5, 3, "cpu", quick))
    told.check(FILES / "parts.txt")


@pytest.mark.parametrize("case", ["all"])
def test_statues_are_there_where_their_splats_are(case: str, tmp_path: Path, monkeypatch: Patch) -> None:
    import airworthy.scenes as scenes

    def found(folder: Path | None, error: Exception | None = None) -> bool:
        def scene(name: str) -> None:
            if error is not None:
                raise error

        monkeypatch.setattr(scenes, "scene", scene)
        monkeypatch.setattr(page, "data_dir", lambda: folder)
        return page._has_statues()

    (tmp_path / "data" / "splats").mkdir(parents=True)
    assert found(tmp_path / "data") is True
    assert found(tmp_path) is False
    assert found(None) is False
    assert found(tmp_path / "data", AirworthyError("damaged")) is False


# ---- running ----------------------------------------------------------------------------------------------------------------


def run_demo(told: Transcript, patch: Patch, words: str, ends: list[Any], left_out: str = "") -> None:
    """Run the demo with three parts that end so."""
    names = ("hover", "expert", "statues")
    parts = [DemoPart(name, f"The {name}", ("fly", "--seed", "1", "a b"), left_out * (name == "statues")) for name in names]
    given = iter(ends)

    def run(part: DemoPart) -> int:
        (Path(words.split()[words.split().index("--out") + 1]) / part.name).mkdir(exist_ok=True)
        print(f"printed by {part.name}")
        code: int = told.fake(f"run {part.name}", next(given))()
        return code

    patch.setattr(DemoPart, "run", run)
    patch.setattr(demo, "parts_of", lambda *given: told.fake("parts_of")(*given) or parts)
    told.run(f"demo {words}", lambda: demo.main(words.split()))


def test_running(told: Transcript, monkeypatch: Patch) -> None:
    monkeypatch.setattr(page, "write_page", told.fake("write_page", Path("out/report.html")))
    monkeypatch.setattr(page.time, "perf_counter", iter(range(1000)).__next__)
    run_demo(told, monkeypatch, "--out one", [0, 0], "No splats.")
    run_demo(told, monkeypatch, "--out one", [], "No splats.")
    run_demo(told, monkeypatch, "--out two --json --quick --flights 2 --seed 3", [0, 7])
    run_demo(told, monkeypatch, "--out two --json --quick --flights 2 --seed 3", [0, 0])
    run_demo(told, monkeypatch, "--out three", [0, KeyboardInterrupt()])
    run_demo(told, monkeypatch, "--out four", [AirworthyError("It cannot.")])
    monkeypatch.setattr(page, "write_page", told.fake("write_page", KeyboardInterrupt()))
    run_demo(told, monkeypatch, "--out five", [0, 0, 0])
    for words in ("--flights 0", "--flights 10001", "--seed -1"):
        told.run(f"demo {words}", lambda words=words: demo.main(words.split()))
    told.run("stopped", lambda: [demo._stopped([]), demo._stopped([signal.SIGTERM])])
    told.check(FILES / "running.txt")


def test_manifests(told: Transcript) -> None:
    Path("out").mkdir()
    told.run("new", lambda: DemoManifest.open(Path("out"), ["fly --a 1"], ["fly --b 2"]).described())
    first = DemoManifest.open(Path("out"), ["fly --a 1", "train x"], ["fly --b 2"])
    first.seconds["hover"] = 1.5
    first.keep("hover")
    first.keep("data")
    first.keep("hover")
    first.leave_out("statues", "No splats.")
    told.run("kept", first.described)
    told.run("has", lambda: [first.has(name) for name in ("hover", "statues")])
    told.run("again", lambda: DemoManifest.open(Path("out"), ["fly --a 1", "train x"], ["c"]).described())
    for identity in (["fly --a 2", "train x"], ["fly --a 1"], ["fly --a 1", "train x y"], []):
        told.run(f"{identity}", lambda identity=identity: DemoManifest.open(Path("out"), identity, []))
    path = Path("out/demo.json")
    found = json.loads(path.read_text())
    for name, text in (
        ("of another version", json.dumps({**found, "version": "0.0"})),
        ("without parts", json.dumps({key: value for key, value in found.items() if key != "made"})),
        ("without times", json.dumps({**found, "seconds": {"hover": "x"}})),
        ("no object", "[]"),
        ("no JSON", "{"),
    ):
        path.write_text(text)
        told.run(name, lambda: DemoManifest.open(Path("out"), ["fly --a 1", "train x"], []))
    told.check(FILES / "manifests.txt")


# ---- the page ---------------------------------------------------------------------------------------------------------------


def entry(condition: str, good: int, flights: int, error: float | None, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"condition": condition, "title": condition.title(), "pilot": page.POLICY, "flights": flights}
    found |= {"family": "semi_kinematic", "published": None, "classes": {"success": good, "success_recovered": 0}}
    found |= {name: {"mean": error, "low": None} for name in CONDITION}
    return found | {"collisions_per_m_pooled": error} | more


REAL = {"tracking_error_m": 0.25, "proximity_percent": 50.0, "collisions_per_m": None}
SUMMARY = {
    "aggregate": [
        entry("baseline", 9, 10, 0.12345, published=REAL),
        entry("wind", 3, 5, None, classes={"success": 3, "success_recovered": 2}),
        entry("payload", 5, 5, 0.5, pilot="mpc"),
        entry("all:rigid", 17, 20, 0.25),
    ],
    "flights": [],
}
FLIGHT = {
    "aggregate": {
        "tracking_error_m": {"mean": 0.0625},
        "speed_max_m_s": {"mean": 2.345},
        "outcomes": {"success": 1, "success_recovered": 2, "partial": 0},
    }
}
HOVER = {"median_error_m": 0.0123, "training_wall_s": 0.987, "training_cpu_s": 1.5, "kept_percent": 99.96, "flights": 1234}
HOVER |= {"vehicle": "carl", "env_steps": 12_345_678, "baselines": [{"name": "MPC", "verdict": "Better."}, {"reason": "none"}]}
SIGHT: dict[str, Any] = {"fit": True, "verdict": "yes, since.", "pairs": 12345, "rounds": 1, "training_wall_s": 200.0}
SIGHT |= {"seconds": {"evaluate_s": 30.0}}
SIGHT["steps"] = [
    {"pairs": 10000, "step_s": 100.0},
    {"flights": 8, "alone": 7, "tracking_error_m": 0.125, "helped_percent": 0.5, "pairs": 12345, "step_s": 60.0},
]


def test_what_parts_came_to(told: Transcript, monkeypatch: Patch) -> None:
    from airworthy.learning.gradient import report as hover_report
    from airworthy.learning.visuomotor import report as sight_report

    def lay(name: str, content: Any) -> Path:
        folder = Path(name.split("/", maxsplit=1)[0])
        folder.mkdir(exist_ok=True)
        Path(name).write_text(content if isinstance(content, str) else json.dumps(content))
        return folder

    monkeypatch.setattr(tracking_figures, "figure_published", lambda entries, series: f"<svg>{len(entries)}</svg>")
    monkeypatch.setattr(tracking_figures, "series_of", lambda flights: [])
    monkeypatch.setattr(hover_report, "figure_cells", lambda item: [str(item.get("name"))])
    curves = [("one", "<svg>1</svg>"), ("none", ""), ("two", "<svg>2</svg>"), ("three", "<svg>3</svg>")]
    told.run("evidence", lambda: page._page_evidence(lay("evidence/summary.json", SUMMARY)))
    told.run("no baseline", lambda: page._page_evidence(lay("bare/summary.json", {"aggregate": [], "flights": []})))
    told.run("no object", lambda: page._json(lay("list/summary.json", []) / "summary.json"))
    monkeypatch.setattr(page, "read_summary", lambda folder: FLIGHT)
    for film in (None, {"beside": "", "source": "a.mp4"}, {"beside": "b.mp4", "source": "b.mp4"}):
        monkeypatch.setattr(page, "film_content", lambda folder, summary, film=film: None if film is None else dict(film))
        told.run(f"flown, {film}", lambda: page._flown(Path("expert")))
    told.run("hover", lambda: page._page_hover(lay("hover/summary.json", HOVER)))
    told.run("hover, never", lambda: page._page_hover(lay("hover/summary.json", {**HOVER, "median_error_m": None})))
    monkeypatch.setattr(sight_report, "learning_curves", told.fake("curves", curves))
    monkeypatch.setattr(page, "_expert_data", told.fake("expert data", {"sheet": "s"}))
    lay("sight/metrics.jsonl", '{"a": 1}\n{"a": 2}\n')
    told.run("sight", lambda: page._page_sight(lay("sight/summary.json", SIGHT)))
    told.check(FILES / "content.txt")


def test_a_part_that_is_damaged(told: Transcript) -> None:
    manifest = DemoManifest(Path(), [], [], ["data"])
    told.run("not made", lambda: page._part_content(told.fake("tell"), Path(), "hover", manifest))
    told.run("made", lambda: page._part_content(told.fake("tell", {"a": 1}), Path("out"), "data", manifest))
    for error in (AssetError("'x' is damaged."), KeyError("a"), TypeError("b"), ValueError("c"), IndexError(), StopIteration()):
        told.run(
            type(error).__name__, lambda error=error: page._part_content(told.fake("t", error), Path("o"), "data", manifest)
        )
    told.run("ours", lambda: page._part_content(told.fake("t", OSError("full")), Path("o"), "data", manifest))
    told.check(FILES / "damaged.txt")


def content(**parts: Any) -> dict[str, Any]:
    names = ("hover", "hover_flight", "expert", "sight", "evidence", "statues", "policy")
    return {**dict.fromkeys(names), **parts}


FLOWN = {"good": 9, "count": 10, "conditions": {"Baseline": (5, 5), "Wind": (4, 5)}}
EVIDENCE = {"pilots": {"visuomotor": FLOWN}, "first": "visuomotor", "error": "0.12", "published": REAL}


def test_the_top_of_the_page(told: Transcript) -> None:
    hover, expert = {"seconds": "0.99", "kept": "99.9", "error": "1.2"}, {"error": "0.05", "film": None}
    sight = {"fit": True, "verdict": "yes, since.", "minutes": "4.9", "pairs": "1,234"}
    for name, given in (
        ("nothing", content()),
        ("all", content(hover=hover, expert=expert, sight=sight, evidence=EVIDENCE)),
        (
            "less",
            content(
                sight={**sight, "fit": False},
                evidence={**EVIDENCE, "published": None},
                statues={"pilots": {"svnet:hall": FLOWN}},
            ),
        ),
    ):
        told.run(f"cards: {name}", lambda given=given: page._cards(given))
        told.run(f"verdict: {name}", lambda given=given: page._verdict(given))
        told.run(f"films: {name}", lambda given=given: page._films(given))
    told.check(FILES / "top.txt")


def test_rows_and_words(told: Transcript) -> None:
    manifest = DemoManifest(Path(), [], [], ["a", "b"], {"a": 12.3, "b": 123.4, "c": 5.0})
    parts = [
        DemoPart(name, f"Part {name}", ("fly", "x y"), left) for name, left in (("a", ""), ("b", "left"), ("c", ""), ("d", ""))
    ]
    told.run("parts", lambda: page._parts(parts, manifest))
    told.run("hardware", lambda: page._hardware(manifest))
    for seconds in (0.0, 99.4, 99.99, 100.0, 119.9, 120.0, 3599.9, 3661.0):
        told.run(f"{seconds} s", lambda seconds=seconds: page._duration(seconds))
    told.run("single", lambda: page._single(SUMMARY))
    told.run("rows", lambda: [page._row(one) for one in page._single(SUMMARY)])
    told.run("no baseline", lambda: page._changed(["a b", "c"], ["a b", "c"], __version__))
    told.check(FILES / "rows.txt")


def test_the_whole_page(told: Transcript, monkeypatch: Patch) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr(page, "page_of", lambda package, template, **content: given.update(content) or f"{package} {template}")
    film = {"beside": "", "source": "a"}
    tells = {"_page_hover": {"seconds": "1", "kept": "2", "error": "3"}, "_flown": {"film": film, "error": "4"}}
    tells |= {"_page_sight": {"fit": True, "verdict": "yes.", "minutes": "5", "pairs": "6"}, "_page_evidence": EVIDENCE}
    for name, tell in tells.items():
        monkeypatch.setattr(page, name, told.fake(name, tell))
    for made in ([], list(page.PARTS)):
        manifest = DemoManifest(Path(), [], [], made, {"hover": 60.0, "data": 61.0})
        told.run(f"{len(made)} parts", lambda manifest=manifest: page.write_page(Path(), [], manifest))
        for key in ("total", "beside", "metric_heads", "real_heads", "hardware", "verdict"):
            told.run(key, lambda key=key: given[key])
        told.run("made", lambda: [name for name, value in given.items() if isinstance(value, dict)])
        film["beside"] = "yes"
    told.run("written", lambda: Path("report.html").read_text())
    told.check(FILES / "page.txt")
