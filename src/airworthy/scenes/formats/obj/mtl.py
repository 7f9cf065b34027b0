"""Lines of material libraries (MTL, with the physically based additions that exporters write), and what is not read of them."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from airworthy.core.files import shown
from airworthy.scenes.formats._source import ModelSource, clean_name
from airworthy.scenes.formats._text import BOM, decoded

__all__ = ["MapUse", "MtlEntry", "read_entries", "tell_unread"]

_MTL_BYTES = 2 * 1024 * 1024
_NUMBERS = {"kd": 3, "ks": 3, "ke": 3, "tf": 3, "ns": 1, "ni": 1, "d": 1, "tr": 1, "illum": 1, "pr": 1, "pm": 1}
"""Keywords of numbers that are read, and how many there are."""
_MAPS = {
    "map_kd": "base",
    "map_d": "mask",
    "map_ke": "emissive",
    "map_bump": "bump",
    "bump": "bump",
    "norm": "normal",
    "map_norm": "normal",
    "disp": "height",
    "map_disp": "height",
    "map_pr": "roughness",
    "map_pm": "metallic",
    "map_smoothness": "smoothness",
    "map_ka": "occlusion",
    "map_ao": "occlusion",
    "map_detail": "detail",
}
_SILENT = {"ka", "sharpness", "map_aat", "pcr", "anisor"}
"""Of no matter here: light from all sides is the sky's, and the last two are of keywords that are told by themselves."""
_OPTION_ARGUMENTS = {"-bm": 1, "-blendu": 1, "-blendv": 1, "-boost": 1, "-cc": 1, "-clamp": 1, "-imfchan": 1, "-texres": 1}
_OPTION_ARGUMENTS |= {"-type": 1, "-mm": 2}
_VECTOR_OPTIONS = {"-o": 0.0, "-s": 1.0, "-t": 0.0}
"""Of one to three numbers, and the number that says nothing."""
_IDLE_OPTIONS = {"-clamp": "off", "-cc": "off"}
"""Of a word that says nothing."""
_AFTER_ENDING = re.compile(r"(?i)(?<=\.mtl)\s+")
_DISTINCT = 32
"""Keywords that are not read, told of by name; a file could otherwise fill a screen."""


@dataclass(frozen=True)
class MapUse:
    """An image that a material names."""

    file: str
    strength: float = 1.0
    """-bm."""
    channel: str = ""
    """-imfchan: r, g, b, m (matte, which is alpha), l (luminance) or z."""


@dataclass
class MtlEntry:
    """A material as its library has it."""

    numbers: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """By keyword in lower case."""
    maps: dict[str, MapUse] = field(default_factory=dict)
    """By use: base, mask, emissive, ..."""
    unread: dict[str, None] = field(default_factory=dict)
    """Keywords that would change its picture and are not read, as the file spells them, in its order."""

    replaces: bool = False
    """Whether its library had another one of this name before it, which does not count."""

    def number(self, keyword: str, default: float) -> float:
        """Return a single number, the default where the file has none."""
        return self.numbers.get(keyword, (default,))[0]


def read_entries(source: ModelSource, names: Iterable[str]) -> dict[str, MtlEntry]:
    """Return entries of all libraries that an OBJ file names, by material; a missing library is warned of.

    Args:
        source: The OBJ file; libraries lie beside it.
        names: Of the libraries, as the lines of the file have them. Of two materials of one name the first library's counts,
            and of two in one library the last.
    """
    entries: dict[str, MtlEntry] = {}
    for name in _files(source, names):
        if not _exists(source, name):
            source.warn(f"material library {shown(name)} is missing")
            continue
        data = source.reference(name, escaped=False)
        if len(data) > _MTL_BYTES:
            source.refuse(f"its library {shown(name)} has {len(data):,} bytes, and at most {_MTL_BYTES:,} are accepted")
        entries = _parse(source, data) | entries
        source.at_most(len(entries), source.limits.materials, "materials")
    return entries


def _files(source: ModelSource, lines: Iterable[str]) -> list[str]:
    """Return each library that lines name, once: a line is one name where such a file exists, else names apart by blanks."""
    found: dict[str, None] = {}
    for line in dict.fromkeys(lines):
        # Names after an ending may hold blanks themselves; words are what the format has.
        splits = [[line]] if _exists(source, line) else [_AFTER_ENDING.split(line), line.split()]
        for names in splits:
            source.at_most(len(found) + len(names), source.limits.images, "material libraries")
        found |= dict.fromkeys(next((names for names in splits if any(_exists(source, name) for name in names)), [line]))
    return list(found)


def _exists(source: ModelSource, name: str) -> bool:
    return os.path.exists(source.inside(name, escaped=False))


def tell_unread(source: ModelSource, entries: Mapping[str, MtlEntry]) -> None:
    """Warn of what is not read, by keyword with the number of materials that have it.

    Args:
        source: The file.
        entries: Of the materials that its faces have.
    """
    counts = Counter(keyword for entry in entries.values() for keyword in entry.unread)
    for keyword, count in list(counts.items())[:_DISTINCT]:
        source.warn(f"{count:,} material{'s have' if count > 1 else ' has'} {shown(keyword)}, which is not read")
    if len(counts) > _DISTINCT:
        source.warn(f"{len(counts) - _DISTINCT:,} further keywords of materials are not read")


def _parse(source: ModelSource, data: bytes) -> dict[str, MtlEntry]:
    entries: dict[str, MtlEntry] = {}
    entry = MtlEntry()
    for line in map(decoded, data.removeprefix(BOM).splitlines()):
        keyword, _, rest = line.strip().replace("\t", " ").partition(" ")
        key, rest = keyword.lower(), rest.strip()
        if key == "newmtl":
            name = clean_name(rest, "default")
            entry = entries[name] = MtlEntry(replaces=name in entries)
        elif key in _NUMBERS:
            _take_numbers(source, entry, key, rest, line)
        elif key in _MAPS:
            _take_map(entry, keyword, rest)
        elif keyword and not keyword.startswith("#") and key not in _SILENT and _says(rest):
            entry.unread[keyword] = None
    return entries


def _says(rest: str) -> bool:
    """Tell whether what stands behind a keyword can change a picture: nothing and zeros do not."""
    return bool(rest) and any(_floats([token]) != (0.0,) for token in rest.split())


def _take_numbers(source: ModelSource, entry: MtlEntry, key: str, rest: str, line: str) -> None:
    tokens = rest.split()
    if key == "d" and tokens[:1] == ["-halo"]:
        entry.unread["d -halo"] = None  # which thins out towards the rim; the number holds for all of it
        tokens = tokens[1:]
    values = _floats(tokens[: _NUMBERS[key]])
    if len(values) == 1 and _NUMBERS[key] == 3:
        values = values * 3  # the format lets one number stand for all three
    if len(values) == _NUMBERS[key]:
        entry.numbers[key] = values
    else:
        source.warn(f"material line {shown(line.strip())} not understood")


def _take_map(entry: MtlEntry, keyword: str, rest: str) -> None:
    """Note the image of a map, whose name may hold blanks, and the options before it that are not read."""
    strength, channel = 1.0, ""
    tokens = rest.split(" ")
    while tokens and (tokens[0].lower() in _OPTION_ARGUMENTS or tokens[0].lower() in _VECTOR_OPTIONS):
        option = tokens.pop(0).lower()
        count = 3 if option in _VECTOR_OPTIONS else _OPTION_ARGUMENTS[option]
        arguments: list[str] = []
        while tokens and len(arguments) < count and (option not in _VECTOR_OPTIONS or _floats(tokens[:1])):
            arguments.append(tokens.pop(0))
        if option == "-bm":
            strength = (_floats(arguments) or (1.0,))[0]
        elif option == "-imfchan":
            channel = (arguments or [""])[0].lower()
        elif _moves(option, arguments):
            entry.unread[f"{keyword} {option}"] = None
    name = " ".join(tokens).strip()
    if name:
        entry.maps[_MAPS[keyword.lower()]] = MapUse(name, strength, channel)


def _moves(option: str, arguments: list[str]) -> bool:
    """Tell whether an option that is not read changes how a map looks."""
    if option in _VECTOR_OPTIONS:
        return any(value != _VECTOR_OPTIONS[option] for value in _floats(arguments))
    if option == "-mm":
        return _floats(arguments) != (0.0, 1.0)
    return option in _IDLE_OPTIONS and [word.lower() for word in arguments] != [_IDLE_OPTIONS[option]]


def _floats(tokens: list[str]) -> tuple[float, ...]:
    try:
        values = tuple(float(token) for token in tokens)
    except ValueError:
        return ()
    return values if all(math.isfinite(value) for value in values) else ()
