"""Races flown: the world behind the pilots, the runner, and the job behind `airworthy bench race`."""
