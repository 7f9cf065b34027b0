"""Readers of flight logs, one format per file; `airworthy.logs.read_log` picks among them."""
