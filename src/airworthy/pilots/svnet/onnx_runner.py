"""An exported policy through onnxruntime: the same decisions without our own kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.errors import AssetError
from airworthy.core.files import read_bytes
from airworthy.pilots.network_files import parse_contract
from airworthy.pilots.svnet.contract import (
    CONTRACT_KEY,
    CONTRACT_LIMIT_BYTES,
    WEIGHTS_LIMIT_BYTES,
    PolicyContract,
    contract_from,
    ports_of,
)
from airworthy.pilots.svnet.network import Decision, Reading
from airworthy.pilots.svnet.variants import variant

__all__ = ["OnnxNetwork"]


class OnnxNetwork:
    """What `learning.export.export_onnx` wrote, in the place of an `SvNetwork`: a pilot takes either.

    Args:
        path: The `.onnx` file.
        threads: Of a CPU; None: as many as onnxruntime takes.

    Raises:
        AssetError: The file is missing, too large, no model, or not one of ours.
        ModuleNotFoundError: The package onnxruntime is missing; it comes with the extra `export`.
    """

    def __init__(self, path: str | Path, threads: int | None = None):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        if threads is not None:
            options.intra_op_num_threads = threads
        data = read_bytes(path, WEIGHTS_LIMIT_BYTES)
        try:
            self._session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # its own exceptions have no common class
            reason = (str(error).splitlines() or [""])[0][:200]
            raise AssetError(f"{str(path)!r} is not a usable ONNX model: {reason}.") from None
        self.contract = self._contract(str(path))
        self.kind = variant(self.contract.variant)

    def _contract(self, where: str) -> PolicyContract:
        text = self._session.get_modelmeta().custom_metadata_map.get(CONTRACT_KEY, "")
        if not text or len(text) > CONTRACT_LIMIT_BYTES:
            raise AssetError(f"{where!r} carries no contract of SV-Net; write it with `airworthy export`.")
        contract = contract_from(parse_contract(text, where), where)
        inputs, outputs = ports_of(variant(contract.variant), contract.image_size)
        for ports, given in ((inputs, self._session.get_inputs()), (outputs, self._session.get_outputs())):
            if [(p["name"], p["shape"]) for p in ports] != [(g.name, list(g.shape[1:])) for g in given]:
                raise AssetError(f"{where!r} has other inputs or outputs than its contract says; export it again.")
        return contract

    def __call__(self, reading: Reading) -> Decision:
        """Decide for n flights."""
        given: dict[str, Any] = {}
        for name in (port.name for port in self._session.get_inputs()):
            array = reading.images if name == "image" else getattr(reading, name)
            given[name] = np.ascontiguousarray(array, np.uint8 if name == "image" else np.float32)
        found = dict(zip((port.name for port in self._session.get_outputs()), self._session.run(None, given), strict=True))
        return Decision(found["command"], found.get("estimate"))
