"""The card of a data set: one page that says and shows what is in it; readable offline, in light, dark and print."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayInt
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import json_text, read_json, write_text
from airworthy.core.frames import yaw_of
from airworthy.evaluation.metrics import tilt_of
from airworthy.learning.datasets.card_pictures import WIDTH, data_uri, plan_picture, sheet, spread_pairs
from airworthy.learning.datasets.card_svg import Panel, histogram, time_bar
from airworthy.learning.datasets.config import CARD_FILE, RUN_FILE, scene_of
from airworthy.learning.datasets.dropped import dropped_of
from airworthy.learning.datasets.reader import ExpertDataset, ImageStack
from airworthy.learning.synthesis.config import RATE, cleared_for
from airworthy.pilots.expert import full_thrust_of
from airworthy.reports.page import card, fact, markup, page_of
from airworthy.scenes import Scene
from airworthy.scenes.viewpoints import scene_digest

__all__ = ["pictures_of", "write_card"]

# -----------------------------------------------------------------------------------------------------------------------------
# What a data set's card shows of its courses: their roll-outs from above, each in its own place, and what was seen.

Content = dict[str, Any]
# Ours: two or four lines of eight images suit the page's width.
COLUMNS = 8
IMAGES, IMAGES_EACH = 4 * COLUMNS, 2 * COLUMNS
"""On the contact sheet of the only course, and of each of several."""
SMALL = 2 * WIDTH // 3
"""Width of the pictures from above where there are several [px]."""


def pictures_of(dataset: ExpertDataset) -> Content:
    """Return plans, contact sheets and one roll-out tick by tick, with what is said of them."""
    names, shared = dataset.config.courses, _same_scene(dataset)
    width = WIDTH if len(names) == 1 else SMALL
    plans = []
    for name in names:
        scene = None if shared is None else cleared_for(shared, name, dataset.config.clear)
        plans.append({"name": name, "picture": data_uri(plan_picture(dataset, name, scene, width))})
    note = "Every roll-out that was kept, from above; dark: the course."
    found: Content = {"plans": plans, "plan_note": note, "sheets": [], "strip": "", "strip_note": "", "sheet_note": ""}
    images = dataset.images
    return found if images is None or not len(images) else found | _image_sheets(dataset, images)


def _image_sheets(dataset: ExpertDataset, images: ImageStack) -> Content:
    names, camera = dataset.config.courses, dataset.camera or {}
    count = IMAGES if len(names) == 1 else IMAGES_EACH
    chosen = {name: spread_pairs(dataset, count, (name,)) for name in names}
    sheets = []
    for name, pairs in chosen.items():
        if len(pairs):
            picture = sheet(images, pairs, [f"{dataset.true[k, 0]:.2f} s" for k in pairs], COLUMNS)
            note = "spread over the course, each of another roll-out; the number is the time on the course."
            note = note.capitalize() if len(names) == 1 else f"{name}: {note}"
            sheets.append({"name": name, "picture": data_uri(picture), "note": note})
    sheet_note = (
        f"{camera['width']} x {camera['height']} pixels, rendered at the true pose through the mounted camera; image, sensed"
        " state and command of a pair are of the same instant."
    )
    return {"sheets": sheets, "sheet_note": sheet_note, **_strip(dataset, images, np.concatenate(list(chosen.values())))}


def _strip(dataset: ExpertDataset, images: ImageStack, pairs: ArrayInt) -> Content:
    """Images of one roll-out from its first tick to its last."""
    row, ticks = int(pairs[len(pairs) // 2]) // dataset.config.ticks, dataset.config.ticks
    # Unique: a short roll-out has fewer ticks than the strip has columns.
    some = np.unique(np.round(np.linspace(0, ticks - 1, COLUMNS)).astype(int))
    picture = sheet(images, row * ticks + some, [f"{tick / RATE:.2f} s" for tick in some], COLUMNS)
    mass, force = dataset.parameters[row]
    note = (
        f"Roll-out {dataset.number[row]:,} from start to end: {mass:.3f} kg, {force:.2f} N per rotor, from"
        f" {dataset.start[row]:.2f} s of {dataset.course[row]}."
    )
    return {"strip": data_uri(picture), "strip_note": note}


def _same_scene(dataset: ExpertDataset) -> Scene | None:
    """Return the scene of the data set, if it can still be had."""
    try:
        scene = scene_of(dataset.config)
    except AirworthyError:
        return None
    return scene if scene is not None and scene_digest(scene) == dataset.identity["scene_sha256"] else None


# -----------------------------------------------------------------------------------------------------------------------------


def write_card(dataset: ExpertDataset) -> Path:
    """Write `card.html` into a data set's folder.

    Raises:
        AirworthyError: The file system refused.
    """
    run = _run_of(dataset.folder)
    content = {**_head(dataset, run), **_time(run), **pictures_of(dataset), "groups": _groups(dataset), **_courses(dataset)}
    page = page_of("airworthy.learning.datasets", "card.html.j2", trim=False, **content)
    return write_text(dataset.folder / CARD_FILE, page)


def _run_of(folder: Path) -> Mapping[str, Any]:
    """Return how the last run went; empty where nothing is known."""
    try:
        # A card may be written of a folder that came without this file: then times are left out.
        found = read_json(folder / RUN_FILE, 1 << 20)
    except AssetError:
        return {}
    return found if isinstance(found, dict) else {}


def _head(dataset: ExpertDataset, run: Mapping[str, Any]) -> Content:
    config, flown, identity = dataset.config, dataset.flown, dataset.identity
    kept, error = flown["kept"], flown["end_error_m"]
    size = sum(size for item in dataset.shards for size, _ in item.files.values())
    names = ", ".join(config.courses)
    where = f" in {config.scene_title}" if config.pictured else ""
    camera = dataset.camera
    image = f"{camera['width']} x {camera['height']}" if camera else "none"
    cards = [
        card("pairs", f"{dataset.count:,}", "", f"{_duration(dataset.count / RATE)} of flight at {RATE:g} Hz"),
        card("roll-outs kept", f"{dataset.rollouts:,}", "", f"of {len(kept):,} flown"),
        card(
            "keep rate",
            f"{100.0 * kept.mean():.1f}",
            "%",
            f"within {config.keep_within:g} m of the course" if config.keep_within else "all are kept",
        ),
        card("end error", f"{np.median(error):.3f}", "m", "median distance to the course"),
        card("images", image, "", "8 bits, lossless" if camera else "states and commands alone"),
        card("on disk", *_bytes(size), f"{len(dataset.shards)} shards"),
    ]
    facts = [
        fact("vehicle", dataset.vehicle.name),
        fact("courses", names),
        fact("scene", config.scene_title),
        fact("camera", f"{config.camera}, view {config.view}" if config.pictured else "none"),
        fact("noise level", config.noise),
        fact("seed", str(config.seed)),
        fact("made with", f"airworthy {identity['airworthy']} on {identity['device']}"),
        fact("machine", str(_at(run, "hardware", "processor") or "not recorded")),
        fact("data set", dataset.digest, True),
        fact("scene's bytes", str(identity["scene_sha256"] or "none"), True),
    ]
    verdict = (
        f"{dataset.vehicle.name} flown by the expert over {names}{where}: {len(kept):,} roll-outs of {config.length:g} s"
        f" with other drones from other states, {dataset.rollouts:,} of them kept, as {dataset.count:,} pairs of what was"
        " seen and sensed and what the expert did."
    )
    title = f"{names}: {dataset.count:,} pairs"
    command = str(run.get("command") or "not recorded")
    return {
        "title": title,
        "verdict": verdict,
        "cards": cards,
        "facts": facts,
        "command": command,
        "config": json_text(identity),
    }


def _time(run: Mapping[str, Any]) -> Content:
    stages, seconds, new = run.get("stages_s"), run.get("seconds"), run.get("new")
    if not (isinstance(stages, dict) and isinstance(seconds, int | float) and isinstance(new, dict) and new.get("pairs")):
        return {"stages": "", "stages_note": ""}
    workers = run.get("workers")
    note = (
        f"The last run made {new['pairs']:,} pairs in {seconds:,.1f} s, {new['pairs'] / seconds:,.0f} pairs/s, with {workers}"
        f" worker{'s' if workers != 1 else ''}; seconds are summed over workers."
    )
    return {"stages": markup(time_bar({str(k): float(v) for k, v in stages.items()})), "stages_note": note}


def _groups(dataset: ExpertDataset) -> list[Content]:
    config, flown, nominal = dataset.config, dataset.flown, dataset.vehicle
    true, command = dataset.true, dataset.command
    force = full_thrust_of(nominal) / nominal.rotor_count
    ratio = nominal.rotor_count * flown["rotor_force_N"] / (flown["mass_kg"] * nominal.gravity)
    weight = nominal.rotor_count * force / (nominal.mass * nominal.gravity)
    groups: dict[str, list[Panel]] = {
        "States": [
            *(Panel(f"position {axis}", "m", true[:, 1 + k]) for k, axis in enumerate("xyz")),
            Panel("speed", "m/s", np.linalg.norm(true[:, 4:7], axis=1), bounds=(0.0, 0.0)),
            *(Panel(f"velocity {axis}", "m/s", true[:, 4 + k]) for k, axis in enumerate("xyz")),
            Panel("tilt", "deg", np.degrees(tilt_of(true[:, 7:])), bounds=(0.0, 0.0)),
            Panel("heading", "deg", np.degrees(yaw_of(true[:, 7:]))),
            Panel("time on the course", "s", true[:, 0]),
        ],
        "Commands of the expert": [
            Panel("thrust", "share of full", command[:, 0], (1.0 / weight,), (0.0, 1.0)),
            *(Panel(f"{name} rate", "rad/s", command[:, 1 + k]) for k, name in enumerate(("roll", "pitch", "yaw"))),
        ],
        "Drones": [
            Panel("mass", "kg", flown["mass_kg"], (nominal.mass,)),
            Panel("force of a rotor", "N", flown["rotor_force_N"], (force,)),
            Panel("thrust to weight", "", ratio, (weight,)),
        ],
        "Ends": [
            Panel(
                "end error, all flown",
                "m",
                flown["end_error_m"],
                (config.keep_within,) * (config.keep_within > 0.0),
                (0.0, 0.0),
            ),
        ],
    }
    if config.noise != "baseline":
        off = dataset.sensed - dataset.true
        groups["Noise of what is sensed"] = [
            *(Panel(f"position {axis}", "m", off[:, 1 + k]) for k, axis in enumerate("xyz")),
            *(Panel(f"velocity {axis}", "m/s", off[:, 4 + k]) for k, axis in enumerate("xyz")),
        ]
    return [{"title": title, "panels": [_drawn(panel) for panel in panels]} for title, panels in groups.items()]


def _drawn(panel: Panel) -> Any:
    return markup(histogram(panel))


def _courses(dataset: ExpertDataset) -> Content:
    rows = []
    for index, name in enumerate(dataset.config.courses):
        mine = dataset.flown["course"] == index
        kept, error = dataset.flown["kept"][mine], dataset.flown["end_error_m"][mine]
        train, held = dataset.split(name)
        numbers = {"rollouts": len(kept), "kept": int(kept.sum()), "pairs": len(train) + len(held), "train": len(train)}
        row = {key: f"{value:,}" for key, value in {**numbers, "held": len(held)}.items()}
        rows.append({"name": name, "rate": f"{100.0 * kept.mean():.2f} %", "error": f"{np.median(error):.4f}", **row})
    failed = int(dataset.flown["failed_ticks"].sum())
    notes = [
        "Dynamics are the published point mass with attitude kinematics: no inertia, motor lag, drag or wind.",
        "Start states are uniform boxes round the course; nothing keeps them out of furniture, as published.",
        f"The expert found no optimum at {failed:,} ticks; roll-outs with any are not kept.",
    ]
    drone = dataset.vehicle
    for item in dropped_of(dataset.config, dataset.flown, drone.rotor_count, drone.gravity):
        notes += item.lines(dataset.config)
    return {"courses": rows, "notes": notes}


def _at(values: Mapping[str, Any], *names: str) -> Any:
    found: Any = values
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _duration(seconds: float) -> str:
    return f"{seconds / 60.0:,.0f} min" if seconds >= 600.0 else f"{seconds:,.0f} s"


def _bytes(size: int) -> tuple[str, str]:
    for unit, scale in (("GB", 1e9), ("MB", 1e6)):
        if size >= scale:
            return f"{size / scale:,.1f}", unit
    return f"{size / 1e3:,.0f}", "kB"
