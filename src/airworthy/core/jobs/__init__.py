"""Long jobs: work in parts that is stopped at any time and gone on with, and ends with the same bytes however that went.

A job is a folder. Whoever writes there holds its lock (`core.files.lock_folder`) and first refuses one that another command
made (`block_job.refuse_foreign`). What follows is the same for data sets, labels, trainings and benchmarks:

identity     everything that the bytes depend on, as plain data; its SHA-256 is the digest (`manifest.digest_of`). What a run
             may differ in without changing a byte (workers, cluster, report) is not in it.
manifest     one JSON file with the identity, the digest and the checksums of finished parts (`manifest.ManifestKind`). Its
             name tells what a folder holds (`block_job.KINDS`). A run of another identity is refused, and told the fields
             that differ (`manifest.differences`).
parts        blocks of flights, shards of pairs or labels: whole on disk or not there (`block_store.BlockStore`; tables of rows
             with a signed head, `tables`). A part that was finished when a run was killed joins the manifest later; one that
             was changed since is refused with a sentence that says how to make it again.
work         what is left (`block_job.left_of`) is done here, by processes, or by the machines of a Ray cluster, by the same
             function everywhere (`workers.shared`), and kept as it comes (`block_job.keep_each`).
stopping     KeyboardInterrupt ends a job of parts between two of them; a training looks for signals itself
             (`progress.stoppable`), within long steps, too, and saves checkpoints (`checkpoints`).
replay       the command that makes the same again stands in the result (`progress.command_line`).
"""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.core.jobs.block_job import BlocksDone, Keeper, describe_machine, keep_each, kind_of, refuse_foreign
    from airworthy.core.jobs.block_store import BlockStore, ManifestKind, differences, digest_of
    from airworthy.core.jobs.checkpoints import Checkpoint, Checkpoints
    from airworthy.core.jobs.json_blocks import JsonBlockStore
    from airworthy.core.jobs.progress import stoppable
    from airworthy.core.jobs.workers import WorkerStopped, in_processes, on_cluster, shared
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "BlockStore", "BlocksDone", "Checkpoint", "Checkpoints", "JsonBlockStore", "Keeper", "ManifestKind", "WorkerStopped",
    "describe_machine", "differences", "digest_of", "in_processes", "keep_each", "kind_of", "on_cluster",
    "refuse_foreign", "shared", "stoppable",
]  # fmt: skip
