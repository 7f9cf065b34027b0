"""A vehicle of one's own: scale one of the catalogue, change a number, keep it as a file, fly it.

Writes runs/04_own_vehicle/scout.toml; `airworthy vehicles validate` and `airworthy fly --vehicle` take that file.
"""

from dataclasses import replace
from pathlib import Path

from airworthy.benchmarks import FlyConfig, run_fly
from airworthy.vehicles import RotorResponse, indicators, read_vehicle, synthesize, vehicle, write_vehicle

# Scaled from a published airframe as its authors scale theirs: inertia and thrust follow mass, arm and rotor speed.
scout = synthesize(vehicle("virt_05"), mass=1.1, arm=0.22, omega_scale=1.05, name="scout")

# A record is data: a changed copy is another vehicle. Here its motors lag by 50 ms speeding up and by 80 ms slowing down.
lag = RotorResponse.first_order(rise=0.05, fall=0.08)
sources = {**scout.sources, "rotors.response": "made up for this example"}
scout = replace(scout, rotors=tuple(replace(rotor, response=lag) for rotor in scout.rotors), sources=sources)

file = Path("runs/04_own_vehicle/scout.toml")
file.parent.mkdir(parents=True, exist_ok=True)
write_vehicle(scout, file)
scout = read_vehicle(file)  # checked on reading: a vehicle that cannot exist is refused with a reason
print(f"{scout.name}: {scout.mass} kg, {scout.rotor_count} rotors, thrust to weight {indicators(scout).thrust_to_weight:.2f}")

result = run_fly(FlyConfig(vehicle=(str(file),), course="line", out=file.parent / "flight"))
flight = result.summary["flights"][0]
print(f"{flight['outcome']}: {1000.0 * flight['tracking_error_m']:.1f} mm from the path; report in {result.folder}")
