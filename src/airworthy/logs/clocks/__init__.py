"""Clocks of logs and of their streams."""
