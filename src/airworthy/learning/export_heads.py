"""SV-Net as C: all of it but the backbone that reads images, which goes beside it as an ONNX model of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from airworthy import __version__
from airworthy.core.arrays import ArrayF32
from airworthy.core.files import make_folder, read_text, write_bytes, write_text
from airworthy.learning.c_source import check_name, constants, filled_header
from airworthy.learning.export import backbone_model
from airworthy.pilots.network_files import CONTRACT_FILE, CONTRACT_LIMIT_BYTES
from airworthy.pilots.svnet.contract import PolicyContract, read_policy
from airworthy.pilots.svnet.contract_text import command_table
from airworthy.pilots.svnet.features import VISION_SIZE
from airworthy.pilots.svnet.variants import (
    COMMAND_HIDDEN,
    ESTIMATE,
    FEATURES,
    HEAD_HIDDEN,
    HISTORY_HIDDEN,
    LATENT,
    Variant,
    tensor_shapes,
    variant,
)

__all__ = ["export_heads", "heads_header"]


def export_heads(folder: str | Path, out: str | Path) -> Path:
    """Write a policy's heads as a C99 header, and beside it NAME_backbone.onnx of one that sees; returns the header.

    Args:
        folder: With contract.json and weights.safetensors.
        out: `.h`; its names begin with the file's.

    Raises:
        AssetError: The folder holds no policy.
        AirworthyError: The file's name cannot begin names of C.
        ModuleNotFoundError: The policy sees, and the package onnx is missing; it comes with the extra `export`.
    """
    path = Path(out)
    check_name(path)
    contract, weights = read_policy(folder)
    model = None
    if variant(contract.variant).vision:
        text = read_text(Path(folder) / CONTRACT_FILE, CONTRACT_LIMIT_BYTES)
        model = backbone_model(contract, weights, text).SerializeToString(deterministic=True)
    make_folder(path.parent)
    if model is not None:
        write_bytes(path.with_name(f"{path.stem}_backbone.onnx"), model)
    write_text(path, heads_header(contract, weights, path.stem))
    return path


def heads_header(contract: PolicyContract, weights: Mapping[str, ArrayF32], name: str) -> str:
    """Return the text of the header.

    Args:
        contract: Of the policy.
        weights: Tensors by name.
        name: That all its names begin with.
    """
    kind, bounds = variant(contract.variant), command_table()
    filled = {
        "VERSION": __version__,
        "VARIANT": contract.variant,
        "RATE": f"{contract.rate:g}",
        "GUARD": f"AIRWORTHY_{name.upper()}_H",
        "NAME": name,
        "TENSORS": "\n".join(_tensors(contract.variant, weights, name)),
        "SEEN": str(kind.state_size),
        "READ": str(kind.command_input),
        "WIDE": str(max(*HISTORY_HIDDEN, *HEAD_HIDDEN, *COMMAND_HIDDEN)),
        "MOVED": "dt *" if contract.history == "paper" else "",
        "LOW": constants(bounds["low"]),
        "HIGH": constants(bounds["high"]),
        "LAYERS": "\n".join(_calls(contract.variant, name)),
        **_place(kind, name),
    }
    return filled_header("svnet_heads.h", filled)


def _place(kind: Variant, name: str) -> dict[str, str]:
    """Return what differs between policies that see and the one that is told everything."""
    if kind.vision:
        return {
            "PLACE": "float height",
            "PLACESAID": "height: world z [m]",
            "SENSE": "\n".join(
                [
                    "    state->seen[0] = -height;",
                    "    memcpy(state->seen + 1, turned, sizeof turned);",
                    "    memcpy(state->seen + 4, now, sizeof now);",
                ]
            ),
            "SCORES": f", const float scores[{kind.scores}]",
            "SCORESSAID": f"scores: of the newest image, from {name}_backbone.onnx;\n   ",
        }
    return {
        "PLACE": "float time, const float position[3]",
        "PLACESAID": "time on the course [s]; position, world [m]",
        "SENSE": "\n".join(
            [
                "    state->seen[0] = time;",
                "    for (int i = 0; i < 3; i++) state->seen[1 + i] = i == 0 ? position[i] : -position[i];",
                "    memcpy(state->seen + 4, turned, sizeof turned);",
                "    /* Here the sign that was sensed is kept. */",
                "    for (int i = 0; i < 4; i++) state->seen[7 + i] = sign * now[i];",
            ]
        ),
        "SCORES": "",
        "SCORESSAID": "",
    }


def _tensors(name_of_variant: str, weights: Mapping[str, ArrayF32], name: str) -> list[str]:
    found = []
    for key in tensor_shapes(name_of_variant):
        if "backbone" not in key:
            array = np.asarray(weights[key])
            found.append(f"static const float {name}_{_word(key)}[{array.size}] = {{{constants(array)}}};")
    return found


def _word(key: str) -> str:
    return key.replace(".", "_")


def _calls(name_of_variant: str, name: str) -> list[str]:
    """Return the layers, between two buffers in turn."""
    kind, shapes = variant(name_of_variant), tensor_shapes(name_of_variant)
    at = kind.state_size + 18
    lines: list[str] = []

    def chain(key: str, count: int, given: str, out: str, rectified: bool) -> None:
        held = given
        for k in range(count):
            full = f"{key}.{k}" if count > 1 else key
            rows, columns = shapes[f"{full}.weight"]
            to = out if k == count - 1 else "ab"[k % 2]
            word, last = f"{name}_{_word(full)}", int(rectified or k < count - 1)
            lines.append(f"    {name}_layer({word}_weight, {word}_bias, {rows}, {columns}, {held}, {to}, {last});")
            held = to

    if kind.history != "none":
        lines.append(f"    float latent[{LATENT}];")
        chain("history.body", len(HISTORY_HIDDEN) + 1, "state->history", "latent", True)
        chain("history.estimate", 1, "latent", "state->estimate", False)
        size, source = (LATENT, "latent") if kind.history == "latent" else (ESTIMATE, "state->estimate")
        lines.append(f"    memcpy(read + {at}, {source}, {size} * sizeof(float));")
        at += size
    if kind.vision:
        lines += [
            f"    float sight[{kind.scores + VISION_SIZE}];",
            f"    memcpy(sight, scores, {kind.scores} * sizeof(float));",
            f"    sight[{kind.scores}] = state->seen[0];",
            f"    memcpy(sight + {kind.scores + 1}, state->seen + 4, 4 * sizeof(float));",
        ]
        chain("vision.head", len(HEAD_HIDDEN) + 1, "sight", f"read + {at}", False)
        at += FEATURES
    chain("command", len(COMMAND_HIDDEN) + 1, "read", "state->raw", False)
    assert at == kind.command_input
    return lines
