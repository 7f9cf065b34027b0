"""Buildings: façades by a split grammar, their styles, what is behind windows, roofs."""
