"""`airworthy export`: a trained policy as an ONNX model that carries its contract, or as C."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from airworthy.cli.common import emit_json, run_tyro

_DESCRIPTION = (
    "Write a policy for elsewhere. --out NAME.onnx: an ONNX model, any batch, its contract in the metadata (of SV-Net with its"
    " image normalisation inside); needs the extra 'export', no torch. --out NAME.h, of a motor policy: a C99 header with"
    " weights and functions that observe, act and command, whose names begin with NAME."
)


@dataclass(frozen=True)
class ExportPolicyConfig:
    """What to export, and where to."""

    folder: Positional[Path]
    """A folder with contract.json and weights.safetensors, as `airworthy train` writes."""
    out: Path | None = None
    """The file, .onnx or .h; without one, policy.onnx in the folder."""
    json: bool = False
    """Print what was written as JSON."""


def main(argv: list[str]) -> int:
    """Run the command; users' mistakes raise AirworthyError, which the command line prints."""
    config = run_tyro(ExportPolicyConfig, argv, "airworthy export", _DESCRIPTION)
    from airworthy.learning.export_motor import export_policy

    path = export_policy(config.folder, config.folder / "policy.onnx" if config.out is None else config.out)
    if config.json:
        emit_json({"path": str(path), "bytes": path.stat().st_size})
    else:
        size = path.stat().st_size
        shown = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"
        print(f"{'Header' if path.suffix == '.h' else 'Model'}: {path} ({shown})")
    return 0
