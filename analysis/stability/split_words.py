"""What stands beside the questions of a split: how it was made, and how it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lmms_eval_captions.analysis.stability.fates import (
    FATES,
    PART_OF,
    PARTS,
    Fate,
    Part,
    Rule,
)
from lmms_eval_captions.analysis.stability.notes import judges_of, notes_of
from lmms_eval_captions.analysis.stability.opinions import Opinions
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.data.split_folder import DATA, MANIFEST
from lmms_eval_captions.lmms_eval_tasks.signature import DISTRIBUTION, package_version

_README: Final = """\
# {benchmark}-{part}

{n:,} of {of:,} questions of {benchmark}, in its official form: those that {why} \
({n_runs} judge runs of each captioner).{only}

| file | questions here | in the original |
|:--|--:|--:|
{rows}

Score captions on them with

    LMMS_CAPTIONS_DATA=<this folder> lmms-eval-captions run --model caption_file \\
        --model_args path=captions.jsonl --tasks {tasks} --output_path results

Videos without a question here are left out; captions of them do no harm. Clips are looked for in
`{videos}` in this folder, and where there is no such folder, in the data that the split was made
from: `{data}` in `{manifest}` names them as `LMMS_CAPTIONS_DATA` would, `null` stands for the
Hugging Face hub. Set it to `null`, or put the clips here, before you hand the folder on.

`{manifest}` says from which runs, judges and captioners the split was made. The questions are the
benchmark's: its license is {license} ({page}).
"""
_WHY: Final[Mapping[Part, str]] = {
    "stable": "were judged the same every time, and can be judged automatically",
    "unstable": "were not judged the same every time, or not known to be: people should judge them",
}


def manifest_of(
    several: Sequence[Opinions],
    files: Mapping[str, Mapping[Fate, int]],
    part: Part,
    *,
    rule: Rule,
    data: str | None,
) -> dict[str, object]:
    """How a part was made.

    Args:
        several: What was judged.
        files: Official file to what became of its questions.
        part: Which one.
        rule: Which questions are unstable.
        data: Where the official files and the clips are.
    """
    benchmark = several[0].benchmark
    return {
        "part": f"{benchmark.name}-{part}",
        "made_by": f"{DISTRIBUTION} {package_version()}",
        DATA: data,
        "rule": {
            "n_runs": min(opinions.n_runs for opinions in several),
            "verdict": benchmark.headline,
            "numbers_within_percent_of_scale": 100 * rule.within,
            "split_off_groups": list(rule.groups) or "all",
        },
        "n_questions": _n_of(files, part),
        "files": {
            name: {
                "n_questions": sum(of.values()),
                **{which: _n_of({name: of}, which) for which in PARTS},
                "why": {fate: of[fate] for fate in FATES if of.get(fate)},
            }
            for name, of in files.items()
        },
        "why": {fate: f"{PART_OF[fate]}: {words}" for fate, words in FATES.items()},
        "judges": list(dict.fromkeys(judge for o in several for judge in judges_of(o))),
        "captioners": _captioners(several),
        "notes": list(dict.fromkeys(note for opinions in several for note in notes_of(opinions))),
    }


def readme_of(
    benchmark: Benchmark[Any, Any],
    files: Mapping[str, Mapping[Fate, int]],
    part: Part,
    *,
    n_runs: int,
    rule: Rule,
) -> str:
    """What a person who finds the folder must know.

    Args:
        benchmark: Whose questions.
        files: Official file to what became of its questions.
        part: Which one.
        n_runs: Judge runs.
        rule: Which questions are unstable.
    """
    only = f" Of the unstable ones, only those of {', '.join(rule.groups)} were split off."
    source = benchmark.source
    rows = (
        f"| {source.benchmark}/{name} | {_n_of({name: of}, part):,} | {sum(of.values()):,} |"
        for name, of in files.items()
    )
    question_file = benchmark.question_file
    written = {name for name, of in files.items() if _n_of({name: of}, part)}
    tasks = [
        task.name
        for task in benchmark.tasks.values()
        if question_file is not None and question_file.name(task.fields) in written
    ]
    return _README.format(
        benchmark=benchmark.name,
        part=part,
        n=_n_of(files, part),
        of=sum(sum(of.values()) for of in files.values()),
        why=_WHY[part],
        n_runs=n_runs,
        only=only if rule.groups else "",
        rows="\n".join(rows),
        tasks=",".join(tasks),
        videos=source.video_folder,
        data=DATA,
        manifest=MANIFEST,
        license=source.license,
        page=source.page,
    )


def _n_of(files: Mapping[str, Mapping[Fate, int]], part: Part) -> int:
    return sum(n for of in files.values() for fate, n in of.items() if PART_OF[fate] == part)


def _captioners(several: Sequence[Opinions]) -> list[dict[str, object]]:
    """Each captioner's tasks with their results and signatures, which say how they were judged."""
    tasks: dict[str, dict[str, object]] = {}
    for opinions in several:
        of_each = zip(opinions.captioners, opinions.verdicts, opinions.results, strict=True)
        for name, verdicts, path in of_each:
            for task in verdicts.tasks:
                text = None if task.signature is None else str(task.signature)
                said = {"results": path.as_posix(), "signature": text}
                tasks.setdefault(name, {})[task.task] = said
    return [{"name": name, "tasks": of_one} for name, of_one in tasks.items()]
