"""A policy of any learning task as a pilot: its folder carries what it sees and what its actions mean as programs."""
