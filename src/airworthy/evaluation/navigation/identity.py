"""What the numbers of a run depend on, and the command that repeats it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from airworthy import __version__
from airworthy.core import commands
from airworthy.core.files import json_text, parse_json, sha256
from airworthy.evaluation.navigation.choices import scenario_names, vehicle_names_of
from airworthy.evaluation.navigation.config import NavigationConfig

__all__ = ["changed", "command_line", "digest_of", "identity_of"]

FREE = ("out", "report", "quick", "json", "workers", "cluster", "system", "pilots")
"""Fields that no row depends on; pilots are told apart in the identity."""
_UNSAID = ("device", "controller", "warm_up")
"""Fields that came later: where they are at their defaults, folders stay what they were."""


def identity_of(config: NavigationConfig) -> dict[str, Any]:
    """Everything but the pilots that rows depend on, as plain data; of `_UNSAID` only what differs from the default."""
    default = NavigationConfig()
    left = (*FREE, *(name for name in _UNSAID if getattr(config, name) == getattr(default, name)))
    chosen = {item.name: getattr(config, item.name) for item in fields(config) if item.name not in left}
    chosen |= {"vehicles": vehicle_names_of(config.vehicles), "scenarios": scenario_names(config.scenarios)}
    plain: dict[str, Any] = parse_json(json_text({"version": __version__, "config": chosen}), "the configuration")
    return plain


def digest_of(identity: Mapping[str, Any]) -> str:
    """SHA-256 of an identity."""
    return sha256(json_text(dict(identity)))


def changed(before: Mapping[str, Any], now: Mapping[str, Any], head: str = "") -> list[str]:
    """What differs between two identities, in a few words each; none where nothing does."""
    words: list[str] = []
    for key in dict.fromkeys([*before, *now]):
        a, b = before.get(key), now.get(key)
        name = key if not head or head == "config" else f"{head}.{key}"
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            words += changed(a, b, name)
        elif a != b:
            words.append(f"{name}: {_short(a)} before, {_short(b)} now")
    return words


def _short(value: Any) -> str:
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def command_line(config: NavigationConfig) -> str:
    """The exact command that makes the results again."""
    leave = ("json", "quick", "workers", "cluster", "report")
    return commands.command_line("airworthy bench navigation", config, leave_out=leave, short_numbers=True)
