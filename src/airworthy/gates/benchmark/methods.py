"""From a word of `airworthy bench gates` to somebody who predicts, and to the search that it is held against."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import sha256_file
from airworthy.gates.benchmark.families import Ask, GatesMethod
from airworthy.gates.labels.candidates import candidates, fastest
from airworthy.gates.labels.options import Choices, Randomisation, SearchOptions
from airworthy.gates.planner.contract import WEIGHTS_FILE, network_folder
from airworthy.gates.planner.network import Boundary
from airworthy.gates.planner.window import RANGES
from airworthy.gates.training.metrics import kept_limit

__all__ = ["fastest_answers", "method_of", "search_answers", "search_of"]

ORACLES = ("oracle", "search")
_REMEMBERED = 200_000
"""Answers of a search that are kept, at most."""


def method_of(specifier: str, limit: tuple[float, float], device: str = "cpu") -> GatesMethod:
    """Return who predicts.

    Args:
        specifier: The folder or name of a network; "oracle" (the fastest pair that the limit admits) or "search" (the label of
            the search by simulated flight); "oracle:NETWORK" or "search:NETWORK", with the choices that this one learnt from.
        limit: Of "oracle" and "search" without a network, a0 [m/s^2] and k [s^2/m^2].
        device: Where the search flies.

    Raises:
        AssetError: There is no such network, or it is damaged, or does not say what it learnt from.
    """
    kind, _, of = specifier.partition(":")
    if kind not in ORACLES:
        network, identity = _network(specifier)
        options = search_of(network, specifier)
        truth = search_answers(options, device)
        ends = (float(network.contract.scales[0]), float(network.contract.scales[1]))
        return GatesMethod(specifier, network, identity, network.ranges, truth, _keeps(options), ends)
    options, ranges, identity = SearchOptions(choices=Choices(limit=limit)), RANGES, {}
    if of:
        network, identity = _network(of)
        options, ranges = search_of(network, of), network.ranges
    predictor = fastest_answers(options.choices) if kind == "oracle" else search_answers(options, device)
    return GatesMethod(specifier, predictor, {**identity, "kind": kind, "search": options.described()}, ranges)


def _network(specifier: str) -> tuple[Boundary, dict[str, Any]]:
    folder = network_folder(specifier)
    return Boundary.read(folder), {"kind": "network", "weights": sha256_file(folder / WEIGHTS_FILE)}


def _keeps(options: SearchOptions) -> Any:
    """Return the joint test of the search's limit; None where it had none."""
    limit, thrust = options.choices.limit, options.choices.thrust
    if thrust is None and not np.isfinite(limit[0]):
        return None
    return lambda situations, pairs: kept_limit(situations, pairs, limit, thrust)


def search_of(network: Boundary, where: str) -> SearchOptions:
    """Return the search from whose labels a network learnt, as its contract tells.

    Raises:
        AssetError: It tells none, or one that cannot be repeated.
    """
    searched: Any = network.contract.training.get("search")
    searched = searched.get("options") if isinstance(searched, Mapping) else None
    if not isinstance(searched, Mapping):
        raise AssetError(f"The contract of the network {where!r} does not tell the search that it learnt from: train it again.")
    try:
        choices, spread = dict(searched["choices"]), Randomisation(**searched["randomisation"])
        most, cubic = choices.pop("limit")
        tried = Choices(**choices, limit=(np.inf if most is None else float(most), float(cubic)))
        known = {item.name for item in fields(SearchOptions)} - {"choices", "randomisation"}
        rest = {name: searched[name] for name in known if name in searched}
        return replace(SearchOptions(choices=tried, randomisation=spread), **rest)
    except (AirworthyError, KeyError, TypeError, ValueError) as error:
        raise AssetError(
            f"The contract of the network {where!r} tells of a search that cannot be repeated: {error}"[:400]
        ) from None


def fastest_answers(choices: Choices) -> Ask:
    """Return situations (k, 8) -> speed and duration (k, 2) of the fastest candidate that the limit admits, NaN where none
    is."""

    def ask(situations: Array) -> Array:
        found = candidates(situations, choices)
        best = fastest(found)
        rows = np.arange(len(best))
        answer = np.stack((found.v[rows, best], found.t0[rows, best]), axis=-1)
        return np.where(best[:, None] >= 0, answer, np.nan)

    return ask


def search_answers(options: SearchOptions, device: str = "cpu") -> Ask:
    """Return answers as `fastest_answers`, of the search by simulated flight.

    What its flights draw follows from the situation itself: an answer does not depend on what else is asked along with it.
    """
    from airworthy.gates.labels.labels import label

    # A plan that is mended asks again about gates before the one that changed.
    answered: dict[bytes, tuple[float, float]] = {}

    def ask(situations: Array) -> Array:
        rows = np.ascontiguousarray(situations, dtype=np.float64)
        keys = [row.tobytes() for row in rows]
        new = list(dict.fromkeys(key for key in keys if key not in answered))
        if len(answered) + len(new) > _REMEMBERED:
            answered.clear()
            new = list(dict.fromkeys(keys))
        if new:
            numbers = np.array([zlib.crc32(key) for key in new], dtype=np.int64)
            found = label(np.frombuffer(b"".join(new)).reshape(-1, 8), options, numbers, device)
            pairs = np.where(found.feasible[:, None], np.stack((found.v, found.t0), axis=-1), np.nan)
            answered.update(zip(new, map(tuple, pairs.tolist()), strict=True))
        return np.array([answered[key] for key in keys]).reshape(-1, 2)

    return ask
