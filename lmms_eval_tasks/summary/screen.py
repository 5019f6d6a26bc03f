"""A finished run in a screenful."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.judges.endpoint.progress import cost_words
from lmms_eval_captions.judges.protocols.asking import NO_JUDGE
from lmms_eval_captions.lmms_eval_tasks.reasons import why_unscored
from lmms_eval_captions.lmms_eval_tasks.sampling.certificate import words_of
from lmms_eval_captions.lmms_eval_tasks.signature import DISTRIBUTION, package_version
from lmms_eval_captions.lmms_eval_tasks.summary.files import near, next_steps, where_it_is
from lmms_eval_captions.lmms_eval_tasks.summary.signatures import signature_lines
from lmms_eval_captions.lmms_eval_tasks.summary.table import JUDGE_RUNS, headline_of, table_lines
from lmms_eval_captions.lmms_eval_tasks.summary.text import counted, wrapped
from lmms_eval_captions.lmms_eval_tasks.this_run import FinishedRun

HEIGHT: Final = 38
"""Lines up to which warnings and signatures are shown whole: a screen, and the shell's own line."""
_FEW: Final = 4
"""Lines of warnings that are shown at least."""


def screen_of(run: FinishedRun) -> str:
    """What a person reads of a run when it is over.

    Args:
        run: One with a judging document, or with the samples of ``--predict_only``.
    """
    document = run.document
    if document.get("predict_only"):
        return "\n".join(_predicted(run))
    tasks = document["tasks"]
    table = ["", *_title(document), *table_lines(tasks)]
    meanings = list(_meanings(tasks))
    counts = [
        *_interval_notes(tasks),
        *_samples(tasks),
        *_judging(document),
        *_unscored(tasks),
    ]
    warnings = list(_warnings(document))
    paths = [*where_it_is(run), *next_steps(run)]
    signatures = signature_lines(tasks)
    room = HEIGHT - len(table) - len(counts) - len(paths)
    # What a file says as well gives way to what must be seen.
    if len(meanings) + len(warnings) + len(signatures) > room:
        signatures = signature_lines(tasks, is_short=True)
    if len(meanings) + len(warnings) + len(signatures) > room:
        meanings = []
    if len(warnings) + len(signatures) > room:
        n_shown = max(_FEW, room - len(signatures) - 1)
        warnings = [*warnings[:n_shown], *_more(len(warnings) - n_shown)]
    return "\n".join([*table, *meanings, *counts, *warnings, *paths, *signatures])


def _predicted(run: FinishedRun) -> Iterator[str]:
    """Where captions are that were not judged."""
    yield "captions are written, not judged (--predict_only); judge them, without the model, with"
    if run.folder is not None:
        yield f"  --model caption_file --model_args path={near(run.folder)}"


def _title(document: Mapping[str, Any]) -> list[str]:
    judges = dict.fromkeys(task["judge"] for task in document["tasks"].values())
    judges.pop(NO_JUDGE.label, None)
    how = f"judged by {', '.join(judges)}" if judges else "measured without a judge"
    words = f"captions of {_captioner(document)}, {how}"
    return wrapped(f"{DISTRIBUTION} {package_version()}", words)


def _captioner(document: Mapping[str, Any]) -> str:
    """Return a file's or class's name, else the model's.

    >>> _captioner({"model": "caption_file", "model_args": "path=runs/a.jsonl,missing=drop"})
    'a.jsonl'
    """
    given = document.get("model_args") or {}
    pairs = (
        given
        if isinstance(given, dict)
        else dict(pair.partition("=")[::2] for pair in str(given).split(","))
    )
    named = pairs.get("path") or pairs.get("captioner") or pairs.get("pretrained")
    return Path(str(named)).name if named else str(document["model"])


def _meanings(tasks: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What the headlines count, each once."""
    means = {task["headline"]: task["headline_means"] for task in tasks.values()}
    for name, words in means.items():
        if words:
            yield from wrapped(f"  {name}", words)
    yield "  [95%]: interval over videos; unscored: questions without a verdict; empty: captions"
    if any(headline_of(task).judge_part for task in tasks.values() if task["metrics"]):
        yield (
            f"  {JUDGE_RUNS}: standard deviation over them, and the judge's part of the "
            "interval's variance"
        )


def _interval_notes(tasks: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Why headlines have no interval, or what must be known of theirs: each reason once."""
    by_note: dict[str, list[str]] = {}
    for name, task in tasks.items():
        note = headline_of(task).note if task["metrics"] else ""
        if note:
            by_note.setdefault(note, []).append(name)
    for note, names in by_note.items():
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield from wrapped(note, f"{names[0]}{others}")


def _samples(tasks: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What samples of questions say of the headlines: of groups, and of tasks that are in none."""
    sampled = {name: task for name, task in tasks.items() if task.get("sampled")}
    inside = {member for task in sampled.values() for member in task["tasks"]}
    for name, task in sampled.items():
        if name not in inside:
            yield from wrapped(f"sampled {name}", words_of(task["sampled"]))
    if any(task["sampled"]["asked"] < task["sampled"]["questions"] for task in sampled.values()):
        yield (
            "  tasks and categories rest on fewer questions: their own intervals say how sure they "
            "are"
        )


def _judging(document: Mapping[str, Any]) -> Iterator[str]:
    """Calls, where replies came from, what failed, tokens, dollars and seconds."""
    totals = document["judging"]
    stored, retried = totals["from_store"], totals["retried"]
    n_stored = sum(stored.values())
    parts = [f"{totals['calls']:,} calls", f"{n_stored:,} replies from the store"]
    if len(stored) == 1:
        parts[-1] += f" (given by {next(iter(stored))})"
    elif stored:
        parts[-1] += f" ({', '.join(f'{n:,} given by {name}' for name, n in stored.items())})"
    if retried:
        parts.append(f"{sum(retried.values()):,} attempts failed ({counted(retried)})")
    parts.append(f"{totals['seconds']:,.0f} s, the whole run {document['seconds']:,.0f} s")
    yield from wrapped("judging", ", ".join(parts))
    tokens = {model: counts for model, counts in totals["tokens"].items() if any(counts)}
    if tokens:
        # A document of an earlier version says nothing of these.
        cached = totals.get("cached_tokens", {})
        billed = "; ".join(
            f"{name} {n:,} in{_cached_words(cached.get(name, 0), n)}, {m:,} out"
            for name, (n, m) in tokens.items()
        )
        usd_by_model = totals.get("usd_by_model", {"all": totals["usd"]})
        price = cost_words(usd_by_model, totals["prices_date"])
        yield from wrapped("tokens", f"{billed}; {price}")


def _cached_words(n_cached: int, n_input: int) -> str:
    """The share of a model's prompts that its endpoint had in a cache; empty for none."""
    return f" ({n_cached / n_input:.1%} of it from the endpoint's cache)" if n_cached else ""


def _unscored(tasks: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Why questions are unscored, and what helps."""
    reasons: Counter[str] = Counter()
    for task in tasks.values():
        if not task["tasks"]:
            reasons.update(task["unscored"]["reasons"])
    return wrapped("unscored", why_unscored(reasons)) if reasons else []


def _warnings(document: Mapping[str, Any]) -> Iterator[str]:
    """What a reader of the scores must know: of the run, and of single tasks."""
    for warning in document["warnings"]:
        yield from wrapped("warning", warning)
    # What is doubted of several tasks differs in its figures: those of the first stand for all.
    doubts: dict[str, tuple[str, list[str]]] = {}
    for name, task in document["tasks"].items():
        for doubt in task["doubts"]:
            doubts.setdefault(re.sub(r"\d+", "#", doubt), (doubt, []))[1].append(name)
    for doubt, names in doubts.values():
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield from wrapped(f"doubt about {names[0]}{others}", doubt)


def _more(n_lines: int) -> list[str]:
    if n_lines <= 0:
        return []
    return [f"  and {n_lines} lines more: see warnings and doubts in the judging file"]
