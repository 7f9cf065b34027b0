"""What planners lose when something is worse than ideal: the same flights with and without, point by point along axes."""
