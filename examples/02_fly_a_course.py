"""A flight: a course, a pilot that follows it, and a report that opens in a browser.

`airworthy fly --course straight_8 --vehicle lmf2` does the same in one line. Writes runs/02_fly_a_course.
"""

from pathlib import Path

from airworthy.evaluation import evaluate_tracking, summarize, write_summary
from airworthy.pilots import FlightPlan, fly, tracker
from airworthy.reports import write_report
from airworthy.simulation import Simulator, SimulatorConfig, write_flight
from airworthy.tasks import TrackingReference
from airworthy.trajectories import course
from airworthy.vehicles import vehicle

path = course("straight_8").trajectory()  # position, velocity, ... yaw at any time
pilot = tracker("geometric", path)  # tells the control law where to be, at 100 Hz

simulator = Simulator(vehicle("lmf2"), SimulatorConfig(level=pilot.level))
simulator.reset(position=path.sample(0.0).position)
flown = fly(simulator, pilot, FlightPlan(duration=path.duration + 1.0, reference=path))

reference = TrackingReference.from_trajectory(path)
(result,) = evaluate_tracking(flown.table, reference)
print(f"{result.outcome}: {1000.0 * result.tracking_error_m:.1f} mm from the path on average, {result.speed_max_m_s:.2f} m/s")

folder = Path("runs/02_fly_a_course")
labels = {"vehicle": "lmf2", "course": "straight_8", "pilot": pilot.name}
write_flight(folder, flown.table, labels)  # flight.parquet, meta.json
summary = summarize([result], labels=labels)
write_summary(folder, summary)
report = write_report(folder, table=flown.table, summary=summary, meta=labels, reference=reference)
print(f"open {report}")
