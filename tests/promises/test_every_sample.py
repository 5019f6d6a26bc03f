"""A sample of the questions gives each benchmark's numbers, and asks what it says."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from conftest import ServerFactory
from judge_server import JudgeServer, scripted_reply
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.judges.settings import read_judge_settings
from lmms_eval_captions.lmms_eval_tasks.breakdown import read_breakdown_item
from lmms_eval_captions.lmms_eval_tasks.commands.compare.rows import row_of
from lmms_eval_captions.lmms_eval_tasks.hooks import Hooks, hooks_of
from lmms_eval_captions.lmms_eval_tasks.intervals import measured_over
from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN
from lmms_eval_captions.lmms_eval_tasks.records import CaptionRecord, Item, resolve
from lmms_eval_captions.lmms_eval_tasks.results_folder import RunResults
from lmms_eval_captions.lmms_eval_tasks.sampling.certificate import certificate_of
from lmms_eval_captions.lmms_eval_tasks.scoring import score_of
from lmms_eval_captions.lmms_eval_tasks.signature import Share, Signature
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.verdicts.alignment import align
from lmms_eval_captions.lmms_eval_tasks.verdicts.likeness import differences
from lmms_eval_captions.lmms_eval_tasks.verdicts.verdicts import (
    TaskVerdicts,
    Verdicts,
    _require_all,
)
from lmms_eval_captions.lmms_eval_tasks.verdicts.weighed_verdicts import (
    are_in_part,
    weighed_verdicts,
)
from lmms_eval_captions.model_wrappers.no_caption import NoCaption
from many_questions import KINDS, Kind

PRECISION = "4"
Floats = np.ndarray[Any, np.dtype[np.float64]]

# What a verdict adds to numerator and denominator, written down here once more.
YES, NO = {"yes": (1, 1)}, {"no": (0, 1)}
_AR = {"positive": (1, 1), "negative": (0, 1), "unanswerable": (0, 1)}
_IR = {"positive": (0, 1), "negative": (1, 1), "unanswerable": (0, 0)}
_CR = {"positive": (1, 1), "negative": (1, 1), "unanswerable": (0, 1)}
_F1 = {"true_positive": (2, 2), "false_positive": (0, 2), "false_negative": (0, 1)}
_CAPP = {"true_positive": (1, 1), "false_positive": (0, 1), "false_negative": (0, 0)}
_CAPR = {"true_positive": (1, 1), "false_positive": (0, 1), "false_negative": (0, 1)}
_ACC = {"correct": (1, 1), "partial": (0, 1), "neutral": (0, 1), "wrong": (0, 1)}
_PRE = {"correct": (1, 1), "partial": (1, 1), "neutral": (0, 0), "wrong": (0, 1)}
_COV = {"correct": (1, 1), "partial": (1, 1), "neutral": (0, 1), "wrong": (1, 1)}
FORMULAS: dict[str, dict[str, tuple[Mapping[str, tuple[int, int]] | None, float]]] = {
    "vdc": {"vdc_acc": ({**YES, **NO}, 100), "vdc_score": (None, 1)},
    "vdc_rouge": {"vdc_rouge": (None, 100)},
    "vdc_vdd": {"vdd_acc": ({**YES, **NO}, 100), "vdd_score": (None, 1)},
    "vidcapbench": {"acc": (_ACC, 100), "pre": (_PRE, 100), "cov": (_COV, 100)},
    "vcapsbench": {"ar": (_AR, 100), "ir": (_IR, 100), "cr": (_CR, 100)},
    "capquiz": {"capp": (_CAPP, 100), "capr": (_CAPR, 100)},
    "msvd_eval": {"avg": (None, 1), "accuracy": (None, 1)},
}
OF_MEANS = {"vdc", "vdc_rouge", "vdc_vdd", "msvd_eval"}


@dataclass
class Judged:
    """What lmms-eval has of one run of a task."""

    hooks: Hooks[Any, Any]
    items: dict[str, list[Item]]

    @property
    def scores(self) -> dict[str, float]:
        """Metric to its number."""
        metrics = self.hooks.benchmark.metrics
        return {name: self.hooks.aggregate(name)(self.items[name]) for name in metrics}

    @property
    def signature(self) -> Signature:
        """What moved them."""
        return Signature.parse(self.hooks.aggregate_signature(self.items["signature"]))

    @property
    def records(self) -> list[CaptionRecord]:
        """Those of the headline."""
        benchmark = self.hooks.benchmark
        field = benchmark.metrics[benchmark.headline].field
        items = resolve(self.items[benchmark.headline])
        return [CaptionRecord.read(item, **{benchmark.headline: field}) for item in items]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, bench: pytest.MonkeyPatch, tmp_path: Path) -> Kind:
    """Each benchmark in turn."""
    bench.setenv("LMMS_CAPTIONS_T5", str(tmp_path / "no-tokenizer"))
    bench.setenv("LMMS_CAPTIONS_JUDGE_CONCURRENCY", "256")
    return KINDS[request.param]


@pytest.fixture
def server(serve: ServerFactory, bench: pytest.MonkeyPatch) -> JudgeServer:
    """The judge, whose verdict on a question depends on the video as well."""
    server: JudgeServer = serve()
    server.reply = reply_to
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    return server


@dataclass(frozen=True)
class Full:
    """What a run that asks all questions of a kind comes to."""

    scores: dict[str, float]
    signature: Signature
    n_requests: int


_FULL: dict[str, Full] = {}


@pytest.fixture
def full(kind: Kind, serve: ServerFactory) -> Full:
    """Judged once for all tests of a kind, with a server and a cache of its own."""
    if kind.name not in _FULL:
        server: JudgeServer = serve()
        server.reply = reply_to
        with pytest.MonkeyPatch.context() as others:
            others.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
            others.setenv("LMMS_CAPTIONS_CACHE", f"{read_judge_settings().cache}-full")
            judged = judge(kind)
            _FULL[kind.name] = Full(judged.scores, judged.signature, server.counts.n_requests)
    return _FULL[kind.name]


def reply_to(prompt: str) -> str:
    """What the judge says; free answers are more or less like the gold one."""
    if "Only provide short but accurate answer" in prompt:
        return ("a red ball", "the red hat", f"snow {hash_of(prompt)}")[hash_of(prompt) % 3]
    return scripted_reply(prompt)


def judge(
    kind: Kind, captions: Mapping[int, str] | None = None, *, only: slice = slice(None)
) -> Judged:
    """One run, in a process that has judged nothing yet."""
    JUDGE_RUN.close()
    THIS_RUN.clear()
    hooks = hooks_of(kind.benchmark)
    items: dict[str, list[Item]] = {}
    for number, document in list(enumerate(kind.documents))[only]:
        caption = (captions or {}).get(number, f"Caption {number}: a ball.")
        for name, item in hooks.process_results(document, [caption]).items():
            items.setdefault(name, []).append(item)
    return Judged(hooks, items)


def by_hand(kind: Kind, judged: Judged, metric: str) -> float:
    """A metric of a sample: verdicts times what they stand for, added up with numpy."""
    counts, scale = FORMULAS[kind.name][metric]
    known = kind.benchmark.metrics[metric]
    scores = []
    for run in range(kind.n_runs):
        sums = np.zeros(2)
        for item in judged.items[metric]:
            values: Any = item[known.field]
            sample: Any = item.get("sample")
            rows = np.array(values[run], dtype=object).reshape(-1, known.n_values)
            weights = np.ones(len(rows)) if sample is None else np.array(sample["weights"])
            share = weights
            if kind.name in OF_MEANS:
                # A caption's mean is over the questions with a verdict.
                scored = [row[0] is not None for row in rows]
                lost = weights.sum() / max(1e-9, weights[scored].sum())
                share = weights / len(rows) * lost
            for weight, row in zip(share, rows, strict=True):
                if weight and row[0] is not None:
                    pair = (np.mean(row), 1) if counts is None else counts[row[0]]
                    sums += weight * np.array(pair)
        scores.append(scale * sums[0] / sums[1])
    return float(np.mean(scores))


def n_questions(kind: Kind) -> int:
    """Questions of all documents, once each."""
    return sum(max(1, len(document.get("questions", "?"))) for document in kind.documents)


def test_a_sample_gives_the_numbers_of_all_questions(
    kind: Kind, full: Full, server: JudgeServer, bench: pytest.MonkeyPatch
) -> None:
    """Each metric is the weighed verdicts; the headline is as near to the full one as it says."""
    bench.setenv("LMMS_CAPTIONS_PRECISION", PRECISION)
    sampled = judge(kind)
    scores = sampled.scores
    for metric in FORMULAS[kind.name]:
        assert scores[metric] == pytest.approx(by_hand(kind, sampled, metric), abs=1e-9)
    certificate = certificate_of(kind.benchmark, [sampled.records])
    assert certificate is not None
    assert certificate.half_width is not None
    headline = kind.benchmark.headline
    assert certificate.value == pytest.approx(scores[headline], abs=1e-9)
    assert 0 < certificate.half_width <= float(PRECISION)
    assert abs(scores[headline] - full.scores[headline]) <= 2 * certificate.half_width
    n_sent = server.counts.n_requests
    assert n_sent == certificate.asked * kind.n_steps * kind.n_runs < full.n_requests
    share = Share(certificate.asked * kind.n_runs, n_questions(kind) * kind.n_runs)
    assert sampled.signature.fields["precision"] == PRECISION
    assert sampled.signature.fields["asked"] == share.words
    assert sampled.signature.unscored == Share(0, share.n)
    assert sampled.hooks.aggregate_unscored(sampled.items["unscored"]) == 0


def test_a_later_run_without_the_setting_goes_on_to_all(
    kind: Kind, full: Full, server: JudgeServer, bench: pytest.MonkeyPatch
) -> None:
    """It asks what is left, and its numbers and signature are those of a run that asked all."""
    bench.setenv("LMMS_CAPTIONS_PRECISION", PRECISION)
    first = judge(kind).scores
    n_sampled = server.counts.n_requests
    again = judge(kind).scores
    assert server.counts.n_requests == n_sampled < full.n_requests
    assert again == pytest.approx(first, nan_ok=True, abs=0)
    bench.delenv("LMMS_CAPTIONS_PRECISION")
    later = judge(kind)
    assert later.scores == pytest.approx(full.scores, nan_ok=True, abs=0)
    assert later.signature == full.signature
    assert server.counts.n_requests == full.n_requests


def test_groups_of_a_sample_are_weighed_with_intervals(
    kind: Kind, server: JudgeServer, bench: pytest.MonkeyPatch
) -> None:
    """Each row of the breakdown counts what was asked there, and has an interval of its own."""
    bench.setenv("LMMS_CAPTIONS_PRECISION", PRECISION)
    sampled = judge(kind)
    headline = kind.benchmark.headline
    scores = sampled.scores
    sampled.hooks.aggregate_breakdown(sampled.items["breakdown"])
    breakdown: Any = next(iter(THIS_RUN.breakdowns.values()))
    n_asked = breakdown["sampled"]["asked"]
    overall = breakdown["overall"]["all"]
    assert overall[headline] == pytest.approx(scores[headline])
    assert overall["n_questions"] == n_asked
    assert overall[f"{headline}_ci_low"] < scores[headline] < overall[f"{headline}_ci_high"]
    for section, names in kind.benchmark.sections.items():
        groups = breakdown[section]
        if names and len(groups) > 1:
            assert sum(group["n_questions"] for group in groups.values()) == n_asked
            assert all(group["n_unscored"] == 0 for group in groups.values())
            widths = [
                group[f"{headline}_ci_high"] - group[f"{headline}_ci_low"]
                for group in groups.values()
            ]
            assert min(widths) > 0


def test_a_cheap_judge_makes_the_sample_smaller(
    kind: Kind,
    full: Full,
    server: JudgeServer,
    serve: ServerFactory,
    bench: pytest.MonkeyPatch,
) -> None:
    """It answers all at its own address; the correlation is told, and the numbers are as near."""
    bench.setenv("LMMS_CAPTIONS_PRECISION", PRECISION)
    alone = certificate_of(kind.benchmark, [judge(kind).records])
    cheap_server = serve()
    cheap_server.keep_bodies = True

    def nearly_the_same(prompt: str) -> str:
        # The judge's own reply, but for one question in eight.
        return reply_to(prompt if hash_of(prompt) % 100 < 88 else f"{prompt} ")

    cheap_server.reply = nearly_the_same
    bench.setenv("LMMS_CAPTIONS_CACHE", f"{read_judge_settings().cache}-2")
    bench.setenv("LMMS_CAPTIONS_CHEAP_JUDGE", f"small@{cheap_server.url}")
    sampled = judge(kind)
    certificate = certificate_of(kind.benchmark, [sampled.records])
    assert alone is not None
    assert certificate is not None
    assert cheap_server.counts.n_requests >= n_questions(kind)
    assert {body["model"] for body in cheap_server.bodies} == {"small"}
    assert certificate.cheap_judge == "small"
    assert certificate.correlation is not None
    assert 0.3 < certificate.correlation < 1
    assert certificate.trust is not None
    assert 0.2 < certificate.trust <= 1
    assert certificate.half_width is not None
    assert alone.half_width is not None
    assert (certificate.asked, certificate.half_width) < (alone.asked, alone.half_width)
    assert certificate.half_width is not None
    assert certificate.half_width <= float(PRECISION)
    headline = kind.benchmark.headline
    scores = sampled.scores
    assert certificate.value == pytest.approx(scores[headline], abs=1e-9)
    assert abs(scores[headline] - full.scores[headline]) <= 2 * certificate.half_width
    assert sampled.signature.fields["cheap"] == "small"


@pytest.mark.parametrize("reply", ["", "I cannot say.", "{'pred': 'yes', 'pred': 'no'}"])
def test_replies_that_cannot_be_read_are_counted_and_not_asked_on(
    reply: str, kind: Kind, server: JudgeServer, bench: pytest.MonkeyPatch
) -> None:
    """With a judge that says nothing of use the pilot is all that is paid for; the score is nan."""
    if kind.name == "vdc_rouge" and reply:
        pytest.skip("its judge's answers are free text: any can be read")
    server.reply = lambda _prompt: reply
    bench.setenv("LMMS_CAPTIONS_PRECISION", PRECISION)
    sampled = judge(kind)
    assert all(isnan(score) for score in sampled.scores.values())
    unscored = sampled.signature.unscored
    assert unscored is not None
    assert unscored.n == unscored.of > 0
    assert unscored.of < n_questions(kind) * kind.n_runs


def test_a_sample_that_ended_early_claims_nothing(
    kind: Kind, server: JudgeServer, bench: pytest.MonkeyPatch
) -> None:
    """Where too much has no verdict there is no score and no width; where that may be, both."""
    if kind.name == "vdc_rouge":
        pytest.skip("its judge's answers are free text: any can be read")
    plain = server.reply
    server.reply = lambda prompt: "" if hash_of(prompt) % 3 == 0 else plain(prompt)
    bench.setenv("LMMS_CAPTIONS_PRECISION", "6")
    ended = judge(kind)
    assert all(isnan(score) for score in ended.scores.values())
    certificate = certificate_of(kind.benchmark, [ended.records])
    assert certificate is not None
    assert certificate.half_width is None
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0.9")
    allowed = judge(kind)
    certificate = certificate_of(kind.benchmark, [allowed.records])
    assert certificate is not None
    assert certificate.half_width is not None
    assert 0 < certificate.half_width <= 6
    assert certificate.value == pytest.approx(allowed.scores[kind.benchmark.headline], abs=1e-9)


def test_a_cheap_judge_that_says_nothing_stops_the_sample(
    kind: Kind, server: JudgeServer, serve: ServerFactory, bench: pytest.MonkeyPatch
) -> None:
    """Its words are the reason, and the judge is asked nothing at the price of a larger sample."""
    cheap = serve()
    cheap.behaviour.status = 401
    bench.setenv("LMMS_CAPTIONS_PRECISION", PRECISION)
    bench.setenv("LMMS_CAPTIONS_CHEAP_JUDGE", f"small@{cheap.url}")
    sampled = judge(kind)
    assert all(isnan(score) for score in sampled.scores.values())
    reasons = {reason for record in sampled.records for reason in record.reasons}
    assert any("the cheap judge" in reason and "401" in reason for reason in reasons)
    assert any("that LMMS_CAPTIONS_CHEAP_JUDGE names behind" in reason for reason in reasons)
    assert server.counts.n_requests == 0


def test_the_judge_is_not_its_own_cheap_judge(
    kind: Kind, server: JudgeServer, bench: pytest.MonkeyPatch
) -> None:
    """Everything would be asked at the judge's own price."""
    bench.setenv("LMMS_CAPTIONS_PRECISION", PRECISION)
    bench.setenv("LMMS_CAPTIONS_CHEAP_JUDGE", "judge")
    sampled = judge(kind)
    reasons = {reason for record in sampled.records for reason in record.reasons}
    assert any("another model than the judge" in reason for reason in reasons)
    assert server.counts.n_requests == 0


def test_a_group_with_a_task_of_empty_captions_is_counted_as_its_tasks_are(
    server: JudgeServer, bench: pytest.MonkeyPatch
) -> None:
    """A task of which nothing had to be drawn goes into the mean and its interval like others."""
    bench.setenv("LMMS_CAPTIONS_PRECISION", PRECISION)
    JUDGE_RUN.close()
    kind = KINDS["vdc"]
    hooks = hooks_of(kind.benchmark)
    benchmark = kind.benchmark
    sets = []
    waiting: list[tuple[str, list[Any]]] = []
    for aspect, caption in (("short", ""), ("camera", "A red ball.")):
        items = [
            hooks.process_results({**document, "aspect": aspect}, [caption])
            for document in kind.documents
        ]
        waiting.append((aspect, items))
    for _, items in waiting:
        sets.append([read_breakdown_item(benchmark, resolve([i["breakdown"]])[0]) for i in items])
    for order in (sets, sets[::-1]):
        means = [score_of(benchmark, "vdc_acc", records) for records in order]
        found = measured_over(benchmark, "vdc_acc", order)
        assert found.value == pytest.approx(sum(means) / 2)
        certificate = certificate_of(benchmark, order)
        assert certificate is not None
        assert certificate.value == pytest.approx(sum(means) / 2)
        n_sent = server.counts.n_requests / kind.n_steps
        assert certificate.asked == n_sent < certificate.questions


def test_a_task_of_a_pooled_benchmark_has_strata_of_its_own(
    server: JudgeServer, bench: pytest.MonkeyPatch
) -> None:
    """No stratum holds pairs of two tasks, so that each one's certificate is right by itself."""
    bench.setenv("LMMS_CAPTIONS_PRECISION", PRECISION)
    JUDGE_RUN.close()
    kind = KINDS["vidcapbench"]
    hooks = hooks_of(kind.benchmark)
    items = {
        subset: [
            hooks.process_results({**document, "subset": subset}, [f"Caption {number}."])
            for number, document in enumerate(kind.documents)
        ]
        for subset in ("AE", "HE")
    }
    strata = {
        subset: {
            stratum
            for item in resolve([each["breakdown"] for each in of_subset])
            for stratum in item["sample"]["strata"]  # type: ignore[index]  # a sample
            if stratum >= 0
        }
        for subset, of_subset in items.items()
    }
    assert strata["AE"]
    assert strata["HE"]
    assert not strata["AE"] & strata["HE"]


def test_a_judge_that_refuses_ends_the_sample_with_its_words(
    kind: Kind, server: JudgeServer, bench: pytest.MonkeyPatch
) -> None:
    """A wrong key ends judging at once: nan, the server's words, and no thousand requests."""
    server.behaviour.status = 401
    bench.setenv("LMMS_CAPTIONS_PRECISION", PRECISION)
    sampled = judge(kind)
    assert all(isnan(score) for score in sampled.scores.values())
    reasons = {reason for record in sampled.records for reason in record.reasons}
    assert any("told to answer 401" in reason for reason in reasons)
    assert server.counts.n_requests < 300


def test_unscored_questions_leave_the_denominators_of_a_sample(
    kind: Kind, server: JudgeServer, bench: pytest.MonkeyPatch
) -> None:
    """One unreadable reply in thirty is counted among what was asked, and moves no number."""
    if kind.name == "vdc_rouge":
        pytest.skip("its judge's answers are free text: any can be read")
    plain = server.reply
    server.reply = lambda prompt: "" if hash_of(prompt) % 30 == 0 else plain(prompt)
    bench.setenv("LMMS_CAPTIONS_PRECISION", PRECISION)
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0.3")
    sampled = judge(kind)
    unscored = sampled.signature.unscored
    assert unscored is not None
    assert 0 < unscored.n < unscored.of
    scores = sampled.scores
    for metric in FORMULAS[kind.name]:
        assert scores[metric] == pytest.approx(by_hand(kind, sampled, metric), abs=1e-9)


def hash_of(prompt: str) -> int:
    """The same number for the same text, in every process."""
    return crc32(prompt.encode())


def test_captions_that_say_nothing_or_are_missing_keep_their_place(
    kind: Kind, server: JudgeServer, bench: pytest.MonkeyPatch
) -> None:
    """An empty caption counts whole, one that is not there is unscored; neither is sampled."""
    bench.setenv("LMMS_CAPTIONS_PRECISION", PRECISION)
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0.5")
    sampled = judge(kind, {0: "", 1: NoCaption("clip.mp4: it is cut off"), 2: " ... "})
    fields = sampled.signature.fields
    assert fields["empty"] == f"2/{kind.n_videos}"
    assert "precision" in fields
    empty, missing = sampled.records[0], sampled.records[1]
    assert not empty.sample
    assert not missing.sample
    assert missing.n_unscored == missing.n_questions > 0
    scores = sampled.scores
    for metric in FORMULAS[kind.name]:
        assert scores[metric] == pytest.approx(by_hand(kind, sampled, metric), abs=1e-9)


def test_processes_sample_their_own_captions(
    kind: Kind, server: JudgeServer, bench: pytest.MonkeyPatch
) -> None:
    """Two ranks draw for themselves; together they are as near as was asked for."""
    kind = replace(kind, n_videos=2 * kind.n_videos)
    bench.setenv("LMMS_CAPTIONS_PRECISION", PRECISION)
    bench.setenv("WORLD_SIZE", "2")
    ranks: list[dict[str, list[Item]]] = []
    for rank in range(2):
        bench.setenv("RANK", str(rank))
        sent = pickle.dumps(judge(kind, only=slice(rank, None, 2)).items)
        ranks.append(pickle.loads(sent))  # noqa: S301
    both = {name: ranks[0][name] + ranks[1][name] for name in ranks[0]}
    gathered = Judged(hooks_of(kind.benchmark), both)
    scores = gathered.scores
    for metric in FORMULAS[kind.name]:
        assert scores[metric] == pytest.approx(by_hand(kind, gathered, metric), abs=1e-9)
    certificate = certificate_of(kind.benchmark, [gathered.records])
    assert certificate is not None
    assert certificate.half_width is not None
    assert certificate.half_width <= 1.05 * float(PRECISION)
    samples = [item["sample"] for item in both["breakdown"] if "sample" in item]
    assert samples
    assert json.loads(json.dumps(samples)) == samples


def test_captioners_are_compared_by_their_samples(
    kind: Kind, full: Full, server: JudgeServer, bench: pytest.MonkeyPatch
) -> None:
    """The difference is that of the weighed scores; its interval holds that of all questions."""
    poor = {number: f"Nothing {number} to see." for number in range(kind.n_videos)}
    all_asked = [full.scores, judge(kind, poor).scores]
    bench.setenv("LMMS_CAPTIONS_CACHE", f"{read_judge_settings().cache}-2")
    bench.setenv("LMMS_CAPTIONS_PRECISION", PRECISION)
    sampled = [judge(kind, captions) for captions in (None, poor)]
    headline = kind.benchmark.headline
    verdicts = [Verdicts("t", (verdicts_of(kind, one),), is_pooled=False) for one in sampled]
    assert all(map(are_in_part, verdicts))
    several = align([weighed_verdicts(one) for one in verdicts]).verdicts
    row = row_of(several, headline)
    assert row is not None
    (contrast,) = row.contrasts
    scores = [one.scores[headline] for one in sampled]
    assert contrast.difference.difference == pytest.approx(scores[1] - scores[0], abs=1e-9)
    assert contrast.difference.low is not None
    assert contrast.difference.high is not None
    width = contrast.difference.high - contrast.difference.low
    assert (
        abs(contrast.difference.difference - (all_asked[1][headline] - all_asked[0][headline]))
        <= width
    )
    task = verdicts[0].tasks[0].task
    assert list(differences([one.tasks[0] for one in verdicts])) == []
    run = RunResults(Path("x_results.json"), {}, {})
    with pytest.raises(DataError, match=f"a sample of {task}'s questions"):
        _require_all(run, verdicts[0].tasks)


def verdicts_of(kind: Kind, judged: Judged) -> TaskVerdicts:
    """What a run leaves of a task beside its results."""
    items = resolve(judged.items["breakdown"])
    captions = [read_breakdown_item(kind.benchmark, json.loads(json.dumps(i))) for i in items]
    return TaskVerdicts(captions[0].task, kind.benchmark, judged.signature, captions)


@pytest.fixture
def few() -> Kind:
    """A benchmark with too few questions for a sample."""
    return Kind("vdc", KINDS["vdc"].document, n_videos=6, n_steps=2)


def test_few_questions_are_all_asked(
    few: Kind, server: JudgeServer, bench: pytest.MonkeyPatch
) -> None:
    """The numbers are then those of a run without the setting, to the last bit."""
    full = judge(few).scores
    bench.setenv("LMMS_CAPTIONS_PRECISION", "0.5")
    sampled = judge(few)
    assert sampled.scores == full
    n = n_questions(few)
    assert sampled.signature.fields["asked"] == Share(n, n).words


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("LMMS_CAPTIONS_PRECISION", "0", "points above 0"),
        ("LMMS_CAPTIONS_PRECISION", "half", "points above 0"),
        ("LMMS_CAPTIONS_CHEAP_JUDGE", "small", "LMMS_CAPTIONS_PRECISION beside it"),
    ],
)
def test_settings_that_cannot_be_used_are_named(
    name: str, value: str, words: str, bench: pytest.MonkeyPatch
) -> None:
    """The error says which, and what was expected."""
    bench.setenv(name, value)
    with pytest.raises(SettingsError, match=words):
        read_judge_settings()
