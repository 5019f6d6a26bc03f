"""Cost limit and Batch API as a run sets them, through the environment and the hooks."""

from __future__ import annotations

from dataclasses import replace
from math import isnan
from pathlib import Path

import pytest

from batch_server import BatchServer
from conftest import ServerFactory
from lmms_eval_captions.judges.endpoint.cost import load_prices
from lmms_eval_captions.judges.endpoint.endpoint import BatchPace
from lmms_eval_captions.judges.endpoint.engine import Engine
from lmms_eval_captions.lmms_eval_tasks.hooks import Hooks
from lmms_eval_captions.lmms_eval_tasks.judging import session as judging
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from lmms_eval_captions.lmms_eval_tasks.records import PendingRecord
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks
from lmms_eval_captions.lmms_eval_tasks.vdc import hooks


@pytest.fixture
def bench(bench: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The shared one, with a judge of known price."""
    bench.setenv("LMMS_CAPTIONS_JUDGE", "gpt-4o-2024-08-06")
    return bench


def _items(n_videos: int) -> dict[str, list[PendingRecord]]:
    questions = [{"question": f"Q{i}?", "answer": f"A{i}", "category": ""} for i in range(5)]
    items: dict[str, list[PendingRecord]] = {}
    for number in range(n_videos):
        doc = {"video_id": f"clip{number}", "aspect": "camera", "questions": questions}
        for metric, item in hooks.process_results(doc, [f"Caption {number}."]).items():
            items.setdefault(metric, []).append(item)
    return items


def test_a_limit_ends_in_nan_with_the_reason_and_a_rerun_goes_on(
    bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """The score is not made of what was paid for; a higher limit completes it."""
    server = serve()
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_MAX_COST", "0.05")
    items = _items(30)
    assert isnan(hooks.aggregate("vdc_acc")(items["vdc_acc"]))
    assert "LMMS_CAPTIONS_MAX_COST" in str(items["vdc_acc"][-1]["reasons"])
    n_first = server.counts.n_requests
    assert 0 < n_first < 300
    SESSION.close()
    bench.setenv("LMMS_CAPTIONS_MAX_COST", "5")
    assert not isnan(hooks.aggregate("vdc_acc")(_items(30)["vdc_acc"]))
    assert server.counts.n_requests == 300


def test_each_process_has_its_share_of_the_limit(
    bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", serve().url)
    bench.setenv("LMMS_CAPTIONS_MAX_COST", "20")
    bench.setenv("WORLD_SIZE", "4")
    assert SESSION.engine().config.max_cost_usd == 5.0


def test_prices_that_cannot_be_read_are_the_reason(
    bench: pytest.MonkeyPatch, serve: ServerFactory, tmp_path: Path, logged: list[str]
) -> None:
    """A wrong path in LMMS_CAPTIONS_PRICES sends nothing and says so."""
    server = serve()
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_PRICES", str(tmp_path / "nowhere.yaml"))
    assert isnan(hooks.aggregate("vdc_acc")(_items(2)["vdc_acc"]))
    assert any("LMMS_CAPTIONS_PRICES" in line for line in logged)
    assert server.counts.n_requests == 0


def test_replies_that_cannot_be_read_are_the_reason(
    bench: pytest.MonkeyPatch, serve: ServerFactory, tmp_path: Path
) -> None:
    """The disk may have errors: what a task may cost is estimated by replies, too."""
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", serve().url)
    bench.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path))
    (tmp_path / "replies").mkdir()
    (tmp_path / "replies/gpt-4o-2024-08-06").write_text("no folder")
    questions = [{"question": "Who?", "answer": "A dog", "category": ""}]
    doc = {"video_id": "clip", "aspect": "camera", "questions": questions}
    vdc = Hooks(all_benchmarks()["vdc"])
    vdc.see_captions([doc], {0: "A dog."})
    record = vdc.process_results(doc, ["A dog."])["vdc_acc"].record
    assert set(record.kinds) == {"stopped"}
    assert "cannot read the verdicts" in str(record.reasons)


def test_batch_mode_judges_all_captions_in_two_batches(bench: pytest.MonkeyPatch) -> None:
    """More questions than may ever be in flight at once wait together."""
    pace = BatchPace(quiet_s=0.3, first_poll_s=0.02, most_poll_s=0.05)
    bench.setattr(judging, "Engine", lambda config: Engine(replace(config, batch_pace=pace)))
    with BatchServer() as server:
        bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
        bench.setenv("LMMS_CAPTIONS_JUDGE_MODE", "batch")
        bench.setenv("LMMS_CAPTIONS_JUDGE_CONCURRENCY", "4")
        acc = hooks.aggregate("vdc_acc")(_items(40)["vdc_acc"])
        assert 0.0 <= acc <= 100.0
        assert server.sizes == [200, 200]


def test_what_judging_may_cost_is_said_with_the_day_of_the_prices(
    bench: pytest.MonkeyPatch, serve: ServerFactory, logged: list[str]
) -> None:
    """Without a limit it says that there is none."""
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", serve().url)
    bench.setenv("LMMS_CAPTIONS_MAX_COST", "none")
    SESSION.engine()
    assert ", no limit of cost, replies in " in logged[-1]
    SESSION.close()
    bench.setenv("LMMS_CAPTIONS_MAX_COST", "20")
    SESSION.engine()
    day = load_prices().as_of
    assert f", at most $20 in all by prices of {day}, replies in " in logged[-1]
