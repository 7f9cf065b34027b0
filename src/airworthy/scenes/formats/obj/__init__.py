"""Wavefront OBJ and its material libraries (MTL): read and written."""
