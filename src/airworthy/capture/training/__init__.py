"""Splats trained from posed images: options, the run, its report."""
