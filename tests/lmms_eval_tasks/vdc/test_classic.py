"""VDC's classic metrics: captions beside reference captions, without a judge."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from math import exp, isnan, log, prod, sqrt
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from aggregated import signature_of_items
from breakdowns import kept_breakdown
from lmms_eval_captions.judges.errors import DataError
from lmms_eval_captions.judges.settings import data_settings
from lmms_eval_captions.lmms_eval_tasks.common import classic_metrics
from lmms_eval_captions.lmms_eval_tasks.common.classic_metrics import meteor_statistics, ptb_words
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import THIS_RUN
from lmms_eval_captions.lmms_eval_tasks.records import PendingRecord
from lmms_eval_captions.lmms_eval_tasks.run_guard import require_judge_of
from lmms_eval_captions.lmms_eval_tasks.signature import Signature
from lmms_eval_captions.lmms_eval_tasks.vdc import classic_hooks as hooks
from lmms_eval_captions.lmms_eval_tasks.vdc.classic import VDC_CLASSIC
from lmms_eval_captions.metrics.captioning import meteor
from lmms_eval_captions.model_wrappers.no_caption import DroppedCaption, NoCaption

Items = dict[str, list[PendingRecord]]
METRICS = ("rouge_l", "cider", "bleu_1", "bleu_4", "meteor")
REFERENCES = {
    "v0": "A red ball rolls slowly over the green grass, then it stops.",
    "v1": "Two dogs run along the beach while the camera follows them from the left.",
    "v2": "The camera is still. A man opens a door and walks into the dark room.",
    "v3": "A bird's-eye view of a city at night; cars move along a wide street.",
}
CAPTIONS = {
    "v0": "A red ball rolls over the grass and the camera follows it.",
    "v1": "Two dogs run along the beach while the camera follows them from the left side.",
    "v2": "A woman opens a window.",
    "v3": "Cars move along a wide street at night. It's a city seen from above.",
}


def _split(texts: Sequence[str]) -> list[str]:
    return [" ".join(re.findall(r"[\w']+", text.lower())) for text in texts]


def _no_meteor(*_texts: object) -> list[tuple[float, ...]]:
    raise DataError("METEOR failed")


@pytest.fixture
def no_java(bench: pytest.MonkeyPatch) -> None:
    """Words without the PTB tokenizer, and no METEOR: nothing is started, nothing waited for."""
    bench.setattr(classic_metrics, "require_java", lambda: None)
    bench.setattr(classic_metrics, "ptb_words", _split)
    bench.setattr(classic_metrics, "meteor_statistics", _no_meteor)


@pytest.fixture
def bench(bench: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """The shared one, with reference captions of four videos and no judge that could be asked."""
    rows = [
        {"video_id": video, "video_name": f"{video}.mp4", "camera_caption": text}
        for video, text in REFERENCES.items()
    ]
    write_references(tmp_path / "data", rows)
    bench.setenv("LMMS_CAPTIONS_DATA", str(tmp_path / "data"))
    bench.delenv("LMMS_CAPTIONS_JUDGE")
    bench.delenv("OPENAI_API_KEY", raising=False)
    return bench


def write_references(root: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """The official file with these rows."""
    (root / "vdc").mkdir(parents=True, exist_ok=True)
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    (root / "vdc" / "VDC_1k.jsonl").write_text(text)


def _documents() -> list[dict[str, Any]]:
    return VDC_CLASSIC.read(data_settings(), VDC_CLASSIC.tasks["vdc_classic_camera"])


def _process(captions: Mapping[str, str]) -> Items:
    items: Items = {}
    for doc in _documents():
        if doc["video_id"] in captions:
            caption = captions[doc["video_id"]]
            for metric, item in hooks.process_results(doc, [caption]).items():
                items.setdefault(metric, []).append(item)
    return items


def _scores(items: Items, *names: str) -> dict[str, float]:
    return {name: hooks.aggregate(name)(items[name]) for name in names or METRICS}


# Worked here from the papers, with loops in the place of a library.


def _n_grams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[at : at + n]) for at in range(len(words) - n + 1))


def _own_bleu(pairs: Sequence[tuple[list[str], list[str]]], n: int) -> float:
    shares = []
    for order in range(1, n + 1):
        matched = total = 0
        for candidate, reference in pairs:
            own, other = _n_grams(candidate, order), _n_grams(reference, order)
            matched += sum(min(count, other[gram]) for gram, count in own.items())
            total += sum(own.values())
        shares.append(matched / total)
    lengths = [sum(len(pair[side]) for pair in pairs) for side in (0, 1)]
    return exp(min(0.0, 1 - lengths[1] / lengths[0])) * prod(shares) ** (1 / n)


def _own_rouge(candidate: list[str], reference: list[str]) -> float:
    table = [[0] * (len(reference) + 1) for _ in range(len(candidate) + 1)]
    for i, word in enumerate(candidate):
        for j, other in enumerate(reference):
            longest = max(table[i][j + 1], table[i + 1][j])
            table[i + 1][j + 1] = table[i][j] + 1 if word == other else longest
    precision, recall = (table[-1][-1] / len(side) for side in (candidate, reference))
    return (1 + 1.2**2) * precision * recall / (recall + 1.2**2 * precision) if precision else 0.0


def _own_cider(
    candidate: list[str], reference: list[str], references: Sequence[list[str]]
) -> float:
    orders = []
    for n in range(1, 5):
        documents = [set(_n_grams(other, n)) for other in references]

        def weight(
            gram: tuple[str, ...], documents: list[set[tuple[str, ...]]] = documents
        ) -> float:
            return log(len(references) / max(1, sum(gram in grams for grams in documents)))

        own, other = _n_grams(candidate, n), _n_grams(reference, n)
        own_w = {gram: count * weight(gram) for gram, count in own.items()}
        other_w = {gram: count * weight(gram) for gram, count in other.items()}
        dot = sum(
            min(value, other_w.get(gram, 0.0)) * other_w.get(gram, 0.0)
            for gram, value in own_w.items()
        )
        norms = [sqrt(sum(value**2 for value in side.values())) for side in (own_w, other_w)]
        # pycocoevalcap takes the number of bigrams for a text's length.
        gap = (len(candidate) - 1) - (len(reference) - 1)
        orders.append(dot / prod(norms) * exp(-(gap**2) / 72) if all(norms) else 0.0)
    return 10 * fmean(orders)


@pytest.mark.usefixtures("no_java")
def test_scores_are_those_worked_here(bench: pytest.MonkeyPatch) -> None:
    """BLEU over all captions together, ROUGE-L and CIDEr as means over them, all times 100."""
    scores = _scores(_process(CAPTIONS), "rouge_l", "cider", "bleu_1", "bleu_4")
    words = {video: _split([CAPTIONS[video], REFERENCES[video]]) for video in CAPTIONS}
    pairs = [(own.split(), other.split()) for own, other in words.values()]
    references = [other for _, other in pairs]
    assert scores == pytest.approx({
        "rouge_l": 100 * fmean(_own_rouge(*pair) for pair in pairs),
        "cider": 100 * fmean(_own_cider(*pair, references) for pair in pairs),
        "bleu_1": 100 * _own_bleu(pairs, 1),
        "bleu_4": 100 * _own_bleu(pairs, 4),
    }, abs=1e-4)  # fmt: skip
    assert 5 < scores["bleu_4"] < scores["bleu_1"] < 95


@pytest.mark.usefixtures("no_java")
def test_cider_weighs_words_by_all_references_whatever_is_scored(
    bench: pytest.MonkeyPatch,
) -> None:
    """A caption has the same CIDEr alone, with --limit, as among all."""
    among_all = _process(CAPTIONS)["cider"]
    own = [item["scores"] for item in among_all if item.wait()]
    alone = [_process({video: CAPTIONS[video]})["cider"][0].wait()["scores"] for video in CAPTIONS]
    assert own == alone


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_scores_are_those_of_pycocoevalcap_over_the_corpus(
    bench: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """With Java all five metrics are what its own loops print for the same texts."""
    if shutil.which("java") is None:
        pytest.skip("no java: the PTB tokenizer and METEOR need it")
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge

    captions = {**CAPTIONS, "v2": "| who | does |||\n|---|---|\n| a woman | opens a | window |"}
    items = _process(captions)
    scores = _scores(items)
    own, others = ptb_words(list(captions.values())), ptb_words(list(REFERENCES.values()))
    listed = {video: [text] for video, text in zip(captions, own, strict=True)}
    references = {video: [text] for video, text in zip(REFERENCES, others, strict=True)}
    bleus = Bleu(4).compute_score(references, listed, verbose=0)[0]
    process = classic_metrics._meteor(os.getpid())
    assert scores == pytest.approx({
        "rouge_l": 100 * Rouge().compute_score(references, listed)[0],
        "cider": 100 * Cider().compute_score(references, listed)[0],
        "bleu_1": 100 * bleus[0],
        "bleu_4": 100 * bleus[3],
        "meteor": 100 * process.compute_score(references, listed)[0],
    })  # fmt: skip
    fields = Signature.parse(signature_of_items(items["unscored"])).fields
    assert (fields["tokenizer"], fields["judge"], fields["unscored"]) == ("ptb", "none", "0/4")
    statistics = meteor_statistics(own, [[text] for text in others])
    sums = [sum(column) for column in zip(*statistics, strict=True)]
    assert scores["meteor"] == pytest.approx(100 * meteor(sums))


@pytest.mark.usefixtures("no_java")
def test_nobody_is_asked_and_no_judge_needed(bench: pytest.MonkeyPatch) -> None:
    """No key, no endpoint, no judge run but one; the run's guard lets the task pass."""
    bench.setenv("LMMS_CAPTIONS_JUDGE_RUNS", "3")
    n_before = SESSION.totals().calls
    bench.setattr(THIS_RUN, "will_judge", True)
    require_judge_of(VDC_CLASSIC)
    items = _process(CAPTIONS)
    assert _scores(items, "rouge_l")["rouge_l"] > 0
    signature = signature_of_items(items["unscored"])
    assert signature.startswith("vdc_classic_camera|judge:none|runs:1|protocol:1|tokenizer:ptb|")
    assert SESSION.totals().calls == n_before
    assert not SESSION._engines
    assert hooks.aggregate_unscored(items["unscored"]) == 0


@pytest.mark.usefixtures("no_java")
def test_if_meteor_fails_it_is_not_available_and_the_rest_stands(
    bench: pytest.MonkeyPatch, logged: list[str]
) -> None:
    """The signature says so, and the run's end why."""
    items = _process(CAPTIONS)
    scores = _scores(items)
    assert [name for name, score in scores.items() if isnan(score)] == ["meteor"]
    signature = Signature.parse(signature_of_items(items["unscored"]))
    assert signature.unavailable == {"meteor"}
    assert any("METEOR failed" in line for line in logged if line.startswith("WARNING"))
    assert any("METEOR could not be run" in warning for warning in THIS_RUN.warnings)
    hooks.aggregate("cider")(items["cider"])
    overall = kept_breakdown("vdc_classic_camera")["overall"]["all"]
    assert overall["meteor"] is None
    assert overall["bleu_4"] == pytest.approx(scores["bleu_4"])


def test_without_java_nothing_is_read(bench: pytest.MonkeyPatch) -> None:
    """The message says what to install, before anything is captioned."""
    bench.setenv("PATH", "/nowhere")
    with pytest.raises(DataError, match="default-jre-headless"):
        _documents()


@pytest.mark.usefixtures("no_java")
def test_an_empty_caption_counts_as_one_that_says_nothing(bench: pytest.MonkeyPatch) -> None:
    items = _process({**CAPTIONS, "v2": " ... "})
    assert [item.get("caption_score") for item in items["rouge_l"] if item.wait()][2] == 0.0
    assert "|empty:1/4|unscored:0/4|" in signature_of_items(items["unscored"])
    only = _scores(_process(dict.fromkeys(CAPTIONS, "")), "rouge_l", "cider", "bleu_1", "bleu_4")
    assert set(only.values()) == {0.0}


@pytest.mark.usefixtures("no_java")
def test_a_caption_that_is_not_there_is_unscored(bench: pytest.MonkeyPatch) -> None:
    """It leaves every metric, with the captioner's reason; a dropped one is no question at all."""
    bench.setenv("LMMS_CAPTIONS_MAX_UNSCORED", "0.5")
    names = ("rouge_l", "cider", "bleu_1", "bleu_4")
    alone = _scores(_process({video: CAPTIONS[video] for video in ("v0", "v1", "v3")}), *names)
    missing = _process({**CAPTIONS, "v2": NoCaption("the clip is broken")})
    assert _scores(missing, *names) == pytest.approx(alone)
    assert missing["unscored"][2].wait()["reasons"] == {"no caption: the clip is broken": 1}
    dropped = _process({**CAPTIONS, "v2": DroppedCaption("none")})
    assert _scores(dropped, *names) == pytest.approx(alone)
    assert "|dropped:1/4|unscored:0/3|" in signature_of_items(dropped["unscored"])


@pytest.mark.usefixtures("no_java")
def test_a_program_that_fails_leaves_captions_unscored_with_the_reason(
    bench: pytest.MonkeyPatch,
) -> None:
    """Trouble never raises out of a hook; the next run measures them."""

    def fail(_texts: Sequence[str]) -> list[str]:
        raise DataError("the PTB tokenizer failed; check that `java -version` works")

    with bench.context() as patch:
        patch.setattr(classic_metrics, "ptb_words", fail)
        items = _process(CAPTIONS)
        assert hooks.aggregate_unscored(items["unscored"]) == 4
        assert "`java -version`" in str(items["rouge_l"][0].wait()["reasons"])
        patch.setattr(classic_metrics, "ptb_words", lambda _texts: [])
        items = _process(CAPTIONS)
        assert hooks.aggregate_unscored(items["unscored"]) == 4
        reasons = [next(iter(item.wait()["reasons"])) for item in items["rouge_l"]]  # type: ignore[call-overload]
        assert sorted(reason.partition(":")[0] for reason in reasons)[0] == "internal error"
        assert "see the first error in the log" in reasons[-1]
    assert not isnan(_scores(_process(CAPTIONS), "rouge_l")["rouge_l"])


_EXPECTED = "line 1: expected texts under 'video_id' and 'camera_caption'"


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        pytest.param([{"video_id": "v"}], _EXPECTED, id="no caption"),
        pytest.param([{"video_id": 1, "camera_caption": "A."}], _EXPECTED, id="no id"),
        pytest.param([{"video_id": "v", "camera_caption": " "}], "at least one", id="no words"),
        pytest.param([], "at least one video with a camera_caption", id="empty"),
    ],
)
def test_reference_captions_that_cannot_be_used(
    rows: list[dict[str, object]], words: str, bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The message says what was expected of which line."""
    write_references(tmp_path / "data", rows)
    with pytest.raises(DataError, match=words):
        _documents()
