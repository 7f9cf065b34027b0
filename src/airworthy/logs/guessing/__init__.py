"""First guesses of what a table holds."""
