"""Import path of the stand-ins that benchmarks share with the tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
