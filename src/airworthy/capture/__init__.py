"""Captures: posed images of a place, how they become metric and level, and splats trained from them."""

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

if TYPE_CHECKING:
    from airworthy.capture._gate import CaptureLimits
    from airworthy.capture.alignment.align import align_capture, aligned, find_alignment
    from airworthy.capture.alignment.frame_export import export_frames
    from airworthy.capture.alignment.known_distance import KnownDistance, measured_scale
    from airworthy.capture.alignment.level import Accelerations, read_accelerations
    from airworthy.capture.alignment.marker_sheet import draw_marker, draw_marker_sheet, write_marker_sheet
    from airworthy.capture.alignment.markers import (
        MarkerPose,
        detect_marker,
        detect_markers,
        find_all_markers,
        find_markers,
        marker_poses,
    )
    from airworthy.capture.alignment.page import write_alignment_page
    from airworthy.capture.alignment.record import Alignment, AlignOptions
    from airworthy.capture.alignment.similarity import Similarity, best_similarity, find_similarity
    from airworthy.capture.filming import FilmOptions, render_film
    from airworthy.capture.images import CAPTURE_LIMITS, CaptureImages, read_capture, write_capture
    from airworthy.capture.photograph import CornerTracks, ImageStatistics, corner_tracks, image_statistics
    from airworthy.capture.places.place import CapturedPlace, PlaceOptions, made_place, write_place
    from airworthy.capture.places.place_surface import coverage_picture, depth_against_points
    from airworthy.capture.poses import CapturePoses, read_poses
    from airworthy.capture.rendering import RenderCaptureOptions, render_capture
    from airworthy.capture.training.options import TrainOptions
    from airworthy.capture.training.train import TrainResult, train_splats
    from airworthy.capture.video import CaptureVideoOptions, VideoPlan, VideoResult, capture_video
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "CAPTURE_LIMITS", "Accelerations", "AlignOptions", "Alignment", "CaptureImages", "CaptureLimits", "CapturePoses",
    "CaptureVideoOptions", "CapturedPlace", "CornerTracks", "FilmOptions", "ImageStatistics", "KnownDistance", "MarkerPose",
    "PlaceOptions", "RenderCaptureOptions", "Similarity", "TrainOptions", "TrainResult", "VideoPlan", "VideoResult",
    "align_capture", "aligned", "best_similarity", "capture_video", "corner_tracks", "coverage_picture",
    "depth_against_points", "detect_marker", "detect_markers", "draw_marker", "draw_marker_sheet", "export_frames",
    "find_alignment", "find_all_markers", "find_markers", "find_similarity", "image_statistics", "made_place",
    "marker_poses", "measured_scale", "read_accelerations", "read_capture", "read_poses", "render_capture", "render_film",
    "train_splats", "write_alignment_page", "write_capture", "write_marker_sheet", "write_place",
]  # fmt: skip
