"""Values that predict flights best, and how sure they are."""
