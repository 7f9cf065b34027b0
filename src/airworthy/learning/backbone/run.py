"""From nothing to a folder with a backbone, pre-trained and probed in places it has not seen: `airworthy train backbone`.

training.json     what is learnt, and where it began; written first
checkpoints/      while it is not finished
weights.safetensors, contract.json   what is learnt, also of a training that was stopped
metrics.jsonl     the loss and its parts, a line per step that was written down
tensorboard/      the same as event files, where they are asked for
report.html       curves and figures
summary.json      figures; written last: where it lies, all is done
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from airworthy.core.arrays import ArrayF32
from airworthy.learning.backbone.config import BackboneOptions
from airworthy.learning.backbone.contract import read_backbone, write_backbone
from airworthy.learning.backbone.probe import ProbeOptions, held_out_places, probe_backbone
from airworthy.learning.backbone.report import write_backbone_report
from airworthy.learning.backbone.sources import backbone_weights
from airworthy.learning.backbone.training import BackboneTraining
from airworthy.learning.folder_training import ONE_THREAD, Rows, TorchFolder, scalars_of
from airworthy.learning.machine import Machine, TrainingRunOptions, machine_for
from airworthy.learning.timed_training import SUMMARY_FILE, TimedTraining, Trained
from airworthy.learning.training_folder import REPORT_FILE, TrainingCurves, TrainingNames, say

__all__ = ["COMPARED", "train_backbone"]

SCHEMA_VERSION = 1
COMPARED = ("hall", "random")
"""Backbones that are probed beside the one that was learnt, in the same images."""
Weights = dict[str, ArrayF32]


@dataclass(kw_only=True)
class _BackboneFolder(TorchFolder[Weights]):
    names: ClassVar[TrainingNames] = TrainingNames(
        "a backbone", "its data were others", "it was begun by another version of this program", "gradient step", SUMMARY_FILE
    )

    kind: str = "backbone"
    options: BackboneOptions
    protocol: ProbeOptions

    def machine(self, before: Mapping[str, Any] | None) -> Machine:
        # Half precision halves the time where the processor multiplies in it.
        return machine_for(self.run, "auto", before)

    def begin(self, folder: Path, machine: Machine) -> TimedTraining[Any]:
        return self.timed(BackboneTraining(self.options, machine.threads, machine.precision), self._line)

    def _line(self, row: Mapping[str, Any]) -> str:
        parts = ", ".join(f"{name} {row[name]:.3f}" for name in ("pose", "point", "depth"))
        return f"{row['iteration']:,} of {self.options.iterations:,} in {row['wall_s']:.0f} s, errors: {parts}"

    def write(self, folder: Path, work: TimedTraining[Any]) -> None:
        write_backbone(folder, work.training.weights, work.training.told)

    def read(self, folder: Path) -> Weights:
        return read_backbone(folder)[1]

    def learnt(self, work: TimedTraining[Any]) -> Weights:
        # As `read` gives them: what is judged is what lies in the folder.
        weights: Weights = work.training.weights
        return {name: value.astype("float16").astype("float32") for name, value in weights.items()}

    def evidence(self, network: Weights, found: Mapping[str, Any]) -> dict[str, Any]:
        say(self.quiet, f"Probing it in {len(self.protocol.probed)} places, beside {' and '.join(COMPARED)}.")
        places = held_out_places(self.protocol)
        compared = {"this": network, **{word: backbone_weights(word) for word in COMPARED}}
        return {"probe": {name: probe_backbone(weights, places) for name, weights in compared.items()}}

    def summary(self, work: TimedTraining[Any], network: Weights, machine: Machine) -> dict[str, Any]:
        return self.summarised(work, machine, seen=work.training.seen, **self.evidence(network, {}))

    def report(
        self, folder: Path, found: Mapping[str, Any], rows: Rows, network: Weights, work: TimedTraining[Any] | None
    ) -> None:
        write_backbone_report(folder / REPORT_FILE, found, rows)

    def curves(self, work: TimedTraining[Any]) -> TrainingCurves:
        return TrainingCurves(work.metrics, scalars_of)


def train_backbone(
    out: str | Path,
    options: BackboneOptions | None = None,
    protocol: ProbeOptions | None = None,
    run: TrainingRunOptions | None = None,
    *,
    command: str = "",
    quiet: bool = True,
) -> Trained:
    """Pre-train a backbone, or go on where it was stopped, and probe it in places it has not seen.

    Args:
        out: Folder.
        options: What to learn, and how.
        protocol: Where it is probed.
        run: For how long, by how many threads.
        command: That makes the training again, for the summary.
        quiet: Say nothing but what is wrong.

    Raises:
        AirworthyError: The folder holds another training or something that is none.
        KeyboardInterrupt: It was asked to stop; the backbone as it is, and a checkpoint to go on from, are in the folder.
    """
    options, protocol, run = options or BackboneOptions(), protocol or ProbeOptions(), run or ONE_THREAD
    return _BackboneFolder(options=options, run=run, command=command, quiet=quiet, protocol=protocol).train(out)
