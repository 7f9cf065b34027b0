"""The modules beside the tests, which build and damage captures, can be imported by them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
