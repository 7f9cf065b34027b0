"""What all navigation pilots share: missions, set-points, local maps, splines and their optimisation."""
