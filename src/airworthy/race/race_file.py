"""Race files: one TOML each, read strictly. docs/howto/race.md walks through one."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from airworthy.core.errors import AirworthyError, AssetError, unknown_name
from airworthy.core.files import UNPRINTABLE, parse_toml, read_text
from airworthy.core.table_schema import TableSchema, check_header
from airworthy.race.gate_geometry import GateShape, gate_shape
from airworthy.race.gates_apart import check_apart
from airworthy.race.record import REVERSED, Post, Race, RaceGate

VERSION = 1
"""Of the file form."""
BYTES_MAX = 256 * 1024
"""A race of two hundred gates has a tenth of it; larger files are refused before they are parsed."""
PASSAGES_MAX = 10_000
"""Of all laps together; the referee keeps a few numbers of each, for each flight."""
_HEIGHTS = 65
"""Heights at which posts are looked for in an opening: of one of 2 m a place each 3 cm."""
_SCHEMA = TableSchema(64, 1000, "tables", "numbers")
_HEAD = ("airworthy", "race")
_PACKAGE = "airworthy.race"
_NAME, _DRAWN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*"), re.compile(r"random:[0-9]+")
RANDOM = "random"
"""Before a colon and a seed: a race that is drawn (`airworthy.race.drawn`)."""


def race_names() -> tuple[str, ...]:
    """Return the names of the races that come with the package, sorted; drawn ones (`random:SEED`) come beside them."""
    return _shipped()


@cache
def _shipped() -> tuple[str, ...]:
    found = (item.name for item in files(_PACKAGE).joinpath("races").iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml")))


def load_race(name_or_file: str | Path) -> Race:
    """Return a race: by its name, `random:SEED`, or the path of a race TOML.

    Args:
        name_or_file: What ends in .toml or has a folder is a file.

    Raises:
        UnknownNameError: There is no race of this name.
        AssetError: A file that is not there, or not a race: one sentence that names the field.
    """
    word = str(name_or_file)
    if isinstance(name_or_file, Path) or word.endswith(".toml") or "/" in word:
        return race_from_text(read_text(name_or_file, BYTES_MAX), word)
    head, colon, seed = word.partition(":")
    if head == RANDOM:
        from airworthy.race.drawn import random_race  # draws need the record, which this file reads

        return random_race(_seed(seed if colon else "0", word))
    if word not in _shipped():
        hint = "Drawn ones are random:SEED, your own the path of a TOML (docs/howto/race.md)."
        raise unknown_name("race", word, _shipped(), hint)
    return _read_shipped(word)


def _seed(text: str, word: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise AirworthyError(f"The race {word!r} is not known: expected random:SEED with a whole number of at most 18 digits.")
    return int(text)


@cache
def _read_shipped(name: str) -> Race:
    text = files(_PACKAGE).joinpath("races", f"{name}.toml").read_text("utf-8")
    return race_from_text(text, f"{name}.toml")


def race_from_text(text: str, where: str) -> Race:
    """Return the race of a TOML text.

    Args:
        text: Of bounded length.
        where: Begins messages: the file.

    Raises:
        AssetError: It is not TOML, not a race, or a race that cannot be flown: one sentence.
    """
    table = parse_toml(text, where)
    check_header(table, where, "a race", _HEAD, VERSION)
    given = {key: value for key, value in table.items() if key not in ("airworthy", "version")}
    race: Race = _SCHEMA.record(Race, given, f"{where}: ")
    # The file is named once, before whatever is wrong with it.
    try:
        check_race(race)
    except AirworthyError as error:
        raise AssetError(f"{where}: {error}") from error
    return race


# ---- What holds between fields ----------------------------------------------------------------------------------------------


def check_race(race: Race) -> None:
    """Refuse a race that cannot be flown as it is written.

    Raises:
        AirworthyError: One sentence.
    """
    _check_names(race)
    for gate in race.gates:
        _check_form(gate)
        gate_shape(gate)
    _check_rules(race)
    _check_information(race)
    _check_places(race)
    check_apart(race)


def _check_names(race: Race) -> None:
    names = [gate.name for gate in race.gates]
    # Plans and results are called after it: nothing in it may lead elsewhere, or mean anything in a page.
    if not (_NAME.fullmatch(race.name) or _DRAWN.fullmatch(race.name)):
        raise AirworthyError(
            f"The race is called {race.name!r}; expected letters, digits, dots, hyphens and underscores, the first a letter or"
            " a digit, as 'yard' or 'lsy_2'."
        )
    for what in ("title", "description", "source"):
        if UNPRINTABLE.search(getattr(race, what)):
            raise AirworthyError(f"The {what} of the race holds letters that cannot be printed; expected one line of text.")
    for name in names:
        if not name.isprintable():
            raise AirworthyError(f"The name {name!r} holds letters that cannot be printed; expected one line of text.")
    for name in names:
        if name.startswith(REVERSED) or name != name.strip():
            raise AirworthyError(
                f"A gate is called {name!r}; expected a name without blanks around it and no hyphen before it."
            )
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise AirworthyError(f"Two gates are called {double!r}; expected one of each name.")
    if len(race.order) * race.laps > PASSAGES_MAX:
        raise AirworthyError(
            f"{len(race.order)} gates in {race.laps} laps are too many; expected {PASSAGES_MAX:,} passages at most."
        )
    for name, _ in race.passes:
        if name not in names:
            raise unknown_name("gate in the order", name, names)
    # Decoys belong to the scene: the referee asks for gates that are flown.
    idle = sorted(set(names) - {name for name, _ in race.passes})
    if idle:
        raise AirworthyError(f"Gate {idle[0]!r} is not in the order: leave it out, or fly it.")


def _check_form(gate: RaceGate) -> None:
    """Refuse a gate that is given in two ways, or half."""
    by_pose = gate.position is not None
    if by_pose and (gate.corners or any(gate.direction)):
        raise AirworthyError(f"Gate {gate.name!r} has a position and corners or a direction: give one form, pose or corners.")
    if by_pose and gate.opening is None:
        raise AirworthyError(f"Gate {gate.name!r} has a position and no opening: give its width and height.")
    if not by_pose and (gate.opening is not None or gate.yaw_deg != 0.0):
        raise AirworthyError(f"Gate {gate.name!r} has an opening or a yaw and no position: give one form, pose or corners.")
    if not by_pose and len(gate.corners) != 4:
        raise AirworthyError(f"Gate {gate.name!r} has {len(gate.corners)} corners; expected 4, or a position and an opening.")


def _check_rules(race: Race) -> None:
    score, limits = race.score, race.limits
    if race.test == "loose" and len(set(race.passes)) < len(race.passes):
        raise AirworthyError(
            "The loose test looks for all later gates at once, so a gate that is flown twice would be passed twice at once:"
            ' use test = "strict".'
        )
    if race.test == "loose" and (any(reverse for _, reverse in race.passes) or race.clock.starts != "armed"):
        raise AirworthyError('The loose test knows no direction and no flying start: use test = "strict", or leave these out.')
    if (score.rule == "points") != (score.gate_points > 0.0):
        raise AirworthyError('gate_points belong to the rule "points", and make it: give both or none.')
    if (score.best > 0) != (score.of > 0) or score.best > score.of:
        raise AirworthyError(f"score has best {score.best} of {score.of}: give both or none, the first not above the second.")
    if (limits.lower is None) != (limits.upper is None):
        raise AirworthyError("limits has one of lower and upper: give both or none.")
    if limits.lower is not None and limits.upper is not None and not np.all(np.less(limits.lower, limits.upper)):
        raise AirworthyError(f"limits.lower is {limits.lower}, which is not below limits.upper, {limits.upper}.")
    if race.layout is not None and limits.lower is None:
        raise AirworthyError("layout places gates within the limits: give limits.lower and limits.upper.")


def _check_information(race: Race) -> None:
    told = race.information
    if (told.gates == "near") != (told.near_m > 0.0):
        raise AirworthyError('information.near_m belongs to gates = "near", and makes it: give both or none.')
    if not told.sensors or len(set(told.sensors)) < len(told.sensors):
        raise AirworthyError(f"information.sensors is {list(told.sensors)}; expected each sensor once, and at least one.")


def _check_places(race: Race) -> None:
    """Refuse a start or a gate outside the limits, and posts that stand in an opening."""
    lower, upper = race.limits.lower, race.limits.upper
    shapes = {gate.name: gate_shape(gate) for gate in race.gates}
    if lower is not None and upper is not None:
        for what, point in [
            ("The start", np.array(race.start.position)),
            *((f"Gate {n!r}", s.center) for n, s in shapes.items()),
        ]:
            if np.any(point < lower) or np.any(point > upper):
                raise AirworthyError(f"{what} lies outside the limits, {list(lower)} to {list(upper)} m.")
    start = np.array(race.start.position)
    for number, post in enumerate(race.posts, 1):
        if np.linalg.norm(start[:2] - post.position) < post.radius and start[2] < post.top:
            raise AirworthyError(f"The start lies in post {number}: move one of them.")
        for name, shape in shapes.items():
            if _stands_in(post, shape):
                raise AirworthyError(f"Post {number} stands in the opening of gate {name!r}.")


def _stands_in(post: Post, shape: GateShape) -> bool:
    """Tell whether a post's axis lies in an opening anywhere, nearer to its plane than the post's own radius."""
    lowest, highest = shape.ring[:, 2].min(), shape.ring[:, 2].max()
    if post.top <= lowest:
        return False
    heights = np.linspace(lowest, min(post.top, highest), _HEIGHTS)
    points = np.column_stack([np.tile(post.position, (_HEIGHTS, 1)), heights])
    near = np.abs((points - shape.center) @ shape.normal) < post.radius
    return bool(np.any(near & shape.holds(points)))
