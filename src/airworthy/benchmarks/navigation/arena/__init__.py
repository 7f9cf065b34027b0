"""The arena: pilots ranked over places, vehicles and speed from committed rows, ties called ties."""
