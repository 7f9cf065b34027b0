"""People who are tracked elsewhere, in the scene of a vehicle: skeletons come in, capsules are seen and met."""
