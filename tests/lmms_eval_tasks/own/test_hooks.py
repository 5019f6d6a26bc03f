"""The hooks of the tasks of one's own clips, called as lmms-eval calls them."""

from __future__ import annotations

import base64
import io
import json
from math import isnan
from pathlib import Path
from statistics import fmean, pstdev
from types import ModuleType
from typing import Any

import pytest
from PIL import Image

from aggregated import signature_of_items
from breakdowns import kept_breakdown
from conftest import ServerFactory
from judge_server import last_text
from lmms_eval_captions.analysis.gradings import Label, grading_of
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.own import hooks as gveval_hooks
from lmms_eval_captions.lmms_eval_tasks.own import rating_hooks
from lmms_eval_captions.lmms_eval_tasks.own.benchmark import OWN_GVEVAL, OWN_RATING
from lmms_eval_captions.lmms_eval_tasks.records import PendingRecord
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root

Items = dict[str, list[PendingRecord]]
ACCR = ("accuracy", "completeness", "conciseness", "relevance")
RATED = ("trustworthiness", "coverage", "overall")
CAPTIONS = ("A red circle moves.", "A blue square.", "Two green things turn.", "It is dark.")
EACH = pytest.mark.parametrize(
    ("hooks", "judge"), [(gveval_hooks, "gveval"), (rating_hooks, "vllm_judge")],
    ids=["gveval", "rating"],
)  # fmt: skip


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root of local data that holds the sample."""
    return sample_root(tmp_path_factory.mktemp("sample"))


@pytest.fixture
def bench(bench: pytest.MonkeyPatch, sample: Path) -> pytest.MonkeyPatch:
    """The shared one, with the sample's clips."""
    bench.setenv("LMMS_CAPTIONS_DATA", str(sample))
    return bench


def _docs(hooks: ModuleType, judge: str) -> list[dict[str, Any]]:
    return list(hooks.process_docs([{"judge": judge}]))


def _process(hooks: ModuleType, judge: str, captions: tuple[str, ...] = CAPTIONS) -> Items:
    items: Items = {}
    for doc, caption in zip(_docs(hooks, judge), captions, strict=False):
        for metric, item in hooks.process_results(doc, [caption]).items():
            items.setdefault(metric, []).append(item)
    return items


def _pictures(body: dict[str, Any]) -> list[Image.Image]:
    parts = body["messages"][-1]["content"][1:]
    urls = [part["image_url"]["url"].removeprefix("data:image/jpeg;base64,") for part in parts]
    return [Image.open(io.BytesIO(base64.b64decode(url))) for url in urls]


def test_a_caption_is_rated_beside_sixteen_frames(
    bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """Figure 8's words with the caption in them, then frames of the clip in order of time."""
    server = serve()
    server.keep_bodies = True
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    caption = 'It says "{{candidate_caption}}" {x}.'
    items = _process(rating_hooks, "vllm_judge", (caption,))
    assert rating_hooks.aggregate_unscored(items["unscored"]) == 0
    (body,) = server.bodies
    assert f'**Candidate Caption:**\n"{caption}"\n### Evaluation Steps' in last_text(body)
    assert (body["temperature"], body["max_tokens"]) == (0.0, 8192)
    pictures = _pictures(body)
    assert len(pictures) == 16
    assert len({picture.size for picture in pictures}) == 1
    # The first clip's circle moves to the right: so does what is redder than the rest.
    middles = [_middle_of_red(picture) for picture in pictures]
    assert middles == sorted(middles)
    assert middles[-1] - middles[0] > 0.2


def _middle_of_red(picture: Image.Image) -> float:
    import numpy as np

    pixels = np.asarray(picture.convert("RGB"), dtype=float)
    redness = (pixels[..., 0] - pixels[..., 1:].max(axis=-1)).clip(min=60) - 60
    columns = redness.sum(axis=0)
    return float((columns * np.arange(len(columns))).sum() / columns.sum() / len(columns))


def test_the_numbers_are_means_of_what_the_judge_wrote(
    bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """Each dimension over captions, in two judge runs, as counted here from the replies."""
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", serve().url)
    bench.setenv("LMMS_CAPTIONS_JUDGE_RUNS", "2")
    items = _process(rating_hooks, "vllm_judge")
    rating_hooks.aggregate("overall")(items["overall"])
    figures = kept_breakdown("own_vllm_judge")["overall"]["all"]
    records: list[dict[str, Any]] = [dict(item.wait()) for item in items["overall"]]
    replies = [
        (one["run"], json.loads(one["reply"])) for rec in records for one in rec["judgements"]
    ]
    for name in RATED:
        means = [
            fmean(reply["scores"][name] for of, reply in replies if of == run) for run in (0, 1)
        ]
        score = rating_hooks.aggregate(name)(items[name])
        assert score == pytest.approx(fmean(means))
        assert figures[name] == pytest.approx(score)
        assert figures[f"{name}_std"] == pytest.approx(pstdev(means))
        assert 1 <= figures[f"{name}_ci_low"] < score < figures[f"{name}_ci_high"] <= 5
    signature = signature_of_items(items["unscored"])
    assert signature.startswith(
        "own_vllm_judge|judge:judge|runs:2|protocol:1|frames:16|unscored:0/8|"
    )


def test_g_veval_scores_captions_by_three_frames(
    bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """One picture of three, the prompt of its reference-free setting, expectations as scores."""
    server = serve(logprobs="whole")
    server.keep_bodies = True
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    items = _process(gveval_hooks, "gveval")
    scores = [gveval_hooks.aggregate(name)(items[name]) for name in ACCR]
    assert gveval_hooks.aggregate("avg")(items["avg"]) == pytest.approx(fmean(scores))
    assert [[p.size for p in _pictures(body)] for body in server.bodies] == [[(1536, 512)]] * 4
    assert all("Reference captions" not in last_text(body) for body in server.bodies)
    records: list[dict[str, Any]] = [dict(item.wait()) for item in items["avg"]]
    numbers = [record["judgements"][0]["numbers"] for record in records]
    told = [number - 0.25 if number else 0.0 for one in numbers for number in one.values()]
    assert gveval_hooks.aggregate("avg")(items["avg"]) == pytest.approx(fmean(told))
    assert signature_of_items(items["unscored"]).startswith(
        "own_gveval_ref_free|judge:judge|runs:1|protocol:1|frames:first_middle_last|"
        "scoring:logprobs|unscored:0/4|"
    )


@EACH
def test_a_rerun_asks_nothing_though_no_clip_is_decoded_again(
    hooks: ModuleType, judge: str, bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """Frames are kept, so that their bytes, and the keys of replies, are the same."""
    server = serve()
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    first = signature_of_items(_process(hooks, judge)["unscored"])
    n_requests = server.counts.n_requests
    SESSION.close()
    unreadable = "lmms_eval_captions.model_wrappers.video.decoders.DECODERS"
    bench.setattr(unreadable, None)
    again = signature_of_items(_process(hooks, judge)["unscored"])
    assert (again, server.counts.n_requests) == (first, n_requests)


@EACH
def test_a_clip_that_cannot_be_read_leaves_its_caption_unscored(
    hooks: ModuleType, judge: str, bench: pytest.MonkeyPatch, serve: ServerFactory, tmp_path: Path
) -> None:
    """The reason names the clip; there is no lowest score, and no request."""
    (tmp_path / "own/videos").mkdir(parents=True)
    (tmp_path / "own/videos/broken.mp4").write_text("no clip")
    bench.setenv("LMMS_CAPTIONS_DATA", str(tmp_path))
    server = serve()
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    items = _process(hooks, judge)
    (name, metric) = ("avg", "avg") if judge == "gveval" else ("overall", "overall")
    record = items[metric][0].wait()
    assert "no frames to show to the judge" in str(record["reasons"])
    assert "broken.mp4" in str(record["reasons"])
    assert isnan(hooks.aggregate(name)(items[metric]))
    assert server.counts.n_requests == 0


@EACH
def test_documents_and_prompts(hooks: ModuleType, judge: str, bench: pytest.MonkeyPatch) -> None:
    """A captioner gets CapQuiz's prompt and the clip; both tasks ask it the same."""
    docs = _docs(hooks, judge)
    assert [doc["video_id"] for doc in docs] == [f"sample_{n:02}.mp4" for n in range(1, 13)]
    assert hooks.doc_to_text(docs[0]) == "Describe this video in detail"
    assert Path(hooks.doc_to_visual(docs[0])[0]).name == "sample_01.mp4"
    assert hooks.doc_to_target(docs[0]) == "sample_01.mp4"


def test_a_person_s_rating_takes_the_place_of_the_judge_s() -> None:
    grading = grading_of(OWN_RATING)
    assert grading is not None
    assert [(rating.low, rating.high) for rating in grading.ratings] == [(1, 5)] * 3
    numbers = dict(zip(RATED, (5, 3, 4), strict=True))
    label = grading.of_judge({"numbers": numbers})
    assert label == Label(ratings={name: float(number) for name, number in numbers.items()})
    assert label is not None
    assert grading.judgement({}, label) == {"numbers": numbers}
    assert grading.of_judge({"numbers": {}}) is None
    scores = grading_of(OWN_GVEVAL)
    assert scores is not None
    assert scores.references({"video_id": "a"}) == ()
