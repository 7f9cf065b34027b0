"""SV-Net as ONNX: the graph is written from weights and contract, layer by layer; no torch is needed.

Motor policies: `airworthy.learning.export_motor`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from airworthy import __version__
from airworthy.core.arrays import Array, ArrayAny, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.core.files import make_folder, read_text, write_bytes, write_text
from airworthy.pilots.svnet.contract import (
    CONTRACT_FILE,
    CONTRACT_KEY,
    CONTRACT_LIMIT_BYTES,
    PolicyContract,
    ports_of,
    read_policy,
)
from airworthy.pilots.svnet.lite0 import BLOCKS, SIX, same_padding
from airworthy.pilots.svnet.variants import (
    COMMAND_HIDDEN,
    FIRES,
    HEAD_HIDDEN,
    HISTORY_HIDDEN,
    POOLS,
    Variant,
    cell_spans,
    feature_side,
    variant,
)

__all__ = ["backbone_model", "export_onnx", "export_runner", "finished_model", "onnx_model"]

# Ours: of ONNX 1.12 (2022), which runtimes since then read.
OPSET, IR_VERSION = 17, 8


def export_onnx(folder: str | Path, out: str | Path) -> Path:
    """Write a policy as an ONNX model with named inputs and outputs, any batch, its contract embedded.

    Args:
        folder: With contract.json and weights.safetensors.
        out: The file, `.onnx`.

    Returns:
        The file.

    Raises:
        AssetError: The folder holds no policy.
        AirworthyError: The file's name does not end in `.onnx`.
        ModuleNotFoundError: The package onnx is missing; it comes with the extra `export`.
    """
    path = Path(out)
    if path.suffix != ".onnx":
        raise AirworthyError(f"{str(path)!r} does not end in '.onnx'; an exported policy does.")
    contract, weights = read_policy(folder)
    text = read_text(Path(folder) / CONTRACT_FILE, CONTRACT_LIMIT_BYTES)
    make_folder(path.parent)
    write_bytes(path, onnx_model(contract, weights, text).SerializeToString(deterministic=True))
    return path


def export_runner(folder: str | Path, out: str | Path) -> Path:
    """Write the program that flies an exported policy with NumPy and onnxruntime alone; returns the file.

    Args:
        folder: Of the policy that it is to fly: read, so that one of which it cannot fly the model is refused.
        out: The file, `.py`.

    Raises:
        AssetError: The folder holds no policy.
        AirworthyError: Its contract is of an earlier version, which does not say enough.
    """
    contract, _ = read_policy(folder)
    if contract.migration:
        raise AirworthyError(f"{str(folder)!r}: {contract.migration}")
    path = Path(out)
    make_folder(path.parent)
    return write_text(path, files("airworthy.learning").joinpath("svnet_runner.py").read_text(encoding="utf-8"))


def onnx_model(contract: PolicyContract, weights: Mapping[str, ArrayF32], text: str) -> Any:
    """Return the model in memory; `text` is that of the contract.

    Args:
        contract: Of the policy.
        weights: Tensors by the names of the contract.
        text: Of the contract, kept in the model.
    """
    from onnx import TensorProto, helper

    kind = variant(contract.variant)
    graph = _Graph(weights)
    graph.build(contract, kind)
    types = {"uint8": TensorProto.UINT8, "float32": TensorProto.FLOAT}
    inputs, outputs = (
        [helper.make_tensor_value_info(port["name"], types[port["type"]], ["batch", *port["shape"]]) for port in ports]
        for ports in ports_of(kind, contract.image_size)
    )
    return finished_model(helper.make_graph(graph.nodes, f"svnet_{contract.variant}", inputs, outputs, graph.constants), text)


def backbone_model(contract: PolicyContract, weights: Mapping[str, ArrayF32], text: str) -> Any:
    """Return the backbone of a policy that sees as a model in memory: `image` (batch, H, W, 3) to `scores` (batch, s), s of
    its variant.

    Args:
        contract: Of the policy.
        weights: Tensors by the names of the contract.
        text: Of the contract, kept in the model.
    """
    from onnx import TensorProto, helper

    graph, kind = _Graph(weights), variant(contract.variant)
    graph.add("Identity", [graph.backbone(contract, kind)], "scores")
    assert contract.image_size is not None
    inputs = [helper.make_tensor_value_info("image", TensorProto.UINT8, ["batch", *contract.image_size, 3])]
    outputs = [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", kind.scores])]
    return finished_model(helper.make_graph(graph.nodes, "svnet_backbone", inputs, outputs, graph.constants), text)


def finished_model(graph: Any, text: str) -> Any:
    """Return a checked model of a graph, which carries its contract.

    Args:
        graph: Of `onnx.helper.make_graph`.
        text: Of the contract, kept in the model.
    """
    from onnx import checker, helper

    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="airworthy")
    model.producer_version = __version__
    helper.set_model_props(model, {CONTRACT_KEY: text})
    checker.check_model(model, full_check=True)
    return model


class _Graph:
    """Nodes and constants as they are added; a tensor is known by its name."""

    def __init__(self, weights: Mapping[str, ArrayF32]):
        self.weights = weights
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._known: set[str] = set()

    def build(self, contract: PolicyContract, kind: Variant) -> None:
        """From the inputs to the outputs; concatenations in the specification's order."""
        command_inputs = ["state", "objective"]
        if kind.history != "none":
            latent = self.chain("history", "history.body", len(HISTORY_HIDDEN) + 1, rectified=True)
            self.add("Identity", [self.linear(latent, "history.estimate")], "estimate")
            command_inputs.append(latent if kind.history == "latent" else "estimate")
        if kind.vision:
            vision = self.add("Concat", [self.backbone(contract, kind), self.vision_state()], axis=1)
            command_inputs.append(self.chain(vision, "vision.head", len(HEAD_HIDDEN) + 1))
        read = self.add("Concat", command_inputs, axis=1)
        self.add("Identity", [self.chain(read, "command", len(COMMAND_HIDDEN) + 1)], "command")

    def add(self, operator: str, inputs: list[str], name: str = "", **attributes: Any) -> str:
        """Return a node of one output, whose name is returned."""
        from onnx import helper

        out = name or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [out], name=f"node_{out}", **attributes))
        return out

    def constant(self, name: str, array: ArrayAny) -> str:
        """Return a constant, kept once."""
        from onnx import numpy_helper

        if name not in self._known:
            self._known.add(name)
            self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def tensor(self, name: str) -> str:
        """Return a tensor of the weights."""
        return self.constant(name, self.weights[name])

    def linear(self, x: str, name: str) -> str:
        """x W' + b."""
        return self.add("Gemm", [x, self.tensor(f"{name}.weight"), self.tensor(f"{name}.bias")], transB=1)

    def chain(self, x: str, name: str, count: int, rectified: bool = False) -> str:
        """Linear layers with rectifiers between them."""
        for number in range(count):
            x = self.linear(x, f"{name}.{number}")
            if rectified or number < count - 1:
                x = self.add("Relu", [x])
        return x

    def vision_state(self) -> str:
        """Height and quaternion, of the observable state."""
        return self.add("Gather", ["state", self.constant("vision_columns", np.array([0, 4, 5, 6, 7], np.int64))], axis=1)

    def convolution(self, x: str, name: str, stride: int = 1, padding: int = 0) -> str:
        """Return a convolution and its rectifier."""
        return self.add("Relu", [self.sums(x, name, strides=[stride] * 2, pads=[padding] * 4)])

    def sums(self, x: str, name: str, **attributes: Any) -> str:
        """Return a convolution."""
        return self.add("Conv", [x, self.tensor(f"{name}.weight"), self.tensor(f"{name}.bias")], **attributes)

    def backbone(self, contract: PolicyContract, kind: Variant) -> str:
        """Trunk and classifier on 8-bit images with channels last; scores (n, cells^2 classes)."""
        shades = self.add("Cast", ["image"], to=1)
        scaled = self.add("Div", [shades, self.constant("white", np.array(255.0, np.float32))])
        centred = self.add("Sub", [scaled, self.constant("image_mean", np.array(contract.image_mean, np.float32))])
        spread = self.add("Div", [centred, self.constant("image_std", np.array(contract.image_std, np.float32))])
        x = self.add("Transpose", [spread], perm=[0, 3, 1, 2])
        x = self.lite0(x, contract) if kind.trunk == "lite0" else self.squeezenet(x)
        x = self.convolution(x, "vision.backbone.classifier.1")
        if kind.cells == 1:
            return self.add("Flatten", [self.add("GlobalAveragePool", [x])], axis=1)
        return self.cell_means(x, contract, kind)

    def squeezenet(self, x: str) -> str:
        """Return what SqueezeNet 1.1 gives before its classifier."""
        x = self.convolution(x, "vision.backbone.features.0", stride=2)
        for number in sorted((*FIRES, *POOLS), key=int):
            if number in POOLS:
                x = self.add("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
            else:
                x = self.fire(x, f"vision.backbone.features.{number}")
        return x

    def lite0(self, x: str, contract: PolicyContract) -> str:
        """Return what EfficientNet-Lite0 gives behind its block 10."""
        assert contract.image_size is not None
        size, first = contract.image_size, "vision.backbone.features."

        def filtered(x: str, name: str, kernel: int, stride: int, group: int) -> str:
            """Rectified up to 6, and padded as TensorFlow does; rows and columns of what comes out are kept."""
            nonlocal size
            pads = [same_padding(side, kernel, stride) for side in size]
            size = (-(-size[0] // stride), -(-size[1] // stride))
            around = [pads[0][0], pads[1][0], pads[0][1], pads[1][1]]
            return self.six(self.sums(x, first + name, strides=[stride] * 2, pads=around, group=group))

        x = filtered(x, "stem", 3, 2, 1)
        for number, block in enumerate(BLOCKS):
            wide = x if block.expanded == block.given else self.six(self.sums(x, f"{first}{number}.expand"))
            wide = filtered(wide, f"{number}.depthwise", block.kernel, block.stride, block.expanded)
            y = self.sums(wide, f"{first}{number}.project")
            x = self.add("Add", [y, x]) if block.adds else y
        return x

    def six(self, x: str) -> str:
        """Return numbers from 0 to 6 (ReLU6)."""
        ends = (("nothing", 0.0), ("six", SIX))
        return self.add("Clip", [x, *(self.constant(name, np.array(value, np.float32)) for name, value in ends)])

    def cell_means(self, x: str, contract: PolicyContract, kind: Variant) -> str:
        """Averages over cells of the image, cell by cell: a product, since ONNX has no adaptive pooling."""
        assert contract.image_size is not None
        rows, columns = contract.image_size
        shares = np.einsum(
            "ay,bx->yxab", *(_cell_shares(feature_side(side, kind.trunk), kind.cells) for side in (rows, columns))
        )
        matrix = self.constant("cell_shares", shares.reshape(-1, kind.cells**2).astype(np.float32))
        flat = self.add("Reshape", [x, self.constant("per_class", np.array([0, kind.classes, -1], np.int64))])
        cells = self.add("Transpose", [self.add("MatMul", [flat, matrix])], perm=[0, 2, 1])
        return self.add("Flatten", [cells], axis=1)

    def fire(self, x: str, name: str) -> str:
        """Squeeze, and both expansions side by side."""
        small = self.convolution(x, f"{name}.squeeze")
        sides = [self.convolution(small, f"{name}.expand1x1"), self.convolution(small, f"{name}.expand3x3", padding=1)]
        return self.add("Concat", sides, axis=1)


def _cell_shares(side: int, cells: int) -> Array:
    """Return what each of `side` pixels adds to the mean of each cell, (cells, side)."""
    shares = np.zeros((cells, side))
    for row, (first, last) in zip(shares, cell_spans(side, cells), strict=True):
        row[first:last] = 1.0 / (last - first)
    return shares
