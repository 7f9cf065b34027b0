"""Plans in flight by a solver of our own: interior points, Newton steps by a Riccati recursion, a NumPy twin and a kernel."""
