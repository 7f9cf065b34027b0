"""Who decides: pilots map what they may observe to commands at one control level, at their own rate."""

from airworthy.pilots.catalogue import pilot_for, pilot_level, pilot_names, pilot_sensors
from airworthy.pilots.flying import FlightPlan, Flown, fly
from airworthy.pilots.pilot import Observation, Pilot
from airworthy.pilots.trackers import TrackerPilot, tracker

__all__ = [
    "FlightPlan",
    "Flown",
    "Observation",
    "Pilot",
    "TrackerPilot",
    "fly",
    "pilot_for",
    "pilot_level",
    "pilot_names",
    "pilot_sensors",
    "tracker",
]
