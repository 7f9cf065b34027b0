"""What is done with meshes whatever file they come from: polygons cut into triangles, solids, points, coarser levels."""
