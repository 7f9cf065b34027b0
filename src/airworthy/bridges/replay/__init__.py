"""Poses of a log shown again: exactly these instants, in any scene, with any camera, as a visual-inertial data set."""
