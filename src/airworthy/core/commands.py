"""The command that makes a result again: what is chosen in a frozen dataclass as the words from which tyro reads the same."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

__all__ = ["command_line"]


def command_line(
    program: str,
    config: Any,
    *,
    leave_out: Collection[str] = (),
    positional: Sequence[str] = (),
    short_numbers: bool = False,
) -> str:
    """One line for a POSIX shell, in which fields stand in their order and those at their defaults are left out.

    Tyro has no words for two things that only a program can choose, and they are not read back: a text of a tuple that begins
    with a hyphen and a letter and is not the first, and the text "None" where a field can be None.

    Args:
        program: How the command is called ("airworthy fly").
        config: A dataclass of booleans, numbers, texts, paths, tuples of these, and dataclasses of them (`--outer.inner`).
        leave_out: Fields on which the result does not depend.
        positional: Fields that are given without an option.
        short_numbers: Write 2.0 as 2 where it is the same number.
    """
    places = [word for name in positional for word in _texts(getattr(config, name), short_numbers)]
    options = _options("--", config, MISSING, {*leave_out, *positional}, short_numbers)
    # Behind a lone "--" nothing is read as an option.
    hidden = any(map(_like_an_option, places))
    return shlex.join([*program.split(), *([*options, "--", *places] if hidden else [*places, *options])])


def _options(prefix: str, config: Any, usual: Any, leave_out: Collection[str], short: bool) -> list[str]:
    """Words of a dataclass where they differ from the usual one, or from its own defaults where there is none."""
    words: list[str] = []
    for item in fields(config):
        value, default = getattr(config, item.name), _default(item) if usual is MISSING else getattr(usual, item.name)
        if item.name in leave_out or value == default:
            continue
        name = item.name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"{prefix}{name}" if value else f"{prefix}no-{name}")
        elif is_dataclass(value):
            words += _options(f"{prefix}{name}.", value, default, (), short)
        else:
            words += _joined(f"{prefix}{name}", _texts(value, short))
    return words


def _default(item: Field[Any]) -> Any:
    return item.default if item.default_factory is MISSING else item.default_factory()


def _joined(option: str, texts: list[str]) -> list[str]:
    """An option and its values; `--x=-a` where the first would be taken for an option."""
    return [f"{option}={texts[0]}", *texts[1:]] if texts and _like_an_option(texts[0]) else [option, *texts]


def _like_an_option(word: str) -> bool:
    """Whether it begins with a hyphen and is neither one alone nor anything that begins as a negative number does."""
    return word.startswith("-") and word[1:2] not in ("", ".") and not word[1].isdigit()


def _texts(value: Any, short: bool) -> list[str]:
    return [_text(part, short) for part in value] if isinstance(value, tuple) else [_text(value, short)]


def _text(value: Any, short: bool) -> str:
    if not isinstance(value, float):
        return str(value)
    # The shortest text that reads back as the same number; as a float, because NumPy's writes its type as well.
    whole, brief = repr(float(value)), f"{value:g}"
    return brief if short and float(brief) == value else whole
