"""Controllers of Agilicious as back ends of `PlannerPilot`: by flatness, with an incremental inner loop, and with a guard."""

from airworthy.planners.agilicious.guard import Guarded, GuardLimits, RateCommand
from airworthy.planners.agilicious.nmpc import Nmpc, RateMpc
from airworthy.planners.agilicious.pipeline import Dfbc, Pipeline, So3
from airworthy.planners.common.tracking_backends import register_backend

__all__ = ["Dfbc", "GuardLimits", "Guarded", "Nmpc", "Pipeline", "RateCommand", "RateMpc", "So3"]

register_backend("so3_indi", lambda: Pipeline("so3_indi", So3(), "indi"), "the SO(3) controller over an incremental inner loop")
register_backend("dfbc", lambda: Pipeline("dfbc", Dfbc()), "control by differential flatness (Agilicious)")
register_backend("dfbc_indi", lambda: Pipeline("dfbc_indi", Dfbc(), "indi"), "the same over an incremental inner loop")
register_backend(
    "dfbc_indi_guarded",
    lambda: Guarded(Pipeline("dfbc_indi", Dfbc(), "indi")),
    "the same with a guard that takes over where a vehicle strays",
)
register_backend("rate_command", RateCommand, "position control by thrust and body rates (rpg_quadrotor_control)")
register_backend("nmpc", lambda: Pipeline("nmpc", Nmpc()), "predictive control of rotor thrusts (Agilicious)")
register_backend("nmpc_indi", lambda: Pipeline("nmpc_indi", Nmpc(), "indi"), "the same over an incremental inner loop")
register_backend("rate_mpc", RateMpc, "predictive control of thrust and body rates (Agile-Autonomy)")
