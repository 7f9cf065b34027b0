"""Measuring programs: each prints hardware, versions and command, and ratios of sides measured interleaved in one run."""
