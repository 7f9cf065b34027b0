"""`airworthy export`: a trained policy as an ONNX model that carries its contract, or as C."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from airworthy.cli.common import emit_json, run_tyro

_DESCRIPTION = (
    "Write a policy for elsewhere. --out NAME.onnx: an ONNX model, any batch, its contract in the metadata (of SV-Net with its"
    " image normalisation inside); needs the extra 'export', no torch. --out NAME.h: a C99 header whose names begin with NAME;"
    " of a motor policy weights and functions that observe, act and command, of SV-Net history, heads and bounds, with its"
    " backbone beside it as NAME_backbone.onnx. --out NAME.py, of SV-Net: a program that flies the exported model with NumPy"
    " and onnxruntime alone."
)
_WRITTEN = {".onnx": "Model", ".h": "Header", ".py": "Program"}


@dataclass(frozen=True)
class ExportPolicyConfig:
    """What to export, and where to."""

    folder: Positional[Path]
    """A folder with contract.json and weights.safetensors, as `airworthy train` writes."""
    out: Path | None = None
    """The file, .onnx, .h or .py; without one, policy.onnx in the folder."""
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
        print(f"{_WRITTEN[path.suffix]}: {path} ({shown})")
        if note := _migration(config.folder):
            print(note)
    return 0


def _migration(folder: Path) -> str:
    """Return what is to be done about a contract of SV-Net of an earlier version; empty: nothing."""
    from airworthy.pilots.network_files import contract_kind
    from airworthy.pilots.svnet.contract import KIND, read_contract

    return read_contract(folder).migration if contract_kind(folder) == KIND else ""
