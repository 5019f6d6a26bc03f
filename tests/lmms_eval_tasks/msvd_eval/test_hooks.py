"""The hooks of MSVD-Eval, called as lmms-eval calls them."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import pytest

from aggregated import signature_of_items
from breakdowns import kept_breakdown
from conftest import ServerFactory
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import read_settings
from lmms_eval_captions.lmms_eval_tasks.msvd_eval import hooks
from lmms_eval_captions.lmms_eval_tasks.msvd_eval.benchmark import read_items
from lmms_eval_captions.lmms_eval_tasks.records import PendingRecord
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root

Items = dict[str, list[PendingRecord]]
_METRICS = ("accuracy", "completeness", "conciseness", "relevance", "avg")
_SETTINGS = ("ref_only", "ref_free", "combined")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root of local data that holds the sample."""
    return sample_root(tmp_path_factory.mktemp("sample"))


@pytest.fixture
def bench(bench: pytest.MonkeyPatch, sample: Path) -> pytest.MonkeyPatch:
    """The shared one, with the sample's clips."""
    bench.setenv("LMMS_CAPTIONS_DATA", str(sample))
    return bench


def _docs(setting: str, n: int = 4) -> list[Mapping[str, object]]:
    return [
        {
            "video_id": item.video_id,
            "vname": item.vname,
            "setting": setting,
            "references": list(item.references),
            "candidate": item.candidate,
        }
        for item in read_items(read_settings())[:n]
    ]


def _process(setting: str, *, caption: str | None = None) -> Items:
    items: Items = {}
    for doc in _docs(setting):
        text = str(doc["candidate"]) if caption is None else caption
        for metric, item in hooks.process_results(doc, [text]).items():
            items.setdefault(metric, []).append(item)
    return items


@pytest.mark.parametrize("setting", _SETTINGS)
@pytest.mark.parametrize("logprobs", ["whole", "digits", "none", "refuse"])
def test_captions_are_scored_in_every_setting(
    setting: str, logprobs: str, bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """Five scores, nothing unscored, and a signature that says what they were read from."""
    server = serve(logprobs=logprobs)
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    items = _process(setting)
    scores = {metric: hooks.aggregate(metric)(items[metric]) for metric in _METRICS}
    assert all(0.0 <= score <= 100.0 for score in scores.values())
    parts = [scores[metric] for metric in _METRICS[:4]]
    assert scores["avg"] == pytest.approx(sum(parts) / 4)
    assert hooks.aggregate_unscored(items["unscored"]) == 0
    scoring = "logprobs" if logprobs in ("whole", "digits") else "plain"
    frames = "" if setting == "ref_only" else "frames:first_middle_last|"
    refused = "logprobs:refused|" if logprobs == "refuse" else ""
    assert signature_of_items(items["unscored"]).startswith(
        f"msvd_eval_{setting}|judge:judge|runs:1|protocol:1|{frames}{refused}scoring:{scoring}|"
        "unscored:0/4|"
    )
    assert server.counts.n_answered == 4


def test_the_breakdown_is_by_dimension(bench: pytest.MonkeyPatch, serve: ServerFactory) -> None:
    """Each dimension and their mean, with the deviation over judge runs, as counted here."""
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", serve(logprobs="none").url)
    bench.setenv("LMMS_CAPTIONS_JUDGE_RUNS", "2")
    items = _process("ref_only")
    hooks.aggregate("avg")(items["avg"])
    figures = kept_breakdown("msvd_eval_ref_only")["overall"]["all"]
    assert (figures["n_questions"], figures["n_unscored"]) == (4, 0)
    records: list[dict[str, Any]] = [dict(item.wait()) for item in items["avg"]]
    judgements = [judgement for record in records for judgement in record["judgements"]]
    for metric in _METRICS:
        names = _METRICS[:4] if metric == "avg" else (metric,)
        runs = [
            fmean(fmean(j["numbers"][n] for n in names) for j in judgements if j["run"] == run)
            for run in range(2)
        ]
        assert figures[metric] == pytest.approx(fmean(runs))
        assert figures[f"{metric}_std"] == pytest.approx(pstdev(runs))


@pytest.mark.parametrize("setting", ["ref_free", "combined"])
def test_a_missing_video_leaves_its_caption_unscored(
    setting: str, bench: pytest.MonkeyPatch, serve: ServerFactory, tmp_path: Path, sample: Path
) -> None:
    """The reason names the video; there is no score of 0, and no request."""
    root = tmp_path / "data" / "msvd_eval"
    root.mkdir(parents=True)
    (root / "MSVD-Eval.json").write_bytes((sample / "msvd_eval" / "MSVD-Eval.json").read_bytes())
    bench.setenv("LMMS_CAPTIONS_DATA", str(root.parent))
    server = serve()
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    items = _process(setting)
    record = items["accuracy"][0].wait()
    assert "caption_score" not in record
    assert "no frames to show to the judge" in str(record["reasons"])
    assert "sample_01.mp4" in str(record["reasons"])
    assert isnan(hooks.aggregate("accuracy")(items["accuracy"]))
    assert hooks.aggregate_unscored(items["unscored"]) == 4
    assert server.counts.n_requests == 0


def test_references_alone_need_no_videos(
    bench: pytest.MonkeyPatch, serve: ServerFactory, tmp_path: Path, sample: Path
) -> None:
    """Captions from a file are scored against the references without a single clip."""
    root = tmp_path / "data" / "msvd_eval"
    root.mkdir(parents=True)
    (root / "MSVD-Eval.json").write_bytes((sample / "msvd_eval" / "MSVD-Eval.json").read_bytes())
    bench.setenv("LMMS_CAPTIONS_DATA", str(root.parent))
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", serve().url)
    assert hooks.aggregate("avg")(_process("ref_only")["avg"]) >= 0.0


def test_the_offline_stand_in_tells_right_from_wrong(bench: pytest.MonkeyPatch) -> None:
    """``lexical`` runs the sample in all settings, labelled as a smoke test."""
    bench.setenv("LMMS_CAPTIONS_JUDGE", "lexical")
    for setting in _SETTINGS:
        items = _process(setting)
        assert hooks.aggregate("avg")(items["avg"]) > 0.0
        assert "smoke test" in signature_of_items(items["unscored"])
    records = [record.wait() for record in _process("ref_only")["completeness"]]
    scores = [float(str(record["caption_score"])) for record in records]
    assert scores[0] > scores[2], "the third candidate is another clip's"


def test_documents_and_prompts(bench: pytest.MonkeyPatch) -> None:
    """A captioner gets the paper's prompt and the clip of the official file."""
    from datasets import Dataset

    docs = hooks.process_docs(Dataset.from_list([{"setting": "combined"}]))
    assert len(docs) == 12
    assert docs[0]["setting"] == "combined"
    assert len(docs[0]["references"]) == 2
    assert hooks.doc_to_text(docs[0]) == "What is the person doing?"
    kwargs = {"pre_prompt": "<", "post_prompt": ">"}
    assert hooks.doc_to_text(docs[0], kwargs) == "<What is the person doing?>"
    assert Path(hooks.doc_to_visual(docs[0])[0]).name == "sample_01.mp4"
    assert hooks.doc_to_target(docs[0]) == "sample_01"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("[]", "expected a JSON object", id="list"),
        pytest.param("{", "expected one JSON object", id="cut"),
        pytest.param('{"a": {"vname": "a.avi"}}', "'ref'", id="no-references"),
        pytest.param('{"a": {"vname": "a.avi", "ref": []}}', "at least one", id="empty-references"),
        pytest.param('{"a": {"vname": "a.avi", "ref": "a dog"}}', "at least one", id="one-text"),
        pytest.param('{"a": {"vname": "a", "ref": ["b"], "human_score": [[1, 2]]}}',
                     "5 numbers", id="short-rating"),
        pytest.param('{"a": {"vname": "a", "ref": ["b"], "human_score": [["x"]]}}',
                     "as numbers", id="rating-in-words"),
    ],
)  # fmt: skip
def test_a_broken_file_is_an_error_that_says_where(
    text: str, words: str, bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The message names the file."""
    path = tmp_path / "msvd_eval" / "MSVD-Eval.json"
    path.parent.mkdir()
    path.write_text(text)
    bench.setenv("LMMS_CAPTIONS_DATA", str(tmp_path))
    with pytest.raises(DataError, match=words) as caught:
        read_items(read_settings())
    assert str(path) in str(caught.value)


def test_the_real_file_is_read(bench: pytest.MonkeyPatch, shared_data: Path) -> None:
    """197 videos, 8,330 references, two ratings each, their averages as published."""
    bench.setenv("LMMS_CAPTIONS_DATA", str(shared_data))
    items = read_items(read_settings())
    assert len(items) == len({item.vname for item in items}) == 197
    assert sum(len(item.references) for item in items) == 8330
    ratings = [rating for item in items for rating in item.ratings]
    assert len(ratings) == 394
    assert all(sum(rating[:4]) / 4 == rating[4] for rating in ratings)
