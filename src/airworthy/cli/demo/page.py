"""`report.html` of the demo: what every part came to, on one page that opens offline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from math import isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np

from airworthy import __version__
from airworthy.cli.demo.journal import Journal
from airworthy.cli.demo.parts import Part
from airworthy.core.errors import AssetError
from airworthy.core.files import read_json, read_text, write_text
from airworthy.evaluation.report import REPORT_FILE
from airworthy.evaluation.summary import SUMMARY_FILE, read_summary
from airworthy.evaluation.video_report import film_content

__all__ = ["write_page"]

Content = dict[str, Any]
_LIMIT_BYTES = 64 << 20
SHEET_IMAGES, SHEET_COLUMNS = 32, 8
POLICY = "svnet:hall"


def write_page(folder: Path, parts: Sequence[Part], journal: Journal) -> Path:
    """Write it from what lies in the folder; parts that are not made are named.

    Raises:
        AssetError: What a part left is damaged.
        AirworthyError: The file system refused.
    """
    content: Content = {
        "expert": _told(_flown, folder, "expert", journal),
        "data": _told(_data, folder, "data", journal),
        "training": _told(_training, folder, "training", journal),
        "first": _told(_flights, folder, "first_flights", journal),
        "evidence": _told(_evidence, folder, "evidence", journal),
        "statues": _told(_flights, folder, "statues", journal),
        "policy": _told(_flown, folder, "policy", journal),
    }
    content |= {"verdict": _verdict(content), "cards": _cards(content), "parts": _parts(parts, journal)}
    content |= {"hardware": _hardware(journal), "total": _duration(sum(journal.seconds.values()))}
    content["beside"] = any(shown and shown["film"] and shown["film"]["beside"] for shown in _films(content))
    return write_text(folder / REPORT_FILE, _render(content))


def _told(tell: Callable[[Path], Content], folder: Path, name: str, journal: Journal) -> Content | None:
    """What a part came to; None: it is not made."""
    if not journal.has(name):
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
    """A film, and how the flight went."""
    summary = read_summary(folder)
    found = summary["aggregate"]
    film = film_content(folder, summary)
    if film is not None and film["beside"]:
        film["source"] = f"{folder.name}/{film['source']}"
    facts = {"error": _number(found["tracking_error_m"]["mean"], 3), "speed": _number(found["speed_max_m_s"]["mean"], 2)}
    outcomes = [name.replace("_", " ") for name, count in found["outcomes"].items() if count]
    return {"film": film, "report": f"{folder.name}/{REPORT_FILE}", "outcome": ", ".join(outcomes), **facts}


def _data(folder: Path) -> Content:
    """The contact sheet of a data set, and its counts."""
    from airworthy.learning.datasets import ExpertDataset
    from airworthy.learning.datasets.card_pictures import data_uri, sheet, spread_pairs
    from airworthy.learning.datasets.layout import CARD_FILE, RUN_FILE

    dataset = ExpertDataset.open(folder, verify=False)
    assert dataset.images is not None
    pairs = spread_pairs(dataset, SHEET_IMAGES)
    picture = data_uri(sheet(dataset.images, pairs, [f"{dataset.true[k, 0]:.1f} s" for k in pairs], SHEET_COLUMNS))
    run = _json(folder / RUN_FILE)
    return {
        "sheet": picture,
        "card": f"{folder.name}/{CARD_FILE}",
        "pairs": f"{dataset.count:,}",
        "rollouts": f"{dataset.rollouts:,}",
        "side": int(dataset.images.shape[1]),
        "speed": _number(run.get("pairs_per_second"), 0),
        "keep_rate": _number(100.0 * float(dataset.flown["kept"].mean()), 1),
    }


def _training(folder: Path) -> Content:
    """Curves, and how much of the expert's commands is explained."""
    from airworthy.learning.svnet.report import training_curves
    from airworthy.learning.training_folder import FIGURES_FILE, JOURNAL_FILE

    figures = _json(folder / FIGURES_FILE)
    curves = [(title, _markup(svg)) for title, svg in training_curves(_lines(folder / JOURNAL_FILE), figures) if svg]
    share = 1.0 - figures["command_mse"] / max(figures["command_mse_of_mean"], 1e-30)
    return {
        "curves": curves[:2],
        "report": f"{folder.name}/{REPORT_FILE}",
        "pairs": f"{figures['pairs_trained_on']:,}",
        "explained": _explained(100.0 * share),
        "speed": _number(figures["pairs_per_second"].get("command"), 0),
        "seconds": _duration(sum(figures["seconds"].values())),
    }


def _explained(percent: float) -> str:
    if not percent > 0.0:
        return "On roll-outs that were held out it does not beat the expert's mean command yet."
    return f"It explains {_number(percent, 1)} % of the expert's commands on roll-outs that were held out."


def _flights(folder: Path) -> Content:
    """The baseline of one pilot."""
    summary = _json(folder / SUMMARY_FILE)
    entries = _single(summary)
    counts = {"good": sum(map(_successes, entries)), "count": sum(entry["flights"] for entry in entries)}
    return {"rows": [_row(entry) for entry in entries], "report": f"{folder.name}/{REPORT_FILE}", **counts}


def _evidence(folder: Path) -> Content:
    """Every condition, beside what was published."""
    from airworthy.evaluation.tracking_protocol.figures import figure_beside, series_of

    summary = _json(folder / SUMMARY_FILE)
    entries = _single(summary)
    svg = figure_beside(entries, series_of(summary["flights"]))
    mine = [entry for entry in entries if entry["pilot"] == POLICY]
    base = next(entry for entry in mine if entry["condition"] == "baseline")
    return {
        "figure": _markup(svg),
        "rows": [_row(entry) for entry in mine],
        "report": f"{folder.name}/{REPORT_FILE}",
        "good": sum(_successes(entry) for entry in mine),
        "count": sum(entry["flights"] for entry in mine),
        "conditions": len({entry["condition"] for entry in mine}),
        "error": _number(base["tracking_error_m"]["mean"], 3),
        "near": _number(base["proximity_percent"]["mean"], 1),
        "published": base["published"],
    }


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
    real = entry["published"]
    return {
        "title": entry["title"],
        "pilot": entry["pilot"],
        "family": entry["family"].replace("_", "-"),
        "success": f"{_successes(entry)} of {entry['flights']}",
        "all": _successes(entry) == entry["flights"],
        "error": _number(entry["tracking_error_m"]["mean"], 3),
        "near": _number(entry["proximity_percent"]["mean"], 1),
        "hits": _number(entry["collisions_per_m_pooled"], 2),
        "real_error": "" if real is None else _number(real["tracking_error_m"], 3),
        "real_near": "" if real is None else _number(real["proximity_percent"], 1),
    }


def _verdict(content: Mapping[str, Any]) -> str:
    evidence = content["evidence"]
    if evidence is None:
        return "The demo has not come to the evidence yet; the same command goes on where it was."
    statues = content["statues"]
    unseen = f" In the hall with captured statues: {statues['good']} of {statues['count']}." if statues else ""
    return (
        f"{evidence['good']} of {evidence['count']} simulated flights of the policy succeeded, under {evidence['conditions']}"
        f" conditions.{unseen} It sees through one camera and is told its height, velocity and attitude, never where it is."
    )


def _cards(content: Mapping[str, Any]) -> list[Content]:
    expert, data, training, evidence = (content[name] for name in ("expert", "data", "training", "evidence"))
    cards = []
    if evidence:
        share = 100.0 * evidence["good"] / evidence["count"]
        tone = "good" if share >= 90.0 else ""
        cards.append(_card("flights that succeeded", f"{share:.0f}", "%", "policy, all conditions", tone))
        real = evidence["published"]
        beside = f"real, published: {real['tracking_error_m']:.3f}" if real else ""
        cards.append(_card("tracking error", evidence["error"], "m", f"baseline; {beside}" if beside else "baseline"))
    if expert:
        cards.append(_card("the expert's", expert["error"], "m", "it knows everything"))
    if data:
        cards.append(_card("pairs made", data["pairs"], "", f"{data['speed']} a second, with images"))
    if training:
        cards.append(_card("trained in", training["seconds"], "", f"{training['speed']} images/s"))
    return cards


def _card(label: str, value: str, unit: str, below: str, tone: str = "") -> Content:
    return {"label": label, "value": value, "unit": unit, "below": below, "tone": tone}


def _parts(parts: Sequence[Part], journal: Journal) -> list[Content]:
    found = []
    for part in parts:
        seconds = journal.seconds.get(part.name)
        state = part.left_out or ("" if journal.has(part.name) else "not made yet")
        time = "" if seconds is None or state else _duration(seconds)
        found.append({"title": part.title, "command": part.told, "time": time, "state": state})
    return found


def _hardware(journal: Journal) -> str:
    machine = journal.described()["hardware"]
    return ", ".join(str(machine[key]) for key in ("processor", "system", "python") if machine.get(key))


def _json(path: Path) -> dict[str, Any]:
    found = read_json(path, _LIMIT_BYTES)
    if not isinstance(found, dict):
        raise AssetError(f"{str(path)!r} is damaged.")
    return found


def _lines(path: Path) -> list[dict[str, Any]]:
    import json

    return [json.loads(line) for line in read_text(path, _LIMIT_BYTES).splitlines()]


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None or not isfinite(value) else f"{value:,.{digits}f}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100.0 else f"{int(seconds // 60)} min {int(np.floor(seconds % 60)):02d} s"


def _markup(svg: str) -> Any:
    from markupsafe import Markup

    return Markup(svg)  # noqa: S704 - made by our own drawing, which escapes its words


def _render(content: Mapping[str, Any]) -> str:
    from jinja2 import Environment, StrictUndefined

    style, own = files("airworthy.evaluation"), files("airworthy.cli.demo")
    css, js = (_markup(style.joinpath(f"report.{kind}").read_text("utf-8")) for kind in ("css", "js"))
    template = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True).from_string(
        own.joinpath("page.html.j2").read_text("utf-8")
    )
    return template.render(**content, css=css, js=js, version=__version__)
