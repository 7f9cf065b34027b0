"""Acceptance figures that anyone can print: `airworthy verify`."""

from airworthy.evaluation.verification.figure import Figure
from airworthy.evaluation.verification.flightgoggles import flightgoggles_figures
from airworthy.evaluation.verification.promises import promise_figures
from airworthy.evaluation.verification.published import published_figures

__all__ = ["Figure", "flightgoggles_figures", "promise_figures", "published_figures"]
