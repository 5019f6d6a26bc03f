"""Pairs are judged by captions: those whose judgements differ, or are always wrong, are flagged.

Source: VidCapBench, section 3.3.2: three captions by another model, the first judged three times
and the others once; flagged is what is inconsistent over the three, or negative in all five. Ours:
"negative" is the judge's "wrong" (-1), as a caption that says nothing of a question says nothing
against it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final, Literal

from lmms_eval_captions.judges.endpoint.request import Ask
from lmms_eval_captions.judges.protocols.asking import JudgeConfig
from lmms_eval_captions.judges.protocols.vidcapbench import Question, judge_question
from lmms_eval_captions.judges.verdict import Correctness
from lmms_eval_captions.lmms_eval_tasks.commands.building.crew import Job
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Work, kept

Problem = Literal["inconsistent", "always wrong", "not judged"]
"""What is wrong with a pair, or that it is not known."""
Verdicts = Sequence[Correctness | None]
"""Shape (5,): three of the first caption, one of each other; ``None`` is unscored."""

JUDGED: Final = ((0, 0), (0, 1), (0, 2), (1, 0), (2, 0))
"""The caption and the seed of each judgement."""
N_CAPTIONS: Final = 3
N_FIRST: Final = 3
"""Judgements of the first caption."""
PROMPTS: Final = ("vidcapbench_answer", "vidcapbench_judge")
NOT_JUDGED: Final = "judged: no readable verdict"
_MAX_TOKENS: Final = 512
"""As in the benchmark's own configuration."""


def judge_pairs(work: Work, rows: Sequence[Row]) -> list[Row]:
    """Pairs with the verdicts of the first solver, by the benchmark's own protocol."""
    captions = {row["video"]: row["captions"] for row in kept(work.rows["captions"])}
    solver = work.options.solvers[0]
    config = JudgeConfig(
        model=solver.name,
        max_tokens=_MAX_TOKENS,
        timeout_s=work.options.timeout_s,
        prompts=work.prompts,
    )
    jobs = (
        Job(solver, partial(_judge, _question(row), captions[row["video"]], config)) for row in rows
    )
    verdicts = work.run(jobs, n=len(rows), what="judging")
    return [
        {**row, "verdicts": list(each), "judge": solver.name}
        for row, each in zip(rows, verdicts, strict=True)
    ]


def flag_pairs(work: Work, rows: list[Row]) -> list[Row]:
    """Pairs, flagged where they are a problem, dropped where it is not known whether they are."""
    made = [flagged(row) for row in rows]
    for row in made:
        if "flag" in row:
            work.tally.faults[f"flagged: {row['flag']}"] += 1
    return made


def flagged(row: Row) -> Row:
    """A pair that was judged, with its problem as ``flag``, without one where it has none."""
    problem = problem_of(row["verdicts"])
    plain = {key: value for key, value in row.items() if key != "flag"}
    if problem == "not judged":
        return {**plain, "dropped": NOT_JUDGED}
    return plain if problem is None else {**plain, "flag": problem}


def problem_of(verdicts: Verdicts) -> Problem | None:
    """What is wrong with a pair, ``None`` where nothing is.

    An unscored judgement matters only where it could change that.

    >>> problem_of(["correct", "partial", None, None, None])
    'inconsistent'
    >>> problem_of(["wrong", "wrong", "wrong", "neutral", None]) is None
    True
    >>> problem_of(["wrong", "wrong", "wrong", "wrong", None])
    'not judged'
    """
    first = verdicts[:N_FIRST]
    if len({verdict for verdict in first if verdict is not None}) > 1:
        return "inconsistent"
    if None in first:
        return "not judged"
    if any(verdict not in ("wrong", None) for verdict in verdicts):
        return None
    return "not judged" if None in verdicts else "always wrong"


async def _judge(
    question: Question, captions: Sequence[str | None], config: JudgeConfig, ask: Ask
) -> Verdicts:
    """All judgements of a pair, at once."""

    async def verdict(caption: str | None, seed: int) -> Correctness | None:
        if caption is None:
            return None
        judgement = await judge_question(ask, question, caption, config=config, run=seed)
        return judgement.verdict

    return await asyncio.gather(*(verdict(captions[place], seed) for place, seed in JUDGED))


def _question(row: Row) -> Question:
    return Question(
        row["question"],
        row["answer"],
        dimension=row["primary_category"],
        sub_category=row["sub_category"],
    )
