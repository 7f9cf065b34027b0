"""A chain of six links learns by reward to hold its first link in place, whatever its shape, and is filmed (half an hour).

Stopped, it goes on where it was. Writes runs/25_chain_hover: the policy, report.html, film.
"""

from pathlib import Path

from airworthy.benchmarks import VideoOptions, record_video
from airworthy.learning import TaskProtocol, TaskTrainingOptions, policy_flights, train_task
from airworthy.vehicles import vehicle

out = Path("runs/25_chain_hover")
found = train_task(TaskTrainingOptions.usual("chain_hover"), out, protocol=TaskProtocol(flights=512)).figures
low, high = found["kept_interval_percent"]
print(f"kept for 5 s: {found['kept_percent']:.1f} % of 512 flights ({low:.1f} to {high:.1f} %)")
looks = VideoOptions("orbit", size=(640, 360), distance=5.5)
film = record_video(policy_flights(out), "empty_room", out / "film.webp", looks, flyer=vehicle("snakey6"))
print(film.summary_line)
