"""What a build says at its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import Any

from lmms_eval_captions.lmms_eval_tasks.commands.building.building import Built
from lmms_eval_captions.lmms_eval_tasks.commands.building.criteria import CHECKS
from lmms_eval_captions.lmms_eval_tasks.commands.building.spending import spent
from lmms_eval_captions.lmms_eval_tasks.commands.building.stages import FOLDER, Done
from lmms_eval_captions.lmms_eval_tasks.commands.building.tally import length_advice, untold_faults
from lmms_eval_captions.lmms_eval_tasks.text_table import text_table


def screen(built: Built) -> Iterator[str]:
    """The lines: each stage, what is missing, and how to go on."""
    yield from of_stages(built.done)
    yield ""
    yield spent(built.options.folder / FOLDER)
    if built.n_lost:
        yield (
            f"{built.n_lost:,} requests have no reply yet: run the same command again, only these "
            "are asked"
        )
    if built.files:
        yield from _of_files(built)
    elif built.options.stage or built.options.until:
        yield from _ended_early(built)


def of_stages(stages: Sequence[Done]) -> Iterator[str]:
    """A line for each stage, then what was dropped, wrong or without a reply in each."""
    rows = [("stage", "in", "kept", "requests", "unreadable", "")]
    for done in stages:
        head = done.head
        requests = head["requests"]
        rows.append(
            (
                head["stage"],
                f"{head['n_before']:,}" if head["n_before"] else "",
                f"{head['n_kept']:,}",
                f"{requests['n_requests']:,}" if requests["n_requests"] else "",
                f"{requests['failures'].get('unreadable', 0):,}" if requests["n_requests"] else "",
                "" if done.is_new else "from its file",
            )
        )
    yield from text_table(rows, n_left=1)
    for done in stages:
        for reason, n in sorted(done.head["dropped"].items(), key=lambda pair: -pair[1]):
            yield f"  {done.head['stage']}: {n:,} x {reason}"
        for fault, n in untold_faults(done.head).items():
            yield f"  {done.head['stage']}: {n:,} x {fault}"
        yield from _without_reply(done.head)


def _of_files(built: Built) -> Iterator[str]:
    yield (
        f"{built.n_questions:,} questions in {built.options.folder}; the data card is "
        f"{built.options.folder / 'DATA_CARD.md'}"
    )
    tasks = ",".join(built.kind.tasks_of(built.files))
    yield (
        f"Score captions with: LMMS_CAPTIONS_DATA={built.options.data} {_judge(built)}"
        f"lmms-eval --model M --tasks {tasks} --output_path results --log_samples"
    )


def _ended_early(built: Built) -> Iterator[str]:
    last = built.done[-1].stage.name
    yield (
        f"Ended behind the stage {last!r}: its file is in {built.options.folder / FOLDER}. The "
        "benchmark's files are not written: the same command without "
        f"{'--stage' if built.options.stage else '--until'} goes on from there"
    )
    if _is_before_people(built):
        yield (
            "For people to look at the questions: lmms-eval-captions label --build "
            f"{built.options.folder} -o page.html; then the same command with --labels and the "
            "files that the page exports, in the place of --until"
        )


def _judge(built: Built) -> str:
    """The solver as the judge, where it is not asked where a judge would be by default."""
    solver = built.options.solvers[0]
    urls = solver.endpoint.urls
    if urls == built.work.settings.endpoint.urls:
        return ""
    return f"LMMS_CAPTIONS_JUDGE={quote(solver.name)} LMMS_CAPTIONS_JUDGE_URL={','.join(urls)} "


def _without_reply(head: Mapping[str, Any]) -> Iterator[str]:
    """Requests of a stage that were refused or lost, and what may be done about it."""
    requests = head["requests"]
    reasons = "; ".join(requests["reasons"])
    for kind in ("refused", "unavailable"):
        if n := requests["failures"].get(kind):
            of_all = f"{n:,} of {requests['n_requests']:,} requests"
            yield f"  {head['stage']}: {of_all} {kind}: {reasons}"
    advice = length_advice(reasons)
    if requests["failures"].get("refused") and advice:
        yield f"  {advice}"


def _is_before_people(built: Built) -> bool:
    """Whether the build was ended just before the check that people take the place of."""
    names = [stage.name for stage in built.kind.stages(built.options)]
    behind = names[len(built.done) :]
    return bool(built.options.until and behind and behind[0] in CHECKS)
