"""A learnt policy that sees a depth image of 12 x 16 and commands accelerations."""
