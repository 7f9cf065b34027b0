"""Columns of motors and their measured speeds."""
