"""A chain of links learns, by the gradient through its joints, to fly through a slot narrower than itself, and is filmed there.

Needs torch (the extra "learn"). Stopped, it goes on where it was. Writes runs/26_gap: the policy, report.html, film.
"""

from pathlib import Path

from airworthy.benchmarks import VideoOptions, record_video
from airworthy.geometry import Box
from airworthy.learning import Gap, TaskProtocol, jointed_gradient_options, policy_flights, train_task
from airworthy.scenes import Instance, Material, Scene
from airworthy.vehicles import vehicle

out = Path("runs/26_gap")
found = train_task(jointed_gradient_options("gap"), out, protocol=TaskProtocol(flights=512)).figures
low, high = found["success_interval_percent"]
print(f"through the slot without a touch: {found['success_percent']:.1f} % of 512 flights ({low:.1f} to {high:.1f} %)")

# The task's wall is a closed form; here it stands to be seen: a block at either side of the slot, one above, one below.
task, up = Gap(), 1.0
x, y, z = 0.5 * task.depth_m, 0.5 * task.width_m, 0.5 * task.height_m
shapes = {"floor": Box((4.5, 2.2, 0.05)), "side": Box((x, 0.5, up)), "over": Box((x, y, 0.5 * (up - z)))}
materials = {"stone": Material(base_color=(0.55, 0.55, 0.57, 1.0)), "brick": Material(base_color=(0.62, 0.3, 0.2, 1.0))}
placed = [("side", (0.0, s * (y + 0.5), up)) for s in (-1.0, 1.0)] + [
    ("over", (0.0, 0.0, up + s * 0.5 * (up + z))) for s in (-1.0, 1.0)
]
wall = [Instance(name, at, materials=("brick",)) for name, at in placed]
place = Scene("slot", shapes, materials, {}, (Instance("floor", (0.0, 0.0, -0.05), materials=("stone",)), *wall))
flights, looks = policy_flights(out, origin=(0.0, 0.0, up)), VideoOptions("fixed", size=(640, 360))
print(record_video(flights, place, out / "film.webp", looks, flyer=vehicle("snakey")).summary_line)
