"""A scorer, a reward and the tasks say the same of a caption, to the last bit, and ask it once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from math import isnan
from pathlib import Path
from typing import Any, Final, cast

import pytest

from aggregated import signature_of_items
from conftest import ServerFactory
from five_tasks import CAPTIONER_PAPERS, Texts, write_captioner_papers, write_clip
from judge_server import JudgeServer, Say, last_text, scripted_reply
from lmms_eval_captions import CaptionReward, CaptionScore, Scorer
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_captions.lmms_eval_tasks.hooks import hooks_of
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.registry import benchmark_paths
from lmms_eval_captions.lmms_eval_tasks.task_names import our_benchmarks
from lmms_eval_captions.model_wrappers.no_caption import NoCaption
from lmms_eval_captions.scorer.scorer import NO_CAPTION_GIVEN

PROTOCOLS: Final = {
    "vdc_camera": "vdc",
    "vdc_background": "vdc",
    "vdc_rouge_camera": None,
    "vdc_vdd_camera": None,
    "vidcapbench_ae": "vidcapbench",
    "vidcapbench_he": "vidcapbench",
    "vcapsbench": "vcapsbench",
    "capquiz": "capquiz",
    "capquiz_detailed": "capquiz",
    "msvd_eval_ref_free": "gveval_ref_free",
    "msvd_eval_ref_only": "gveval_ref_only",
    "msvd_eval_combined": "gveval_combined",
    "own_gveval_ref_free": "gveval_ref_free",
    "own_vllm_judge": "vllm_judge",
    **dict.fromkeys(CAPTIONER_PAPERS),
}
"""Task to the protocol for clips of one's own that asks the same, ``None`` where there is none."""
N_CLIPS: Final = 7
N_QUESTIONS: Final = 5
CAPTIONS: Final[tuple[str | None, ...]] = (
    "A red ball rolls over a green lawn.",
    "Two dogs wait, 3 cats run.",
    "",
    None,
    'He says "\u00e9t\u00e9"; 100% {caption} \\n.',
    "A red ball rolls over a green lawn.",
    "The camera pans left, then zooms in.",
)


@dataclass(frozen=True)
class Said:
    scores: Sequence[Mapping[str, float]]
    values: Sequence[Mapping[str, object]]
    judgements: Sequence[Sequence[tuple[object, object]]]
    """Verdict, or numbers, and reply of each question in each run."""
    n_unscored: Sequence[int]
    totals: Mapping[str, object]
    """By metric; in words, as nan is not equal to itself."""
    signature: str = field(compare=False)


@pytest.fixture
def task(request: pytest.FixtureRequest, bench: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Each task in turn, with its official files and two judge runs."""
    write_files(tmp_path / "data")
    for name, value in {
        "DATA": tmp_path / "data",
        "T5": tmp_path / "no-tokenizer",
        "JUDGE_RUNS": 2,
        "JUDGE_FRAMES": 2,
        "MAX_UNSCORED": 1,
    }.items():
        bench.setenv(f"LMMS_CAPTIONS_{name}", str(value))
    return str(request.param)


@pytest.fixture
def server(serve: ServerFactory, bench: pytest.MonkeyPatch) -> JudgeServer:
    """The judge: its replies differ by prompt and run, and some cannot be read."""
    server = serve()
    server.script = reply_to
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    return server


def reply_to(payload: dict[str, Any]) -> Say:
    prompt = f"{payload['seed']}\n{last_text(payload)}"
    digest = blake2b(prompt.encode("utf-8", "surrogatepass"), digest_size=1).digest()[0]
    words = scripted_reply(prompt)
    if words.startswith("Answer "):
        words = " ".join(["a red ball", *map(str, range(digest % N_QUESTIONS))])
    return Say("Hm." if digest % 6 == 0 else words)


def test_every_task_has_its_protocol() -> None:
    """A benchmark that asks a judge is among these, and so is each protocol."""
    asking = {name for name, benchmark in our_benchmarks().items() if benchmark.measure is None}
    assert set(PROTOCOLS) <= asking
    kinds = {id(our_benchmarks()[name]) for name in PROTOCOLS}
    assert kinds == {id(our_benchmarks()[name]) for name in asking}
    assert len(kinds) == len(benchmark_paths()) - 1


@pytest.mark.parametrize(
    ("task", "first"),
    [
        (task, first)
        for task, protocol in PROTOCOLS.items()
        for first in ("scorer", "task", *(["protocol"] if protocol else ()), "reward")
    ],
    indirect=["task"],
)
def test_all_say_the_same(first: str, task: str, server: JudgeServer) -> None:
    """Whichever is asked first, the others find all replies in the store."""
    ways: dict[str, Callable[[], Said]] = {
        "scorer": lambda: by_scorer(task, of_task),
        "task": lambda: by_task(task),
        "protocol": lambda: by_scorer(PROTOCOLS[task] or task, of_protocol),
        "reward": lambda: by_reward(task),
    }
    if PROTOCOLS[task] is None:
        del ways["protocol"]

    def of_task() -> dict[str, Any]:
        return {"clip_ids": [clip_id for clip_id, _ in rows(task)]}

    def of_protocol() -> dict[str, Any]:
        given = rows(task)
        return {
            "clip_ids": [clip_id for clip_id, _ in given],
            **{name: [row[name] for _, row in given] for name in given[0][1]},
        }

    order = [first, *(way for way in ways if way != first)]
    said = {order[0]: ways[order[0]]()}
    n_requests = server.counts.n_requests
    assert n_requests > 0
    said.update((way, ways[way]()) for way in order[1:])
    assert server.counts.n_requests == n_requests
    expected = said["task"]
    assert sum(expected.n_unscored) > 0
    assert len({json.dumps(values, sort_keys=True) for values in expected.values}) > 3
    for way, other in said.items():
        assert other == expected, way
    assert said["scorer"].signature == expected.signature
    rewards_equal(task, expected)
    assert server.counts.n_requests == n_requests


def by_task(name: str) -> Said:
    SESSION.close()
    benchmark = our_benchmarks()[name]
    hooks = hooks_of(benchmark)
    documents = list(hooks.process_docs([benchmark.tasks[name].fields]))
    items = [
        {kind: item.wait() for kind, item in hooks.process_results(document, [caption]).items()}
        for document, caption in zip(documents, texts(), strict=True)
    ]
    scores = [
        {metric: float(str(one[metric]["caption_score"])) for metric in benchmark.metrics
         if "caption_score" in one[metric]}
        for one in items
    ]  # fmt: skip
    columns: dict[str, list[Any]] = {kind: [one[kind] for one in items] for kind in items[0]}
    said = Said(
        scores=scores,
        values=[
            {name: one[name][metric.field] for name, metric in benchmark.metrics.items()}
            for one in items
        ],
        judgements=[
            [(verdict_of(logged), logged["reply"]) for logged in one["judgements"]]
            for one in columns[benchmark.headline]
        ],
        n_unscored=[int(str(one["unscored"]["n_unscored"])) for one in items],
        totals={
            metric: repr(hooks.aggregate(metric)(columns[metric])) for metric in benchmark.metrics
        },
        signature=signature_of_items(columns["unscored"]),
    )
    SESSION.close()
    return said


def by_scorer(name: str, arguments: Callable[[], dict[str, Any]]) -> Said:
    with Scorer(name, videos="/") as scorer:
        return said_by(scorer, scorer.score(CAPTIONS, **arguments()))


def said_by(scorer: Scorer, scores: Sequence[CaptionScore]) -> Said:
    """The same of its scores."""
    totals = {name: repr(value) for name, value in scorer.totals(scores).items()}
    return Said(
        scores=[
            {name: value for name, value in score.scores.items() if not isnan(value)}
            for score in scores
        ],
        values=[score.record.values for score in scores],
        judgements=[
            [(verdict_of(vars_of(judgement)), judgement.reply) for judgement in score.judgements]
            for score in scores
        ],
        n_unscored=[score.n_unscored for score in scores],
        totals=totals,
        signature=scorer.signature(scores),
    )


def by_reward(name: str) -> Said:
    arguments: dict[str, Any] = {"evaluation": None, "missing": None}
    clip_ids = [clip_id for clip_id, _ in rows(name)]
    with CaptionReward(name, **arguments) as reward:
        shares = reward([""] * N_CLIPS, CAPTIONS, clip_id=clip_ids)
        scores = reward.scorer.score(CAPTIONS, clip_ids=clip_ids)
        assert [share is None for share in shares] == [
            isnan(score.scores[reward.metric]) for score in scores
        ]
        return said_by(reward.scorer, scores)


def rewards_equal(name: str, expected: Said) -> None:
    """Each metric's rewards are the captions' scores, by the task and by the protocol."""
    benchmark = our_benchmarks()[name]
    given = rows(name)
    own = {
        {"frames": "video"}.get(column, column): [row[column] for _, row in given]
        for column in (given[0][1] if PROTOCOLS[name] else ())
    }
    for metric, record in benchmark.metrics.items():
        if record.unavailable([]) is not None or metric == "con":
            continue
        for protocol, columns in {name: {}, PROTOCOLS[name] or name: own}.items():
            is_plain = record.higher_is_better
            arguments: dict[str, Any] = {
                "metric": metric, "normalise": not is_plain, "evaluation": None, "missing": None,
                "videos": "/",
            }  # fmt: skip
            with CaptionReward(protocol, **arguments) as reward:
                clip_ids = [clip_id for clip_id, _ in given]
                shares = reward([""] * N_CLIPS, CAPTIONS, clip_id=clip_ids, **columns)
            awaited = awaited_rewards(protocol, {"clip_id": clip_ids, **columns}, arguments)
            known = [place for place, share in enumerate(shares) if share is not None]
            assert [awaited[place] for place in known] == [shares[place] for place in known]
            values = [scores.get(metric) for scores in expected.scores]
            lowest, span = record.lowest, record.span
            turned = [None if v is None else 1.0 - (v - lowest) / span for v in values]
            assert shares == (values if is_plain else turned), metric


def awaited_rewards(
    protocol: str, columns: Mapping[str, Sequence[Any]], arguments: Mapping[str, Any]
) -> list[Any]:
    """Rewards of rollouts that are awaited one by one, as verl's reward loop does."""
    infos = [{name: column[place] for name, column in columns.items()} for place in range(N_CLIPS)]

    async def scored(reward: CaptionReward) -> list[Any]:
        return await asyncio.gather(
            *(
                reward.acompute_score("", cast("str", caption), None, info)
                for caption, info in zip(CAPTIONS, infos, strict=True)
            ),
            return_exceptions=True,
        )

    with CaptionReward(protocol, **{**arguments, "missing": "mean"}) as reward:
        return asyncio.run(scored(reward))


def rows(name: str) -> list[tuple[str, dict[str, Any]]]:
    """Each clip with its name and what its own row has in the official form."""
    benchmark: Benchmark[Any, Any] = our_benchmarks()[name]
    settings = data_settings()
    made = []
    for document in benchmark.read(settings, benchmark.tasks[name]):
        row: dict[str, Any] = {column: document[column] for column in ("questions", "references")
               if column in document}  # fmt: skip
        if name in ("msvd_eval_ref_free", "own_gveval_ref_free"):
            row.pop("references", None)
        if PROTOCOLS[name] in ("gveval_ref_free", "gveval_combined", "vllm_judge"):
            row["frames"] = str(benchmark.video_path(settings, document))
        made.append((benchmark.video_id(document), row))
    return made


def texts() -> Iterator[str]:
    """The captions as a captioner hands them over."""
    for caption in CAPTIONS:
        yield NoCaption(NO_CAPTION_GIVEN) if caption is None else caption


def verdict_of(logged: Any) -> object:
    """A judgement's verdict, score or numbers."""
    names = ("verdict", "score", "numbers", "asks", "predicted_answer", "choice")
    return [(name, json.loads(json.dumps(logged[name]))) for name in names if name in logged]


def vars_of(judgement: Any) -> dict[str, Any]:
    """A judgement's fields."""
    return {name: getattr(judgement, name) for name in judgement.__dataclass_fields__}


def write_files(root: Path) -> None:
    """The official files of all benchmarks."""
    clips = [f"clip_{place}" for place in range(N_CLIPS)]
    for aspect in ("camera", "background"):
        lines(root / f"vdc/VDCScore_qa/{aspect}.jsonl",
              [{clip: asked(f"{clip} {aspect}", category="motion")} for clip in clips])  # fmt: skip
    lines(
        root / "vdc/VDC_1k.jsonl",
        [{"video_id": clip, "camera_caption": f"{clip} is steady."} for clip in clips],
    )
    kind = {"primary_category": "video motion", "sub_category": "object motion"}
    for subset in ("AE", "HE"):
        lines(root / f"vidcapbench/VidCapBench-{subset}_QA.jsonl",
              [{"video_dir": f"{clip}.mp4", "QA_pairs": asked(f"{clip} {subset}", **kind)}
               for clip in clips])  # fmt: skip
    lines(
        root / "vcapsbench/VCapsBench_100KQA.jsonl",
        [
            {"video_id": clip, "qa": [f"action*Is {clip} at {n}?*{'yes' if n % 2 else 'no'}"
                                      for n in range(N_QUESTIONS)]}
            for clip in clips
        ],
    )  # fmt: skip
    options = ["red", "green", "blue", "white", "black"]
    quiz = {"category": "Entity", "options": options}
    lines(root / "capquiz/capquiz.jsonl",
          [{"video": clip, "domain": "Nature",
            "questions": [{**pair, **quiz, "answer": options[n]}
                          for n, pair in enumerate(asked(clip))]}
           for clip in clips])  # fmt: skip
    rated = {clip: {"vname": f"{clip}.mp4", "ref": [f"{clip} runs", "a dog"]} for clip in clips}
    (root / "msvd_eval").mkdir(parents=True)
    (root / "msvd_eval/MSVD-Eval.json").write_text(json.dumps(rated))
    write_captioner_papers(
        root, [Texts(clip, f"what {clip} does", f"{clip} runs") for clip in clips]
    )
    for clip in clips:
        for folder in ("own/videos", "msvd_eval/YouTubeClips"):
            write_clip(root / folder / f"{clip}.mp4", f"{folder} {clip}")


def asked(about: str, **fields: str) -> list[dict[str, str]]:
    """Questions with gold answers."""
    return [
        {"question": f"What is {number} of {about}?", "answer": f"a red ball {number}", **fields}
        for number in range(N_QUESTIONS)
    ]


def lines(path: Path, values: Sequence[object]) -> None:
    """JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(value)}\n" for value in values))
