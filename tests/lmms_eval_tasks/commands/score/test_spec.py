"""What engines are told: places that every process finds, and what tells scores apart."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from clip_rows import PROTOCOLS, WITH_VIDEO
from lmms_eval_captions.judges.settings import read_judge_settings
from lmms_eval_captions.lmms_eval_tasks.commands.score.spec import ScoreSpec

ENVIRON = {
    "LMMS_CAPTIONS_JUDGE": "judge",
    "LMMS_CAPTIONS_CACHE": "cache",
    "OPENAI_API_KEY": "sk-very-secret-word",
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("videos", [None, Path("videos")])
def test_places_do_not_depend_on_where_a_process_works(
    videos: Path | None, protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scorer of another machine begins elsewhere; and it is handed no key."""
    monkeypatch.chdir(tmp_path)
    spec = ScoreSpec.of_settings(protocol, read_judge_settings(ENVIRON), videos=videos)
    assert spec.video_path("a.mp4") == tmp_path / (videos or "") / "a.mp4"
    assert spec.settings["cache"] == tmp_path / "cache"
    assert b"very-secret" not in pickle.dumps(spec)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_scores_of_other_endpoints_are_others_where_replies_are(protocol: str) -> None:
    """By the names of all addresses, in whatever order; elsewhere the address moves nothing."""

    def digest(store_by: str, *urls: str) -> str:
        changes = {"LMMS_CAPTIONS_STORE_BY": store_by, "LMMS_CAPTIONS_JUDGE_URL": ",".join(urls)}
        return ScoreSpec.of_settings(protocol, read_judge_settings(ENVIRON | changes)).digest

    one, other = "http://localhost:1/v1", "http://localhost:2/v1"
    by_model = digest("model", one)
    assert digest("model", other) == by_model
    by_endpoint = {digest("endpoint", *urls) for urls in ((one,), (other,), (one, other))}
    assert len(by_endpoint | {by_model}) == 4
    assert digest("endpoint", other, "http://127.0.0.1:1/v1/") == digest("endpoint", one, other)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_scores_without_a_metric_are_others(protocol: str) -> None:
    """Those that have all stay valid, as do those of other engines' parts of a spec."""
    spec = replace(ScoreSpec.of_settings(protocol, read_judge_settings(ENVIRON)), unavailable=())
    without = replace(spec, unavailable=("con",))
    assert spec.digest != without.digest
    assert without.divided(2).unavailable == without.unavailable


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_scores_of_other_videos_are_others(protocol: str) -> None:
    """Where the judge sees them; where it does not, the folder moves nothing."""
    spec = ScoreSpec.of_settings(protocol, read_judge_settings(ENVIRON), videos=Path("a"))
    other = replace(spec, videos=Path("/b"))
    assert (spec.digest != other.digest) == (protocol in WITH_VIDEO)
