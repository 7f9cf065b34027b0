"""Who decides: pilots map what they may observe to commands at one control level, at their own rate."""

from airworthy.pilots.flying import FlightPlan, Flown, fly
from airworthy.pilots.pilot import Observation, Pilot
from airworthy.pilots.trackers import TrackerPilot, pilot_names, tracker

__all__ = ["FlightPlan", "Flown", "Observation", "Pilot", "TrackerPilot", "fly", "pilot_names", "tracker"]
