"""`airworthy serve`: a simulated vehicle for an autopilot of the user's."""

from __future__ import annotations

from typing import Any

from airworthy.bridges.server import ServeConfig, serve
from airworthy.cli.common import interrupted, run_tyro, stopped_by_terminate

_DESCRIPTION = (
    "Simulate one vehicle on the ground for PX4, ArduPilot or Betaflight, which runs beside it, sees our sensors and commands"
    " our motors (docs/howto/autopilots.md). Programs of this machine alone can reach it unless --listen names another address."
)


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    # The specification of a link reads `--as px4`; `as` is no name for a field.
    config = run_tyro(ServeConfig, [f"--autopilot{word[4:]}" if word[:4] == "--as" else word for word in argv],
                      "airworthy serve", _DESCRIPTION)  # fmt: skip
    with stopped_by_terminate() as received:
        served = serve(config, say=lambda sentence: print(sentence, flush=True))
    columns: Any = served.run.table.columns
    print(f"Flown: {float(columns['t'][-1]):.2f} s, highest {float(columns['position_z_m'].max()):.2f} m.")
    for note in (served.run.pilot_error, *served.notes):
        if note:
            print(f"{note.rstrip('.')}.")
    if config.out is not None:
        print(f"Flight: {config.out}")
    return interrupted(received, "Stopped.") if served.run.interrupted else 0
