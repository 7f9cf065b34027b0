"""Streets: pavements, roads and their markings, parked cars, lamps and what else stands beside a road."""
