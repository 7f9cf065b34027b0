"""Solve the nominal plan of a race and write it: python -m airworthy.race.planning alphapilot alphapilot_nominal.json."""

from __future__ import annotations

import sys

from airworthy.core.errors import AirworthyError
from airworthy.race.courses import course_of
from airworthy.race.planning.minimum_time import minimum_time_plan
from airworthy.race.planning.plan import write_plan
from airworthy.race.planning.racer import RacerModel
from airworthy.race.race_file import load_race
from airworthy.vehicles import vehicle


def main(arguments: list[str]) -> str:
    """Solve and write; return what is to be said.

    Args:
        arguments: Race and file.

    Raises:
        AirworthyError: Others, a race without a vehicle, or no plan.
    """
    if len(arguments) != 2:
        raise AirworthyError("Expected a race and a file: python -m airworthy.race.planning alphapilot alphapilot_nominal.json")
    name, path = arguments
    race = course_of(load_race(name), "nominal")
    if not race.vehicle:
        raise AirworthyError(f"The race {race.name!r} names no vehicle to plan for; minimum_time_plan takes any in Python.")
    plan = minimum_time_plan(race, RacerModel.of(vehicle(race.vehicle)))
    write_plan(plan, path)
    return f"{path}: {plan.duration:.3f} s through {len(plan.legs)} gates, largest defect {plan.defects().max():.1g}"


if __name__ == "__main__":
    try:
        sys.stdout.write(main(sys.argv[1:]) + "\n")
    except AirworthyError as error:
        sys.exit(str(error))
