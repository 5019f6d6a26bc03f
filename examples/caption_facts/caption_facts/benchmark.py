"""The toy benchmark: its task, and metrics of two kinds of verdict."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Final, get_args

from caption_facts.protocol import (
    FactJudgement,
    FactVerdict,
    Reference,
    judge_facts,
    silent_facts,
)
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.benchmark import (
    Benchmark,
    Doc,
    Metric,
    Task,
    over_questions,
)
from lmms_eval_captions.lmms_eval_tasks.data.files import find_file, read_jsonl
from lmms_eval_captions.lmms_eval_tasks.data.sources import Source
from lmms_eval_captions.lmms_eval_tasks.ratios import (
    DENOMINATOR,
    NEITHER,
    NUMERATOR,
    of_sums,
    of_verdicts,
)

FILE: Final = "toy.jsonl"
SOURCE: Final = Source(
    benchmark="toy",
    page="https://example.org/toy",
    license="none",
    video_folder="toy/videos",
    hub_repo=None,
    archives=(),
)


def _share(verdicts: Sequence[str | None], right: str, *others: str) -> float:
    """Percentage of one label among those of its kind; ``nan`` where there are none."""
    n_right, n_others = verdicts.count(right), sum(map(verdicts.count, others))
    return 100 * n_right / (n_right + n_others) if n_right + n_others else nan


def toy_precision(verdicts: Sequence[str | None]) -> float:
    """Percentage of the captions' facts that the reference supports, of those it speaks of."""
    return _share(verdicts, "supported", "contradicted")


def toy_coverage(verdicts: Sequence[str | None]) -> float:
    """Percentage of the references' facts that the captions cover."""
    return _share(verdicts, "covered", "missed")


def toy_f1(verdicts: Sequence[str | None]) -> float:
    """Harmonic mean of precision and coverage, in percent."""
    return 100 * _f1(list(map(verdicts.count, _COUNTED)))


def _f1(counts: Sequence[float]) -> float:
    """F1 from the numbers of the counted verdicts; ``nan`` without a precision or a coverage."""
    supported, contradicted, covered, missed = counts
    if not (supported + contradicted and covered + missed):
        return nan
    precision, coverage = supported / (supported + contradicted), covered / (covered + missed)
    return 2 * precision * coverage / (precision + coverage) if precision + coverage else 0.0


_COUNTED: Final = ("supported", "contradicted", "covered", "missed")
_NOTHING: Final = dict.fromkeys(get_args(FactVerdict), NEITHER)
# Ratios of sums over captions, from which intervals and comparisons follow.
_PRECISION: Final = of_verdicts({**_NOTHING, "supported": NUMERATOR, "contradicted": DENOMINATOR})
_COVERAGE: Final = of_verdicts({**_NOTHING, "covered": NUMERATOR, "missed": DENOMINATOR})
_F1: Final = of_sums(_f1, lambda verdict: [float(verdict == counted) for counted in _COUNTED])


class CaptionFacts(Benchmark[Reference, FactJudgement]):
    """Facts of captions and references, looked for in the other text."""

    source = SOURCE
    probe_file = FILE
    tasks = {
        "toy_facts": Task(
            name="toy_facts",
            caption_prompt="toy.caption",
            judge_prompts=("toy.facts", "toy.verdict"),
            caption_chars=100,
        )
    }
    metrics = {
        "coverage": Metric(
            score=over_questions(toy_coverage), ratios=_COVERAGE, labels=get_args(FactVerdict)
        ),
        "precision": Metric(score=over_questions(toy_precision), ratios=_PRECISION),
        "f1": Metric(score=over_questions(toy_f1), ratios=_F1),
    }
    headline = "coverage"
    headline_means = "% of the reference's facts that the caption covers"
    right = frozenset({"covered", "supported"})
    missed = frozenset({"missed"})
    wrong = frozenset({"contradicted"})
    sections = {"kinds": ("extracted",)}
    counts_ahead = False
    ask = staticmethod(judge_facts)
    silent = staticmethod(silent_facts)
    output_tokens = {"toy.facts": 40, "toy.verdict": 1}

    def read(self, settings: DataSettings, task: Task) -> list[dict[str, object]]:
        """Return the rows of the file."""
        path = find_file(settings, SOURCE, FILE)
        return [
            {"video_id": row["video"], "facts": row["facts"], **task.fields}
            for row in read_jsonl(path)
        ]

    def questions(self, doc: Doc) -> list[Reference]:
        """Return all facts of the video as one question."""
        return [Reference(tuple((kind, fact) for kind, fact in doc["facts"]))]

    def groups(
        self, _doc: Doc, _question: Reference, judgement: FactJudgement | None
    ) -> dict[str, str]:
        """Return the kind of a fact."""
        return {} if judgement is None else {"kinds": judgement.kind}


TOY: Final = CaptionFacts()
