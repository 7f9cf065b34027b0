"""Watching a vehicle: which of its values a log shows to have drifted, by how much, and since when."""
