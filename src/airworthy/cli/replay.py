"""`airworthy replay`: fly a recorded run again and compare it bit for bit."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from tyro.conf import Positional

from airworthy import __version__
from airworthy.benchmarks.fly.replay import refly
from airworthy.cli.common import emit_json, run_tyro

_DESCRIPTION = (
    "Fly a recorded run again from what lies in its folder, whatever became of the files that it was made from, and compare the"
    " flights' bytes. Where they differ, what differs is named: an input, a version, the instruction set, the device."
)
_NO_CAUSE = (
    "Nothing that is recorded of inputs and machine differs. Equal bits are promised for the same version, device type and"
    " instruction set, so this is a fault: please report it with the folder."
)


@dataclass(frozen=True)
class ReplayRunConfig:
    """What to repeat."""

    folder: Positional[Path]
    """A folder that `airworthy fly` wrote."""
    json: bool = False
    """Print the comparison as JSON."""


def main(argv: list[str]) -> int:
    """Run the command; returns 0 where the bytes are equal, else 1."""
    config = run_tyro(ReplayRunConfig, argv, "airworthy replay", _DESCRIPTION)
    found = refly(config.folder, quiet=config.json)
    if config.json:
        emit_json(asdict(found))
        return 0 if found.equal else 1
    if found.equal:
        print(f"Equal: every flight has the same bytes (SHA-256 {found.recorded_sha256[:16]}...).")
    else:
        print(f"Different: recorded by version {found.recorded_version}, repeated by {__version__}.")
        print("\n".join(found.causes or (_NO_CAUSE,)))
    if found.changed:
        print("Flown from the copies in the folder, since:", *found.changed, sep="\n")
    return 0 if found.equal else 1
