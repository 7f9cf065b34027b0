"""`report.html` of the demo: what every part came to, on one page that opens offline."""

from __future__ import annotations

import importlib
import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from airworthy import __version__
from airworthy.cli.main import COMMANDS
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import data_dir, read_json, write_json, write_text
from airworthy.core.jobs.block_job import describe_machine
from airworthy.evaluation.statistics import SUMMARY_FILE, read_summary
from airworthy.reports.film.flight_track import film_content
from airworthy.reports.flight_report import REPORT_FILE
from airworthy.reports.page import DASH, card, fixed, heads, markup, measured, page_of
from airworthy.tasks.declared_metrics import CONDITION, PAIRED, metric

__all__ = ["DEMO_FILE", "PARTS", "DemoManifest", "DemoPart", "parts_of", "write_page"]

# ---- The parts of the demo: each a command that anyone can call by itself ---------------------------------------------------

PARTS = ("hover", "hover_flight", "expert", "visuomotor", "evidence", "statues", "policy")
"""Names, in order; each is a folder of the demo's. What learns in a second comes first, since it shows the most the soonest."""
COURSE, HALL, STATUES, VEHICLE = "robustness", "hall", "hall_statues", "carl"
OWN = "visuomotor"
"""The part that learns to fly by sight; its policy is called by the name of its folder."""
_MINUTES = 5.0
"""Ours: that its own policy learns in; the whole demo is to end within ten."""
_NO_TORCH = "Training needs torch: pip install torch==2.13.0, then the same command makes the rest."
_NO_STATUES = "Their splats are reference files, found through AIRWORTHY_DATA, which is not set or does not hold them."


@dataclass(frozen=True)
class DemoPart:
    """One of them."""

    name: str
    title: str
    tokens: tuple[str, ...]
    """Of the command, after `airworthy`."""
    left_out: str = ""
    """Why it cannot be made here; empty where it can."""

    @property
    def command_line(self) -> str:
        """The command, for people."""
        return shlex.join(["airworthy", *self.tokens])

    def run(self) -> int:
        """Call the command; returns its exit code.

        Raises:
            AirworthyError: What the command was given cannot be used.
        """
        command = importlib.import_module(COMMANDS[self.tokens[0]][0])
        code: int = command.main(list(self.tokens[1:]))
        return code


def parts_of(out: Path, flights: int, seed: int, device: str, quick: bool = False) -> list[DemoPart]:
    """Return all parts, in order.

    Args:
        out: Folder of the demo.
        flights: Per condition and family.
        seed: Of everything that is drawn.
        device: Of flights and images.
        quick: As little as shows that it works.
    """
    same = ["--seed", str(seed), "--device", device]
    torch, statues = find_spec("torch") is not None, _has_statues()
    # The harder family: rotors, inertia, a rate loop; both would take the demo past its ten minutes.
    family = "semi_kinematic" if quick else "rigid"
    conditions = ["baseline", "payload"] if quick else ["table_2"]

    def part(name: str, title: str, tokens: list[str], left_out: str = "") -> DemoPart:
        return DemoPart(name, title, (*tokens, *same, "--out", str(out / name)), left_out)

    def evaluated(pilots: list[str], *tokens: str) -> list[str]:
        return ["evaluate", "--pilot", *pilots, *tokens]

    flown = f"svnet:{out / OWN}" if torch else "svnet"
    whose = "The policy that was learnt here" if torch else "The policy that comes with this version"
    count = ["--flights", str(flights)]
    return [
        _hover(out, seed, quick),
        part(
            "hover_flight",
            "The policy that has just been learnt flies a course by its motors",
            ["fly", "--vehicle", VEHICLE, "--course", COURSE, "--pilot", f"policy:{out / 'hover'}"],
        ),
        part("expert", "The expert, which knows everything, flies the course", _filmed("mpc", HALL, quick)),
        _visuomotor(out, seed, "" if torch else _NO_TORCH, quick),
        part(
            "evidence",
            f"{whose}, under every condition, beside the expert",
            evaluated([flown, "mpc"], "--family", family, "--conditions", *conditions, *count),
        ),
        part(
            "statues",
            "The same policy in the hall with captured statues and a captured sign, which it has never seen",
            evaluated([flown], "--scene", STATUES, "--conditions", "baseline", *count),
            "" if statues else _NO_STATUES,
        ),
        part("policy", "The same policy on film", _filmed(flown, HALL, quick)),
    ]


def _hover(out: Path, seed: int, quick: bool) -> DemoPart:
    """Return a whole training, judged on fewer flights than usual: every one of its conditions, in seconds."""
    judged = ["64", "16", "8"] if quick else ["512", "64", "32"]
    counts = [word for pair in zip(("--flights", "--grid-flights", "--mpc-flights"), judged, strict=True) for word in pair]
    tokens = ["train", "hover", "--vehicle", VEHICLE, *counts, "--seed", str(seed), "--out", str(out / "hover")]
    return DemoPart("hover", "A policy learns from nothing to hover by motor commands, in about a second", tuple(tokens))


def _filmed(pilot: str, scene: str, quick: bool) -> list[str]:
    size = ["320", "180"] if quick else ["640", "360"]
    tokens = ["fly", "--vehicle", VEHICLE, "--scene", scene, "--course", COURSE, "--pilot", pilot, "--record", "video"]
    return [*tokens, "--video-rate", "4" if quick else "20", "--video-size", *size]


def _visuomotor(out: Path, seed: int, left_out: str, quick: bool) -> DemoPart:
    """Return a whole training by sight, with the flights by which it is judged; as quick, a round of two flights.

    Rounds are half as long as usual: in few minutes more rounds teach more than more flights.
    """
    little = (
        ["--rounds", "1", "--flights", "2", "--judge.flights", "2"] if quick else ["--flights", "8", "--judge.flights", "5"]
    )
    tokens = [
        "train",
        "visuomotor",
        "--scene",
        HALL,
        "--course",
        COURSE,
        "--vehicle",
        VEHICLE,
        "--minutes",
        "1" if quick else f"{_MINUTES:g}",
    ]
    title = "A policy learns to fly the course by sight, from nothing, in minutes"
    return DemoPart(OWN, title, (*tokens, *little, "--seed", str(seed), "--out", str(out / OWN)), left_out)


def _has_statues() -> bool:
    """Tell whether the splats of the hall with statues can be had."""
    from airworthy.core.errors import AirworthyError
    from airworthy.scenes import scene

    if data_dir() is None or not os.path.isdir(os.path.join(str(data_dir()), "splats")):
        return False
    try:
        scene(STATUES)
    except AirworthyError:
        return False
    return True


# -----------------------------------------------------------------------------------------------------------------------------

# ---- `demo.json`: which parts of the demo are made, by which commands, and how long each took -------------------------------

DEMO_FILE = "demo.json"
_LIMIT_BYTES = 1 << 20


@dataclass(eq=False)
class DemoManifest:
    """Kept in the demo's folder; written after each part."""

    folder: Path
    identity: list[str]
    """What is made: commands of the parts with a folder that stands for any, since a demo may be moved."""
    commands: list[str]
    """Of the parts, as they are called here."""
    made: list[str] = field(default_factory=list)
    """Names of parts that are whole."""
    seconds: dict[str, float] = field(default_factory=dict)
    """By part; of all runs together."""
    left_out: dict[str, str] = field(default_factory=dict)
    """By part, why."""

    @classmethod
    def open(cls, folder: Path, identity: Sequence[str], commands: Sequence[str]) -> DemoManifest:
        """Return that of a folder, or a new one.

        Args:
            folder: Of the demo.
            identity: Options that its content depends on.
            commands: Of its parts, as they are written down.

        Raises:
            AirworthyError: The folder holds another demo.
            AssetError: Its manifest is damaged.
        """
        path = folder / DEMO_FILE
        if not os.path.lexists(path):
            return cls(folder, list(identity), list(commands))
        try:
            found = read_json(path, _LIMIT_BYTES)
            before, version = [str(part) for part in found.get("identity", ())], str(found["version"])
            made, seconds = [str(name) for name in found["made"]], {k: float(v) for k, v in found["seconds"].items()}
        except (AssetError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise AssetError(f"{str(path)!r} is damaged: delete the folder, or name another with --out.") from error
        if changed := _changed(before, identity, version):
            raise AirworthyError(
                f"{str(folder)!r} holds another demo ({changed}): repeat its options, delete it, or name another with --out."
            )
        return cls(folder, list(identity), list(commands), made, seconds)

    def has(self, name: str) -> bool:
        """Tell whether a part is whole."""
        return name in self.made

    @contextmanager
    def clocked(self, name: str) -> Iterator[None]:
        """Add the time inside to a part's."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begun
            with suppress(AirworthyError):  # on a full disk, what was there before stays
                self._write()

    def keep(self, name: str) -> None:
        """Keep a part: it is whole."""
        self.made = [*(known for known in self.made if known != name), name]
        self._write()

    def _write(self) -> None:
        write_json(self.folder / DEMO_FILE, self.described())

    def leave_out(self, name: str, why: str) -> None:
        """Leave out a part that cannot be made here."""
        self.left_out[name] = why

    def described(self) -> dict[str, Any]:
        """Return the record as plain data."""
        command_line = {"made": self.made, "seconds": self.seconds, "left_out": self.left_out}
        commands = {"identity": self.identity, "commands": self.commands}
        return {"version": __version__, "view": "policy", **commands, **command_line, "hardware": describe_machine()}


def _changed(before: Sequence[str], now: Sequence[str], version: str) -> str:
    """Return what another demo had otherwise, in a few words; empty where it is the same."""
    if version != __version__:
        return f"made by version {version}, this is {__version__}"
    for old, new in zip(before, now, strict=False):
        tokens = list(zip(old.split(), new.split(), strict=False))
        for a, b in tokens:
            if a != b:
                return f"{a!r} in its command {' '.join(old.split()[:2])!r}, now {b!r}"
    return "" if list(before) == list(now) else "with other options"


# -----------------------------------------------------------------------------------------------------------------------------

Content = dict[str, Any]
_PAGE_LIMIT_BYTES = 64 << 20
SHEET_IMAGES, SHEET_COLUMNS = 32, 8
POLICY, EXPERT = "svnet:hall", "mpc"


def write_page(folder: Path, parts: Sequence[DemoPart], manifest: DemoManifest) -> Path:
    """Write it from what lies in the folder; parts that are not made are named.

    Args:
        folder: Of the demo.
        parts: In the order of the page.
        manifest: Says which parts are made, and how long they took.

    Raises:
        AssetError: What a part left is damaged.
        AirworthyError: The file system refused.
    """
    content: Content = {
        "hover": _part_content(_page_hover, folder, "hover", manifest),
        "hover_flight": _part_content(_flown, folder, "hover_flight", manifest),
        "expert": _part_content(_flown, folder, "expert", manifest),
        "sight": _part_content(_page_sight, folder, OWN, manifest),
        "evidence": _part_content(_page_evidence, folder, "evidence", manifest),
        "statues": _part_content(_page_evidence, folder, "statues", manifest),
        "policy": _part_content(_flown, folder, "policy", manifest),
    }
    content |= {"verdict": _verdict(content), "cards": _cards(content), "parts": _parts(parts, manifest)}
    content |= {"metric_heads": heads(CONDITION, short=True), "real_heads": heads(PAIRED, short=True)}
    content |= {"hardware": _hardware(manifest), "total": _duration(sum(manifest.seconds.values()))}
    content["filmed"] = "What was learnt here" if content["sight"] else "The shipped policy"
    content["beside"] = any(shown and shown["film"] and shown["film"]["beside"] for shown in _films(content))
    return write_text(folder / REPORT_FILE, page_of("airworthy.cli.demo", "page.html.j2", **content))


def _part_content(tell: Callable[[Path], Content], folder: Path, name: str, manifest: DemoManifest) -> Content | None:
    """Return what a part came to; None: it is not made."""
    if not manifest.has(name):
        return None
    where = folder / name
    try:
        return tell(where)
    except (AssetError, KeyError, TypeError, ValueError, IndexError, StopIteration) as error:
        reason = f"{error}" if isinstance(error, AssetError) else "One of its files is damaged."
        raise AssetError(
            f"What the demo has made in {str(where)!r} cannot be shown. {reason} Delete that folder, and the same command makes"
            " it again."
        ) from error


def _films(content: Mapping[str, Any]) -> Iterable[Any]:
    return (content["expert"], content["policy"])


def _flown(folder: Path) -> Content:
    """Return a film, and how the flight went."""
    summary = read_summary(folder)
    found = summary["aggregate"]
    film = film_content(folder, summary)
    if film is not None and film["beside"]:
        film["source"] = f"{folder.name}/{film['source']}"
    facts = {
        "error": measured("tracking_error_m", found["tracking_error_m"]["mean"]),
        "speed": measured("speed_max_m_s", found["speed_max_m_s"]["mean"]),
    }
    outcomes = [name.replace("_", " ") for name, count in found["outcomes"].items() if count]
    return {"film": film, "report": f"{folder.name}/{REPORT_FILE}", "outcome": ", ".join(outcomes), **facts}


def _page_hover(folder: Path) -> Content:
    """Return how long it learnt, and how well it holds beside known controllers."""
    from airworthy.learning.gradient.report import COLUMNS, figure_cells

    found = _json(folder / SUMMARY_FILE)
    error = found["median_error_m"]
    beside = [(item["name"], figure_cells(item)) for item in found["baselines"] if "reason" not in item]
    return {
        "vehicle": found["vehicle"],
        "seconds": fixed(found["training_wall_s"], 2),
        "cpu": fixed(found["training_cpu_s"], 2),
        "kept": fixed(found["kept_percent"], 2),
        "error": DASH if error is None else fixed(100.0 * error, 2),
        "flights": f"{found['flights']:,}",
        "steps": f"{found['env_steps'] / 1e6:.1f}",
        "columns": COLUMNS,
        "rows": [("learnt policy", figure_cells(found)), *beside],
        "verdicts": [item["verdict"] for item in found["baselines"] if "verdict" in item],
        "report": f"{folder.name}/{REPORT_FILE}",
    }


def _page_sight(folder: Path) -> Content:
    """Return how a policy learnt to fly by sight: its data, its rounds, the flights by which it was judged, its verdict."""
    from airworthy.learning.timed_training import METRICS_FILE, log_rows
    from airworthy.learning.visuomotor.report import STEP_COLUMNS, learning_curves, step_cells

    found, rows = _json(folder / SUMMARY_FILE), log_rows(folder / METRICS_FILE, _PAGE_LIMIT_BYTES)
    curves = [(title, markup(svg)) for title, svg in learning_curves(rows) if svg]
    took = found["training_wall_s"] + found["seconds"]["evaluate_s"]
    return {
        **_expert_data(folder),
        "fit": bool(found["fit"]),
        "verdict": str(found["verdict"]),
        "took": _duration(took),
        "minutes": fixed(took / 60.0, 1),
        "pairs": f"{found['pairs']:,}",
        "rounds": int(found["rounds"]),
        "curves": curves[:2],
        "columns": STEP_COLUMNS,
        "steps": [step_cells(row) for row in found["steps"]],
        "report": f"{folder.name}/{REPORT_FILE}",
    }


def _expert_data(folder: Path) -> Content:
    """Return the contact sheet of the expert's data that a training has made, and their count."""
    from airworthy.learning.datasets import ExpertDataset
    from airworthy.learning.datasets.card_pictures import data_uri, sheet, spread_pairs
    from airworthy.learning.datasets.config import CARD_FILE
    from airworthy.learning.visuomotor.config import DATA_FOLDER

    dataset = ExpertDataset.open(folder / DATA_FOLDER, verify=False)
    assert dataset.images is not None
    pairs = spread_pairs(dataset, SHEET_IMAGES)
    picture = data_uri(sheet(dataset.images, pairs, [f"{dataset.true[k, 0]:.1f} s" for k in pairs], SHEET_COLUMNS))
    return {
        "sheet": picture,
        "card": f"{folder.name}/{DATA_FOLDER}/{CARD_FILE}",
        "expert_pairs": f"{dataset.count:,}",
        "rollouts": f"{dataset.rollouts:,}",
        "side": int(dataset.images.shape[1]),
    }


def _page_evidence(folder: Path) -> Content:
    """Return every condition, pilot by pilot, beside what was published."""
    from airworthy.benchmarks.tracking.conditions import condition
    from airworthy.benchmarks.tracking.figures import figure_published, series_of

    summary = _json(folder / SUMMARY_FILE)
    entries = _single(summary)
    policies = [entry for entry in entries if entry["pilot"] != EXPERT]
    order = list(dict.fromkeys(entry["condition"] for entry in policies))
    failed = dict.fromkeys(entry["condition"] for entry in policies if _successes(entry) < entry["flights"])
    base = next(entry for entry in policies if entry["condition"] == "baseline")
    return {
        "figure": markup(figure_published(entries, series_of(summary["flights"]))),
        "rows": [_row(entry) for entry in sorted(policies, key=lambda entry: order.index(entry["condition"]))],
        "report": f"{folder.name}/{REPORT_FILE}",
        "pilots": {name: _counted(entries, name) for name in dict.fromkeys(entry["pilot"] for entry in entries)},
        "failed": [(item.title, item.says) for item in map(condition, failed)],
        "first": policies[0]["pilot"],
        "error": measured("tracking_error_m", base["tracking_error_m"]["mean"]),
        "published": base["published"],
    }


def _counted(entries: Sequence[Mapping[str, Any]], pilot: str) -> Content:
    """Return successes and flights of one pilot, whole and by condition."""
    mine = [entry for entry in entries if entry["pilot"] == pilot]
    found: dict[str, tuple[int, int]] = {}
    for entry in mine:
        good, count = found.get(entry["title"], (0, 0))
        found[entry["title"]] = (good + _successes(entry), count + entry["flights"])
    good, count = (sum(column) for column in zip(*found.values(), strict=True))
    return {"good": good, "count": count, "conditions": found}


def _single(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Of single conditions; what no flight has, or one flight cannot have, such as an interval, is NaN again."""
    found = [dict(entry) for entry in summary["aggregate"] if not entry["condition"].startswith("all:")]
    for entry in found:
        for name in ("tracking_error_m", "proximity_percent"):
            entry[name] = {key: nan if value is None else value for key, value in entry[name].items()}
        if entry["published"] is not None:
            entry["published"] = {key: nan if value is None else value for key, value in entry["published"].items()}
    return found


def _successes(entry: Mapping[str, Any]) -> int:
    return int(entry["classes"]["success"] + entry["classes"]["success_recovered"])


def _row(entry: Mapping[str, Any]) -> Content:
    from airworthy.benchmarks.tracking.tables import mean_of

    real = entry["published"]
    return {
        "title": entry["title"],
        "pilot": entry["pilot"],
        "family": entry["family"].replace("_", "-"),
        "success": f"{_successes(entry)} of {entry['flights']}",
        "all": _successes(entry) == entry["flights"],
        "cells": [measured(name, mean_of(entry, name)) for name in CONDITION],
        "real": ["" if real is None else measured(name, real[name]) for name in PAIRED],
    }


def _verdict(content: Mapping[str, Any]) -> str:
    """Return whether what was learnt here is fit to fly here, and under what else it is, pilot by pilot."""
    sight, evidence, statues = content["sight"], content["evidence"], content["statues"]
    if evidence is None:
        return "The demo has not come to the evidence yet; the same command goes on where it was."
    told = [f"Fit to fly here: {sight['verdict']}"] if sight else ["Nothing was learnt by sight here."]
    names = {OWN: "the policy learnt here", POLICY: "the shipped one", EXPERT: "the expert, which knows everything,"}
    told += [_told(names.get(name, name), counted) for name, counted in evidence["pilots"].items()]
    if statues:
        beside = " and ".join(f"{found['good']} of {found['count']} ({name})" for name, found in statues["pilots"].items())
        told.append(f"Among captured statues: {beside}.")
    return " ".join(told)


def _told(name: str, counted: Mapping[str, Any]) -> str:
    """Return a sentence: under how many conditions all flights of a pilot succeeded, and under which not."""
    lost = [f"{title.lower()} {good} of {count}" for title, (good, count) in counted["conditions"].items() if good < count]
    whole = f"Under {len(counted['conditions'])} conditions {counted['good']} of {counted['count']} flights of {name} succeeded"
    return f"{whole}{'; ' + ', '.join(lost) if lost else ''}."


def _cards(content: Mapping[str, Any]) -> list[Content]:
    hover, expert, sight, evidence = (content[name] for name in ("hover", "expert", "sight", "evidence"))
    cards = []
    if sight:
        cards.append(
            card("fit to fly here", "yes" if sight["fit"] else "no", "", "learnt here", "good" if sight["fit"] else "poor")
        )
        cards.append(card("learnt by sight in", sight["minutes"], "min", f"{sight['pairs']} pairs, judged"))
    if evidence:
        real = evidence["published"]
        note = f"{evidence['first']}, baseline"
        note += f"; real, published: {measured('tracking_error_m', real['tracking_error_m'])}" if real else ""
        cards.append(card(metric("tracking_error_m").label(), evidence["error"], metric("tracking_error_m").unit, note))
    if expert:
        cards.append(card("the expert's", expert["error"], "m", "it knows everything"))
    if hover:
        cards.append(card("learnt to hover in", hover["seconds"], "s", f"{hover['kept']} % kept, {hover['error']} cm off"))
    return cards


def _parts(parts: Sequence[DemoPart], manifest: DemoManifest) -> list[Content]:
    found = []
    for part in parts:
        seconds = manifest.seconds.get(part.name)
        state = part.left_out or ("" if manifest.has(part.name) else "not made yet")
        time = "" if seconds is None or state else _duration(seconds)
        found.append({"title": part.title, "command": part.command_line, "time": time, "state": state})
    return found


def _hardware(manifest: DemoManifest) -> str:
    machine = manifest.described()["hardware"]
    return ", ".join(str(machine[key]) for key in ("processor", "system", "python") if machine.get(key))


def _json(path: Path) -> dict[str, Any]:
    found = read_json(path, _PAGE_LIMIT_BYTES)
    if not isinstance(found, dict):
        raise AssetError(f"{str(path)!r} is damaged.")
    return found


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100.0 else f"{int(seconds // 60)} min {int(np.floor(seconds % 60)):02d} s"
