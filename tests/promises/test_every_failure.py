"""Every benchmark, at every step, under every kind of failure, through the hooks of lmms-eval.

One request of one question misbehaves. Lost is then

- of VDC and VidCapBench the question, whichever of its two steps fails;
- of VCapsBench the question where the two other asks do not agree; where they do, nothing (where
  it is asked once, the question);
- of CapQuiz the question, of MSVD-Eval, VDC's VDD and the judges of one's own clips the caption;
- where judging stops (wrong key, cost limit, outage), whatever was not answered by then: one
  request is in flight at a time, so that is known.

The words of a first step that are cut at max_tokens outside the reasoning are an answer, as far as
they go: nothing is lost.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import nan
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import pytest

from aggregated import signature_of_items
from conftest import ServerFactory
from judge_server import JudgeServer, Refuse, Say, last_text
from lmms_eval_captions.lmms_eval_tasks.hooks import Hooks, hooks_of
from lmms_eval_captions.lmms_eval_tasks.judging import session as judging
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION, engine_config
from lmms_eval_captions.lmms_eval_tasks.records import PendingRecord
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from lmms_eval_captions.lmms_eval_tasks.sample.scenes import SCENES
from lmms_eval_captions.lmms_eval_tasks.task_names import benchmark_of_task
from lmms_eval_captions.lmms_eval_tasks.vidcapbench import benchmark as vidcapbench_benchmark
from told_judge import (
    FREE_TEXT,
    N_ASKS,
    OPTIONS,
    Key,
    Told,
    cut_reply,
    gold,
    key_of,
    majority,
    mark,
)

N_VIDEOS: Final = 3
N_QUESTIONS: Final = 3
TARGET: Final = (1, 1)
"""Video and question that the failing request belongs to."""
# The second of its three asks differs: without that one the two others agree.
TOLD: Final = next(told for told in map(Told, range(100)) if told.lone_ask(*TARGET, 0) == 1)
ACCR: Final = ("accuracy", "completeness", "conciseness", "relevance")
RATED: Final = ("trustworthiness", "coverage", "overall")

Items = dict[str, list[PendingRecord]]
Doc = dict[str, Any]
Unit = tuple[int, int, int]
"""Video, question and run of one verdict."""


@dataclass(frozen=True)
class Benchmark:
    """A task: how its hooks are called, what it asks, and what its numbers must be."""

    name: str
    """The task, and what sets this variant of it apart behind a plus sign."""
    steps: tuple[str, ...]
    doc: Callable[[int], Doc]
    numbers: Callable[[list[list[Unit]]], dict[str, list[float]]]
    """Metric to its value in each run, from the units that have a verdict in each."""
    n_questions: int = N_QUESTIONS
    n_runs: int = 1
    n_asks: int = 1
    env: tuple[tuple[str, str], ...] = ()
    """Settings that make this variant of the task."""

    @property
    def hooks(self) -> Hooks[Any, Any]:
        """The task's hooks."""
        return hooks_of(benchmark_of_task(self.name.partition("+")[0]))

    @property
    def process(self) -> Callable[[Doc, Sequence[str]], dict[str, PendingRecord]]:
        return self.hooks.process_results

    @property
    def aggregations(self) -> dict[str, Callable[[Any], float]]:
        """Metric to its hook; the items of the first one hold the judgements."""
        record = self.hooks.benchmark
        names = dict.fromkeys((record.headline, *record.metrics))
        return {name: self.hooks.aggregate(name) for name in names}

    def order(self) -> list[Key]:
        """All requests in the order in which they are sent one at a time."""
        return [
            Key(video, question, self.n_asks * run + ask, step)
            for video in range(N_VIDEOS)
            for run in range(self.n_runs)
            for question in range(self.n_questions)
            for ask in range(self.n_asks)
            for step in self.steps
        ]

    def target(self, step: str, ask: int) -> Key:
        """The request that fails: in the middle of all, of the middle run where there are three."""
        question = min(TARGET[1], self.n_questions - 1)
        return Key(TARGET[0], question, self.n_asks * (self.n_runs // 2) + ask, step)

    def units(self) -> list[Unit]:
        """All verdicts, caption by caption, run by run."""
        return list(dict.fromkeys(map(self.unit_of, self.order())))

    def unit_of(self, key: Key) -> Unit:
        """The verdict that a request is for."""
        return key.video, key.question, key.seed // self.n_asks

    def lost(self, failed: set[Key]) -> set[Unit]:
        """Units without a verdict where these requests fail."""
        hit = set(map(self.unit_of, failed))
        return {unit for unit in hit if self.n_asks == 1 or _consensus(unit, failed) is None}

    def scores(self, lost: set[Unit]) -> dict[str, float]:
        """Every metric over what is not lost, mean over runs."""
        runs = [
            [unit for unit in self.units() if unit[2] == run and unit not in lost]
            for run in range(self.n_runs)
        ]
        values = self.numbers(runs)
        return {name: fmean(values[name]) for name in self.aggregations}


def _consensus(unit: Unit, failed: set[Key] | None = None) -> str | None:
    video, question, run = unit
    seeds = range(N_ASKS * run, N_ASKS * run + N_ASKS)
    keys = [Key(video, question, seed, "vcapsbench_answer") for seed in seeds]
    return majority([None if key in (failed or ()) else TOLD.ask(*key[:3]) for key in keys])


def _share(part: int, whole: int, *, percent: float = 100.0) -> float:
    return percent * part / whole if whole else nan


def _mean_over_videos(units: list[Unit], value: Callable[[Unit], float]) -> float:
    videos: dict[int, list[float]] = {}
    for unit in units:
        videos.setdefault(unit[0], []).append(value(unit))
    return fmean(map(fmean, videos.values())) if videos else nan


def _vdc_numbers(runs: list[list[Unit]]) -> dict[str, list[float]]:
    def is_right(unit: Unit) -> float:
        return 100.0 * (TOLD.match(*unit)[0] == "yes")

    return {
        "vdc_acc": [_mean_over_videos(run, is_right) for run in runs],
        "vdc_score": [_mean_over_videos(run, lambda unit: TOLD.match(*unit)[1]) for run in runs],
    }


def _vdd_numbers(runs: list[list[Unit]]) -> dict[str, list[float]]:
    numbers = _vdc_numbers(runs)
    return {"vdd_acc": numbers["vdc_acc"], "vdd_score": numbers["vdc_score"]}


def _rouge_numbers(runs: list[list[Unit]]) -> dict[str, list[float]]:
    def is_gold(unit: Unit) -> float:
        return 100.0 * (TOLD.answer(*unit) == gold(*unit[:2]))

    return {"vdc_rouge": [_mean_over_videos(run, is_gold) for run in runs]}


def _vidcapbench_numbers(runs: list[list[Unit]]) -> dict[str, list[float]]:
    numbers: dict[str, list[float]] = {"acc": [], "pre": [], "cov": [], "con": []}
    for run in runs:
        grades = [TOLD.grade(*unit) for unit in run]
        n_right, n_partly = grades.count("correct"), grades.count("partial")
        n_said = len(grades) - grades.count("neutral")
        numbers["acc"].append(_share(n_right, len(grades)))
        numbers["pre"].append(_share(n_right + n_partly, n_said))
        numbers["cov"].append(_share(n_said, len(grades)))
        mean_tokens = fmean(len(_caption(video).split()) for video in range(N_VIDEOS))
        numbers["con"].append(100 * numbers["acc"][-1] / mean_tokens)
    return numbers


def _vcapsbench_numbers(
    runs: list[list[Unit]], *, answer_to: Callable[[Unit], str | None] = _consensus
) -> dict[str, list[float]]:
    numbers: dict[str, list[float]] = {"ar": [], "ir": [], "cr": []}
    for run in runs:
        said = [(answer_to(unit), _is_true(unit)) for unit in run]
        spoken = [(answer, truth) for answer, truth in said if answer != "unanswerable"]
        n_right = sum((answer == "yes") == truth for answer, truth in spoken)
        numbers["ar"].append(_share(n_right, len(said)))
        numbers["ir"].append(_share(len(spoken) - n_right, len(spoken)))
        numbers["cr"].append(_share(len(spoken), len(said)))
    return numbers


def _capquiz_numbers(runs: list[list[Unit]]) -> dict[str, list[float]]:
    numbers: dict[str, list[float]] = {"capf1": [], "capp": [], "capr": [], "abstain": []}
    for run in runs:
        letters = [(TOLD.letter(*unit), _right_letter(unit)) for unit in run]
        n_right = sum(letter == right for letter, right in letters)
        n_chosen = sum(letter < len(OPTIONS) for letter, _ in letters)
        numbers["capp"].append(_share(n_right, n_chosen))
        numbers["capr"].append(_share(n_right, len(run)))
        numbers["capf1"].append(_share(2 * n_right, n_chosen + len(run)))
        numbers["abstain"].append(_share(len(run) - n_chosen, len(run)))
    return numbers


def _msvd_numbers(runs: list[list[Unit]]) -> dict[str, list[float]]:
    def score(unit: Unit, dimension: int) -> float:
        number = TOLD.scores(*unit)[dimension]
        # The server's log-probabilities: a quarter for the number below.
        return number - 0.25 if number else 0.0

    numbers = {
        name: [_mean_over_videos(run, partial(score, dimension=place)) for run in runs]
        for place, name in enumerate(ACCR)
    }
    numbers["avg"] = [fmean(values) for values in zip(*numbers.values(), strict=True)]
    return numbers


def _rating_numbers(runs: list[list[Unit]]) -> dict[str, list[float]]:
    def rating(unit: Unit, dimension: int) -> float:
        return TOLD.ratings(*unit)[dimension]

    return {
        name: [_mean_over_videos(run, partial(rating, dimension=place)) for run in runs]
        for place, name in enumerate(RATED)
    }


def _is_true(unit: Unit) -> bool:
    return (unit[0] + unit[1]) % 2 == 0


def _right_letter(unit: Unit) -> int:
    said = min(TOLD.letter(*unit), len(OPTIONS) - 1)
    return said if unit[1] % 2 else (unit[0] + 2 * unit[1]) % len(OPTIONS)


def _caption(video: int) -> str:
    # As many words in each: unjudged captions may count in ``con``, or not.
    return f"A caption of clip {video}."


def _vdc_doc(video: int) -> Doc:
    questions = [
        {"question": f"What of {mark(video, number)}?", "answer": gold(video, number)}
        for number in range(N_QUESTIONS)
    ]
    return {"video_id": f"clip{video}", "aspect": "camera", "questions": questions}


def _vdd_doc(video: int) -> Doc:
    reference = f"The reference of {mark(video, 0)}."
    return {"video_id": f"clip{video}", "aspect": "camera", "reference": reference}


def _vidcapbench_doc(video: int, *, subset: str) -> Doc:
    more = {"primary_category": "video motion", "sub_category": "object motion"}
    return {
        "video_id": f"clip{video}.mp4",
        "video_dir": f"clip{video}.mp4",
        "subset": subset,
        "caption_format": "free",
        "questions": [{**pair, **more} for pair in _vdc_doc(video)["questions"]],
    }


def _vcapsbench_doc(video: int) -> Doc:
    questions = [
        {
            "category": "action",
            "question": f"Is {mark(video, number)} so?",
            "answer": "yes" if _is_true((video, number, 0)) else "no",
        }
        for number in range(N_QUESTIONS)
    ]
    counts = {"n_malformed_in_file": 0}
    return {"video_id": f"clip{video}.mp4", "questions": questions, **counts}


def _capquiz_doc(video: int) -> Doc:
    questions = [
        {
            "category": "Entity",
            "question": f"Which is {mark(video, number)}?",
            "options": list(OPTIONS),
            "answer": OPTIONS[_right_letter((video, number, 0))],
        }
        for number in range(N_QUESTIONS)
    ]
    return {
        "video": f"clip{video}.mp4",
        "domain": "Nature",
        "questions": questions,
        "caption_prompt": "standard",
    }


def _msvd_doc(video: int, *, setting: str) -> Doc:
    name = SCENES[video].video_id
    return {
        "video_id": name,
        "vname": f"{name}.mp4",
        "setting": setting,
        "references": ["A reference.", "Another one."],
        "caption": f"A caption of {mark(video, 0)}.",
    }


def _own_doc(video: int, *, judge: str) -> Doc:
    return {
        "video_id": f"{SCENES[video].video_id}.mp4",
        "judge": judge,
        "caption": f"A caption of {mark(video, 0)}.",
    }


_VDC: Final = Benchmark(
    name="vdc_camera",
    steps=("vdc_answer", "vdc_match"),
    doc=_vdc_doc,
    numbers=_vdc_numbers,
)
_VIDCAPBENCH: Final = Benchmark(
    name="vidcapbench_ae",
    steps=("vidcapbench_answer", "vidcapbench_judge"),
    doc=partial(_vidcapbench_doc, subset="AE"),
    numbers=_vidcapbench_numbers,
    n_runs=3,
)
_VCAPSBENCH: Final = Benchmark(
    name="vcapsbench",
    steps=("vcapsbench_answer",),
    doc=_vcapsbench_doc,
    numbers=_vcapsbench_numbers,
    n_asks=N_ASKS,
)
_MSVD: Final = Benchmark(
    name="msvd_eval_ref_only",
    steps=("gveval",),
    doc=partial(_msvd_doc, setting="ref_only"),
    numbers=_msvd_numbers,
    n_questions=1,
)
BENCHMARKS: Final = (
    _VDC,
    replace(
        _VDC,
        name="vdc_rouge_camera",
        steps=("vdc_answer",),
        numbers=_rouge_numbers,
    ),
    Benchmark(
        name="vdc_vdd_camera",
        steps=("vdc_vdd",),
        doc=_vdd_doc,
        numbers=_vdd_numbers,
        n_questions=1,
    ),
    _VIDCAPBENCH,
    replace(_VIDCAPBENCH, name="vidcapbench_he", doc=partial(_vidcapbench_doc, subset="HE")),
    _VCAPSBENCH,
    replace(
        _VCAPSBENCH,
        name="vcapsbench+asked once",
        numbers=partial(_vcapsbench_numbers, answer_to=lambda unit: TOLD.ask(*unit)),
        n_asks=1,
        env=(("LMMS_CAPTIONS_VCAPSBENCH_ASKS", "1"),),
    ),
    Benchmark(
        name="capquiz",
        steps=("capquiz_answer",),
        doc=_capquiz_doc,
        numbers=_capquiz_numbers,
    ),
    _MSVD,
    replace(_MSVD, name="msvd_eval_combined", doc=partial(_msvd_doc, setting="combined")),
    replace(_MSVD, name="own_gveval_ref_free", doc=partial(_own_doc, judge="gveval")),
    Benchmark(
        name="own_vllm_judge",
        steps=("video_rating",),
        doc=partial(_own_doc, judge="vllm_judge"),
        numbers=_rating_numbers,
        n_questions=1,
    ),
)

UNREAD: Final = "unreadable reply, asked 4 times"
KEPT: Final = {
    "empty": UNREAD + "; the last one was empty",
    "unreadable": UNREAD,
    "cut": UNREAD + "; the last one was cut at max_tokens: raise LMMS_CAPTIONS_JUDGE_MAX_TOKENS",
    "cut while reasoning": UNREAD
    + "; the last one was cut at max_tokens within its reasoning: raise "
    + "LMMS_CAPTIONS_JUDGE_MAX_TOKENS",
    "withheld": UNREAD + "; the last one was withheld by the provider's content filter",
}
"""Replies that came, are stored and are not asked for again, and the reason they lead to."""
SERVER: Final = r"http://127\.0\.0\.1:\d+/v1/chat/completions answered "
STOPS: Final = {
    "wrong key": SERVER + re.escape("401: told to fail (check OPENAI_API_KEY)"),
    "cost limit": r"LMMS_CAPTIONS_MAX_COST: \$.* are spent and the next request may cost .*",
    "outage": r"the judge gave no reply to any request for \d+ s ?"
    r"(\(it has given none yet\))?, judging stopped: " + SERVER + "503: told to fail",
}
REASONS: Final = {
    **{kind: re.escape(reason) for kind, reason in KEPT.items()},
    **STOPS,
    "refused": SERVER + "400: The prompt triggered our content filter",
    "flagged": SERVER + "403: Your input was flagged for violence",
}
KINDS: Final = (*REASONS, "outage that passes", "kill")

CELLS: Final = [
    pytest.param(benchmark, benchmark.target(step, ask), kind, id=f"{benchmark.name}-{at}-{kind}")
    for benchmark in BENCHMARKS
    for step in benchmark.steps
    for ask in range(benchmark.n_asks)
    for at in [f"{step}-{ask + 1}" if benchmark.n_asks > 1 else step]
    for kind in KINDS
]


class Judge:
    """Says what it is told to, but for one request or from one request on.

    Args:
        target: The request.
        kind: What happens to it.
    """

    def __init__(self, target: Key | None = None, kind: str = "") -> None:
        self._target = target
        self._kind = kind
        self._n_failures = 0
        self.sent: list[Key] = []
        """Every request that came."""
        self.answered: set[Key] = set()
        self.reached = threading.Event()
        """The request came."""
        self.submitted = threading.Event()
        """All captions are handed in: an outage begins no sooner."""

    def __call__(self, payload: dict[str, Any]) -> Say | Refuse | str:
        key = key_of(payload)
        self.sent.append(key)
        lasts = self._kind in ("wrong key", "outage", "outage that passes")
        if key == self._target or (self._n_failures and lasts):
            self._n_failures += 1
            if self._kind.startswith("outage"):
                self.submitted.wait(60)
            said = self._fail(key)
            self.reached.set()
            if said is not None:
                return said
        self.answered.add(key)
        if not TOLD.is_consistent(key, last_text(payload)):
            return Say("This is not what the first step said.")
        return Say(TOLD.text(key))

    def _fail(self, key: Key) -> Say | str | None:
        free = key.step in FREE_TEXT
        if self._kind == "outage that passes":
            return "503" if self._n_failures <= 6 else None
        said: dict[str, Say | str] = {
            "empty": Say(""),
            "unreadable": Say("<think>Hm.</think>\n" if free else "Let us talk of the weather."),
            "cut": Say(TOLD.text(key) if free else cut_reply(key.step), "length"),
            "cut while reasoning": Say("<think>It could be 2, yes, or", "length"),
            "withheld": Say("", "content_filter"),
            "refused": "filter",
            "flagged": "flagged",
            "wrong key": "401",
            "outage": "503",
            "kill": "hang",
        }
        return said.get(self._kind)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root of local data that holds the sample, whose clips judges that see are shown."""
    return sample_root(tmp_path_factory.mktemp("sample"))


@pytest.fixture
def bench(bench: pytest.MonkeyPatch, sample: Path) -> pytest.MonkeyPatch:
    """The shared one, with the sample's data, short waits and a tokenizer made of blanks."""
    _change_engine(bench, backoff_s=0.01, max_backoff_s=0.02, n_attempts=3, outage_patience_s=0.1)
    counter = (lambda text: len(text.split()), None)
    bench.setattr(vidcapbench_benchmark, "tokenizer", lambda: counter)
    bench.setenv("LMMS_CAPTIONS_DATA", str(sample))
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "1")
    bench.setenv("OPENAI_API_KEY", "sk-test")
    return bench


def _set(benchmark: Benchmark, bench: pytest.MonkeyPatch) -> None:
    for name, value in benchmark.env:
        bench.setenv(name, value)


def _change_engine(bench: pytest.MonkeyPatch, **changes: Any) -> None:
    make = engine_config
    bench.setattr(judging, "engine_config", lambda settings: replace(make(settings), **changes))


def _judge(benchmark: Benchmark, judge: Judge | None = None) -> Items:
    """Hand all captions to the hooks, as lmms-eval does."""
    items: Items = {}
    for video in range(N_VIDEOS):
        doc = benchmark.doc(video)
        results = [doc.pop("caption", _caption(video))]
        for metric, item in benchmark.process(doc, results).items():
            items.setdefault(metric, []).append(item)
    if judge is not None:
        judge.submitted.set()
    return items


def _check(benchmark: Benchmark, items: Items, lost: set[Unit]) -> dict[Unit, str]:
    """Check numbers, counts and which questions are lost; their reasons."""
    scores = {name: hook(items[name]) for name, hook in benchmark.aggregations.items()}
    assert scores == pytest.approx(benchmark.scores(lost), nan_ok=True)
    n_units = len(benchmark.units())
    assert benchmark.hooks.aggregate_unscored(items["unscored"]) == len(lost)
    signature = signature_of_items(items["unscored"])
    assert f"|unscored:{len(lost)}/{n_units}|" in signature
    records: list[dict[str, Any]] = [*items[next(iter(benchmark.aggregations))]]
    judgements = [judgement for record in records for judgement in record["judgements"]]
    reasons = {
        unit: judgement["reason"]
        for unit, judgement in zip(benchmark.units(), judgements, strict=True)
        if judgement["reason"] is not None
    }
    assert set(reasons) == lost
    return reasons


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_a_calm_run_asks_everything_once_and_has_the_numbers_it_was_told(
    benchmark: Benchmark, bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    server = serve(logprobs="whole")
    server.script = judge = Judge()
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_JUDGE_CONCURRENCY", "1")
    _set(benchmark, bench)
    _check(benchmark, _judge(benchmark, judge), set())
    assert judge.sent == benchmark.order()


@pytest.mark.parametrize(("benchmark", "target", "kind"), CELLS)
def test_one_failure_loses_what_it_concerns_and_nothing_else(
    benchmark: Benchmark,
    target: Key,
    kind: str,
    bench: pytest.MonkeyPatch,
    serve: ServerFactory,
    tmp_path: Path,
    logged: list[str],
) -> None:
    """The rest is scored as it is, the reason is the true one, a rerun asks what may be asked."""
    server = serve(logprobs="whole")
    server.script = judge = Judge(target, kind)
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    _set(benchmark, bench)
    ends, passes = kind in STOPS or kind == "kill", kind == "outage that passes"
    bench.setenv("LMMS_CAPTIONS_JUDGE_CONCURRENCY", "1" if ends or passes else "8")
    before = benchmark.order()[: benchmark.order().index(target)]
    failed = set(benchmark.order()) - set(before) if ends else {target}
    if passes or (kind == "cut" and target.step in FREE_TEXT):
        failed = set()
    if passes:
        _change_engine(bench, outage_patience_s=30.0)
    if kind == "cost limit":
        _limit_cost(benchmark, before, bench, tmp_path)

    if kind == "kill":
        _judge_and_kill(benchmark, server)
    else:
        lost = benchmark.lost(failed)
        reasons = _check(benchmark, _judge(benchmark, judge), lost)
        for reason in reasons.values():
            _check_reason(reason, kind)
    if kind in ("wrong key", "cost limit"):
        assert judge.sent == [*before, target][: len(before) + (kind == "wrong key")]
    answered = set(judge.answered)

    SESSION.close()
    bench.setenv("LMMS_CAPTIONS_MAX_COST", "none")
    server.script = judge = Judge()
    kept = benchmark.lost(failed) if kind in KEPT else set()
    _check(benchmark, _judge(benchmark, judge), kept)
    missing = [] if kind in KEPT else [key for key in benchmark.order() if key not in answered]
    assert sorted(judge.sent) == sorted(missing)
    assert not [line for line in logged if line.startswith("ERROR") or "internal error" in line]


def _check_reason(reason: str, kind: str) -> None:
    """A reason says which step failed, and why, in full."""
    step = r"(no answer from the caption: |[123] of 3 asks failed and no two agree: )?"
    assert re.fullmatch(step + REASONS[kind], reason)


def _limit_cost(
    benchmark: Benchmark, before: list[Key], bench: pytest.MonkeyPatch, folder: Path
) -> None:
    """Set a limit that the requests before the target keep and it would pass: $1 per token."""
    prices = folder / "prices.yaml"
    prices.write_text("models: {judge: {input: 0, output: 1000000}}")
    spent = sum(len(TOLD.text(key)) // 4 + 1 for key in before)
    worst = int(str(benchmark.hooks.benchmark.judge_defaults["max_tokens"]))
    bench.setenv("LMMS_CAPTIONS_PRICES", str(prices))
    bench.setenv("LMMS_CAPTIONS_MAX_COST", f"{spent + worst - 0.5}")


def _judge_and_kill(benchmark: Benchmark, server: JudgeServer) -> None:
    """Judge in a child process that is killed when the target request is under way."""
    assert isinstance(server.script, Judge)
    child = os.fork()
    if not child:
        try:
            items = _judge(benchmark, server.script)
            benchmark.hooks.aggregate_unscored(items["unscored"])
        finally:
            os._exit(0)
    try:
        assert server.script.reached.wait(20), "the request that is to be killed never came"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
