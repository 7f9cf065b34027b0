"""Clients of the socket protocol, to be copied: they need nothing of the package."""
