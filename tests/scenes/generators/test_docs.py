"""The snippets of docs/howto/generators.md run, one after the other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from airworthy.scenes.generators import GENERATORS


def test_snippets(repository: Path) -> None:
    text = (repository / "docs" / "howto" / "generators.md").read_text(encoding="utf-8")
    snippets = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert len(snippets) == 3
    names: dict[str, Any] = {}
    try:
        for snippet in snippets:
            exec(compile(snippet, "generators.md", "exec"), names)
    finally:
        GENERATORS.pop("crates", None)
