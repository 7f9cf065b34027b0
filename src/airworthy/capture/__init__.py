"""Captures: posed images of a place, how they become metric, and splats trained from them."""

from airworthy.capture.images import CAPTURE_LIMITS, CaptureImages, CaptureLimits, read_capture, write_capture

__all__ = ["CAPTURE_LIMITS", "CaptureImages", "CaptureLimits", "read_capture", "write_capture"]
