"""What a flight's row tells of its planning."""

from __future__ import annotations

__all__ = ["DIARY"]

DIARY: tuple[str, ...] = (
    "replans",
    "decisions",
    "compute_s",
    "latency_median_s",
    "latency_p95_s",
    "latency_max_s",
    "work",
    "latencies",
)
"""What is told of a flight's planning: successful replans, calls in which work was done, simulated compute in all, of a call
in the median, at the 95th percentile and at most, counted work by kind (JSON), and measured latencies (JSON; "" otherwise)."""
