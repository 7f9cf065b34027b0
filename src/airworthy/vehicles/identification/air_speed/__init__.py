"""Drag by air speed: what poses and velocities of a log tell of the force with which the air holds a vehicle back."""
