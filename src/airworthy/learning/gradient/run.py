"""From a vehicle to a folder with a policy that hovers, and the evidence for it: `airworthy train hover`.

training.json     what is learnt, and where it began; written first
checkpoints/      while it is not finished
weights.safetensors, contract.json   the policy, also of a training that was stopped
metrics.jsonl     cost, flights lost, steps and time, a line per iteration that was written down
tensorboard/      the same as event files, where they are asked for
film/             weights of the film's stages, for who judges again; none without a film
report.html       curve, tables, robustness
summary.json      figures; written last: where it lies, all is done
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airworthy.core.errors import AirworthyError
from airworthy.learning.folder_training import FlownFolder, Rows
from airworthy.learning.gradient.config import HoverConfig
from airworthy.learning.gradient.evaluation import HoverProtocol, compare, conditions, figures, fly_hover, has_drag, robustness
from airworthy.learning.gradient.film import STAGES, STAGES_FOLDER, film_pictures, keep_stages, kept_stages
from airworthy.learning.gradient.flyers import Flyer, GeometricController, LearntPolicy, MpcController
from airworthy.learning.gradient.policy import contract_of_training, write_motor_policy
from airworthy.learning.gradient.report import write_hover_report
from airworthy.learning.gradient.trainer import GradientOptions
from airworthy.learning.machine import Machine
from airworthy.learning.native_ppo.training import PpoTrainingOptions
from airworthy.learning.seeds import refuse_judged_seed, seed_rows, train_each, write_seeds
from airworthy.learning.timed_training import SUMMARY_FILE, TimedTraining, Trained, flown_run, flown_summary, used_packages
from airworthy.learning.training_folder import REPORT_FILE, TrainingNames, refuse_other_training, say
from airworthy.pilots.motor_policy.pilot import MotorPolicy, read_motor_policy
from airworthy.simulation.posterior import draws_record
from airworthy.vehicles import Vehicle

if TYPE_CHECKING:
    from airworthy.learning.gradient.policy import HoverTraining, HoverTrainingOptions
    from airworthy.learning.native_ppo.config import MotorCommandConfig

__all__ = ["train_hover", "train_seeds"]

SCHEMA_VERSION = 1
_NAMES = TrainingNames(
    "a policy",
    "its vehicle was another",
    "it was begun by another version of this program",
    "iteration",
    SUMMARY_FILE,
)


@dataclass(kw_only=True)
class _HoverFolder(FlownFolder[MotorPolicy]):
    names, stages = _NAMES, STAGES

    options: HoverTrainingOptions
    vehicle: Vehicle
    protocol: HoverProtocol

    def data(self, folder: Path) -> dict[str, Any]:
        return {"vehicle": self.vehicle.name, "sha256": contract_of_training(self.training).digest}

    def write(self, folder: Path, work: TimedTraining[Any]) -> None:
        write_motor_policy(folder, self.training)

    def read(self, folder: Path) -> MotorPolicy:
        return read_motor_policy(folder)

    def learnt(self, work: TimedTraining[Any]) -> MotorPolicy:
        return MotorPolicy(contract_of_training(self.training), tuple(self.training.weights))

    def evidence(self, network: MotorPolicy, found: Mapping[str, Any]) -> dict[str, Any]:
        learnt = LearntPolicy.of(self.training).having(network.weights)
        return _evidence(self.vehicle, learnt, self.options, self.protocol, self.quiet)

    def summary(self, work: TimedTraining[Any], network: MotorPolicy, machine: Machine) -> dict[str, Any]:
        return _judged(self.vehicle, work, self.protocol, self.split, self.command, self.quiet)

    def report(
        self, folder: Path, found: Mapping[str, Any], rows: Rows, network: MotorPolicy, work: TimedTraining[Any] | None
    ) -> None:
        learnt = LearntPolicy.of(self.training).having(network.weights)
        filmed = bool(self.protocol.film_flights)
        earlier = work.earlier if work is not None else kept_stages(folder) if filmed else {}
        film = film_pictures(
            self.vehicle, learnt, earlier, network.weights, found["training_wall_s"], self.options.start, self.protocol
        )
        write_hover_report(folder / REPORT_FILE, found, rows, film)
        # Without a film nobody asks for its stages. Of one that is asked for later there are none, which is kept, too: a folder
        # that lacks them then has lost them.
        if filmed:
            keep_stages(folder, earlier)

    def beside(self) -> Mapping[str, str]:
        if not self.protocol.film_flights:
            return super().beside()
        return {**super().beside(), STAGES_FOLDER: "a film that is made again is of the last stage alone"}


def train_hover(
    vehicle: Vehicle,
    out: str | Path,
    options: HoverTrainingOptions | None = None,
    protocol: HoverProtocol | None = None,
    *,
    command: str = "",
    import_s: float | None = None,
    minutes: float = 0.0,
    device: str = "cpu",
    tensorboard: bool = False,
    quiet: bool = True,
) -> Trained:
    """Learn to hold a place by motor commands, or go on where it was stopped, and judge what was learnt.

    Args:
        vehicle: Whose rotors it commands.
        out: Folder.
        options: What to learn, and how: `GradientOptions`, or `PpoTrainingOptions`.
        protocol: How it is judged.
        command: That makes the training again, for the report.
        import_s: How long the program took to load, where that is known [s].
        minutes: Stop after this long, with a checkpoint to go on from; 0: when it is finished.
        device: Of the networks of the trainer `ppo`: cpu, cuda, cuda:1, or auto; the others learn on the CPU.
        tensorboard: Write event files of TensorBoard, too.
        quiet: Say nothing but what is wrong.

    Raises:
        AirworthyError: The vehicle cannot hover, the seed is that of the judged starts, the folder holds another training or
            something that is none, or TensorBoard was asked for and is not installed.
        KeyboardInterrupt: It was asked to stop; the policy as it is, and a checkpoint to go on from, are in the folder.
    """
    options, protocol = options or GradientOptions(), protocol or HoverProtocol()
    refuse_judged_seed([options.seed], protocol.seed)
    begun = time.perf_counter()
    # First: what makes a training ready may compile for half a minute.
    refuse_other_training(out, options, options.task)
    training = options.begin(vehicle, device) if isinstance(options, PpoTrainingOptions) else options.begin(vehicle)
    made = _HoverFolder(
        kind=options.task,
        options=options,
        run=flown_run(minutes, tensorboard),
        command=command,
        quiet=quiet,
        training=training,
        begun=begun,
        split={"import_s": import_s},
        vehicle=vehicle,
        protocol=protocol,
    )
    return made.train(out)


def train_seeds(
    vehicle: Vehicle,
    out: str | Path,
    config: HoverConfig | MotorCommandConfig,
    count: int,
    protocol: HoverProtocol | None = None,
    *,
    commands: Sequence[str] = (),
    **told: Any,
) -> list[Trained]:
    """Train several seeds, one after the other, each in a folder of its own; `summary.json` above has all of them.

    Args:
        vehicle: Whose rotors are commanded.
        out: Folder.
        config: Its seed is the first.
        count: Seeds.
        protocol: How they are judged.
        commands: That make each again.
        told: As of `train_hover`.

    Returns:
        Those that were finished, and one that was not behind them.

    Raises:
        AirworthyError: There are too many or too few seeds, or one cannot be trained.
    """

    # All of them now: it would be a pity to hear it when some are learnt.
    refuse_judged_seed(range(config.seed, config.seed + count), (protocol or HoverProtocol()).seed)

    def train(seed: int, folder: Path, command: str) -> Trained:
        return train_hover(vehicle, folder, config.options(seed), protocol, command=command, **told)

    done = train_each(out, range(config.seed, config.seed + count), train, commands)
    if not done[-1].finished:
        return done
    shown = ("seed", "training_wall_s", "training_cpu_s", "kept_percent", "median_error_m", "p95_error_m", "env_steps")
    rows = seed_rows(done, lambda found: {name: found[name] for name in shown})
    write_seeds(out, {"kind": f"{config.options(0).task} seeds", "vehicle": vehicle.name}, rows)
    return done


def _judged(
    vehicle: Vehicle,
    run: TimedTraining[HoverTraining],
    protocol: HoverProtocol,
    split: Mapping[str, float | None],
    command: str,
    quiet: bool,
) -> dict[str, Any]:
    """Return what `summary.json` holds."""
    training, options = run.training, run.training.options
    judged = _evidence(vehicle, LearntPolicy.of(training), options, protocol, quiet)
    about = {
        "kind": options.task,
        "vehicle": vehicle.name,
        "trainer": training.trainer,
        "rate": training.flown_rate,
        "seed": options.seed,
    }
    told: dict[str, Any] = {"command": command, "packages": used_packages(training.trainer)}
    more = {"vehicles_raised": training.raised, **draws_record([vehicle], options.randomization)}
    return flown_summary(run, about, judged, protocol, split=split, more=more, **told)


def _evidence(
    vehicle: Vehicle, learnt: LearntPolicy, options: HoverTrainingOptions, protocol: HoverProtocol, quiet: bool
) -> dict[str, Any]:
    """Return what of `summary.json` its flights say, and in how many seconds they were flown."""
    begun, cpu = time.perf_counter(), time.process_time()
    say(quiet, f"Judging it on {protocol.flights:,} flights, and beside known controllers.")
    nominal = figures(fly_hover(vehicle, learnt, protocol, options.start, protocol.flights))
    known: list[tuple[Flyer, int]] = [(GeometricController(learnt.rate), protocol.flights)]
    if protocol.mpc_flights:
        known.append((MpcController(learnt.rate, protocol.flight_s), protocol.mpc_flights))
    beside = [_beside(vehicle, flyer, protocol, options, count, learnt) for flyer, count in known]
    drag = has_drag(vehicle)
    able = known[0][0] if "reason" not in beside[0] else None
    grid = robustness(vehicle, learnt, able, protocol, options.start, conditions(winds=drag))
    return {
        **nominal,
        "seconds": {"evaluate_s": time.perf_counter() - begun, "evaluate_cpu_s": time.process_time() - cpu},
        "baselines": beside,
        "robustness": grid,
        "wind": "" if drag else "The vehicle has no drag: wind does nothing to it, so none is flown.",
    }


def _beside(
    vehicle: Vehicle, flyer: Flyer, protocol: HoverProtocol, options: HoverTrainingOptions, count: int, learnt: LearntPolicy
) -> dict[str, Any]:
    """Figures of a known controller on the first of the same starts, and how the policy stands to it on just these."""
    try:
        theirs = fly_hover(vehicle, flyer, protocol, options.start, count)
    except AirworthyError as reason:
        return {"name": flyer.name, "reason": str(reason)}
    # The policy once more, on as few flights: quantiles of 64 are not held against those of 1,024.
    mine = fly_hover(vehicle, learnt, protocol, options.start, count)
    # On fewer flights than the others: the page shows both on just these.
    same = {} if count == protocol.flights else {"learnt": figures(mine)}
    return {"name": flyer.name, **figures(theirs), **same, **compare(mine, theirs, flyer.name)}
