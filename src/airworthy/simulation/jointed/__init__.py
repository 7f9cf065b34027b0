"""Vehicles with joints in the simulator: their rows of parameters and state, and the float64 twin of their steps."""
