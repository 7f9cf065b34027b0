"""Figures of vehicles with joints."""
