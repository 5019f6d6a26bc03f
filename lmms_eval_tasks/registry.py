"""The benchmarks of this package: the one place that names them all.

It imports none of them, so that who needs one of their modules alone need not wait for the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Final

_HERE: Final = "lmms_eval_captions.lmms_eval_tasks"

BENCHMARKS: Final[dict[str, str]] = {
    "vdc": f"{_HERE}.vdc.benchmark.VDC",
    "vdc_rouge": f"{_HERE}.vdc.benchmark.VDC_ROUGE",
    "vdc_classic": f"{_HERE}.vdc.classic.VDC_CLASSIC",
    "vdc_vdd": f"{_HERE}.vdc.vdd.VDD",
    "vidcapbench": f"{_HERE}.vidcapbench.benchmark.VIDCAPBENCH",
    "vcapsbench": f"{_HERE}.vcapsbench.benchmark.VCAPSBENCH",
    "capquiz": f"{_HERE}.capquiz.benchmark.CAPQUIZ",
    "msvd_eval": f"{_HERE}.msvd_eval.benchmark.MSVD_EVAL",
    "own_gveval": f"{_HERE}.own.benchmark.OWN_GVEVAL",
    "own_rating": f"{_HERE}.own.rating.OWN_RATING",
}
"""Name to the dotted path of the record, which is imported when it is needed. A record of a variant
has a name of its own here, and its benchmark's folder."""


def modules(part: str) -> Iterator[ModuleType]:
    """A module of every benchmark that has it, without a look at its record.

    Args:
        part: The module's name in the benchmark's folder, such as ``sample``.
    """
    for package in dict.fromkeys(path.rsplit(".", 2)[0] for path in BENCHMARKS.values()):
        name = f"{package}.{part}"
        if find_spec(name) is not None:
            yield import_module(name)


def tasks_path() -> Path:
    """Return the folder of our task definitions, as lmms-eval's ``--include_path`` takes it."""
    return Path(__file__).resolve().parent
