"""LCM without LCM: types out of their definitions, and datagrams by UDP multicast that does not leave this machine."""
