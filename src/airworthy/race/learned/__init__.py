"""Learned race pilots: what they see and command, their folders, how they fly, and how they learn."""
