"""SV-Net: training from expert roll-outs, and what its history network has learnt. torch is loaded when training begins."""

from __future__ import annotations

from pathlib import Path

from airworthy.core.idle_options import refuse_idle
from airworthy.learning.svnet.data import ExpertPairs
from airworthy.learning.svnet.options import IDLE_RULES, RUN_RULES, RunOptions, SvNetOptions, TrainedSvNet

__all__ = ["ExpertPairs", "RunOptions", "SvNetOptions", "TrainedSvNet", "train_svnet"]


def train_svnet(
    pairs: ExpertPairs,
    out: str | Path,
    options: SvNetOptions | None = None,
    run: RunOptions | None = None,
    command: str = "",
    quiet: bool = False,
) -> TrainedSvNet:
    """Train SV-Net or one of its variants, or go on with a training that was stopped.

    On a CPU the same data, options, threads and version of torch give the same bytes, however often the run was stopped, also
    by kill -9. On SIGINT and SIGTERM everything is saved before the process ends.

    Args:
        pairs: An `ExpertDataset`.
        out: Folder of one training, for `weights.safetensors`, `contract.json`, `report.html`, `training.jsonl` and, until it
            is finished, `checkpoints`.
        options: What is learnt, and how; None: as published.
        run: Where, and for how long.
        command: That makes it again, for the report.
        quiet: Show no progress.

    Raises:
        AirworthyError: An option changes nothing, there is nothing to train on, the folder holds another training or is in
            use, there is no such device, or too many minibatches were not finite.
        ModuleNotFoundError: torch is not installed; the extra 'learn' brings it.
    """
    options, run = options or SvNetOptions(), run or RunOptions()
    refuse_idle(options, IDLE_RULES)
    refuse_idle(run, RUN_RULES, options)
    # Behind the checks: what is refused is told without torch, too.
    from airworthy.learning.svnet.training import train

    return train(pairs, out, options, run, command, quiet)
