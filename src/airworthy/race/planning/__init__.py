"""Plans through races: the vehicle as they see it, the fastest flight, plans that are stored."""
