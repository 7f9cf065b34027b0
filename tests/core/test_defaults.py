"""Default numbers of what users fill in: a change of one changes results, and is made here as well, on purpose."""

from __future__ import annotations

import dataclasses
import importlib
import math

import pytest

DEFAULTS = """
airworthy.control.geometric.GeometricParameters inclination_tangent=0.0 thrust_max=0.0 yaw_rate_max=1.0471975511965976
  pull_max=(0.0,0.0)
airworthy.control.levels.Reference position=(0.0,0.0,0.0) velocity=(0.0,0.0,0.0) acceleration=(0.0,0.0,0.0) jerk=(0.0,0.0,0.0)
  snap=(0.0,0.0,0.0) yaw=0.0 yaw_rate=0.0 yaw_acceleration=0.0 thrust=0.0 roll=0.0 pitch=0.0 rate=(0.0,0.0,0.0)
airworthy.control.levels.Mode position=0.0 velocity=0.0 vehicle_frame=0.0 hold_yaw=0.0 attitude=0.0 thrust=0.0 rate=0.0
  flat=0.0 angular=0.0
airworthy.control.levels.ControlConfig rotor_lead=0.0
airworthy.control.linear.LinearLoop delay=0.0
airworthy.control.mpc.stage.MpcConfig horizon=40 rate=20.0 position=0.5 velocity=0.05 attitude=0.05 thrust=1.0
  rates=(0.1,0.1,0.01) terminal=0.05 rate_max=5.0 iterations=200 tolerance=1e-06
airworthy.control.rate_loop.WaypointParameters position_gain=7.0 velocity_gain=3.0 attitude_gain=10.0 rate_max=8.0
  acceleration_max=3.0 speed_max=3.0
airworthy.core.schema.Bound low=-inf high=inf
airworthy.core.table_schema.TableSchema number_max=inf text_max=4096
airworthy.evaluation.metrics.FlightResult duration_s=0.0 tracking_error_m=nan tracking_error_max_m=nan
  time_matched_error_m=nan proximity_percent=nan end_distance_m=nan yaw_error_median_rad=nan yaw_error_end_rad=nan
  collisions=0 collisions_per_m=nan path_length_m=0.0 saturation_percent=nan speed_max_m_s=nan tilt_max_rad=nan
  command_mean_square_rad2_s2=nan samples=0 coverage_percent=nan
airworthy.pilots.flight_loop.FlightPlan record_every=1 min_height=-inf bounds=inf latency=0.0
airworthy.pilots.motor_policy.contract.MotorContract rate=100.0 history=0 hidden=(32,32)
airworthy.pilots.svnet.contract.PolicyImage width=224 height=224 fx=185.1824 fy=329.24586666666664 cx=113.2304
  cy=112.84195555555556
airworthy.pilots.svnet.contract.PolicyContract rate=20.0 image_mean=(0.485,0.456,0.406) image_std=(0.229,0.224,0.225)
  version=2
airworthy.pilots.svnet.layers.Area border=0
airworthy.pilots.svnet.layers.LayerStack weight_count=0 size=0 groups=(4,3,5,7,2,1)
airworthy.planners.agilicious.dfbc.DfbcGains position_max=(1000.0,1000.0,1000.0) velocity_max=(1000.0,1000.0,1000.0)
airworthy.planners.agilicious.guard.GuardLimits distance=2.0 tilt=1.75 speed=15.0 margin=0.0
airworthy.planners.common.depth_input.Odometry position_noise=0.0 velocity_noise=0.0 drift=0.0
airworthy.planners.common.depth_input.ComputeModel timeout=10.0
airworthy.planners.common.interface.Mission seed=0
airworthy.planners.common.interface.MapSettings resolution=0.1 reach=(5.5,5.5,4.5) inflation=0.099 margin=30 ground=-0.01
  depth_min=0.2 depth_max=5.0 border=1 skip=2 hit=0.65 miss=0.35 least=0.12 most=0.9 occupied=0.8 ray_min=0.1 ray_max=4.5
  rate=20.0 field_margin=0.0
airworthy.planners.common.lbfgs.LbfgsConfig memory=16 iterations=200 evaluations=2000 gradient_tolerance=0.01
  step_tolerance=0.0
airworthy.planners.common.tracking.TakeOff speed=1.0 settle_speed=0.2 settle_distance=0.3 settle_time=1.0 timeout=30.0
airworthy.planners.common.tracking_backends.Fused rate=100.0
airworthy.planners.ego.config.EgoConfig spacing=0.4 horizon=7.5 tolerance=0.05 replan_after=1.5 goal_near=2.0 emergency=1.0
  smooth=1.0 collision=0.5 feasibility=0.1 fitness=1.0 clearance=0.5 close=0.2 gradient=0.01 expansions=200000 evaluations=300
  iterations=200
airworthy.planners.ego.initial.PairBook expansions=0
airworthy.planners.ego.twin.EgoTwin row=0 interval=0.0 evaluations=0 rebounds=0 restarts=0
airworthy.planners.fast.settings.KinoSettings step_time=0.6 first_time=0.8 weight=10.0 horizon=7.0 greed=10.0005 checks=5
  capacity=100000
airworthy.planners.fast.settings.FastSettings spacing=0.5 smooth=10.0 distance=5.0 feasible=1e-05 clearance=0.4
  evaluations=300 step_tolerance=1e-05 yaw_smooth=10.0 yaw_points=100.0 yaw_ahead=2.0 yaw_interval=0.3 safety_ahead=6.0
  end=0.01 sweeps=3 replan_after=1.5 no_replan_within=2.0 failed_pause=2.5e-05 goal_distance=0.3
airworthy.planners.fast.timed.TimedSettings spacing=0.5 smooth=10.0 distance=5.0 feasible=0.0 clearance=0.4 evaluations=300
  step_tolerance=1e-05 yaw_smooth=10.0 yaw_points=100.0 yaw_ahead=2.0 yaw_interval=0.3 safety_ahead=6.0
airworthy.planners.pgo.planner.Replanned interval=1.0 later=0.0 samples=0 evaluations=0
airworthy.planners.pgo.records.RoadmapSettings samples=2000 beyond=1.0 sideways=3.5 upright=1.0 clearance=0.3 most_raw=300
  most_paths=25 reserve=6 ratio=5.5 effort=200000
airworthy.planners.pgo.records.PgoSettings spacing=0.3 smooth=10.0 distance=5.0 feasible=0.0 clearance=0.4 evaluations=300
  step_tolerance=1e-05 yaw_smooth=10.0 yaw_points=20.0 yaw_ahead=2.0 yaw_interval=0.3 safety_ahead=6.0 local_length=7.0
  guide=1.5 slower=1.01 replan_after=0.5 replan_distance=0.5 safety_stop=0.5 failed_pause=0.02
airworthy.planners.sampling_expert.planner.SamplingSettings samples=1024 chains=16 kept=5 speed_max=7.0
airworthy.simulation.config.Wind mean=(0.0,0.0,0.0) gust=(0.0,0.0,0.0) gust_start=0.0 gust_duration=1.0
  turbulence=(0.0,0.0,0.0) turbulence_length=(10.0,10.0,5.0) airspeed=5.0
airworthy.simulation.config.Ground height=0.0 friction=0.6 restitution=0.2 rolling=0.3
airworthy.simulation.config.Contact restitution=0.2 friction=0.6 rolling=0.3
airworthy.simulation.config.Downwash strength=2267.18 spread=0.16 offset=-0.11 radius=0.0231348 reach=10.0
airworthy.simulation.config.Imu accelerometer_noise=(0.0,0.0,0.0) gyroscope_noise=(0.0,0.0,0.0)
  accelerometer_walk=(0.0,0.0,0.0) gyroscope_walk=(0.0,0.0,0.0) accelerometer_limit=inf gyroscope_limit=inf
  position=(0.0,0.0,0.0) orientation=(0.0,0.0,0.0,1.0) bias_initial=(0.0,0.0,0.0)
airworthy.simulation.config.Randomization mass=0.0 inertia=0.0 thrust=0.0 rotor=0.0 drag=0.0 lag=0.0 wind=0.0 position=0.0
  yaw=0.0 joint=0.0 widen=1.0
airworthy.simulation.config.SimulatorConfig physics_rate=960.0 control_rate=100.0 ground_effect=0.0 rate_limit=5.0
  state_noise=(0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0) state_noise_rate=100.0
airworthy.tasks.declared_metrics.Metric factor=1.0 digits=3
airworthy.tasks.navigation.NavigationProtocol time_limit_s=90.0 goal_radius_m=2.0 goal_speed_m_s=0.5 goal_hold_s=2.0
  settle_speed_m_s=0.2 settle_hold_s=1.0 settle_limit_s=20.0 climb_speed_m_s=1.0 tilt_limit_deg=100.0 speed_m_s=4.0
  acceleration_m_s2=6.0 above_m=0.3
airworthy.tasks.outcomes.GoalProtocol radius_m=0.5 timeout_s=60.0
airworthy.tasks.outcomes.HoldProtocol radius_m=0.2 settle_s=2.0
airworthy.tasks.tracking.TrackingProtocol end_radius_m=0.5 end_window_s=2.0 path_distance_max_m=1.5 coverage_min=0.9
  yaw_window_s=1.5 yaw_error_max_rad=0.5235987755982988
  proximity_m=0.3 collision_start_m=0.15 collision_end_m=0.25 duration_tolerance_s=0.15
airworthy.trajectories.course_file.Course coefficient_count=8 start=(0.0,0.0,0.0) start_yaw=0.0 lap_count=1
airworthy.trajectories.gates.Gate opening=(0.4,0.4) bar=0.05
airworthy.trajectories.generated_courses.RandomCourse gates=10 distance=(0.8,1.5)
  turn=(-0.7853981633974483,0.7853981633974483) heights=(0.3,0.525) heading=0.0
airworthy.trajectories.quantities.Quantity pieces_max=100000
airworthy.trajectories.limits.Limits gravity=9.81
airworthy.trajectories.proof.YawedBox yaw=0.0
airworthy.trajectories.tracked.RotorBound least=0.0 most=1.0
airworthy.vehicles.record.Rotor speed_min=0.0 axis=(0.0,0.0,1.0) inertia=0.0 radius=0.0 hub_drag=(0.0,0.0) flapping=0.0
  translational_lift=0.0
airworthy.vehicles.record.Drag linear=(0.0,0.0,0.0) quadratic_norm=(0.0,0.0,0.0) quadratic_axis=(0.0,0.0,0.0)
  rotor_speed=(0.0,0.0,0.0) angular_linear=(0.0,0.0,0.0) angular_norm=(0.0,0.0,0.0) angular_axis=(0.0,0.0,0.0)
  center=(0.0,0.0,0.0)
airworthy.vehicles.record.WrenchNoise force=(0.0,0.0,0.0) moment=(0.0,0.0,0.0)
airworthy.vehicles.record.Disturbance probability=0.0 force_max=(0.0,0.0,0.0) torque_max=(0.0,0.0,0.0) rate=100.0
airworthy.vehicles.record.Battery efficiency=0.7
airworthy.vehicles.record.CollisionBody center=(0.0,0.0,0.0)
airworthy.vehicles.record.SensorMount position=(0.0,0.0,0.0) orientation=(0.0,0.0,0.0,1.0)
airworthy.vehicles.record.Vehicle center_of_mass=(0.0,0.0,0.0) gravity=9.81 command_delay=0.0
"""
"""Class, then each field whose default is a number or numbers; a line that goes on is indented."""


def written() -> dict[str, dict[str, object]]:
    """Defaults of each class of the table."""
    found: dict[str, dict[str, object]] = {}
    for line in DEFAULTS.replace("\n  ", " ").strip().splitlines():
        name, *fields = line.split()
        found[name] = {key: _number(value) for key, value in (field.split("=") for field in fields)}
    return found


def _number(text: str) -> object:
    if text.startswith("("):
        return tuple(_number(part) for part in text.strip("(),").split(","))
    return int(text) if text.lstrip("-").isdigit() else float(text)


def declared(name: str) -> dict[str, object]:
    """Defaults of a class, by the class itself."""
    module, _, kind = name.rpartition(".")
    cls = getattr(importlib.import_module(module), kind)
    record = dataclasses.is_dataclass(cls)
    found = {f.name: f.default for f in dataclasses.fields(cls)} if record else dict(cls._field_defaults)
    return {key: value for key, value in found.items() if _numeric(value)}


def _numeric(value: object) -> bool:
    if isinstance(value, tuple):
        return bool(value) and all(map(_numeric, value))
    return type(value) in (int, float)


@pytest.mark.parametrize("name", written())
def test_defaults_are_those_written_here(name: str) -> None:
    expected, found = written()[name], declared(name)
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        assert type(found[key]) is type(value)
        both_nan = isinstance(value, float) and math.isnan(value) and math.isnan(found[key])  # type: ignore[arg-type]
        assert both_nan or found[key] == value, key
