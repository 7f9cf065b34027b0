"""Captures: posed images of a place, how they become metric, and splats trained from them."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.capture._gate import CaptureLimits
    from airworthy.capture.alignment import Alignment, Similarity, aligned, best_similarity, find_alignment, find_similarity
    from airworthy.capture.images import CAPTURE_LIMITS, CaptureImages, read_capture, write_capture
    from airworthy.capture.markers import MarkerPose, detect_marker, draw_marker, marker_poses
    from airworthy.capture.rendering import RenderCaptureOptions, render_capture
    from airworthy.capture.training import TrainResult, train_splats
    from airworthy.capture.training_options import TrainOptions
    from airworthy.capture.video import CaptureVideoOptions, FilmOptions, VideoPlan, VideoResult, capture_video, render_film
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "CAPTURE_LIMITS",
    "Alignment",
    "CaptureImages",
    "CaptureLimits",
    "CaptureVideoOptions",
    "FilmOptions",
    "MarkerPose",
    "RenderCaptureOptions",
    "Similarity",
    "TrainOptions",
    "TrainResult",
    "VideoPlan",
    "VideoResult",
    "aligned",
    "best_similarity",
    "capture_video",
    "detect_marker",
    "draw_marker",
    "find_alignment",
    "find_similarity",
    "marker_poses",
    "read_capture",
    "render_capture",
    "render_film",
    "train_splats",
    "write_capture",
]  # fmt: skip
