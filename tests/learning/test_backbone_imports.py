"""Frozen features are flown without torch: what reads a backbone does not load it."""

import subprocess
import sys

PROGRAM = """
import sys
from airworthy.learning.backbone import BackboneOptions, ProbeOptions, backbone_weights
backbone_weights("random")
assert "torch" not in sys.modules
"""


def test_reading_a_backbone_loads_no_torch() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
