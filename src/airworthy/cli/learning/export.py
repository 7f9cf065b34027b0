"""`airworthy export`: a trained policy as an ONNX model that carries its contract."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from airworthy.cli.common import emit_json, run_tyro

_DESCRIPTION = (
    "Write an SV-Net policy as an ONNX model: named inputs and outputs, any batch, image normalisation inside, its contract in"
    " the metadata. Needs the extra 'export', no torch."
)


@dataclass(frozen=True)
class ExportPolicyConfig:
    """What to export, and where to."""

    folder: Positional[Path]
    """A folder with contract.json and weights.safetensors, as `airworthy train` writes."""
    out: Path | None = None
    """The model; without one, policy.onnx in the folder."""
    json: bool = False
    """Print what was written as JSON."""


def main(argv: list[str]) -> int:
    """Run the command; users' mistakes raise AirworthyError, which the command line prints."""
    config = run_tyro(ExportPolicyConfig, argv, "airworthy export", _DESCRIPTION)
    from airworthy.learning.export import export_onnx

    path = export_onnx(config.folder, config.folder / "policy.onnx" if config.out is None else config.out)
    if config.json:
        emit_json({"path": str(path), "bytes": path.stat().st_size})
    else:
        print(f"Model: {path} ({path.stat().st_size / 1e6:.1f} MB)")
    return 0
