"""A chain of links learns by the gradient through its joints to close itself and fly through a slot, and is filmed on its way.

Needs torch (the extra "learn"). Stopped, it goes on where it was. Writes runs/26_gap: the policy, report.html, film.
"""

from pathlib import Path

from airworthy.benchmarks.fly.film import VideoOptions, record_video
from airworthy.geometry import Box
from airworthy.learning.environments.tasks import Gap
from airworthy.learning.task_training.evaluation import TaskProtocol
from airworthy.learning.task_training.jointed_options import jointed_gradient_options
from airworthy.learning.task_training.run import train_task
from airworthy.learning.task_training.shown import policy_flights
from airworthy.scenes import Instance, Material, Scene
from airworthy.vehicles import vehicle

UP = 1.5
"""Height of the slot's middle in the film [m]."""


def walls(task: Gap) -> Scene:
    """Return a floor and a wall across x = 0 with the task's slot: a block at either side of it, one above, one below."""
    y, z, x = 0.5 * task.width_m, 0.5 * task.height_m, 0.5 * task.depth_m
    shapes = {"floor": Box((8.0, 6.0, 0.05)), "side": Box((x, 1.2, 1.5)), "above": Box((x, y, 0.5 * (1.5 - z)))}
    materials = {"stone": Material(base_color=(0.55, 0.55, 0.57, 1.0)), "brick": Material(base_color=(0.62, 0.3, 0.2, 1.0))}
    placed = [("side", (0.0, sign * (y + 1.2), UP)) for sign in (-1.0, 1.0)]
    placed += [("above", (0.0, 0.0, UP + sign * 0.5 * (1.5 + z))) for sign in (-1.0, 1.0)]
    blocks = [Instance(name, at, materials=("brick",), semantic="wall") for name, at in placed]
    return Scene("slot", shapes, materials, {}, (Instance("floor", (0.0, 0.0, -0.05), materials=("stone",)), *blocks))


out = Path("runs/26_gap")
found = train_task(jointed_gradient_options("gap"), out, protocol=TaskProtocol(flights=512), quiet=False).figures
low, high = found["success_interval_percent"]
print(f"through the slot without a touch: {found['success_percent']:.1f} % of 512 flights ({low:.1f} to {high:.1f} %)")
film = record_video(
    policy_flights(out, origin=(0.0, 0.0, UP)), walls(Gap()), out / "film", VideoOptions("orbit", size=(640, 360)),
    flyer=vehicle("snakey"),
)  # fmt: skip
print(film.summary_line)
