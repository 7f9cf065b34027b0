"""Frames, errors, files, devices, traced kernels and random numbers: nothing here knows about drones."""
