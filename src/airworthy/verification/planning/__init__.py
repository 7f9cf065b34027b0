"""Figures of planners and of the benchmark of navigation."""
