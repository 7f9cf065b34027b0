"""Vehicles with joints: canonical tree, equations of motion, integrators, and the twin of the native step."""
