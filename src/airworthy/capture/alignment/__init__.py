"""From the frame of a reconstruction to a metric, level one: markers, known distances, upright edges, the floor."""
