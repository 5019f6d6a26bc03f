"""Captions of a benchmark scored without lmms-eval: the numbers and files of its runs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, MutableMapping, Sequence
from datetime import datetime, timedelta, timezone
from importlib import import_module
from math import isnan
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from loguru import logger

from lmms_eval_captions.judges.errors import CaptionError
from lmms_eval_captions.judges.files import write_atomically
from lmms_eval_captions.lmms_eval_tasks.benchmark import Doc, read_plain_yaml
from lmms_eval_captions.lmms_eval_tasks.hooks import Hooks
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.records import Item
from lmms_eval_captions.lmms_eval_tasks.registry import tasks_path
from lmms_eval_captions.lmms_eval_tasks.results.results_writer import complete, with_intervals
from lmms_eval_captions.lmms_eval_tasks.results.sample_scores import SCORE, score_samples
from lmms_eval_captions.lmms_eval_tasks.results.screen import print_runs
from lmms_eval_captions.lmms_eval_tasks.task_names import (
    all_benchmarks,
    our_benchmarks,
    task_groups,
    tasks_of,
)
from lmms_eval_captions.model_wrappers.caption_files.columns import listed, video_names
from lmms_eval_captions.model_wrappers.caption_files.records import CaptionTable, open_captions
from lmms_eval_captions.model_wrappers.captions import RUN_CAPTIONS
from lmms_eval_captions.model_wrappers.no_caption import DroppedCaption, NoCaption

Missing = Literal["error", "skip", "drop"]
_REASONING: Final = (("<think>", "</think>"), ("<analysis>", "</analysis>"))
"""Tags of reasoning that lmms-eval cuts from answers by default."""
_ZONE: Final = timezone(timedelta(hours=8))
"""Time zone of lmms-eval's file names, by which runs in one folder are ordered."""
_NONE: Final = "N/A"


def score_tasks(
    files: Sequence[str],
    tasks: str,
    output: Path,
    *,
    columns: Mapping[str, str],
    missing: Missing = "error",
) -> int:
    """Score captions of benchmarks as ``lmms-eval --model caption_file`` does.

    Captions, replies and verdicts are logged, too, as ``lmms-eval --log_samples`` does.

    Args:
        files: Caption files, folders or patterns.
        tasks: Tasks and groups, comma-separated.
        output: Folder of the results.
        columns: ``caption`` and ``video`` to the files' own names of these columns.
        missing: ``error`` stops if a caption is missing, ``skip`` leaves its questions unscored,
            ``drop`` leaves it out of the task.

    Returns:
        Exit code: 0, or 1 if a headline has no score.
    """
    names = tasks_of(tasks)
    path = "+".join(files)
    begun = datetime.now(_ZONE)
    THIS_RUN.clear()
    RUN_CAPTIONS.begin()
    SESSION.begin()
    THIS_RUN.will_judge, THIS_RUN.lacks_samples = True, False
    THIS_RUN.output_path = str(output)
    captions_of = open_captions(path, columns.get("caption"), columns.get("video"))
    hooks = {name: Hooks(our_benchmarks()[name]) for name in names}
    documents = {name: of.documents(of.benchmark.tasks[name]) for name, of in hooks.items()}
    captions = {
        name: _captions(of, documents[name], captions_of(name), missing)
        for name, of in hooks.items()
    }
    items: dict[str, list[Mapping[str, Item]]] = {}
    for name, of in hooks.items():
        of.see_captions(documents[name], dict(enumerate(captions[name])))
        pairs = zip(documents[name], captions[name], strict=True)
        items[name] = [of.process_results(doc, [caption]) for doc, caption in pairs]
    results = {name: _aggregated(of, items[name]) for name, of in hooks.items()}
    folder, stamp = output / _folder_name(path), f"{begun:%Y%m%d_%H%M%S}"
    for name, of in hooks.items():
        log = folder / f"{stamp}_samples_{name}.jsonl"
        _write_samples(log, of, documents[name], captions[name], items[name])
    known = task_groups()
    named = [name.strip() for name in tasks.split(",") if name.strip() in known]
    # Groups that are named and those in them, the innermost first.
    groups = {
        name: members
        for name, members in sorted(known.items(), key=lambda pair: len(pair[1]))
        if any(set(members) <= set(known[group]) for group in named)
    }
    n_docs = {name: len(docs) for name, docs in documents.items()}
    results |= {group: _group(group, members, results, n_docs) for group, members in groups.items()}
    lineages = {name: _lineage(name, groups) for name in results}
    results = {name: results[name] for name in sorted(results, key=lineages.__getitem__)}
    for name, metrics in results.items():
        metrics["alias"] = f" - {name}" if len(lineages[name]) > 1 else name
    document: dict[str, Any] = {
        "results": results,
        "groups": {group: results[group] for group in groups},
        "group_subtasks": {group: list(members) for group, members in groups.items()},
        "configs": {
            name: {"task": name, "metadata": {"judge": dict(of.benchmark.judge_defaults)}}
            for name, of in hooks.items()
        },
        "n-samples": {name: {"original": n, "effective": n} for name, n in n_docs.items()},
        "config": {"model": "caption_file", "model_args": f"path={path},missing={missing}"},
        "date": stamp,
        "model_source": "caption_file",
        "model_name": path,
    }
    _save(document, folder)
    print_runs()
    # lmms-eval, if anything has imported it, has what is left here printed at the end.
    THIS_RUN.finished.clear()
    THIS_RUN.errors.clear()
    SESSION.close()
    headlines = [results[name][f"{of.benchmark.headline},none"] for name, of in hooks.items()]
    return 1 if any(value is None or isnan(value) for value in headlines) else 0


def _captions(
    hooks: Hooks[Any, Any], docs: Sequence[Doc], table: CaptionTable, missing: Missing
) -> list[str]:
    """Return the caption of each document; raises if one is missing, and this is an error."""
    none = (DroppedCaption if missing == "drop" else NoCaption)("the caption file has none")
    found = [table.find_any(video_names(doc), doc.get("aspect")) for doc in docs]
    pairs = zip(docs, found, strict=True)
    absent = [hooks.benchmark.video_id(doc) for doc, text in pairs if text is None]
    if absent:
        task = hooks.benchmark.task_of(docs[0]).name
        words = f"{len(absent)} of {len(docs)} captions are missing, for {listed(absent)}"
        if missing == "error":
            raise CaptionError(
                f"{table.path}: {task}: {words}; add them, or leave their questions unscored with "
                "--missing skip, or score the others alone with --missing drop"
            )
        logger.warning("{}: {}: {}", table.path, task, words)
    return [none if text is None else _without_reasoning(text) for text in found]


def _without_reasoning(text: str) -> str:
    """Return a caption without its reasoning, as lmms-eval cuts it.

    >>> _without_reasoning("<think>Hm.</think> A dog."), _without_reasoning("Hm.</think> A dog.")
    ('A dog.', 'A dog.')
    """
    for start, end in _REASONING:
        while (begin := text.find(start)) >= 0 and (stop := text.find(end, begin)) >= 0:
            text = text[:begin] + text[stop + len(end) :]
        if end in text and start not in text:
            text = text.rpartition(end)[2]
    return text.strip()


def _write_samples(
    path: Path,
    hooks: Hooks[Any, Any],
    docs: Sequence[Doc],
    captions: Sequence[str],
    items: Sequence[Mapping[str, Item]],
) -> None:
    """Log a task's captions, replies and verdicts."""
    samples: list[dict[str, Any]] = [
        {"doc_id": n, "target": hooks.doc_to_target(doc), "filtered_resps": str(text), **of_caption}
        for n, (doc, text, of_caption) in enumerate(zip(docs, captions, items, strict=True))
    ]
    score_samples(hooks.benchmark, samples)
    lines = "".join(f"{json.dumps(sample, ensure_ascii=False)}\n" for sample in samples)
    write_atomically(path, lines.encode("utf-8", "replace"))


def _aggregated(hooks: Hooks[Any, Any], items: Sequence[Mapping[str, Item]]) -> dict[str, Any]:
    """Return each metric of a task, and its standard error over captions."""
    metrics: dict[str, Any] = {}
    for listed_metric in hooks.metric_list:
        name, aggregate = str(listed_metric["metric"]), listed_metric["aggregation"]
        of_captions = [item[name] for item in items]
        metrics[f"{name},none"] = aggregate(of_captions)  # type: ignore[operator] # a hook
        scores = [item[SCORE] for item in of_captions if SCORE in item]
        n = len(scores)
        error = float(np.std(scores, ddof=1) / np.sqrt(n)) if n > 1 else _NONE  # type: ignore[arg-type] # numbers
        metrics[f"{name}_stderr,none"] = metrics[f"{name}_stderr_clustered,none"] = _NONE
        metrics[f"{name}_stderr_clt,none"] = error
    return metrics


def _lineage(name: str, groups: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the groups that a task or group is in, the outermost first, and its own name."""
    leaves = set(groups.get(name, (name,)))
    around = [group for group in groups if group != name and leaves <= set(groups[group])]
    return [*sorted(around, key=lambda group: -len(groups[group])), name]


def _group(
    group: str,
    members: Sequence[str],
    results: Mapping[str, Mapping[str, Any]],
    n_docs: Mapping[str, int],
) -> dict[str, Any]:
    """Return the metrics of a group, as its YAML file aggregates them."""
    folders = {benchmark.folder for benchmark in all_benchmarks().values()} | {tasks_path()}
    paths = (path for folder in folders for path in folder.glob("*.yaml"))
    config = next(file for file in map(read_plain_yaml, paths) if file.get("group") == group)
    metrics: dict[str, Any] = {}
    for each in _resolved(config["aggregate_metric_list"]):
        name, aggregate = each["metric"], _resolved(each["aggregation"])
        having = [task for task in members if f"{name},none" in results[task]]
        if having:
            values = [results[task][f"{name},none"] for task in having]
            is_mean, sizes = aggregate == "mean", [n_docs[task] for task in having]
            value = sum(values) / len(values) if is_mean else aggregate(values, sizes, False)
            metrics |= {f"{name},none": value, f"{name}_stderr,none": _NONE}
    return metrics


def _resolved(value: Any) -> Any:  # noqa: ANN401 - of a YAML file
    """Return what a text names by its path; anything else as it is."""
    if not isinstance(value, str) or "." not in value:
        return value
    module, _, name = value.rpartition(".")
    return getattr(import_module(module), name)


def _save(document: MutableMapping[str, Any], folder: Path) -> None:
    """Write the results, and next to them what a run of lmms-eval with our tasks writes."""
    folder.mkdir(parents=True, exist_ok=True)
    stamp = document["date"]
    run = complete(document, folder=folder, stamp=stamp)
    with with_intervals(document, run):
        text = json.dumps(document, indent=2, ensure_ascii=False)
        write_atomically(folder / f"{stamp}_results.json", text.encode("utf-8", "replace"))
    if run is not None:
        THIS_RUN.finished.append(run)
    THIS_RUN.clear()


def _folder_name(path: str) -> str:
    """Return the folder of a run's files, as lmms-eval names it after the model's path."""
    return re.sub(r"[\"<>:/|\\?*\[\]]+", "__", "/".join(path.split("/")[-2:]))
