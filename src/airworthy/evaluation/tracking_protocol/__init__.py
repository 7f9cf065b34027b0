"""The tracking protocol of SOUS VIDE in simulation: a pilot under every condition of its experiments, and evidence.

`evaluate(EvaluateConfig(...))` flies and writes a folder; `entrants.Entrant` brings a pilot of one's own.
"""

from __future__ import annotations

from typing import Any

__all__ = ["Condition", "Entrant", "EvaluateConfig", "Evaluated", "condition", "evaluate"]

_WHERE = {
    "Condition": "conditions",
    "Entrant": "entrants",
    "EvaluateConfig": "config",
    "Evaluated": "job",
    "condition": "conditions",
    "evaluate": "job",
}


def __getattr__(name: str) -> Any:
    """Names are imported where they are first used: most of them bring the simulator with them."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
