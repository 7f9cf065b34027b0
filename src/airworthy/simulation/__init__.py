"""The clock: simulates batches of flights."""
