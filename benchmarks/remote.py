"""A published simulator as a side: worker processes in the yardsticks' environment, asked over their standard streams."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

from benchmarks import environment
from benchmarks.sides import BARE, Scenario

_FOLDER = Path(__file__).parent / "yardsticks"
_PATIENCE_S = 300.0


class RemoteSide:
    """One variant of a published simulator, in one or more processes that share the environments.

    With several processes each is kept on a core of its own: at best is what a user with two cores could get.
    """

    def __init__(self, name: str, tool: str, script: str, cores: list[int], processes: int, sizes: tuple[int, int]):
        self.name, self.tool = name, tool
        file, *arguments = script.split()
        self._command = [str(environment.interpreter()), str(_FOLDER / file), *arguments]
        self._cores, self._count, self._sizes = cores, processes, sizes
        self._workers: list[_Worker] = []
        self.versions: dict[str, str] = {}

    def offers(self, scenario: Scenario, env_count: int) -> bool:
        return scenario.key == BARE.key and self._sizes[0] <= env_count <= self._sizes[1]

    def run(self, scenario: Scenario, env_count: int, seconds: float) -> float:
        """Env-steps per second; raises RuntimeError with the worker's reason."""
        self._start()
        count = max(1, min(len(self._workers), env_count))
        shares = [(k + 1) * env_count // count - k * env_count // count for k in range(count)]
        for worker, share in zip(self._workers, shares, strict=False):
            worker.ask(share, seconds)
        answers = [worker.answer() for worker in self._workers[:count]]
        for answer in answers:  # only after all were read, so that question and answer stay in step
            if "error" in answer:
                raise RuntimeError(answer["error"])
        return sum(a["env_steps"] / a["seconds"] for a in answers if a["env_steps"])

    def close(self) -> None:
        for worker in self._workers:
            worker.stop()
        self._workers = []

    def _start(self) -> None:
        if self._workers:
            return
        pinned = [{core} for core in self._cores[: self._count]] if self._count > 1 else [set(self._cores)]
        self._workers = [_Worker(self._command, cores) for cores in pinned]
        answers = [worker.answer() for worker in self._workers]
        if any("error" in answer for answer in answers):
            self.close()
            raise RuntimeError(answers[0].get("error", "one of its processes did not start"))
        self.versions = answers[0]["versions"]


class _Worker:
    def __init__(self, command: list[str], cores: set[int]):
        surroundings = {**os.environ, "OMP_NUM_THREADS": str(len(cores)), "PYTHONPATH": ""}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=surroundings
        )
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(self._process.pid, cores)

    def ask(self, env_count: int, seconds: float) -> None:
        assert self._process.stdin is not None
        try:
            print(json.dumps({"env_count": env_count, "seconds": seconds}), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            raise RuntimeError("its process has ended") from None

    def answer(self) -> dict[str, Any]:
        """Return the next message; {"error": ...} where the process ended or was stopped for being too slow."""
        assert self._process.stdout is not None
        limit = threading.Timer(_PATIENCE_S, self._process.kill)
        limit.start()
        try:
            for line in self._process.stdout:
                if line.startswith("{") and isinstance(message := json.loads(line), dict):
                    return message
        finally:
            limit.cancel()
        return {"error": f"its process ended (exit code {self._process.wait()})"}

    def stop(self) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            self._process.wait(timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()


def published_sides(cores: list[int], ready: dict[str, str]) -> list[RemoteSide]:
    """Every variant of the published simulators that is installed (`ready` as from `environment.prepare`)."""
    n = len(cores)
    variants = [  # name, tool, script, processes, fewest and most environments that are worth its time
        ("Crazyflow, one process", "crazyflow", "crazyflow_worker.py", 1, (1, 64)),
        ("Crazyflow, a process per core", "crazyflow", "crazyflow_worker.py", n, (n, 65_536)),
        ("Crazyflow, sharded", "crazyflow", f"crazyflow_worker.py --devices {n}", 1, (1_024, 65_536)),
        ("RotorPy, a process per core", "rotorpy", "rotorpy_worker.py", n, (n, 16_384)),
        ("RotorPy, torch threads", "rotorpy", f"rotorpy_worker.py --threads {n}", 1, (1, 16_384)),
        ("RotorPy, NumPy", "rotorpy", "rotorpy_worker.py --mode single", 1, (1, 1)),
        ("PyBullet, forces each sub-step", "pybullet", "pybullet_worker.py --mode each", n, (1, 1_024)),
        ("PyBullet, forces held", "pybullet", "pybullet_worker.py --mode held", n, (1, 1_024)),
    ]
    return [
        RemoteSide(name, tool, script, cores, processes, sizes)
        for name, tool, script, processes, sizes in variants
        if not ready.get(tool, "missing")
    ]
