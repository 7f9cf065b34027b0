"""Arms that bend: Morphy learns to hold a place by the gradient through its joints, and is filmed.

Needs torch (the extra "learn"). Stopped, it goes on where it was. Writes runs/24_morphy_hover: the policy, report.html, film.
"""

from pathlib import Path

from airworthy.benchmarks import VideoOptions, record_video
from airworthy.learning import TaskProtocol, jointed_gradient_options, policy_flights, train_task
from airworthy.vehicles import vehicle

out = Path("runs/24_morphy_hover")
found = train_task(jointed_gradient_options("morphy_hover"), out, protocol=TaskProtocol(flights=512)).figures
low, high = found["success_interval_percent"]
print(
    f"within 10 cm after 5 s: {found['success_percent']:.1f} % of 512 flights ({low:.1f} to {high:.1f} %),"
    f" median {100.0 * found['median_error_m']:.1f} cm"
)
film = record_video(
    policy_flights(out, seconds=4.0),
    "empty_room",
    out / "film.webp",
    VideoOptions("chase", size=(640, 360)),
    flyer=vehicle("morphy"),
)
print(film.summary_line)
