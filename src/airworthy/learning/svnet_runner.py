"""Flies an exported SV-Net policy with NumPy and onnxruntime alone: nothing of airworthy is imported here. Copy it, change it.

`python svnet_runner.py policy.onnx` decides the worked example of the policy's contract and says how far off it is, and how
long a decision takes. `airworthy export FOLDER --out policy.onnx` writes the model, `--out svnet_runner.py` this file.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import numpy as np
import onnxruntime

Array = Any


def product(a: Array, b: Array) -> Array:
    """Return the Hamilton product of two quaternions x, y, z, w."""
    v = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
    return np.append(v, a[3] * b[3] - a[:3] @ b[:3])


def upper(q: Array) -> Array:
    """Return the one of q and -q with w >= 0."""
    return -q if q[3] < 0.0 else q


def _resized(image: Array, old: int, new: int) -> Array:
    """Resize the first axis by an antialiased triangle filter."""
    scale = old / new
    away = np.abs(np.arange(old) + 0.5 - (np.arange(new)[:, None] + 0.5) * scale) / max(scale, 1.0)
    weights = np.maximum(1.0 - away, 0.0)
    return np.tensordot(weights / weights.sum(axis=1, keepdims=True), image, axes=(1, 0))


class Runner:
    """One flight of a policy; `reset` begins the next one.

    Args:
        path: Of the model.
        objective: Course that the contract tells of, or 18 numbers in the network's frames.
        full_thrust: Of all rotors at full command along the body's z axis [N].
        weight: Of the vehicle [N].
    """

    def __init__(self, path: str, objective: Any, full_thrust: float, weight: float):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.contract = json.loads(self.session.get_modelmeta().custom_metadata_map["airworthy_contract"])
        if (self.contract["kind"], self.contract["version"]) != ("airworthy-svnet", 2):
            raise SystemExit("Only contracts of version 2 are read: `airworthy seal FOLDER`, and export it again.")
        if isinstance(objective, str):
            objective = {c["course"]: c["objective"] for c in self.contract["setting"]["courses"]}[objective]
        self.objective, self.full, self.weight = np.asarray(objective, float), full_thrust, weight
        self.inputs = [port["name"] for port in self.contract["inputs"]]
        self.low, self.high = (np.array(self.contract["command"][side]) for side in ("low", "high"))
        self.rate, self.early = (self.contract["tick"][name] for name in ("rate_hz", "early"))
        self.reset()

    def reset(self) -> None:
        """Begin a flight: idle, and nothing remembered."""
        self.rows = np.zeros((15, 5))
        self.given = np.array([-self.weight / self.full, 0.0, 0.0, 0.0])
        self.tick, self.turn = -1, np.zeros(4)
        self.before: tuple[float, Array, Array] | None = None
        self.read: dict[str, Array] = {}

    def decide(self, t: float, place: Any, velocity: Any, attitude: Any, image: Any = None) -> Array:
        """Return thrust [N] and body rates [rad/s], z up.

        Args:
            t: Since the flight began [s].
            place: Height [m]; of the variant hp_net, position (3).
            velocity: World [m/s], z up.
            attitude: Quaternion x, y, z, w, body to world, z up.
            image: Newest one, (H, W, 3) of 8 bits: at the policy's view, or whole. None: none has arrived.
        """
        tick = int(np.floor(t * self.rate + self.early))
        if tick == self.tick:
            return self.command()
        self.tick = tick
        v, q = np.asarray(velocity, float) * [1, -1, -1], np.asarray(attitude, float)
        self.turn = -q if q @ self.turn < 0.0 else q
        kept = self.turn * [1, -1, -1, 1]
        self._push(t, v, upper(kept))
        sees = "image" in self.inputs
        if sees and image is None:
            return self.command()
        told: list[Any] = [[-place], v, upper(kept)] if sees else [[t], np.asarray(place, float) * [1, -1, -1], v, kept]
        self.read = {"state": np.concatenate(told), "objective": self.objective, "history": self.rows.reshape(75)}
        feed = {name: self.read[name].astype(np.float32)[None] for name in self.inputs if name != "image"}
        if sees:
            feed["image"] = self.view(image)[None]
        found = self.session.run(None, feed)
        self.read |= dict(zip((port["name"] for port in self.contract["outputs"]), (x[0] for x in found), strict=True))
        self.given = np.clip(self.read["command"].astype(float), self.low, self.high)
        return self.command()

    def _push(self, t: float, v: Array, q: Array) -> None:
        """Take this tick into the history."""
        if self.before is not None:
            t0, v0, q0 = self.before
            moved = (t - t0) * v if self.contract["history"]["form"] == "paper" else v
            turned = upper(product(q * [-1, -1, -1, 1], q0))
            row = np.concatenate([[t - t0], moved, v - v0, turned, self.given])
            self.rows = np.concatenate([row[:, None], self.rows[:, :-1]], axis=1)
        self.before = (t, v, q)

    def command(self) -> Array:
        """Return the command in force."""
        return self.given * [-self.full, 1, -1, -1]

    def view(self, image: Array) -> Array:
        """Return the image at the policy's view."""
        view, rule = self.contract["view"], self.contract["resize"]
        if image.shape[:2] == (view["height"], view["width"]):
            return image
        (wide, tall), (left, top) = rule["resized"], rule["corner"]
        down = _resized(image.astype(np.float64), image.shape[0], tall)[top : top + view["height"]]
        across = _resized(down.swapaxes(0, 1), image.shape[1], wide)[left : left + view["width"]]
        return np.clip(np.floor(across.swapaxes(0, 1) + 0.500001), 0, 255).astype(np.uint8)


def check(path: str) -> tuple[float, float]:
    """Return the largest difference to the worked example (thrust: a share), and the median time of a decision [s]."""
    runner = Runner(path, np.zeros(18), 1.0, 1.0)
    example = runner.contract["example"]
    runner = Runner(path, example["objective"], example["full_thrust_n"], example["weight_n"])
    worst, seconds = 0.0, []
    for number, tick in enumerate(example["ticks"]):
        sensed, image = tick["sensed"], None
        if tick.get("image"):
            row, column, colour = np.ogrid[: runner.contract["view"]["height"], : runner.contract["view"]["width"], :3]
            image = ((7 * row + 13 * column + 29 * colour + 17 * number) % 256).astype(np.uint8)
        place = sensed["height"] if "height" in sensed else sensed["position"]
        begun = time.perf_counter()
        command = runner.decide(tick["time_s"], place, sensed["velocity"], sensed["attitude"], image)
        seconds.append(time.perf_counter() - begun)
        told = [tick["thrust_n"], *tick["body_rates"]]
        pairs = [(runner.read[name], tick[name]) for name in ("state", "history", "command") if name in tick]
        # Thrust as a share of full thrust: newtons of a large drone and rad/s are no one scale.
        scale = np.array([example["full_thrust_n"], 1.0, 1.0, 1.0])
        pairs.append((command / scale, told / scale))
        worst = max([worst, *(float(np.abs(np.subtract(a, b)).max()) for a, b in pairs)])
    return worst, float(np.median(seconds))


if __name__ == "__main__":
    if len(sys.argv) != 2 or not os.path.isfile(sys.argv[1]):
        raise SystemExit(__doc__)
    off, median = check(sys.argv[1])
    print(f"worked example: at most {off:.1e} off (share of full thrust, rad/s); {1e3 * median:.2f} ms a decision")
