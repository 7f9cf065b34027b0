"""Pilots of races, and what they are made of: the rate loop undone, the tracker, `truth:race` and its flights."""
