"""The benchmarks that there are: ours, and those of other installed packages; none is imported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Final

from loguru import logger

GROUP: Final = "lmms_eval_captions.benchmarks"
"""Group of entry points: a name and a record, as in ``toy = caption_facts.benchmark:TOY``."""
_HERE: Final = "lmms_eval_captions.lmms_eval_tasks"

_OURS: Final[Mapping[str, str]] = {
    "vdc": f"{_HERE}.vdc.benchmark.VDC",
    "vdc_rouge": f"{_HERE}.vdc.benchmark.VDC_ROUGE",
    "vdc_classic": f"{_HERE}.vdc.classic.VDC_CLASSIC",
    "vdc_vdd": f"{_HERE}.vdc.benchmark.VDD",
    "vidcapbench": f"{_HERE}.vidcapbench.benchmark.VIDCAPBENCH",
    "vcapsbench": f"{_HERE}.vcapsbench.benchmark.VCAPSBENCH",
    "capquiz": f"{_HERE}.capquiz.benchmark.CAPQUIZ",
    "dream1k": f"{_HERE}.dream1k.benchmark.DREAM1K",
    "carebench": f"{_HERE}.carebench.benchmark.CAREBENCH",
    "salmonn2": f"{_HERE}.salmonn2.benchmark.SALMONN2",
    "ugc_videocap": f"{_HERE}.ugc_videocap.benchmark.UGC_VIDEOCAP",
    "caption_qa": f"{_HERE}.caption_qa.benchmark.CAPTION_QA",
    "msvd_eval": f"{_HERE}.msvd_eval.benchmark.MSVD_EVAL",
    "own_gveval": f"{_HERE}.own.benchmark.OWN_GVEVAL",
    "own_rating": f"{_HERE}.own.benchmark.OWN_RATING",
}
"""Name to the dotted path of the record. A record of a variant has a name of its own here, and its
benchmark's folder."""


@cache
def benchmark_paths() -> Mapping[str, str]:
    """Return every benchmark's name and the dotted path of its record."""
    others = {point.name: f"{point.module}.{point.attr}" for point in entry_points(group=GROUP)}
    return {**others, **_OURS}


def modules(part: str) -> Iterator[ModuleType]:
    """Yield a module, such as ``sample``, of every benchmark's folder that has it."""
    for package in dict.fromkeys(path.rsplit(".", 2)[0] for path in benchmark_paths().values()):
        name = f"{package}.{part}"
        try:
            if find_spec(name) is not None:
                yield import_module(name)
        except ImportError as error:
            if package.startswith(_HERE):
                raise
            logger.warning("the benchmarks of {} cannot be used: {}", package, error)


def tasks_path() -> Path:
    """Return the folder of our task definitions, as lmms-eval's ``--include_path`` takes it."""
    return Path(__file__).resolve().parent


def other_tasks_paths() -> list[Path]:
    """Return the folders of the task definitions of other packages."""
    packages = {path.rsplit(".", 2)[0] for path in benchmark_paths().values()}
    found = []
    for package in sorted(name for name in packages if not name.startswith(_HERE)):
        try:
            spec = find_spec(package)
        except ImportError as error:
            logger.warning("the benchmarks of {} cannot be used: {}", package, error)
            continue
        found += [Path(place) for place in (spec and spec.submodule_search_locations) or ()]
    return found
