"""What a poor film is told: a sentence each that says what is wrong with it and what to film instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.capture.video.frames import TakenFrame

__all__ = ["FilmAdvice", "judged_depth", "judged_reconstruction"]

_REGISTERED = 0.5
"""Share of the pictures that must have a pose. Ours: half a room is none."""
_SECOND = 0.1
"""Share of the pictures from where on a second part counts as a place of its own."""
_FEATURES = 250
"""Median of a picture below which it is blurred or bare; sharp rooms have 1,000 and more at 640 px."""
_POINTS = 200
_ERROR_PX = 1.5
_DEPTH_PERCENT, _DEPTH_WITHIN = 12.0, 20.0
"""Median of how far splats are off triangulated points, in percent of the depth, from where on they do not show the place; and
percent of the points within 5 % below which they do not. Good captures: three halls 2.1, 2.2, 3.7 and 4.1 % with 78, 75, 61 and
56 % within 5 %, one of them quickly 6.2 % with 36 %, a telephone's photographs of a fox 6.4 %; one that no place could be made
of: 25 % and 1 %."""


@dataclass(frozen=True)
class FilmAdvice:
    """What is wrong with a film, in sentences."""

    refused: str = ""
    """Why no place can be made of it; empty: one can."""
    warnings: tuple[str, ...] = ()


def judged_reconstruction(result: Mapping[str, Any], record: Mapping[str, Any], frames: Sequence[TakenFrame]) -> FilmAdvice:
    """Return what to say of a reconstruction.

    Args:
        result: Of reconstruction.json.
        record: Of frames.json.
        frames: Those of it.
    """
    found = _judged(result, record, frames)
    if not found.refused:
        return found
    again = [_copied_again(record["sources"], "film", "copy or export the film again")]
    again.append(_copied_again(record["sources"], "photographs", "copy the photographs again"))
    asked = ", and ".join(filter(None, again))
    return FilmAdvice(f"{found.refused} First, though, {asked}.", found.warnings) if asked else found


def _copied_again(sources: Sequence[Mapping[str, Any]], kind: str, asked: str) -> str:
    """Return what to copy again, and why; empty where nothing of a kind is damaged."""
    damage = [
        f"{source['name']}: {note}"
        for source in sources
        if source.get("kind", "film") == kind
        for note in source["notes"]
        if "cut off" in note or "damaged" in note
    ]
    return f"{asked} ({'; '.join(damage)})" if damage else ""


def _judged(result: Mapping[str, Any], record: Mapping[str, Any], frames: Sequence[TakenFrame]) -> FilmAdvice:
    total, models = result["pictures"], result["models"]
    warnings = [*_about_films(record)]
    if not models or len(models[0]["images"]) < 3 or models[0]["points"] < _POINTS // 4:
        return FilmAdvice(_why_nothing(result), tuple(warnings))
    first = models[0]
    posed = len(first["images"])
    others = [len(model["images"]) for model in models[1:] if len(model["images"]) >= max(5, _SECOND * total)]
    if posed < _REGISTERED * total:
        if others:
            return FilmAdvice(_parts(posed, others, total, result, frames), tuple(warnings))
        return FilmAdvice(
            f"Only {posed} of {total} pictures hang together: {_why_nothing(result)[0].lower()}{_why_nothing(result)[1:]}",
            tuple(warnings),
        )
    if others:
        warnings.append(_parts(posed, others, total, result, frames) + " The largest part is used.")
    elif posed < total:
        lost = sorted({frame.name for frame in frames} - set(first["images"]))
        warnings.append(
            f"{total - posed} of {total} pictures have no pose ({', '.join(lost[:3])}{', ...' if len(lost) > 3 else ''}): they"
            " are blurred, or show what no other picture shows."
        )
    if first["points"] < _POINTS:
        warnings.append(f"Only {first['points']} points were found: film a room with more to see in it, in more light.")
    if first["reprojection_px"] > _ERROR_PX:
        warnings.append(
            f"Points are off by {first['reprojection_px']:.1f} px, and {_ERROR_PX:g} px or less is usual: something moved, or"
            " the film is shaken; walk more slowly."
        )
    warnings += _about_consistency(result, frames)
    warnings += _about_mirror(result)
    return FilmAdvice("", tuple(warnings))


def _about_consistency(result: Mapping[str, Any], frames: Sequence[TakenFrame]) -> list[str]:
    """Return what is said of parts that contradict each other, or hardly hang together."""
    # Folders of before have no such figures.
    found = result.get("consistency") or {}
    posed = set(result["models"][0]["images"])
    taken, said = [frame for frame in frames if frame.name in posed], []
    split, cut = found.get("split"), found.get("cut")
    if split and split["contradictory"]:
        one, other = _two_parts(split["first"], taken)
        said.append(
            f"Two places may lie in one another here: {one} look through things of {other}, or the other way round"
            f" ({split['points']} points, in {100 * split['across']:.1f} % of looks; within each part in"
            f" {100 * split['within']:.1f} %). Either two rooms look alike and were taken for one: film each by itself; or"
            " things were moved: film again, and leave everything where it is until you are done."
        )
    if cut and cut["thin"]:
        one, other = _two_parts(cut["first"], taken)
        said.append(
            f"{one[0].upper()}{one[1:]} and {other} share only {cut['shared']} points, of {cut['fewest']} and more in each: how"
            " they lie to each other is hardly known. Film the way from one to the other again, slowly and looking back, so"
            " that both are seen at once."
        )
    return said


def _about_mirror(result: Mapping[str, Any]) -> list[str]:
    """Return what is said of a mirror."""
    # Folders of before have no such figures.
    found = result.get("mirror")
    if not found or not found["believed"]:
        return []
    where = ", ".join(found["pictures"])
    said = (
        f"A mirror is in the film, or a pane that mirrors, seen in {where}: {found['pairs']} points behind a plane that the"
        " camera never passes are mirror images of points before it. The room behind it is not there; a place calls it unknown."
        " Cover the mirror with a cloth or paper, and film again."
    )
    return [said]


def _two_parts(first: Sequence[str], frames: Sequence[TakenFrame]) -> tuple[str, str]:
    """Name two parts of the pictures: by their seconds, or by how many there are of which sources."""
    names, runs = set(first), list[tuple[bool, list[TakenFrame]]]()
    for frame in frames:
        inside = frame.name in names
        if not runs or runs[-1][0] != inside:
            runs.append((inside, []))
        runs[-1][1].append(frame)
    one_film = len({frame.source for frame in frames}) == 1 and frames[-1].time > frames[0].time
    said = []
    for side in (True, False):
        own = [run for inside, run in runs if inside == side]
        if one_film and len(own) <= 2:
            said.append("pictures of " + " and ".join(map(_span, own)))
        elif len(own) <= 2:
            said.append("pictures " + " and ".join(f"{run[0].name} to {run[-1].name}" for run in own))
        else:
            said.append(f"{sum(map(len, own))} pictures ({', '.join(run[0].name for run in own[:3])}, ...)")
    return said[0], said[1]


def _about_films(record: Mapping[str, Any]) -> list[str]:
    said = []
    for source in record["sources"]:
        said += [f"{source['name']}: {note}." for note in source["notes"]]
        if source["shaken"] > 0.3 * source["pictures"]:
            said.append(
                f"{source['name']}: {source['shaken']} of {source['pictures']} pictures are shaken; hold the telephone with"
                " both hands, walk slowly, and film in more light."
            )
    return said


def _why_nothing(result: Mapping[str, Any]) -> str:
    """Why hardly two pictures hang together: blur, or no overlap."""
    features = float(np.median(list(result["features"].values()) or [0]))
    if features < _FEATURES:
        return (
            f"The pictures are blurred or show hardly anything ({features:.0f} features in most, 1,000 are usual): wipe the"
            " lens, switch on the light, walk slowly, and film what has texture."
        )
    pairs = result["pairs"]
    if pairs["verified"] < result["pictures"] // 2:
        return (
            f"The pictures do not overlap ({pairs['verified']} of {pairs['tried']} pairs show the same): film without cuts, or"
            " take photographs a step apart that share two thirds of what they show."
        )
    return (
        "The camera only turned, or everything in view is one plane: walk sideways round the room, so that things are seen from"
        " several places."
    )


def _parts(posed: int, others: list[int], total: int, result: Mapping[str, Any], frames: Sequence[TakenFrame]) -> str:
    counts = ", ".join(map(str, [posed, *others]))
    when = {frame.name: frame for frame in frames}
    spans = [_span([when[name] for name in model["images"] if name in when]) for model in result["models"][: 1 + len(others)]]
    where = f" ({'; '.join(spans)})" if all(spans) else ""
    return (
        f"The pictures show {1 + len(others)} parts that do not hang together: {counts} of {total} pictures{where}. If these"
        " are different rooms, film each by itself, or walk slowly through the door, looking back, so that both are seen at"
        " once. If they are parts of one room, they were filmed too far apart: film the way from one to the other as well,"
        " slowly, each picture showing most of what the one before showed."
    )


def _span(frames: Sequence[TakenFrame]) -> str:
    """When a part was filmed; empty where it is of several sources."""
    if not frames or len({frame.source for frame in frames}) > 1:
        return ""
    times = [frame.time for frame in frames]
    return f"{min(times):.0f} to {max(times):.0f} s"


def judged_depth(depth: Mapping[str, Any]) -> str:
    """Return what to say of splats whose depth is not that of the points that pictures have in common; empty: it is.

    Args:
        depth: As `depth_against_leftovers` returns it.
    """
    if not depth["points"]:
        return "Whether the splats lie where they should is not known: no triangulated point could be compared with them."
    median, within = depth["median_percent"], depth["within_5_percent"]
    if median <= _DEPTH_PERCENT and within >= _DEPTH_WITHIN:
        return ""
    return (
        f"The splats do not lie where the pictures' points are: {within:.0f} % of {depth['points']:,} points are within 5 % of"
        f" their depth, and the median is off by {median:.0f} % (good films: half and more, and 2 to 6 %). Do not trust the"
        " place: delete its folder splats and train with more --steps and --gaussians; or film again, walking sideways past"
        " everything, so that each thing is seen from several places."
    )
