"""`airworthy synthesize` and `airworthy train`: data and labels, and the networks that learn from them."""
