"""Trees that grow, undergrowth, and places dressed with them."""
