"""Gate to gate: a small network that says how fast to pass the next gate and when, and the planner that checks what it says."""
