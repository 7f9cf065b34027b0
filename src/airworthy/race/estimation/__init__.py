"""Where vehicle and gates are, from inertial samples and beacons, and how sure that is."""
