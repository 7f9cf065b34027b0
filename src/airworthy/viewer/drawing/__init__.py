"""Courses drawn in a place with the mouse: what is clicked and dragged, and how it is shown."""
