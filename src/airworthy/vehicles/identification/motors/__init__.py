"""Motors: their order, and what measured speeds tell of them."""
