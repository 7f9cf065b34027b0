"""The parts of the demo: each a command that anyone can call by itself."""

from __future__ import annotations

import importlib
import os
import shlex
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from airworthy.core.files import data_dir

__all__ = ["PARTS", "Part", "parts_of"]

PARTS = ("expert", "data", "training", "first_flights", "evidence", "statues", "policy")
"""Names, in order; each is a folder of the demo's."""
COURSE, HALL, STATUES, VEHICLE = "robustness", "hall", "hall_statues", "carl"
VIEW = "112"
"""Of the shipped policy, and of the small data set [px]."""
_NO_TORCH = "Training needs torch: pip install torch==2.13.0, then the same command makes the rest."
_NO_STATUES = "Their splats are reference files, found through AIRWORTHY_DATA, which is not set or does not hold them."


@dataclass(frozen=True)
class Part:
    """One of them."""

    name: str
    title: str
    words: tuple[str, ...]
    """Of the command, after `airworthy`."""
    left_out: str = ""
    """Why it cannot be made here; empty where it can."""

    @property
    def told(self) -> str:
        """The command, for people."""
        return shlex.join(["airworthy", *self.words])

    def run(self) -> int:
        """Call the command; returns its exit code.

        Raises:
            AirworthyError: What the command was given cannot be used.
        """
        command = importlib.import_module(f"airworthy.cli.{self.words[0]}")
        code: int = command.main(list(self.words[1:]))
        return code


def parts_of(out: Path, flights: int, seed: int, device: str, quick: bool = False) -> list[Part]:
    """All parts, in order.

    Args:
        out: Folder of the demo.
        flights: Per condition and family.
        seed: Of everything that is drawn.
        device: Of flights and images.
        quick: As little as shows that it works.
    """
    same = ["--seed", str(seed), "--device", device]
    torch, statues = find_spec("torch") is not None, _has_statues()
    place = STATUES if statues else HALL
    families = ["semi_kinematic"] if quick else ["semi_kinematic", "rigid"]
    conditions = ["baseline", "payload"] if quick else ["table_2"]

    def part(name: str, title: str, words: list[str], left_out: str = "") -> Part:
        return Part(name, title, (*words, *same, "--out", str(out / name)), left_out)

    def evaluated(pilots: list[str], *words: str) -> list[str]:
        return ["evaluate", "--pilot", *pilots, *words]

    learnt = f"svnet:{out / 'training'}"
    count = ["--flights", str(flights)]
    return [
        part("expert", "The expert, which knows everything, flies the course", _filmed("mpc", HALL, quick)),
        part("data", "What it does from other states with other drones, and what it would see", _data(quick)),
        _training(out, seed, "" if torch else _NO_TORCH, quick),
        part(
            "first_flights",
            "The network that has just been trained flies",
            evaluated([learnt], "--conditions", "baseline", *count),
            "" if torch else _NO_TORCH,
        ),
        part(
            "evidence",
            "The policy that comes with this version, under every condition, beside the expert",
            evaluated(["svnet", "mpc"], "--family", *families, "--conditions", *conditions, *count),
        ),
        part(
            "statues",
            "The same policy in the hall with captured statues and a captured sign, which it has never seen",
            evaluated(["svnet"], "--scene", STATUES, "--conditions", "baseline", *count),
            "" if statues else _NO_STATUES,
        ),
        part("policy", "The same policy on film", _filmed("svnet", place, quick)),
    ]


def _filmed(pilot: str, place: str, quick: bool) -> list[str]:
    size = ["320", "180"] if quick else ["640", "360"]
    words = ["fly", "--vehicle", VEHICLE, "--scene", place, "--course", COURSE, "--pilot", pilot, "--record", "video"]
    return [*words, "--video-rate", "4" if quick else "20", "--video-size", *size]


def _data(quick: bool) -> list[str]:
    starts = "1" if quick else "4"
    small = ["--per-second", starts, "--repetitions", "1", "--shard", "3" if quick else "10"]
    return ["synthesize", "--courses", COURSE, "--scene", HALL, "--view", VIEW, *small]


def _training(out: Path, seed: int, left_out: str, quick: bool) -> Part:
    """A short training; the rates are higher than published, since it has a minute and not half a day."""
    epochs = ["--epochs", "2" if quick else "14", "--history-epochs", "5" if quick else "40"]
    rates = ["--rate", "1e-3", "--schedule", "cosine", "--warmup", "100", "--clip", "1.0", "--balance", "--dropout", "0.1"]
    history = ["--normalize", "--history-dropout", "0", "--history-rate", "1e-3", "--history-batch", "256"]
    words = [
        "train",
        "svnet",
        str(out / "data"),
        *epochs,
        *rates,
        *history,
        "--seed",
        str(seed),
        "--out",
        str(out / "training"),
    ]
    return Part("training", "A network learns from these data, from scratch", tuple(words), left_out)


def _has_statues() -> bool:
    """Whether the splats of the hall with statues can be had."""
    from airworthy.core.errors import AirworthyError
    from airworthy.scenes import scene

    if data_dir() is None or not os.path.isdir(os.path.join(str(data_dir()), "splats")):
        return False
    try:
        scene(STATUES)
    except AirworthyError:
        return False
    return True
