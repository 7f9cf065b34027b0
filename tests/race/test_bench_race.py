"""`airworthy bench race`: rows, tables, resuming, pilots of one's own, and mistakes in one sentence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import airworthy as aw
from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.race import load_race
from airworthy.race.benchmark.job import RaceBenchConfig, run_race_bench
from airworthy.race.benchmark.tables import noted_text, tables_of
from airworthy.race.benchmark.timing import timing_text
from airworthy.race.pilots.catalogue import race_pilot

OWN = """
class Falls:
    rate = 60.0
    sensors = ("imu",)

    def begin(self, facts):
        pass

    def command(self, onboard, *truth):
        assert len(truth) == TRUTH
        return [0.0, 0.0, 0.0, 0.0]
"""


PLANS = """
class Plans:
    rate = 60.0

    def use_desk(self, desk):
        self.desk = desk

    def begin(self, facts):
        self.ticket, self.thrust = self.desk.submit(lambda: 5.0), 0.0

    def command(self, onboard):
        if self.ticket.ready:
            self.thrust, self.ticket = self.ticket.result, self.desk.submit(lambda: 5.0)
        return [self.thrust, 0.0, 0.0, 0.0]
"""


@pytest.fixture
def own(tmp_path: Path) -> str:
    (tmp_path / "mine.py").write_text("TRUTH = 0\n" + OWN)
    (tmp_path / "told.py").write_text("TRUTH = 1\n" + OWN)
    return f"{tmp_path / 'mine.py'}:Falls"


def test_command_prints_tables_and_writes_a_summary(own: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = f"truth:{tmp_path / 'told.py'}:Falls"
    out = tmp_path / "out"
    words = ["--race", "alphapilot", "--pilot", f"{own},{told}", "--courses", "published:0-5", "--class", "published"]
    assert main(["bench", "race", *words, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "91.39" in said
    assert "ours, on other courses than the 2019 evaluation set" in said
    assert "with true state" in said
    summary = json.loads((out / "summary.json").read_text())
    first, second = summary["pilots"]
    assert (first["completed"], first["runs"], first["final_score"], first["true_state"]) == (0, 6, 0.0, False)
    assert "in-process" not in said
    assert summary["confinement"].keys() == {"files", "tcp", "signals", "processes", "limits"}
    assert second["note"].endswith("with true state")
    assert summary["completed"] == 0
    # The truth was given to the one that asked for it: otherwise its assertion had ended it.
    assert {row["end"] for row in summary["flights"]} == {"contact"}
    ranks = [row["rank"] for row in summary["tables"]["scores"] if row["name"]]
    assert ranks == [21, 21]
    assert [(row["used"], row["teams"]) for row in summary["tables"]["sensors"] if row["note"]] == [(["imu"], 1)]


def test_a_row_of_table_iv_says_whose_runs_it_pools() -> None:
    race = load_race("alphapilot")
    servo = race_pilot("servo")
    entries = [servo, replace(servo, name="mine.py:Mine"), replace(servo, name="blind", sensors=("imu",))]
    runs = [{"completed": True, "score": 50.0}, {"completed": False, "score": 0.0}]
    tables = tables_of(race, entries, {entry.name: runs for entry in entries})
    assert tables is not None
    ours = [row for row in tables["sensors"] if row["note"]]
    assert [(row["teams"], row["completed_percent"]) for row in ours] == [(2, 50.0), (1, 50.0)]
    assert "of servo and mine.py:Mine" in ours[0]["note"]
    assert "of blind" not in ours[1]["note"]


@pytest.mark.slow
def test_stopped_run_goes_on_to_the_same_summary(own: str, tmp_path: Path) -> None:
    def config(folder: str, **changes: Any) -> RaceBenchConfig:
        out = str(tmp_path / folder)
        return RaceBenchConfig(**{"pilot": own, "courses": "published:0-5", "in_process": True, "out": out, **changes})

    def stop(name: str) -> None:
        raise KeyboardInterrupt

    whole = run_race_bench(config("whole"))
    stopped = run_race_bench(config("parts"), step=stop)
    assert (stopped.interrupted, stopped.finished, stopped.blocks) == (True, 1, 2)
    done = run_race_bench(config("parts"))
    assert done.complete
    assert json.dumps(done.summary) == json.dumps(whole.summary)
    with pytest.raises(AirworthyError, match="seed: 0 before, 1 now"):
        run_race_bench(config("parts", seed=1))
    with pytest.raises(AirworthyError, match=r"in_process: (T|t)rue before, (F|f)alse now"):
        run_race_bench(config("parts", in_process=False))
    # What could have looked at the truth is marked so, wherever it is shown.
    assert whole.summary["confinement"] is None
    assert whole.summary["pilots"][0]["note"].endswith(", in-process")
    assert [row["note"] for row in whole.summary["tables"]["scores"] if row["name"]] == [whole.summary["pilots"][0]["note"]]
    assert [row["note"] for row in whole.summary["tables"]["sensors"] if row["note"]] == [whole.summary["pilots"][0]["note"]]


def test_plans_are_charged_and_counted(tmp_path: Path) -> None:
    (tmp_path / "plans.py").write_text(PLANS)

    def run(charge: str) -> Any:
        pilot, folder = f"{tmp_path / 'plans.py'}:Plans", f"out-{charge}"
        out = str(tmp_path / folder)
        config = RaceBenchConfig(pilot=pilot, courses="nominal", charge_compute=charge, in_process=True, out=out)
        return run_race_bench(config)

    slow, free = run("0.25"), run("0")
    assert [slow.summary["repeatable"], run("measured").summary["repeatable"]] == [True, False]
    late, early = slow.summary["flights"][0], free.summary["flights"][0]
    # It falls for a quarter of a second before its first plan, in which the next may not begin.
    assert late["commands_sha256"] != early["commands_sha256"]
    planning = late["planning"]
    assert planning["charged_s"] == 0.25 * planning["count"] > 0.0
    assert early["planning"]["charged_s"] == 0.0
    assert early["planning"]["count"] > 10 * planning["count"]
    # Processor time stands beside the results, and not among them.
    told = json.loads((tmp_path / "out-0.25" / "timing.json").read_text())["pilots"][0]
    assert told["planning"]["count"] == planning["count"]
    assert told["planning"]["charged"] == 0.25
    assert 0.0 <= told["planning"]["median_s"] <= told["planning"]["p90_s"] <= told["planning"]["max_s"]
    assert told["command"]["charged"] is False
    assert "charged 0.25 s each" in timing_text(told)
    assert "cpu" not in json.dumps(slow.summary)


def test_charge_without_plans_is_refused(own: str, tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="--charge-compute measured changes nothing for pilots that do nothing beside"):
        run_race_bench(RaceBenchConfig(pilot=own, charge_compute="measured", out=str(tmp_path / "out")))


def test_a_damaged_block_is_named_and_flown_again_when_it_is_deleted(own: str, tmp_path: Path) -> None:
    config = RaceBenchConfig(pilot=own, courses="nominal", in_process=True, out=str(tmp_path / "out"))
    whole = run_race_bench(config).summary
    (block,) = (tmp_path / "out" / "blocks").iterdir()
    for damage in (block.read_text()[:-9], "garbage", ""):
        block.write_text(damage)
        with pytest.raises(AirworthyError, match="was changed or damaged: delete it, and it is made again") as error:
            run_race_bench(config)
        assert str(block) in str(error.value)
    block.unlink()
    assert json.dumps(run_race_bench(config).summary) == json.dumps(whole)


WORDLESS = """
class Wordless(Exception):
    def __str__(self):
        raise ValueError("no words")


class Base:
    def begin(self, facts):
        pass

    def command(self, onboard):
        raise Wordless


class Unknown(Base):
    rate = float("nan")


class Text(Base):
    rate = "fast"


class Switch(Base):
    rate = True


class Deaf(Base):
    sensors = 5
"""


@pytest.mark.parametrize("in_process", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_what_a_class_says_of_itself_is_refused_in_one_sentence(tmp_path: Path, in_process: bool) -> None:
    (tmp_path / "odd.py").write_text(WORDLESS)
    for name, said in (
        ("Unknown", "Unknown' has the rate nan; expected commands per second: 960 over a whole number"),
        ("Text", "Text' has the rate 'fast'; expected commands per second"),
        ("Switch", "Switch' has the rate True; expected commands per second"),
        ("Deaf", r"Deaf' has the sensors 5; expected names, as \('imu', 'beacons'\)"),
    ):
        config = RaceBenchConfig(pilot=f"{tmp_path / 'odd.py'}:{name}", in_process=in_process, out=str(tmp_path / "out"))
        with pytest.raises(AirworthyError, match=said):
            run_race_bench(config)
    assert not (tmp_path / "out").exists()
    pilot = f"{tmp_path / 'odd.py'}:Base"
    config = RaceBenchConfig(pilot=pilot, courses="nominal", in_process=in_process, out=str(tmp_path / "out"))
    (row,) = run_race_bench(config).summary["flights"]
    assert row["end"] == "pilot_error"
    assert "Wordless: its message cannot be had: ValueError" in row["reason"]


def test_python_call(own: str, tmp_path: Path) -> None:
    result = aw.bench.race(own, "nominal", conditions="published", out=str(tmp_path / "out"))
    assert result.summary["runs"] == 1
    assert result.summary["flights"][0]["part"].startswith("floor")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--pilot nobody", "Unknown race pilot 'nobody'"),
        ("--pilot servo,servo", "names a pilot twice"),
        ("--pilot ,", "--pilot ',' names no pilot where a word is empty; expected as servo or servo,race"),
        ("--courses fresh:1/0", "names 0 courses"),
        ("--contact touch", "touch"),
        ("--decoy-beacons", "--decoy-beacons changes nothing for servo, truth:race and pilots whose sensors name no beacons"),
        ("--pilot nowhere.py:Pilot", "There is no file 'nowhere.py'"),
        ("--class easy", "Unknown class of the race 'easy'"),
        ("--class hard --conditions noisy", "The class is given 2 times (--class, --conditions)"),
        ("--class=hard --class=noisy", "The class is given 2 times (--class=hard, --class=noisy)"),
        ("--pilot policy:", "The race pilot 'policy:' names no folder; expected policy:FOLDER"),
        ("--courses published/25", "expected 0 to 24"),
        ("--race uzh_split_s", "airworthy races fly uzh_split_s"),
        ("--look 61", "--look is 61"),
        ("--charge-compute fast", "expected 'measured', or seconds from 0 to 60"),
    ],
)
def test_mistakes_are_one_sentence(words: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["bench", "race", *words.split(), "--out", str(out)]) == 2
    assert said in capsys.readouterr().err
    assert not out.exists()


def test_fly_takes_one_course_of_a_race(own: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "one"
    assert main(["fly", "--race", "alphapilot", "--pilot", own, "--course=published/7", "--out", str(out)]) == 0
    assert "Report:" in capsys.readouterr().out
    assert json.loads((out / "summary.json").read_text())["courses"] == "published/7"
    assert main(["fly", "--race", "alphapilot", "--pilot", own, "--out", str(out)]) == 2
    assert "name it, as --course published/7" in capsys.readouterr().err


def test_command_says_why_pilots_ended_and_why_a_table_lacks_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "odd.py").write_text(
        "class Odd:\n    def begin(self, facts):\n        pass\n\n    def command(self, onboard):\n        return 'full'\n"
    )
    words = ["--pilot", f"{tmp_path / 'odd.py'}:Odd", "--courses", "published:0-1", "--in-process"]
    assert main(["bench", "race", *words, "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().out
    assert "2 of 2 ended by this: ValueError: could not convert string to float: 'full'" in said
    assert "2 runs, and Table III has the best 5: no row of it there" in said
    # No flight has a time, and a mean of none is none.
    assert "nan" not in said


def test_a_pilot_that_names_no_sensor_is_refused_before_others_are_flown(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(
        "class Odd:\n    sensors = ('beacon',)\n\n    def begin(self, facts):\n        pass\n\n"
        "    def command(self, onboard):\n        pass\n"
    )
    config = RaceBenchConfig(pilot=f"servo,{tmp_path / 'odd.py'}:Odd", in_process=True, out=str(tmp_path / "out"))
    with pytest.raises(AirworthyError, match="names the sensor 'beacon'; the race 'alphapilot' gives imu, beacons"):
        run_race_bench(config)
    assert not (tmp_path / "out").exists()


def test_a_sentence_has_the_most_frequent_notes_of_a_pilot() -> None:
    notes = {f"note {k:02}": {"count": 1 + (k == 7), "flights": 1} for k in range(25)}
    said = noted_text({"runs": 3, "notes": notes})
    assert said.startswith("Out of the ordinary: note 07 2 (in 1 of 3 flights), note 00 1 (in 1 of 3 flights), ")
    assert said.endswith("note 09 1 (in 1 of 3 flights), and 15 others.")
    assert noted_text({"runs": 3, "notes": {"braked": {"count": 2, "flights": 1}}}).endswith("braked 2 (in 1 of 3 flights).")


NEEDY = """
class Needy:
    def __init__(self, gains):
        pass

    def begin(self, facts):
        pass

    def command(self, onboard):
        return [0.0, 0.0, 0.0, 0.0]


class Easy(Needy):
    def __init__(self, gains=1.0, *others, **more):
        raise RuntimeError("\\x1b[31mred\\x07\\u202e")
"""


@pytest.mark.parametrize("in_process", [True, False])
def test_a_class_that_is_made_with_something_is_refused_at_the_start(tmp_path: Path, in_process: bool) -> None:
    (tmp_path / "needy.py").write_text(NEEDY)
    out = tmp_path / "out"
    config = RaceBenchConfig(pilot=f"{tmp_path / 'needy.py'}:Needy", in_process=in_process, out=str(out))
    with pytest.raises(AirworthyError, match="class 'Needy' that is made with 'gains'; race pilots are made without arguments"):
        run_race_bench(config)
    assert not out.exists()


@pytest.mark.parametrize("in_process", [True, False])
def test_escape_codes_of_a_pilot_reach_neither_terminal_nor_page(
    tmp_path: Path, in_process: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "needy.py").write_text(NEEDY)
    words = ["--pilot", f"{tmp_path / 'needy.py'}:Easy", "--courses", "nominal", "--out", str(tmp_path / "out")]
    assert main(["bench", "race", *words, *["--in-process"] * in_process]) == 1
    said = capsys.readouterr()
    page = (tmp_path / "out" / "report.html").read_text()
    for text in (said.out, said.err, page, (tmp_path / "out" / "summary.json").read_text()):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "RuntimeError: ?[31mred??" in said.out


def test_a_block_that_is_a_folder_is_named_before_anything_is_flown(own: str, tmp_path: Path) -> None:
    config = RaceBenchConfig(pilot=own, courses="nominal,published/0", in_process=True, out=str(tmp_path / "out"))
    run_race_bench(config)
    (block,) = (tmp_path / "out" / "blocks").iterdir()
    block.unlink()
    block.mkdir()
    flown: list[str] = []
    with pytest.raises(AirworthyError, match="is no file, as a block's is: move it away") as error:
        run_race_bench(config, step=flown.append)
    assert str(block) in str(error.value)
    assert not flown
