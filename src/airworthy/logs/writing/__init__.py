"""Logs as files of other programs: MCAP, tables, poses; what may be written over, and which streams belong together."""
