"""`airworthy tune VEHICLE`: gains of the geometric law, swept, flown and chosen with margins."""

from __future__ import annotations

import math

from airworthy.benchmarks.tuning.run import GAINS_FILE, REPORT_FILE, TuneConfig, Tuned, summary, tune, write_tuned
from airworthy.cli.common import emit_json, gathered, interrupted, run_tyro, show_table, stopped_by_terminate

PROG = "airworthy tune"
_DESCRIPTION = (
    "Sweep the gains of the geometric law for a vehicle: every candidate flies the same steps and path in one batch, and its "
    "loops' margins are computed from the linearised equations. The chosen gains are a file: airworthy fly --gains FILE."
    " The vehicle may come first, without its option: airworthy tune carl is airworthy tune --vehicle carl."
)


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    tokens = list(argv)
    if tokens and not tokens[0].startswith("-"):
        tokens = ["--vehicle", *tokens]
    config = run_tyro(TuneConfig, gathered(tokens, ()), PROG, _DESCRIPTION)
    with stopped_by_terminate() as received:
        try:
            tuned = tune(config, quiet=config.json)
            folder = write_tuned(tuned, config)
        except KeyboardInterrupt:
            return interrupted(received, "Stopped; nothing was written, and the same command begins again.")
    if config.json:
        emit_json(summary(tuned, config))
        return 0
    show_table(f"{tuned.vehicle.name}: auto and chosen", ("", "auto", "chosen"), _rows(tuned))
    print(f"Gains:  {folder / GAINS_FILE}\nReport: {folder / REPORT_FILE}")
    print(f"Fly:    airworthy fly --vehicle {config.vehicle} --gains {folder / GAINS_FILE}")
    return 0


def _rows(tuned: Tuned) -> list[tuple[str, ...]]:
    pair = (0, tuned.chosen)
    rows: list[tuple[str, ...]] = [
        ("tracking error, RMS [cm]", *(f"{100.0 * tuned.flown.tracking_error[k]:.2f}" for k in pair)),
        ("rotor effort, RMS [% of hover thrust]", *(f"{100.0 * tuned.flown.effort[k]:.1f}" for k in pair)),
    ]
    for name in tuned.steps[0]:
        found = [tuned.steps[k][name] for k in pair]
        rows.append(
            (f"step {name}: settles in [s], overshoot [%]", *(f"{s.settling:.2f}, {100.0 * s.overshoot:.1f}" for s in found))
        )
    for name in tuned.margins[0]:
        both = [tuned.margins[k][name] for k in pair]
        shown = (f"{m.gain_db:.0f}, {math.degrees(m.phase):.0f}, {1e3 * m.delay:.0f}" for m in both)
        rows.append((f"{name}: gain [dB], phase [deg], delay margin [ms]", *shown))
    rows.append(("holds all bounds", *("yes" if tuned.safe[k] else "no" for k in pair)))
    return rows
