"""Data sets of expert roll-outs: made shard by shard, resumed after any interruption, read by those who train."""

from airworthy.learning.datasets.config import DatasetConfig
from airworthy.learning.datasets.job import Made, synthesize_dataset
from airworthy.learning.datasets.reader import ExpertDataset, ImageStack
from airworthy.learning.datasets.shard_files import Manifest, ShardFacts, read_manifest

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
