"""Expert data, imitation and training."""
