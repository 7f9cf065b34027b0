"""The demo: parts that are commands of their own, a journal that goes on, a page that says what there is."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from airworthy.cli.demo import page as journals
from airworthy.cli.demo import page as makers
from airworthy.cli.demo.page import PARTS, DemoPart, parts_of, write_page
from airworthy.cli.main import COMMANDS, main
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.viewer.subjects import load_subject

Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the parts that ran, which do nothing else here; torch and statues are there."""
    found: list[str] = []

    def run(part: DemoPart) -> int:
        found.append(part.name)
        Path(part.tokens[part.tokens.index("--out") + 1]).mkdir(parents=True, exist_ok=True)
        return 0

    monkeypatch.setattr(DemoPart, "run", run)
    monkeypatch.setattr(makers, "find_spec", lambda name: object())
    monkeypatch.setattr(makers, "_has_statues", lambda: True)
    monkeypatch.setattr("airworthy.cli.demo.page.write_page", lambda folder, parts, journal: folder / "report.html")
    return found


def test_parts_are_commands_that_each_can_be_called(tmp_path: Path) -> None:
    parts = parts_of(tmp_path / "demo", 5, 3, "cpu")
    assert [part.name for part in parts] == list(PARTS)
    for part in parts:
        tokens = shlex.split(part.command_line)
        assert tokens[0] == "airworthy"
        assert tokens[1] in COMMANDS
        assert tokens[tokens.index("--out") + 1] == str(tmp_path / "demo" / part.name)
        assert tokens[tokens.index("--seed") + 1] == "3"
        # What follows is read by the command itself: an option that it does not know would end here, before any work.
        assert main([tokens[1], *([tokens[2]] if tokens[1] == "train" else []), "--help"]) == 0


def test_the_evidence_is_the_published_table_of_rigid_drones(tmp_path: Path) -> None:
    command = next(part.tokens for part in parts_of(tmp_path, 5, 0, "cpu") if part.name == "evidence")
    text = " ".join(command)
    assert f"--pilot svnet:{tmp_path / 'visuomotor'} mpc" in text
    assert "--family rigid" in text
    assert "--conditions table_2 --flights 5" in text


def test_all_parts_run_once(ran: list[str], capsys: Output) -> None:
    assert main(["demo", "--out", "demo"]) == 0
    assert ran == list(PARTS)
    printed = capsys.readouterr().out
    assert re.findall(r"^\[(\d)/7\]", printed, re.MULTILINE) == list("1234567")
    assert "airworthy view demo" in printed
    assert main(["demo", "--out", "demo"]) == 0
    assert ran == list(PARTS)
    found = json.loads(Path("demo/demo.json").read_text())
    assert found["made"] == list(PARTS)
    assert set(found["seconds"]) == set(PARTS)


def test_a_stopped_demo_goes_on(ran: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    whole = DemoPart.run
    monkeypatch.setattr(DemoPart, "run", lambda part: 130 if part.name == "visuomotor" else whole(part))
    assert main(["demo", "--out", "demo"]) == 130
    assert ran == ["hover", "hover_flight", "expert"]
    assert "stopped in part 4 of 7" in capsys.readouterr().err
    monkeypatch.setattr(DemoPart, "run", whole)
    assert main(["demo", "--out", "demo", "--json"]) == 0
    assert ran == list(PARTS)
    found = json.loads(capsys.readouterr().out)
    assert found["made"] == list(PARTS)
    assert found["interrupted"] is False


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_anywhere_in_a_part_stops_the_demo_in_a_sentence(
    ran: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Output, number: int, code: int
) -> None:
    """Also before the part's own command listens, which then knows nothing of the signal."""

    def stopped(part: DemoPart) -> int:
        signal.raise_signal(number)
        raise AssertionError("it goes on")

    monkeypatch.setattr(DemoPart, "run", stopped)
    assert main(["demo", "--out", "demo"]) == code
    assert capsys.readouterr().err == "The demo stopped in part 1 of 7; the same command goes on there.\n"
    assert json.loads(Path("demo/demo.json").read_text())["made"] == []
    assert signal.getsignal(signal.SIGTERM) is not None


def test_a_signal_while_the_page_is_made(ran: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    def stopped(*_: Any) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr("airworthy.cli.demo.page.write_page", stopped)
    assert main(["demo", "--out", "demo", "--json"]) == 130
    said = capsys.readouterr()
    assert (json.loads(said.out)["report"], json.loads(said.out)["interrupted"]) == (None, True)
    assert said.err.endswith("The demo stopped while its page was made; the same command makes it.\n")


def test_a_part_that_fails_is_named(ran: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    def fail(part: DemoPart) -> int:
        raise AirworthyError("Could not write 'x': No space left on device.")

    monkeypatch.setattr(DemoPart, "run", fail)
    assert main(["demo", "--out", "demo"]) == 2
    said = "Could not write 'x': No space left on device. This was in part 1 of 7; the same command goes on there.\n"
    assert capsys.readouterr().err == said


def test_a_part_whose_folder_is_deleted_is_made_again(ran: list[str]) -> None:
    assert main(["demo", "--out", "demo"]) == 0
    shutil.rmtree("demo/visuomotor")
    assert main(["demo", "--out", "demo"]) == 0
    assert ran == [*PARTS, "visuomotor"]
    assert sorted(json.loads(Path("demo/demo.json").read_text())["made"]) == sorted(PARTS)


def test_a_demo_may_be_moved(ran: list[str], tmp_path: Path) -> None:
    assert main(["demo", "--out", "demo"]) == 0
    Path("demo").rename("größer als zuvor")
    assert main(["demo", "--out", str(tmp_path / "x" / ".." / "größer als zuvor")]) == 0
    assert ran == list(PARTS)


def test_what_a_part_left_and_cannot_be_shown_is_named(tmp_path: Path) -> None:
    parts = parts_of(tmp_path, 1, 0, "cpu", quick=True)
    for name, content in (("evidence", "{}"), ("evidence", "{"), ("visuomotor", "{}")):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "summary.json").write_text(content)
        with pytest.raises(AssetError, match=f"{name}' cannot be shown. .* Delete that folder, and the same command makes"):
            write_page(tmp_path, parts, journals.DemoManifest(tmp_path, [], [part.command_line for part in parts], [name]))
    assert not (tmp_path / "report.html").exists()


def test_what_cannot_be_made_is_left_out_and_said(ran: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    monkeypatch.setattr(makers, "find_spec", lambda name: None)
    monkeypatch.setattr(makers, "_has_statues", lambda: False)
    assert main(["demo", "--out", "demo"]) == 0
    assert ran == ["hover", "hover_flight", "expert", "evidence", "policy"]
    printed = capsys.readouterr().out
    assert printed.count("pip install torch==2.13.0") == 1
    assert "--pilot svnet mpc" in printed
    assert "AIRWORTHY_DATA" in printed


def test_another_demo_in_the_folder_is_refused(ran: list[str], capsys: Output) -> None:
    assert main(["demo", "--out", "demo"]) == 0
    assert main(["demo", "--out", "demo", "--seed", "1"]) == 2
    assert "holds another demo ('0' in its command 'airworthy train', now '1')" in capsys.readouterr().err
    Path("demo/demo.json").write_text('{"commands": 3}')
    assert main(["demo", "--out", "demo"]) == 2
    assert "damaged" in capsys.readouterr().err


def test_the_page_of_an_empty_demo_says_so(tmp_path: Path) -> None:
    parts = parts_of(tmp_path, 1, 0, "cpu", quick=True)
    page = write_page(tmp_path, parts, journals.DemoManifest(tmp_path, [], [part.command_line for part in parts]))
    text = page.read_text()
    assert "has not come to the evidence yet" in text
    assert text.count("<li>") == len(PARTS)
    assert not re.search(r"https?://", text)


def test_what_learns_first_stands_beside_the_controller_it_is_judged_by(tmp_path: Path) -> None:
    commands = {part.name: " ".join(part.tokens) for part in parts_of(tmp_path, 5, 3, "cpu")}
    assert commands["hover"].startswith("train hover --vehicle carl ")
    assert f"--pilot policy:{tmp_path / 'hover'} " in commands["hover_flight"]
    figures = {"flights": 64, "kept_percent": 98.4375, "kept_interval_percent": [91.7, 99.7], "median_error_m": 0.0029}
    absent = ("p95_error_m", "median_settling_s", "median_overshoot_m", "energy_of_hover", "action_jitter", "worst_tilt_deg")
    figures |= dict.fromkeys(absent)
    beside = [
        {"name": "geometric controller", **figures, "median_error_m": 0.0071, "verdict": "The learnt policy wins."},
        {"name": "MPC", "reason": "It cannot fly this vehicle."},
    ]
    learnt = {"vehicle": "carl", "training_wall_s": 0.913, "training_cpu_s": 0.874, "env_steps": 3_200_000, **figures}
    (tmp_path / "hover").mkdir()
    (tmp_path / "hover" / "summary.json").write_text(json.dumps({**learnt, "baselines": beside}))
    parts = parts_of(tmp_path, 1, 0, "cpu", quick=True)
    manifest = journals.DemoManifest(tmp_path, [], [part.command_line for part in parts], ["hover"])
    text = write_page(tmp_path, parts, manifest).read_text()
    assert "0.91 s on this machine (0.87 s of the processor's), 3.2 million steps" in text
    assert "kept 98.44 % of its flights, with a median error of 0.29 cm" in text
    assert 'href="hover/report.html"' in text
    rows = re.findall(r"<tr><td>(.*?)</td>.*?<td>(0\.\d\d)</td>", text)
    assert rows == [("learnt policy", "0.29"), ("geometric controller", "0.71")]
    assert "The learnt policy wins." in text
    assert re.search(r'learnt to hover in</div><div class="value">0.91&nbsp;<small>s', text)
    assert "by its target" not in text


def counted(good: int, count: int, **conditions: tuple[int, int]) -> dict[str, Any]:
    return {"good": good, "count": count, "conditions": conditions}


def test_the_verdict_is_of_what_was_learnt_here_and_tells_pilots_apart() -> None:
    from airworthy.cli.demo.page import _verdict

    pilots = {"visuomotor": counted(7, 10, Baseline=(5, 5), Static=(2, 5)), "mpc": counted(5, 5, Baseline=(5, 5))}
    sight = {"verdict": "yes, since 20 of 20 flights succeeded."}
    statues = {"pilots": {"visuomotor": counted(0, 1, Baseline=(0, 1))}}
    assert _verdict({"sight": sight, "evidence": {"pilots": pilots}, "statues": statues}) == (
        "Fit to fly here: yes, since 20 of 20 flights succeeded. Under 2 conditions 7 of 10 flights of the policy learnt here"
        " succeeded; static 2 of 5. Under 1 conditions 5 of 5 flights of the expert, which knows everything, succeeded. Among"
        " captured statues: 0 of 1 (visuomotor)."
    )
    assert _verdict({"sight": None, "evidence": {"pilots": pilots}, "statues": None}).startswith("Nothing was learnt by sight")


def test_how_it_learnt_to_fly_by_sight_stands_with_its_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(makers, "_expert_data", lambda folder: {"sheet": "data:,", "card": "c.html", "rollouts": "8",
                                                                "expert_pairs": "320", "side": 112})  # fmt: skip
    folder = tmp_path / "visuomotor"
    folder.mkdir()
    flown = {"alone": 3, "flights": 4, "tracking_error_m": 0.17, "helped_percent": 0.25, "pairs": 800, "step_s": 31.0}
    steps = [{"flights": None, "pairs": 320, "step_s": 20.0}, flown]
    judged = {"fit": False, "verdict": "no, since 1 of 10 flights failed.", "pairs": 800, "rounds": 1, "steps": steps}
    times = {"training_wall_s": 240.0, "seconds": {"evaluate_s": 50.0}}
    (folder / "summary.json").write_text(json.dumps({**judged, **times}))
    rows = [{"wall_s": 60.0 * k, **row} for k, row in enumerate(steps, 1)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    parts = parts_of(tmp_path, 1, 0, "cpu", quick=True)
    made = journals.DemoManifest(tmp_path, [], [part.command_line for part in parts], ["visuomotor"])
    text = write_page(tmp_path, parts, made).read_text()
    assert "Fit to fly here: no, since 1 of 10 flights failed." in text
    assert "<td>3 of 4</td><td>17.0</td>" in text
    assert "4 min 50 s on this machine" in text
    assert text.count("of flights that were new to it") == 2
    assert re.search(r'fit to fly here</div><div class="value">no', text)


def test_what_failed_is_explained_where_it_stands(tmp_path: Path) -> None:
    from airworthy.cli.demo.page import _page_evidence

    def entry(pilot: str, condition: str, success: int) -> dict[str, Any]:
        metrics = {name: {"mean": 0.1, "low": 0.1, "high": 0.1} for name in ("tracking_error_m", "proximity_percent")}
        classes = {"success": success, "success_recovered": 0, "partial": 5 - success}
        named = {"pilot": pilot, "condition": condition, "title": condition.title(), "family": "rigid", "flights": 5}
        return {**named, **metrics, "collisions_per_m_pooled": 0.0, "classes": classes, "published": None}

    whole = [entry(pilot, "baseline", 5) for pilot in ("visuomotor", "svnet:hall", "mpc")]
    static = [entry("visuomotor", "static", 1), entry("svnet:hall", "static", 5), entry("mpc", "static", 0)]
    folder = tmp_path / "evidence"
    folder.mkdir()
    (folder / "summary.json").write_text(json.dumps({"aggregate": [*whole, *static], "flights": []}))
    found = _page_evidence(folder)
    assert [title for title, _ in found["failed"]] == ["Static"]
    assert "None of the five published real flights was a clean success" in found["failed"][0][1]
    assert [(row["title"], row["pilot"], row["success"]) for row in found["rows"]] == [
        ("Baseline", "visuomotor", "5 of 5"), ("Baseline", "svnet:hall", "5 of 5"),
        ("Static", "visuomotor", "1 of 5"), ("Static", "svnet:hall", "5 of 5"),
    ]  # fmt: skip
    assert found["pilots"]["mpc"] == {"good": 5, "count": 10, "conditions": {"Baseline": (5, 5), "Static": (0, 5)}}


def test_numbers_that_one_flight_cannot_have() -> None:
    from airworthy.cli.demo.page import _single

    metric = {"mean": 0.1, "low": None, "high": None}
    metrics = {"tracking_error_m": metric, "proximity_percent": metric}
    entry: dict[str, Any] = {"condition": "baseline", **metrics, "published": None}
    found = _single({"aggregate": [entry, {**entry, "condition": "all:1"}]})
    assert len(found) == 1
    assert str(found[0]["tracking_error_m"]["low"]) == "nan"


def test_the_viewer_is_told_when_there_is_nothing_yet(tmp_path: Path) -> None:
    (tmp_path / "demo.json").write_text('{"view": "policy"}')
    with pytest.raises(AssetError, match="has not come to its last flight yet"):
        load_subject(str(tmp_path))
    (tmp_path / "demo.json").write_text('{"view": "../elsewhere"}')
    with pytest.raises(AirworthyError, match="damaged"):
        load_subject(str(tmp_path))


@pytest.mark.slow
def test_the_whole_demo(capsys: Output) -> None:
    assert main(["demo", "--quick", "--flights", "1", "--out", "demo", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["made"] == [name for name in PARTS if name not in found["left_out"]]
    text = Path("demo/report.html").read_text()
    assert re.search(r'<p class="verdict">Fit to fly here: (yes|no), since', text)
    assert "flights of the policy learnt here succeeded" in text
    assert text.count("<video") == 2 or text.count('alt="The film"') == 2
    assert not re.search(r'(src|href)="(https?:)?//', text)
    subject = load_subject("demo")
    assert subject.flight is not None
