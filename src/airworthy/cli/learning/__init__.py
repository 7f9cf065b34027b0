"""`airworthy synthesize`, `train`, `export` and `seal`: data and labels, the networks that learn from them, and their files."""
