"""From a film of a place to posed pictures and splats of it, with evidence."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.capture.video.frames import TakenFrame, choose_frames, published_frames, take_frames
    from airworthy.capture.video.moving import moving_mask, write_masks
    from airworthy.capture.video.options import CaptureVideoOptions, VideoPlan
    from airworthy.capture.video.reconstruction import ReconstructionOptions, reconstruct
    from airworthy.capture.video.run import VideoResult, capture_video
    from airworthy.capture.video.shutter import RollingShutterTest, rolling_shutter
    from airworthy.capture.video.transients import with_transients_masked
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "CaptureVideoOptions",
    "ReconstructionOptions",
    "RollingShutterTest",
    "TakenFrame",
    "VideoPlan",
    "VideoResult",
    "capture_video",
    "choose_frames",
    "moving_mask",
    "published_frames",
    "reconstruct",
    "rolling_shutter",
    "take_frames",
    "with_transients_masked",
    "write_masks",
]  # fmt: skip
