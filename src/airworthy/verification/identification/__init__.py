"""Figures of vehicles from logs."""
