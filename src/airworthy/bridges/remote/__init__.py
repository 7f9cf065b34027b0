"""Pilots of programs outside that decide from observations: over a socket of our own protocol, ROS 2 or LCM, in lockstep."""
