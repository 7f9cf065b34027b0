"""Line protocol of a yardstick's worker process: one JSON object per line on standard input and output.

    <- {"ready": true, "versions": {"jax": "0.10.1"}}
    -> {"env_count": 64, "seconds": 1.0}      <- {"env_steps": 12800, "seconds": 1.003}
    -> {"env_count": 64, "seconds": 0.0}      <- builds and warms up only
    any failure                               <- {"error": "..."}

Other lines on standard output (libraries print) are to be skipped by the reader.

An env-step is one control period of 10 physics sub-steps of one vehicle. Standard library only: it runs in the environment of
the yardsticks.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import time
from collections.abc import Callable

SUB_STEPS = 10
RATE_HZ = 960.0

Step = Callable[[], None]


def serve(build: Callable[[int], Step], packages: tuple[str, ...]) -> None:
    """Answer requests until standard input ends.

    Args:
        build: From an environment count to a function that advances all of them by one env-step and waits for the result.
        packages: Distributions whose versions are reported.
    """
    _answer({"ready": True, "versions": {name: importlib.metadata.version(name) for name in packages}})
    built: dict[int, Step] = {}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            _answer(_measure(build, built, int(request["env_count"]), float(request["seconds"])))
        except Exception as trouble:  # reported to the parent, which goes on without this side
            _answer({"error": f"{type(trouble).__name__}: {trouble}"[:300]})


def _measure(build: Callable[[int], Step], built: dict[int, Step], env_count: int, seconds: float) -> dict[str, object]:
    if env_count not in built:
        built[env_count] = build(env_count)
        built[env_count]()
    step, calls, start = built[env_count], 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        step()
        calls += 1
    return {"env_steps": calls * env_count, "seconds": time.perf_counter() - start}


def _answer(message: dict[str, object]) -> None:
    print("\n" + json.dumps(message), flush=True)  # on a line of its own, whatever was printed before
