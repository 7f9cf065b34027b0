"""SV-Net written anew by somebody who has nothing but contract.json and weights.safetensors: no line of the package is used.

Every step follows a sentence or a number of the contract, which is named beside it.
"""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np


def tensors_of(path: Path) -> dict[str, Any]:
    """safetensors: eight bytes of length, a JSON header, float32."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    found = {}
    for name, about in header.items():
        if name != "__metadata__":
            begin, end = about["data_offsets"]
            found[name] = np.frombuffer(data[8 + size + begin : 8 + size + end], "<f4").reshape(about["shape"])
    return found


def hamilton(a: Any, b: Any) -> Any:
    """frames.quaternion_product"""
    (ax, ay, az, aw), (bx, by, bz, bw) = a, b
    return np.array(
        [
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ]
    )


def positive(q: Any) -> Any:
    """frames.quaternion_sign"""
    return -q if q[3] < 0 else q


class Stranger:
    """One flight."""

    def __init__(self, folder: Path, objective: Any, full_thrust: float, weight: float):
        self.contract = json.loads((folder / "contract.json").read_text())
        self.weights = tensors_of(folder / self.contract["weights"]["file"])
        self.objective, self.full = np.array(objective), full_thrust
        self.sees = self.contract["view"] is not None
        # tick.rule: "a flight begins with an idle command"
        self.in_force = np.array([-weight / full_thrust, 0.0, 0.0, 0.0])
        size = self.contract["history"]["row_size"]
        self.past = [np.zeros(size)] * self.contract["history"]["ticks"]
        self.number: int | None = None
        self.last: tuple[float, Any, Any] | None = None
        self.sensed: Any = None
        self.read: dict[str, Any] = {}

    def tick(self, t: float, place: Any, velocity: Any, attitude: Any, image: Any = None) -> Any:
        """thrust [N], body rates, sensed frames"""
        number = math.floor(t * self.contract["tick"]["rate_hz"] + self.contract["tick"]["early"])
        if number != self.number:
            self.number = number
            self.due(t, place, velocity, attitude, image)
        thrust, wx, wy, wz = self.in_force
        return np.array([-thrust * self.full, wx, -wy, -wz])  # command.thrust, command.rates

    def due(self, t: float, place: Any, velocity: Any, attitude: Any, image: Any) -> None:
        """tick.rule, (1) to (3)"""
        v = np.array([velocity[0], -velocity[1], -velocity[2]])  # frames.network
        kept = np.array(attitude)
        if self.sensed is not None and kept @ self.sensed < 0:
            kept = -kept
        self.sensed = kept
        turned = kept * [1, -1, -1, 1]
        q = positive(turned)
        if self.last is not None:
            self.past = [self.row(t, v, q), *self.past[:-1]]
        self.last = (t, v, q)
        if self.sees and image is None:
            return
        known = [-place, *v, *q] if self.sees else [t, place[0], -place[1], -place[2], *v, *turned]
        state = np.array(known)
        history = np.array([[row[i] for row in self.past] for i in range(len(self.past[0]))]).ravel()  # history.order
        self.read = {"state": state, "objective": self.objective, "history": history}
        given = {name: value.astype(np.float32) for name, value in self.read.items()}
        if self.sees:
            given["image"] = self.view(image)
        self.read |= self.network(given)
        bounds = self.contract["command"]
        self.in_force = np.clip(self.read["command"].astype(float), bounds["low"], bounds["high"])

    def row(self, t: float, v: Any, q: Any) -> Any:
        """history.row"""
        assert self.last is not None
        before, v_before, q_before = self.last
        row, dt = np.zeros(self.contract["history"]["row_size"]), t - before
        paper = self.contract["history"]["row"][1]["is"].startswith("dt times the velocity")
        parts = [
            [dt],
            dt * v if paper else v,
            v - v_before,
            positive(hamilton(q * [-1, -1, -1, 1], q_before)),
            self.in_force,
        ]
        for about, part in zip(self.contract["history"]["row"], parts, strict=True):
            row[about["at"][0] : about["at"][1]] = part
        return row

    # ---- the image ----------------------------------------------------------------------------------------------------------

    def view(self, image: Any) -> Any:
        """resize.rule, image.scale"""
        rule, image_rule = self.contract["resize"], self.contract["image"]
        width, height = self.contract["view"]["width"], self.contract["view"]["height"]
        if image.shape != (height, width, 3):
            small = self.resized(image, rule["resized"][1], 0)
            small = np.floor(self.resized(small, rule["resized"][0], 1) + 0.500001)
            left, top = rule["corner"]
            image = small[top : top + rule["size"][1], left : left + rule["size"][0]]
        mean, std = (np.array(image_rule[name], np.float32) for name in ("mean", "std"))
        return (image.astype(np.float32) / np.float32(255) - mean) / std

    @staticmethod
    def resized(image: Any, new: int, axis: int) -> Any:
        old = image.shape[axis]
        s = old / new
        rows = []
        for i in range(new):
            w = np.array([max(0.0, 1 - abs(h + 0.5 - (i + 0.5) * s) / max(s, 1)) for h in range(old)])
            rows.append(w / w.sum())
        moved = np.moveaxis(image.astype(np.float64), axis, 0)
        out = np.tensordot(np.array(rows), moved, axes=1)
        return np.moveaxis(out, 0, axis)

    # ---- the network --------------------------------------------------------------------------------------------------------

    def network(self, given: dict[str, Any]) -> dict[str, Any]:
        """Block by block."""
        known = dict(given)
        for block in self.contract["network"]:
            if "columns" in block:
                known[block["gives"]] = known[block["reads"][0]][block["columns"]]
            elif "layers" in block:
                known[block["gives"]] = self.backbone(known["image"], block["layers"], block["cells"])
            else:
                x = np.concatenate([known[name] for name in block["reads"]])
                for k, name in enumerate(block["tensors"]):
                    x = self.weights[f"{name}.weight"] @ x + self.weights[f"{name}.bias"]
                    if block["last_rectified"] or k < len(block["tensors"]) - 1:
                        x = np.maximum(x, 0)
                known[block["gives"]] = x
        return {name: known[name] for name in ("command", "estimate") if name in known}

    def backbone(self, image: Any, layers: list[dict[str, Any]], cells: int) -> Any:
        x = np.moveaxis(image, 2, 0)
        for layer in layers:
            if "convolution" in layer:
                x = self.convolved(x, layer["convolution"], layer["stride"], layer["padding"])
            elif "pool" in layer:
                x = self.pooled(x)
            elif "stem" in layer:
                x = self.same(x, layer["stem"], layer["stride"])
            elif "block" in layer:
                y = x
                for part in layer["parts"]:
                    y = self.same(y, f"{layer['block']}.{part}", layer["stride"] if part == "depthwise" else 1)
                x = x + y if layer["adds"] else y
            else:
                squeezed = self.convolved(x, layer["fire"] + ".squeeze", 1, 0)
                one = self.convolved(squeezed, layer["fire"] + ".expand1x1", 1, 0)
                three = self.convolved(squeezed, layer["fire"] + ".expand3x3", 1, 1)
                x = np.concatenate([one, three])
        spans = [[(k * n // cells, -(-(k + 1) * n // cells)) for k in range(cells)] for n in x.shape[1:]]
        return np.concatenate([x[:, a:b, c:d].mean(axis=(1, 2)) for a, b in spans[0] for c, d in spans[1]])

    def convolved(self, x: Any, name: str, stride: int, padding: int) -> Any:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        x = np.pad(x, ((0, 0), (padding, padding), (padding, padding)))
        rows, columns = weight.shape[2:]
        tall, wide = (x.shape[1] - rows) // stride + 1, (x.shape[2] - columns) // stride + 1
        out = np.zeros((len(weight), tall, wide), np.float32)
        for r in range(rows):
            for c in range(columns):
                seen = x[:, r : r + stride * (tall - 1) + 1 : stride, c : c + stride * (wide - 1) + 1 : stride]
                out += np.tensordot(weight[:, :, r, c], seen, axes=1)
        return np.maximum(out + bias[:, None, None], 0)

    def same(self, x: Any, name: str, stride: int) -> Any:
        """The rule of stem and blocks."""
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        rows, around = weight.shape[2], []
        for n in x.shape[1:]:
            zeros = max((math.ceil(n / stride) - 1) * stride + rows - n, 0)
            around.append((zeros // 2, zeros - zeros // 2))
        padded = np.pad(x, ((0, 0), *around))
        tall, wide = (math.ceil(n / stride) for n in x.shape[1:])
        out = np.zeros((len(weight), tall, wide), np.float32)
        for r in range(rows):
            for c in range(rows):
                seen = padded[:, r : r + stride * (tall - 1) + 1 : stride, c : c + stride * (wide - 1) + 1 : stride]
                tap = weight[:, :, r, c]
                out += tap[:, 0, None, None] * seen if name.endswith("depthwise") else np.tensordot(tap, seen, axes=1)
        out += bias[:, None, None]
        return out if name.endswith("project") else np.clip(out, 0, 6)

    @staticmethod
    def pooled(x: Any) -> Any:
        tall, wide = (math.ceil((side - 3) / 2) + 1 for side in x.shape[1:])
        out = np.zeros((len(x), tall, wide), np.float32)
        for i in range(tall):
            for j in range(wide):
                out[:, i, j] = x[:, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3].max(axis=(1, 2))
        return out
