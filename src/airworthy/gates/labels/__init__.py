"""Labels for flight from gate to gate: the exhaustive search of spec/boundary_predictor, Algorithm 1, by simulation."""
