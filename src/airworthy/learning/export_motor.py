"""Motor policies elsewhere: an ONNX model, or a C99 header that needs nothing but the mathematics library."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from airworthy import __version__
from airworthy.core.errors import AirworthyError
from airworthy.core.files import make_folder, read_text, write_bytes, write_text
from airworthy.learning.c_source import check_name, constants, filled_header, harmless
from airworthy.learning.export import export_onnx, export_runner, finished_model
from airworthy.learning.export_heads import export_heads
from airworthy.pilots.motor_policy.contract import ACTIONS, FRAMES, INPUTS, KIND, MotorContract, layer_widths, motor_shapes
from airworthy.pilots.motor_policy.pilot import MotorPolicy, read_motor_policy
from airworthy.pilots.network_files import CONTRACT_FILE, CONTRACT_LIMIT_BYTES, contract_kind

__all__ = ["c_header", "export_policy", "motor_onnx"]

_BUFFERS = ("a", "b")
_COMMANDS = {
    "state": "0.5f * (low + high) + 0.5f * (high - low) * action[i]",
    "square": "sqrtf(0.5f * (low * low + high * high) + 0.5f * (high * high - low * low) * action[i])",
}


def export_policy(folder: str | Path, out: str | Path) -> Path:
    """Write a policy for elsewhere, as the ending of the file's name says; returns the file.

    Args:
        folder: With contract.json and weights.safetensors: of SV-Net or of a motor policy.
        out: `.onnx`, a model that carries its contract; `.h`, a C99 header, whose names begin with the file's: of SV-Net all
            but the backbone, which comes beside it as NAME_backbone.onnx; of SV-Net also `.py`, a program that flies the model
            without this package.

    Raises:
        AssetError: The folder holds no policy.
        AirworthyError: The file's name has another ending, or cannot begin names of C.
        ModuleNotFoundError: The package onnx is missing; it comes with the extra `export`.
    """
    path = Path(out)
    if (kind := contract_kind(folder)) != KIND:
        # Those of a task and those that avoid carry what they see as programs, which neither form has a place for.
        if kind in ("task_policy", "avoid_policy", "navigation_policy"):
            raise AirworthyError(
                f"{str(folder)!r} holds a policy of kind {kind!r}, which is not exported; it flies by --pilot. Motor"
                " policies are (`airworthy train hover`, `motor_command`, `foundation`, `distill`), and SV-Net."
            )
        if path.suffix not in (".onnx", ".h", ".py"):
            raise AirworthyError(f"{str(path)!r} ends neither in '.onnx', '.h' or '.py'; an exported SV-Net does.")
        if path.suffix == ".py":
            return export_runner(folder, path)
        return export_heads(folder, path) if path.suffix == ".h" else export_onnx(folder, path)
    if path.suffix not in (".onnx", ".h"):
        raise AirworthyError(f"{str(path)!r} ends neither in '.onnx' nor in '.h'; an exported motor policy does.")
    if path.suffix == ".h":
        check_name(path)
    policy = read_motor_policy(folder)
    if policy.contract.family:
        # Its actions are shares of a hover that neither file could know.
        raise AirworthyError(
            f"{str(folder)!r} holds a policy for any quadrotor; only one vehicle's own can be exported: write what"
            " `MotorPolicy.fitted` gives."
        )
    make_folder(path.parent)
    if path.suffix == ".h":
        write_text(path, c_header(policy, path.stem))
    else:
        text = read_text(Path(folder) / CONTRACT_FILE, CONTRACT_LIMIT_BYTES)
        write_bytes(path, motor_onnx(policy, text).SerializeToString(deterministic=True))
    return path


# ---- ONNX ------------------------------------------------------------------------------------------------------------


def motor_onnx(policy: MotorPolicy, text: str) -> Any:
    """Return the model in memory: `observation` (batch, observed) to `action` (batch, rotors).

    Args:
        policy: Whose past actions, where it sees some, are the end of the observation. The model remembers nothing: what a GRU
            does goes in as `memory` (batch, hidden), zeros before a flight, and comes out as `memory_after`.
        text: Of the contract, kept in the model.
    """
    from onnx import TensorProto, helper, numpy_helper

    widths = layer_widths(policy.contract)
    if policy.contract.memory:
        return finished_model(_recurrent_graph(policy, widths), text)
    nodes, constants, name = [], [], "observation"
    for k in range(len(widths) - 1):
        tensors = [f"layers.{k}.weight", f"layers.{k}.bias"]
        constants += [numpy_helper.from_array(policy.weights[2 * k + i], tensors[i]) for i in range(2)]
        after = "action" if k == len(widths) - 2 else f"hidden_{k}"
        nodes.append(helper.make_node("Gemm", [name, *tensors], [f"sum_{k}"], transB=1))
        nodes.append(helper.make_node("Tanh", [f"sum_{k}"], [after]))
        name = after
    ports = [
        [helper.make_tensor_value_info(port, TensorProto.FLOAT, ["batch", size])]
        for port, size in (("observation", widths[0]), ("action", widths[-1]))
    ]
    return finished_model(helper.make_graph(nodes, "motor_policy", *ports, constants), text)


def _recurrent_graph(policy: MotorPolicy, widths: Sequence[int]) -> Any:
    """Return the graph of a network with a GRU: `observation`, `memory` to `action`, `memory_after`, of sums and products."""
    from onnx import TensorProto, helper, numpy_helper

    names = list(motor_shapes(policy.contract))
    width = widths[1]
    constants = [numpy_helper.from_array(w, name) for name, w in zip(names, policy.weights, strict=True)]
    constants.append(numpy_helper.from_array(np.array([width] * 3, np.int64), "widths"))

    def node(kind: str, inputs: list[str], outputs: list[str], **options: Any) -> Any:
        return helper.make_node(kind, inputs, outputs, **options)

    nodes = [node("Gemm", ["observation", *names[:2]], ["sum_0"], transB=1), node("Tanh", ["sum_0"], ["hidden_0"])]
    for held, first, parts in (("hidden_0", 2, "i"), ("memory", 4, "h")):
        nodes.append(node("Gemm", [held, *names[first : first + 2]], [f"gates_{parts}"], transB=1))
        nodes.append(node("Split", [f"gates_{parts}", "widths"], [f"{parts}{k}" for k in "rzn"], axis=1))
    for gate in "rz":
        nodes += [node("Add", [f"i{gate}", f"h{gate}"], [f"sum_{gate}"]), node("Sigmoid", [f"sum_{gate}"], [gate])]
    nodes += [
        node("Mul", ["r", "hn"], ["pushed"]),
        node("Add", ["in", "pushed"], ["sum_n"]),
        node("Tanh", ["sum_n"], ["fresh"]),
        node("Sub", ["memory", "fresh"], ["apart"]),
        node("Mul", ["z", "apart"], ["kept"]),
        node("Add", ["fresh", "kept"], ["memory_after"]),
        node("Gemm", ["memory_after", *names[6:]], ["sum_2"], transB=1),
        node("Tanh", ["sum_2"], ["action"]),
    ]

    def port(name: str, size: int) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", size])

    inputs, outputs = (("observation", widths[0]), ("memory", width)), (("action", widths[-1]), ("memory_after", width))
    return helper.make_graph(nodes, "motor_policy", [port(*x) for x in inputs], [port(*x) for x in outputs], constants)


# ---- C ---------------------------------------------------------------------------------------------------------------


def c_header(policy: MotorPolicy, name: str) -> str:
    """Return the text of a C99 header: weights, what to remember, and functions that observe, act and command.

    Args:
        policy: Which.
        name: That all its names begin with.
    """
    contract = policy.contract
    low, high = np.array(contract.limits).T
    hidden = contract.hidden
    filled = {
        "VEHICLE": harmless(contract.vehicle),
        "VERSION": __version__,
        "OBSERVATION": "\n".join(_said()),
        "FRAMES": FRAMES,
        "ACTION": ACTIONS[contract.action],
        "COMMAND": _COMMANDS[contract.action],
        "UNIT": contract.unit,
        "RATE": f"{contract.rate:g}",
        "SIGHT": f"the policy sees all {contract.history}" if contract.history else "the policy sees none",
        "PAST": str(max(1, contract.history) * contract.actions),
        "BUFFERS": ", ".join(f"{buffer}[{max(hidden)}]" for buffer in _BUFFERS[: len(hidden)]),
        # The header turns and scales vectors of three; the matrix counts as three of them.
        "SCALES": constants([port[4] for port in INPUTS for _ in range(port[1] // 3)]),
        "ACTIONS": str(contract.actions),
        "LOW": constants(low),
        "HIGH": constants(high),
        "HOVER": constants(contract.hover),
        "TENSORS": "\n".join(_tensors(policy, name)),
        "LAYERS": "\n".join(_calls(contract, name)),
        "REMEMBERED": f"\n    float memory[{hidden[0]}]; /* of the GRU, zeros before a flight */" if contract.memory else "",
        "FORGET": f"\n    for (int i = 0; i < {hidden[0]}; i++) state->memory[i] = 0.0f;" if contract.memory else "",
        "GRU": _GRU.replace("@NAME@", name).replace("@WIDTH@", str(hidden[0])) if contract.memory else "",
        "GUARD": f"AIRWORTHY_{name.upper()}_H",
        "NAME": name,
    }
    return filled_header("motor_policy.h", filled)


_GRU = """
static inline void @NAME@_sums(const float *w, const float *b, int rows, int columns, const float *in, float *out)
{
    for (int i = 0; i < rows; i++) {
        float sum = b[i];
        for (int j = 0; j < columns; j++) sum += w[i * columns + j] * in[j];
        out[i] = sum;
    }
}

static inline void @NAME@_gru(float *memory, const float *in, float *out)
{
    float x[3 * @WIDTH@], h[3 * @WIDTH@];
    @NAME@_sums(@NAME@_w1, @NAME@_b1, 3 * @WIDTH@, @WIDTH@, in, x);
    @NAME@_sums(@NAME@_w2, @NAME@_b2, 3 * @WIDTH@, @WIDTH@, memory, h);
    for (int i = 0; i < @WIDTH@; i++) {
        const float reset = 0.5f + 0.5f * tanhf(0.5f * (x[i] + h[i]));
        const float update = 0.5f + 0.5f * tanhf(0.5f * (x[@WIDTH@ + i] + h[@WIDTH@ + i]));
        const float fresh = tanhf(x[2 * @WIDTH@ + i] + reset * h[2 * @WIDTH@ + i]);
        memory[i] = fresh + update * (memory[i] - fresh);
    }
    memcpy(out, memory, @WIDTH@ * sizeof(float));
}
"""
"""The middle layer of a policy that remembers: gates are reset, update, new, by what comes in (1) and by memory (2)."""


def _tensors(policy: MotorPolicy, name: str) -> list[str]:
    found = []
    for k, array in enumerate(policy.weights):
        found.append(f"static const float {name}_{'wb'[k % 2]}{k // 2}[{array.size}] = {{{constants(array)}}};")
    return found


def _calls(contract: MotorContract, name: str) -> list[str]:
    """Return a call for each layer, between two buffers in turn."""
    if contract.memory:
        widths, width = layer_widths(contract), contract.hidden[0]
        return [
            f"    {name}_layer({name}_w0, {name}_b0, {width}, {widths[0]}, seen, a);",
            f"    {name}_gru(state->memory, a, b);",
            f"    {name}_layer({name}_w3, {name}_b3, {widths[-1]}, {width}, b, action);",
        ]
    places = ["seen", *(_BUFFERS[k % 2] for k in range(len(contract.hidden))), "action"]
    layers = enumerate(zip(pairwise(layer_widths(contract)), pairwise(places), strict=True))
    return [f"    {name}_layer({name}_w{k}, {name}_b{k}, {rows}, {n}, {at}, {to});" for k, ((n, rows), (at, to)) in layers]


def _said() -> list[str]:
    """Return what stands where in an observation, a line each."""
    lines, at = [], 0
    for name, size, unit, frame, scale, meaning in INPUTS:
        lines.append(f"     [{at}..{at + size - 1}] {scale:g} * {name} [{unit}], {frame} frame: {meaning}")
        at += size
    return lines
