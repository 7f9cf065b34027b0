"""What a thrust stand, a data sheet and a pendulum say of a vehicle before it flies."""
