"""The wall between a race and its pilots: processes of their own, records over sockets, and what those processes may touch."""
