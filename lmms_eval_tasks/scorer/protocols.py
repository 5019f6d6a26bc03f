"""The protocols that a scorer knows by name: for clips of the user's, and those of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache

from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Doc
from lmms_eval_captions.lmms_eval_tasks.clip_protocol import Clip, ClipProtocol
from lmms_eval_captions.lmms_eval_tasks.registry import modules
from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks


@cache
def clip_protocols() -> Mapping[str, ClipProtocol]:
    """The protocols for clips of the user's, by name."""
    return {
        protocol.name: protocol
        for module in modules("benchmark")
        for protocol in getattr(module, "PROTOCOLS", ())
    }


def protocol_of(name: str) -> ClipProtocol:
    """A protocol, or that of a task.

    Args:
        name: One of :func:`clip_protocols`, or a task of lmms-eval's, such as ``vdc_camera``: its
            clips are then those of the benchmark, with the questions of its files.

    Raises:
        SettingsError: If there is none; the text lists those that there are.
    """
    if name in clip_protocols():
        return clip_protocols()[name]
    benchmark = our_benchmarks().get(name)
    if benchmark is None:
        known = [*clip_protocols(), *our_benchmarks()]
        close = get_close_matches(name, known, n=1)
        meant = f"; was {close[0]} meant?" if close else ""
        raise SettingsError(
            f"expected a protocol ({', '.join(clip_protocols())}) or one of our tasks, got "
            f"{name!r}{meant}"
        )
    if benchmark.measure is not None:
        raise SettingsError(f"{name}: expected a task that asks a judge, this one asks none")

    def not_known(clip: Clip) -> Doc:
        raise DataError(
            f"{name}: expected a video of the benchmark, got {clip.clip_id!r}; questions of "
            f"your own are asked with one of {', '.join(clip_protocols())}"
        )

    return ClipProtocol(
        name=name,
        benchmark=benchmark,
        task=benchmark.tasks[name],
        needs=frozenset(),
        document=not_known,
    )


def documents_of(protocol: ClipProtocol, settings: DataSettings) -> dict[str, Doc]:
    """The documents of a protocol's task by each name of their videos.

    Returns:
        Nothing where the protocol is no task's.

    Raises:
        DataError: If the benchmark's files are missing or broken.
    """
    benchmark = our_benchmarks().get(protocol.name)
    if benchmark is None:
        return {}
    documents = benchmark.read(settings, benchmark.tasks[protocol.name])
    return {name: doc for doc in reversed(documents) for name in benchmark.video_names(doc)}
