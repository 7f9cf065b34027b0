"""Identification: vehicles from the logs of their flights, with error bars."""
