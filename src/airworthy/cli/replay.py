"""`airworthy replay`: fly a recorded run again and compare it bit for bit."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from tyro.conf import Positional

from airworthy import __version__
from airworthy.cli.common import emit_json, run_tyro
from airworthy.evaluation.refly import refly

_DESCRIPTION = "Fly a recorded run again from its config.json, in a temporary folder, and compare the flights' bytes."


@dataclass(frozen=True)
class ReplayConfig:
    """What to repeat."""

    folder: Positional[Path]
    """A folder that `airworthy fly` wrote."""
    json: bool = False
    """Print the comparison as JSON."""


def main(argv: list[str]) -> int:
    """Run the command; returns 0 where the bytes are equal, else 1."""
    config = run_tyro(ReplayConfig, argv, "airworthy replay", _DESCRIPTION)
    found = refly(config.folder, quiet=config.json)
    if config.json:
        emit_json(asdict(found))
    elif found.equal:
        print(f"Equal: every flight has the same bytes (SHA-256 {found.recorded_sha256[:16]}...).")
    else:
        print(
            f"Different: recorded by version {found.recorded_version}, repeated by {__version__}."
            " Equal bits are promised for the same version, device type and configuration."
        )
    return 0 if found.equal else 1
