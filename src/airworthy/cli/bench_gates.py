"""`airworthy bench gates`: plan courses of gates, prove the plans, fly them in two families of dynamics, report."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.cli.common import emit_json, gathered, run_tyro, show_table, stopped_by_terminate
from airworthy.core.files import sha256_file
from airworthy.evaluation.gates import GatesBenchmarked, GatesConfig, run_gates
from airworthy.learning.gates.candidates import candidates, fastest
from airworthy.learning.gates.options import Choices, SearchOptions

Array = NDArray[np.float64]

LISTS = ("--courses", "--families")
ORACLES = ("oracle", "search")
_DESCRIPTION = (
    "Plan courses of gates with a network (or the search's own answers), prove every plan along its whole path, fly what is"
    " approved in several families of dynamics, and set lap times beside other planners under the same limit. A stopped run"
    " goes on where it was."
)


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 130 after Ctrl-C, 143 after a request to terminate."""
    config = run_tyro(GatesConfig, gathered(argv, LISTS), "airworthy bench gates", _DESCRIPTION)
    predictor, identity = predictor_of(config.network, config.limit)
    truth = None if config.network in ORACLES else search_answers(config.limit, config.device)
    with stopped_by_terminate() as received:
        done = run_gates(config, predictor, identity, truth, quiet=config.json)
    if config.json:
        emit_json({"folder": str(done.folder), "interrupted": done.interrupted, **done.summary})
    else:
        _show(done)
    if done.interrupted:
        left = done.blocks - done.finished
        print(f"Interrupted: finished parts are kept; the same command does the other {left:,}.", file=sys.stderr)
        return 128 + (received[0] if received else signal.SIGINT)
    return 0


def predictor_of(word: str, limit: tuple[float, float]) -> tuple[Any, dict[str, Any]]:
    """Who predicts, and what that is as data.

    Args:
        word: "oracle" (the fastest pair that the limit admits), "search" (the simulated search's label), or the folder or name
            of a network.
        limit: Of the oracles, a0 [m/s^2] and k [s^2/m^2].
    """
    if word == "oracle":
        return fastest_answers(limit), {"kind": "oracle", "limit": list(limit)}
    if word == "search":
        return search_answers(limit), {"kind": "search", "limit": list(limit)}
    from airworthy.pilots.boundary.network import Boundary
    from airworthy.pilots.boundary.weights import WEIGHTS_FILE, network_folder

    folder = network_folder(word)
    return Boundary.read(folder), {"kind": "network", "weights": sha256_file(folder / WEIGHTS_FILE)}


def fastest_answers(limit: tuple[float, float]) -> Callable[[Array], Array]:
    """Situations (k, 8) -> speed and duration (k, 2) of the fastest candidate that the limit admits, NaN where none is."""
    choices = Choices(limit=limit)

    def ask(situations: Array) -> Array:
        found = candidates(situations, choices)
        best = fastest(found)
        rows = np.arange(len(best))
        answer = np.stack((found.v[rows, best], found.t0[rows, best]), axis=-1)
        return np.where(best[:, None] >= 0, answer, np.nan)

    return ask


def search_answers(limit: tuple[float, float], device: str = "cpu") -> Callable[[Array], Array]:
    """As `fastest_answers`, of the search by simulated flight."""
    from airworthy.learning.gates.labels import label

    options = SearchOptions(choices=Choices(limit=limit))

    def ask(situations: Array) -> Array:
        found = label(situations, options, device=device)
        return np.where(found.feasible[:, None], np.stack((found.v, found.t0), axis=-1), np.nan)

    return ask


def _show(done: GatesBenchmarked) -> None:
    rows = [
        (
            row["course"],
            row["gates"],
            "approved" if row["flyable"] else row["reason"],
            *(row["laps"].get(name) for name in ("plan", "through_gates", "minimum_snap", "trapezoid", "least")),
            row["limit_bound"],
            row["clearance_m"],
        )
        for row in done.summary["courses"]
    ]
    titles = ("plan [s]", "through gates [s]", "min-snap [s]", "trapezoid [s]", "least [s]", "limit [m/s^2]", "clearance [m]")
    if rows:
        show_table("", ("course", "gates", "certificate", *titles), rows)
    columns = ("family", "flights", "successes", "crashes", "skips", "mean error [cm]", "largest [cm]")
    table = [("courses", name, row) for name, row in done.summary["aggregate"].items()]
    random = done.summary["random"]
    table += [("random", name, row) for name, row in random["flights"].items()] if random else []
    if table:
        show_table("", ("on", *columns), [(on, name, *_flight_cells(row)) for on, name, row in table])
    if random:
        print(f"Random courses: {random['approved_count']} of {random['courses']} approved.")
    print(f"Report: {done.report}" if done.report else f"Results: {done.folder}")


def _flight_cells(row: dict[str, Any]) -> tuple[Any, ...]:
    error, most = row["error_mean_m"], row["error_max_m"]
    cells = (row["flights"], row["successes"], row["crashes"], row["skips"])
    return (*cells, None if error is None else 100.0 * error, None if most is None else 100.0 * most)
