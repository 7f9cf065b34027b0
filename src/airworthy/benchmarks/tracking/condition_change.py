"""What a condition changes, in numbers; and conditions that change nothing: refused where named, left out of groups."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from airworthy.benchmarks.tracking.block import Setting
from airworthy.benchmarks.tracking.condition_edits import SPLAT_BOX, gaussians_in, splat_boxes, surface_faces
from airworthy.benchmarks.tracking.condition_scene import MARGIN, item_box
from airworthy.benchmarks.tracking.conditions import Condition, condition, noise_level
from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.scenes import Scene
from airworthy.scenes.splats.editing import EditBox
from airworthy.trajectories import course

__all__ = ["change_of", "change_text", "drop_unchanged"]

_ROOT = "baseline"
_PLAIN = ("light", "people", "mass", "mass_spread", "thrust_spread", "pickup", "gust", "delay", "position_spread",
          "velocity_spread", "attitude_spread", "freeze", "image_delay", "shift")  # fmt: skip
_SHOWN = {
    "light": "{:g} of the light",
    "people": "{} people",
    "mass": "{:g} times the mass",
    "mass_spread": "mass drawn within {:g} of itself",
    "thrust_spread": "thrust drawn within {:g} of itself",
    "pickup": "{:g} of the mass hung on in flight",
    "gust": "a push of {:g} m/s^2",
    "delay": "commands {:g} s late",
    "position_spread": "starts within {:g} m",
    "velocity_spread": "starts within {:g} m/s",
    "attitude_spread": "starts within {:g} of each quaternion component",
    "freeze": "images that stay as they are from {:g} s on",
    "image_delay": "images {:g} s late",
    "shift": "the place {:g} m to the left",
    "noise_sensor": "noise of what is sensed, standard deviations of up to {:g}",
    "noise_model": "noise of the motion, standard deviations of up to {:g}",
    "things_out": "{} taken out",
    "gaussians_out": "{:,} gaussians taken out",
    "faces_out": "{:,} faces of the captured surface taken out",
    "pillars_covered": "{} pillars covered",
    "blind": "black images",
}


def change_of(item: Condition, flown: str, place: str, scenes: Mapping[str, Scene]) -> dict[str, Any]:
    """Return what a condition changes of the baseline, by name: numbers, and names of things that are taken out; empty where
    it changes nothing.

    Args:
        item: The condition.
        flown: Course of conditions without their own.
        place: Scene of conditions without their own.
        scenes: By name.
    """
    usual = condition(_ROOT)
    found: dict[str, Any] = {name: getattr(item, name) for name in _PLAIN if getattr(item, name) != getattr(usual, name)}
    if found.get("freeze", 0.0) >= course(item.course or flown).trajectory().duration:
        # Nobody is left to see the picture that stays.
        del found["freeze"]
    if item.blind:
        found["blind"] = True
    level = noise_level(item.noise)
    for name, values in (("noise_sensor", level.sensor), ("noise_model", level.model)):
        if any(values):
            found[name] = max(values)
    found |= {name: getattr(item, name) for name in ("course", "scene") if getattr(item, name)}
    if item.edits:
        found |= _edited(item, flown, place, scenes)
    return found


def _edited(item: Condition, flown: str, place: str, scenes: Mapping[str, Scene]) -> dict[str, Any]:
    """Return what is no longer in the scene, or new in it."""
    whole = scenes[item.scene or place]
    # Surfaces alone are edited: clouds take long, and what goes of them is counted by the boxes that take it.
    bare = replace(whole, clouds={}, splats=())
    setting = Setting(replace(item, light=1.0, people=0, shift=0.0, boxes=0), flown, place, {item.scene or place: bare})
    kept = {id(thing) for thing in setting.scene.instances}
    gone = [thing for thing in bare.instances if id(thing) not in kept]
    covers = sum(thing.name.startswith("cover_") for thing in setting.scene.instances)
    boxes = [item_box(bare, thing, MARGIN) for thing in gone]
    taken: list[EditBox] = splat_boxes(whole, setting.points.position, item.boxes) if item.boxes else []
    found: dict[str, Any] = {
        "things_out": [thing.name or thing.semantic for thing in gone],
        "gaussians_out": int(gaussians_in(whole, [*boxes, *taken])),
        "faces_out": int(sum(surface_faces(whole, box).sum() for box in taken)),
        "pillars_covered": covers,
    }
    if taken:
        found["boxes"] = [{"center_m": list(box.center), "edge_m": SPLAT_BOX} for box in taken]
    return {name: value for name, value in found.items() if value}


def change_text(change: Mapping[str, Any]) -> str:
    """Return a change in words, as "3 things taken out (gate, ladder, monitor), 1,204 gaussians taken out"."""
    parts = []
    for name, pattern in _SHOWN.items():
        if name not in change:
            continue
        value = change[name]
        if isinstance(value, list):
            names = ", ".join(value[:4]) + (", ..." if len(value) > 4 else "")
            value = f"{len(value)} thing{'s' if len(value) > 1 else ''} ({names})"
        parts.append(pattern.format(value))
    parts += [f"{name} {change[name]!r}" for name in ("course", "scene") if name in change]
    return ", ".join(parts)


def drop_unchanged(
    asked: Sequence[str],
    conditions: Sequence[Condition],
    changes: Mapping[str, Mapping[str, Any]],
    flown: str,
    place: str,
    option: str = "--conditions",
) -> dict[str, str]:
    """Return conditions that change nothing and came in a group, by name with why; warn of them.

    The baseline changes nothing by its nature, and neither does the first point of a sweep, where both stay.

    Args:
        asked: Words of the option.
        conditions: That they stand for.
        changes: Of each, as `change_of` returns them, by name.
        flown: Course of conditions without their own.
        place: Scene of conditions without their own.
        option: By which conditions are named.

    Raises:
        AirworthyError: A condition that changes nothing was named itself, or none but such are left.
    """
    idle = {item.name: _why(item, flown, place) for item in conditions if item.name != _ROOT and not changes[item.name]}
    named = {name: why for name, why in idle.items() if name in asked}
    if named:
        words = [item.name for item in conditions if item.name not in idle]
        rest = f" as {option} {' '.join(words)}" if words else ""
        told = "; ".join(f"{name!r}: {why}" for name, why in named.items())
        instead = (
            ", or take out what is there: without_nearest:3, of a captured place without_boxes:3"
            # One that takes things out already found none of its kind: the same advice would be its own.
            if any(item.edits and not item.name.startswith("without_") for item in conditions if item.name in named)
            else ""
        )
        raise AirworthyError(
            f"{'A condition changes' if len(named) == 1 else f'{len(named)} conditions change'} nothing, and would be flown as"
            f" the baseline: {told}. Leave {'it' if len(named) == 1 else 'them'} out{rest}{instead}."
        )
    edits = {item.name for item in conditions if item.edits}
    dropped = {name: why for name, why in idle.items() if ":" not in name or name in edits}
    if dropped:
        told = "; ".join(f"{name}: {why}" for name, why in dropped.items())
        warnings.warn(
            f"{len(dropped)} of {len(conditions)} conditions would change nothing, and {'is' if len(dropped) == 1 else 'are'}"
            f" left out: {told}.",
            AssetWarning,
            stacklevel=3,
        )
    return dropped


def _why(item: Condition, flown: str, place: str) -> str:
    where = f"near the course {item.course or flown!r} the scene {item.scene or place!r} has"
    if item.removed or item.covered:
        return f"{where} no {' and no '.join(item.removed or ('pillar',))}"
    if item.boxes:
        return f"{where} no gaussians"
    if item.nearest or item.clear:
        return f"{where} no thing that is no part of the room"
    if item.freeze:
        return f"images stay from {item.freeze:g} s on, and the course {item.course or flown!r} is over by then"
    return "all its values are the baseline's"
