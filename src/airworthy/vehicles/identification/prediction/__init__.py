"""What flights hold, and what a vehicle would have read in them."""
