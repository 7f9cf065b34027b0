"""What a benchmark's report says of a run itself: settings, machine, rules, and flights that are worth a look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from airworthy.evaluation.navigation.report_numbers import span
from airworthy.tasks.navigation import NavigationProtocol

__all__ = ["facts", "looks", "protocol"]

Row = Mapping[str, Any]


def looks(rows: Sequence[Row], titles: Mapping[str, str], folder: str) -> list[dict[str, Any]]:
    """The first row of each pilot and outcome."""
    found: dict[tuple[str, str], list[int]] = {}
    for number, row in enumerate(rows):
        found.setdefault((row["pilot"], row["outcome"]), []).append(number)
    looks = []
    for (pilot, outcome), numbers in found.items():
        row = rows[numbers[0]]
        cause = f", {row['cause']}" if row["cause"] else ""
        what = f"{row['vehicle']}, {row['scenario'].replace('_', ' ')} {row['configuration']}{cause}, {row['time_s']:.1f} s"
        looks.append(
            {
                "pilot": titles.get(pilot, pilot),
                "outcome": outcome.replace("_", " "),
                "count": len(numbers),
                "what": what[:160],
                "command": f"airworthy bench replay {folder} {numbers[0]}",
            }
        )
    return looks


def facts(summary: Mapping[str, Any], manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What flew, with which settings, on what, in what time."""
    config, machine = manifest["identity"]["config"], summary["hardware"]
    took = summary["seconds"]
    facts = [
        ("version", manifest["identity"]["version"]),
        ("seed, layouts", f"{config['seed']}, {config['layouts']}"),
        ("compute", config["compute"]),
        ("limit of acceleration", config["a_max"]),
        ("body", config["body"]),
        ("depth images", config["sensing"]),
        ("processor", f"{machine['processor']}, {machine['cores']} cores"),
        ("system", f"{machine['system']}, {machine['python']}"),
        *((f"{name}: computed in", _took(part)) for name, part in took.items()),
    ]
    found = [{"name": name, "value": value, "hash": False} for name, value in facts]
    return [*found, {"name": "settings SHA-256", "value": manifest["digest"], "hash": True}]


def _took(part: Mapping[str, float]) -> str:
    each = 1000.0 * part["planning"] / part["asked"] if part.get("asked") else 0.0
    whole = part.get("flying", 0.0) + part.get("setup", 0.0)
    return f"{span(whole)}, of it planning {span(part.get('planning', 0.0))} ({each:.3f} ms per flight and tick)"


def protocol(config: Mapping[str, Any]) -> list[dict[str, str]]:
    """The rules of judgement and what was worse than ideal, for people."""
    told = config["protocol"]
    found = []
    for item in fields(NavigationProtocol):
        name, _, unit = item.name.replace("_m_s2", " [m/s\N{SUPERSCRIPT TWO}]").replace("_m_s", " [m/s]").partition(" [")
        for end in ("_s", "_m", "_deg"):
            if not unit and name.endswith(end):
                name, unit = name[: -len(end)], f"{end[1:]}]"
        value = told[item.name]
        shown = ("yes" if value else "no") if isinstance(value, bool) else f"{value:g} {unit.rstrip(']')}".strip()
        found.append({"name": name.replace("_", " "), "value": shown})
    usual = {name: value for name, value in config["perturb"].items() if name != "moving_speed"}
    found += [{"name": name.replace("_", " "), "value": f"{value:g}"} for name, value in usual.items() if value]
    return found
