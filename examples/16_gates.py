"""Gates: a course is planned, proved along the whole polynomial, flown by randomised drones, and reported, in one call.

The same from the command line: airworthy bench gates --network oracle --courses random:3@7 --random 0 --flights 20
"""

from pathlib import Path

from airworthy.gates import GatesBenchConfig, method_of, plan, run_gates
from airworthy.trajectories import generated_course

LIMIT = (2.0, 0.3)  # a + 0.3 v^3 <= 2 m/s^2 everywhere


if __name__ == "__main__":
    oracle = method_of("oracle", LIMIT)  # or method_of("runs/boundary", LIMIT), a trained network
    print(plan(generated_course("random:3@7"), oracle.predictor))  # what is certain, in sentences, or why it is refused
    families, out = ("competition", "crazyflow"), Path("runs/16_gates")
    config = GatesBenchConfig(courses=("random:3@7",), families=families, flights=20, random=0, out=out)
    done = run_gates(config, [oracle])
    for row in done.summary["flights"]:
        print(f"{row['family']}: {row['successes']} of {row['flights']} flights clean, {100 * row['error_mean_m']:.1f} cm off")
    print(f"Report: {done.report}")
