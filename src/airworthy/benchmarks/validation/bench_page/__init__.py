"""The page of a thrust stand's curves."""

from airworthy.benchmarks.validation.bench_page.page import write_bench_page

__all__ = ["write_bench_page"]
