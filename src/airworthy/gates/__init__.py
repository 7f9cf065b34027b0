"""Flight through gates, whole: labels by simulation, a network that learns them, a planner with proofs, and its benchmark."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.gates.benchmark import (
        FlightOptions,
        GatesBenchConfig,
        GatesBenchmarked,
        GatesMethod,
        family_named,
        run_gates,
    )
    from airworthy.gates.benchmark.methods import method_of
    from airworthy.gates.crossings import check_crossings
    from airworthy.gates.labels.labels import Labels, label
    from airworthy.gates.labels.options import RANDOMISATIONS, SearchOptions
    from airworthy.gates.labels.situations import Grid, encode, grid_named
    from airworthy.gates.planner.certificate import BoundaryPlan, PlanOptions
    from airworthy.gates.planner.network import Boundary
    from airworthy.gates.planner.planner import plan, plan_many
    from airworthy.gates.task import GateJudge, GateProtocol
    from airworthy.gates.training import (
        BoundaryOptions,
        BoundaryRunOptions,
        LabelTable,
        TrainedBoundary,
        read_labels,
        train_boundary,
    )
else:
    # fmt: off
    __getattr__, __dir__ = lazy_names(__name__)
    # fmt: on

__all__ = [
    "RANDOMISATIONS",
    "Boundary",
    "BoundaryOptions",
    "BoundaryPlan",
    "BoundaryRunOptions",
    "FlightOptions",
    "GateJudge",
    "GateProtocol",
    "GatesBenchConfig",
    "GatesBenchmarked",
    "GatesMethod",
    "Grid",
    "LabelTable",
    "Labels",
    "PlanOptions",
    "SearchOptions",
    "TrainedBoundary",
    "check_crossings",
    "encode",
    "family_named",
    "grid_named",
    "label",
    "method_of",
    "plan",
    "plan_many",
    "read_labels",
    "run_gates",
    "train_boundary",
]  # fmt: skip
