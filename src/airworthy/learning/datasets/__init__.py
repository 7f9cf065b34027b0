"""Data sets of expert roll-outs: made shard by shard, resumed after any interruption, read by those who train."""

from airworthy.learning.datasets.config import DatasetConfig
from airworthy.learning.datasets.images import ImageStack
from airworthy.learning.datasets.job import Made, synthesize_dataset
from airworthy.learning.datasets.manifest import Manifest, read_manifest
from airworthy.learning.datasets.reader import ExpertDataset
from airworthy.learning.datasets.shard_files import ShardFacts

__all__ = [
    "DatasetConfig",
    "ExpertDataset",
    "ImageStack",
    "Made",
    "Manifest",
    "ShardFacts",
    "read_manifest",
    "synthesize_dataset",
]
