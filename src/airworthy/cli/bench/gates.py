"""`airworthy bench gates`: plan courses of gates, prove the plans, fly them in two families of dynamics, report."""

from __future__ import annotations

from typing import Any

from airworthy.cli.common import emit_json, gathered, interrupted, run_tyro, show_table, stopped_by_terminate
from airworthy.gates.benchmark import GatesBenchConfig, GatesBenchmarked, run_gates
from airworthy.gates.benchmark.config import check
from airworthy.gates.benchmark.methods import method_of

LISTS = ("--courses", "--families", "--baselines")
_DESCRIPTION = (
    "Plan courses of gates with a network (or the search's own answers), prove every plan along its whole path, fly what is"
    " approved in several families of dynamics, and set lap times beside other planners under the same limit. A stopped run"
    " goes on where it was."
)


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 130 after Ctrl-C, 143 after a request to terminate."""
    config = run_tyro(GatesBenchConfig, gathered(argv, LISTS), "airworthy bench gates", _DESCRIPTION)
    check(config)
    methods = [method_of(specifier, config.limit, config.device) for specifier in (config.network, *config.baselines)]
    with stopped_by_terminate() as received:
        done = run_gates(config, methods, quiet=config.json)
    if config.json:
        emit_json({"folder": str(done.folder), "interrupted": done.interrupted, **done.summary})
    else:
        _show(done)
    if done.interrupted:
        left = done.blocks - done.finished
        return interrupted(received, f"Interrupted: finished parts are kept; the same command does the other {left:,}.")
    return 0


def _show(done: GatesBenchmarked) -> None:
    rows = [
        (
            row["course"],
            row["gates"],
            "approved" if row["flyable"] else row["reason"],
            *(row["laps"].get(name) for name in ("plan", "through_gates", "minimum_snap", "trapezoid", "least")),
            None if row["limit_used"] is None else 100.0 * row["limit_used"],
            row["clearance_m"],
        )
        for row in done.summary["courses"]
    ]
    titles = ("plan [s]", "through gates [s]", "min-snap [s]", "trapezoid [s]", "least [s]", "limit used [%]", "clearance [m]")
    if rows:
        show_table("", ("course", "gates", "certificate", *titles), rows)
    columns = ("family", "flights", "successes", "crashes", "skips", "wrong ways", "mean error [cm]", "largest [cm]")
    table = [("courses", name, row) for name, row in done.summary["aggregate"].items()]
    random = done.summary["random"]
    table += [("random", name, row) for name, row in random["flights"].items()] if random else []
    if table:
        show_table("", ("on", *columns), [(on, name, *_flight_cells(row)) for on, name, row in table])
    if random:
        print(f"Random courses: {random['approved_count']} of {random['courses']} approved.")
    if done.summary["beside"]:
        _show_baselines(done.summary["compared"])
    broken = sum(row["dense_broken"] for row in done.summary["compared"])
    plans = sum(row["dense_plans"] for row in done.summary["compared"])
    if plans:
        print(f"Certificates: {broken} of {plans:,} approved plans broken at 10,000 samples a second.")
    print(f"Report: {done.report}" if done.report else f"Results: {done.folder}")


def _flight_cells(row: dict[str, Any]) -> tuple[Any, ...]:
    error, most = row["error_mean_m"], row["error_max_m"]
    cells = (row["flights"], row["successes"], row["crashes"], row["skips"], row["wrong_ways"])
    return (*cells, None if error is None else 100.0 * error, None if most is None else 100.0 * most)


def _show_baselines(rows: list[dict[str, Any]]) -> None:
    titles = ("predictor", "courses approved", "mean lap [s]", "random approved [%]", "as predicted", "mean lap there [s]")
    table = []
    for row in rows:
        random = row["random"]
        share = None if random is None else 100.0 * random["approved"]["value"]
        untouched = None if random is None else random["untouched"]
        laps = row["lap_mean_s"]
        courses = f"{row['courses_approved']} of {row['courses']}"
        clean = [f"{item['successes']}/{item['flights']}" for item in row["flights"].values()]
        table.append((row["name"], courses, laps["course"], share, untouched, laps["random"], *clean))
    show_table("", (*titles, *(f"clean, {name}" for name in rows[0]["flights"])), table)
