"""Sensors by which autopilots know where they are: magnetometer, barometer, satellite navigation, and geodesy."""
