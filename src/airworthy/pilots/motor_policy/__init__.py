"""A learnt policy that commands motors, in flight: what it reads and gives, and its inference without torch."""
