"""Options that would change nothing beside the others: declared once beside a configuration, refused for Python and the
command line alike, and listed in docs/howto/idle_options.md.

An option that somebody gives and that nothing reads leads to wrong conclusions, so it is an error. An option counts as given
where it differs from its default. Keys of random numbers (`seed`) are exempt where only later shows whether anything is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError

__all__ = ["IdleRule", "idle_options", "option_name", "refuse_idle", "without_idle"]

_VALUE_MAX = 40


@dataclass(frozen=True)
class IdleRule:
    """When options change nothing."""

    options: tuple[str, ...]
    """Names of fields; with a dot, of a configuration inside the configuration ("perturb.latency")."""
    when: Callable[..., bool]
    """Of the configuration, and of whatever else the caller knows by then (a scene, a vehicle)."""
    why: str
    """Ends the sentence that begins with "--option changes nothing": "without --scenes, ..."."""
    remedy: str = ""
    """What may be done instead of leaving it out: "name a --scene"."""

    def sentence(self, option: str) -> str:
        """Say so of an option, by how it is written."""
        return f"{option} changes nothing {self.why}: {self.remedy + ', or ' if self.remedy else ''}leave it out."


def refuse_idle(config: Any, rules: Sequence[IdleRule], *known: Any) -> None:
    """Refuse the first option that was given and changes nothing.

    Args:
        config: A dataclass.
        rules: Of its kind.
        known: What the rules' conditions are given besides.

    Raises:
        AirworthyError: One sentence: the option with its value, why nothing reads it, what to do.
    """
    for rule, name, value in idle_options(config, rules, *known):
        raise AirworthyError(rule.sentence(option_name(name, value)))


def idle_options(config: Any, rules: Sequence[IdleRule], *known: Any) -> Iterator[tuple[IdleRule, str, Any]]:
    """Yield the rule, name and value of every option that was given and changes nothing."""
    for rule in rules:
        given = [(name, value) for name in rule.options if (value := _value(config, name)) != _default(type(config), name)]
        if given and rule.when(config, *known):
            yield from ((rule, name, value) for name, value in given)


def without_idle(config: Any, rules: Sequence[IdleRule], *known: Any) -> Any:
    """Return the same configuration, options that change nothing at their defaults."""
    for _, name, _ in list(idle_options(config, rules, *known)):
        outer, dot, inner = name.partition(".")
        default = _default(type(config), name)
        config = replace(config, **{outer: replace(getattr(config, outer), **{inner: default}) if dot else default})
    return config


def option_name(name: str, value: Any = None) -> str:
    """Return how an option is written on a command line, with its value: "--video-rate 20", "--no-report", "--bake"."""
    dashed = name.replace("_", "-")
    if isinstance(value, bool):
        *outer, last = dashed.split(".")
        return "--" + ".".join([*outer, last if value else f"no-{last}"])
    if value is None or is_dataclass(value):
        return f"--{dashed}"
    text = " ".join(_as_typed(item) for item in value) if isinstance(value, tuple) else _as_typed(value)
    return f"--{dashed} {text if len(text) <= _VALUE_MAX else text[: _VALUE_MAX - 3] + '...'}".rstrip()


def _as_typed(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value) if isinstance(value, int | str | Path) else repr(value)


def _value(config: Any, name: str) -> Any:
    for part in name.split("."):
        config = getattr(config, part)
    return config


def _default(kind: Any, name: str) -> Any:
    """Return the default of a field of a dataclass; with a dot, of a field of its default."""
    outer, dot, inner = name.partition(".")
    (item,) = (item for item in fields(kind) if item.name == outer)
    found = item.default_factory() if item.default_factory is not MISSING else item.default
    return _default(type(found), inner) if dot else found
