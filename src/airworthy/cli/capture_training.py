"""`airworthy capture train`: splats from posed images."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import OmitArgPrefixes

from airworthy.capture.training import TrainOptions, train_splats
from airworthy.cli.capture import INTERRUPTED, CaptureConfig
from airworthy.cli.common import emit_json

if TYPE_CHECKING:
    from airworthy.capture import CaptureImages


@dataclass(frozen=True)
class TrainConfig(CaptureConfig):
    """What to train from, and how."""

    out: Path = Path("splats")
    """Folder for the splats, the report, and what a stopped run goes on from."""
    training: OmitArgPrefixes[TrainOptions] = field(default_factory=TrainOptions)
    """How."""
    json: bool = False
    """Print JSON, and no progress."""


def train(config: TrainConfig, images: CaptureImages) -> int:
    """Train, and say what came of it."""
    if not config.json:
        for line in (*images.skipped, *images.notes):
            print(line[0].upper() + line[1:] + ".", file=sys.stderr)
    try:
        result = train_splats(images, config.out, config.training, quiet=config.json)
    except KeyboardInterrupt:
        print(
            f"Stopped; what is done is kept in {str(config.out)!r}, and the same command goes on from there.", file=sys.stderr
        )
        return INTERRUPTED
    if config.json:
        emit_json(asdict(result))
        return 0
    judged = f"{result.held_out} held-out images" if result.held_out else "images it was trained on"
    print(f"{result.splats}: {result.gaussians:,} gaussians after {result.steps:,} steps, {result.seconds:.0f} s.")
    print(f"PSNR {result.psnr:.2f} dB, SSIM {result.ssim:.3f} on {judged}; see {result.report.with_suffix('.html')}.")
    print(f"Next: airworthy view {result.splats}")
    return 0
