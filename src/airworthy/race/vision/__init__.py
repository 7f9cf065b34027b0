"""From an image to the corners of race gates: openings found in it, and which gate each of them is."""
