"""The page and the films of a race benchmark: what flights did, set beside the truth, the published results and each other."""
