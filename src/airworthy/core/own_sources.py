"""Loading of users' Python files as they are now, not as Python compiled them a moment ago."""

from __future__ import annotations

from importlib.machinery import SourceFileLoader
from types import CodeType

__all__ = ["UncachedSource"]


class UncachedSource(SourceFileLoader):
    """Compiles a source each time it is imported.

    Python takes its own compiled file for the source's where both have the same size and second of writing: what is edited
    twice within a second would run as it was before.
    """

    def get_code(self, fullname: str) -> CodeType:
        """Return the source's code."""
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code
