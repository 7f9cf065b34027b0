"""`airworthy seal`: check a network's folder and vouch for it, where an earlier version did not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from airworthy.cli.common import run_tyro

_DESCRIPTION = (
    "Seal the contract of a network's folder: what its numbers mean is then covered by a digest, as its weights are. Folders of"
    " this version are sealed when they are written; one of an earlier version is checked and sealed once, and an SV-Net"
    " contract of version 1 becomes version 2. A seal that does not fit is never renewed. A seal covers the bytes of a contract"
    " from now on; whether it says what the network means is not checked, since no file can tell."
)
_SAID = {
    "sealed": "sealed as it is; what its contract means is yours to know.",
    "rewritten": "its contract is of version 2 now, with a worked example, and the weights are what they were.",
    "": "the seal was there, and fits.",
}


@dataclass(frozen=True)
class SealConfig:
    """What to seal."""

    folder: Positional[Path]
    """A folder with contract.json and weights.safetensors: of an SV-Net policy, a motor policy or a boundary
    network."""


def main(argv: list[str]) -> int:
    """Run the command; users' mistakes raise AirworthyError, which the command line prints."""
    config = run_tyro(SealConfig, argv, "airworthy seal", _DESCRIPTION)
    from airworthy.verification.sealing import seal

    print(f"{config.folder}: {_SAID[seal(config.folder)]}")
    return 0
