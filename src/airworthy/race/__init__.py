"""Races: courses as data, the referee, scores and their statistics, and what others reached."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.race.briefing import BeaconFrame, RaceBriefing, race_briefing
    from airworthy.race.classes import RaceClass, race_class, race_classes
    from airworthy.race.courses import course_of, courses_of
    from airworthy.race.drawn import perturbed, placed, random_race
    from airworthy.race.estimation.estimator import Belief, FilterState, GateFilter, GateFilterOptions, UpdateRecord
    from airworthy.race.gate_geometry import GateShape, gate_shape, moved_gate, with_corners
    from airworthy.race.pilots.rate_inversion import RateLoopInverse
    from airworthy.race.pilots.tracker import RaceTracker, TrackerGains
    from airworthy.race.pilots.truth import TruthRacePilot
    from airworthy.race.pilots.truth_flight import TruthFlight, fly_with_truth
    from airworthy.race.planning.bounds import RacePlanOptions
    from airworthy.race.planning.glancing import glancing_plan
    from airworthy.race.planning.minimum_time import minimum_time_plan
    from airworthy.race.planning.plan import RacePlan, read_plan, stored_plan, write_plan
    from airworthy.race.planning.racer import RacerModel
    from airworthy.race.published import (
        ScoreRow,
        SensorRow,
        published_scores,
        published_sensors,
        published_source,
        scores_with_ours,
        sensors_with_ours,
    )
    from airworthy.race.race_file import check_race, load_race, race_from_text, race_names
    from airworthy.race.racers import race_vehicle, racer_names
    from airworthy.race.record import (
        GateFrames,
        GateLayout,
        MoveBound,
        Post,
        Race,
        RaceClock,
        RaceGate,
        RaceInformation,
        RaceLimits,
        RacerSpread,
        RaceScore,
        RaceStart,
    )
    from airworthy.race.referee import Irregular, RaceEnd, Referee, RefereeState
    from airworthy.race.scenery import race_scene
    from airworthy.race.scoring import (
        PassageResult,
        RaceResult,
        best_interval,
        blocks_of,
        final_score,
        race_results,
        race_statistics,
        run_score,
    )
else:
    # fmt: off
    __getattr__, __dir__ = lazy_names(__name__)
    # fmt: on

__all__ = [
    "BeaconFrame", "Belief", "FilterState", "GateFilter", "GateFilterOptions", "GateFrames", "GateLayout", "GateShape",
    "Irregular", "MoveBound", "PassageResult", "Post", "Race", "RaceBriefing", "RaceClass", "RaceClock", "RaceEnd",
    "RaceGate", "RaceInformation", "RaceLimits", "RacePlan", "RacePlanOptions", "RaceResult", "RaceScore", "RaceStart",
    "RaceTracker", "RacerModel", "RacerSpread", "RateLoopInverse", "Referee", "RefereeState", "ScoreRow", "SensorRow",
    "TrackerGains", "TruthFlight", "TruthRacePilot", "UpdateRecord", "best_interval", "blocks_of", "check_race",
    "course_of", "courses_of", "final_score", "fly_with_truth", "gate_shape", "glancing_plan", "load_race", "minimum_time_plan",
    "moved_gate", "perturbed", "placed", "published_scores", "published_sensors", "published_source", "race_briefing",
    "race_class", "race_classes", "race_from_text", "race_names", "race_results", "race_scene", "race_statistics",
    "race_vehicle", "racer_names", "random_race", "read_plan", "run_score", "scores_with_ours", "sensors_with_ours",
    "stored_plan", "with_corners", "write_plan",
]  # fmt: skip
