"""Verdicts on samples of the questions, set side by side: each counts as much as it stands for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from lmms_eval_captions.analysis.verdicts.verdicts import TaskVerdicts, Verdicts
from lmms_eval_captions.lmms_eval_tasks.sampling.weights import Weighed, weighed


def are_in_part(verdicts: Verdicts) -> bool:
    """Whether of some caption a sample of the questions was judged."""
    return any(caption.sample for task in verdicts.tasks for caption in task.captions)


def weighed_verdicts(verdicts: Verdicts) -> Verdicts:
    """Verdicts whose metrics are computed from what each question adds, in a sample or not.

    Two such may be compared: the difference of two estimates, each unbiased for all questions, is
    unbiased for the difference, and what the samples leave open is in how videos differ.
    """
    return replace(verdicts, tasks=tuple(map(_weighed, verdicts.tasks)))


def is_weighed(verdicts: Verdicts) -> bool:
    """Whether these are of :func:`weighed_verdicts`."""
    values = verdicts.tasks[0].captions[0].values[verdicts.benchmark.headline]
    return any(isinstance(value, Weighed) for run in values for value in run)


def notes_of(several: Sequence[Verdicts], names: Sequence[str]) -> Iterator[str]:
    """What is to be said of the samples that are compared.

    Args:
        several: Of each captioner.
        names: Of the captioners.
    """
    for verdicts, name in zip(several, names, strict=True):
        if are_in_part(verdicts):
            captions = [caption for task in verdicts.tasks for caption in task.captions]
            n_asked = sum(caption.n_questions for caption in captions if caption.n_population)
            n_all = sum(caption.n_population or caption.n_questions for caption in captions)
            yield (
                f"{name}: a sample of the questions was judged, {n_asked:,} of {n_all:,}: the "
                "intervals are wider for it, and single verdicts are not set side by side"
            )


def _weighed(task: TaskVerdicts) -> TaskVerdicts:
    benchmark, captions = weighed(task.benchmark, task.captions, always=True)
    return replace(task, benchmark=benchmark, captions=list(captions))
