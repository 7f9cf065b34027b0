"""From trained splats to a place to fly in: known free space, bounds, start, goal, and what is hit."""
