"""A cache of the version before serves: no call, the same verdicts, the same numbers to the digit.

The replies, a batch that was submitted and what became of them are recorded, see the ``README.md``
in ``recorded_cache``. A change of these files is a change of what users have paid for.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path
from typing import Any, Final

import pytest

from batch_server import BatchServer
from judge_server import Behaviour, JudgeServer
from recorded_runs import COLLECTED, RECORDING, RUNS, RecordedRun, differences, judge

_UNJUDGED: Final = re.compile(
    r"/tasks/(vdc|msvd_eval)_\w+/documents/\d+/\w+/(verdicts|scores)/\d+: "
    r"\[\] was recorded, \[None(, None)*\] now"
)
"""Of a caption that was not judged, items of these two held nothing for a run; now they hold
``None`` per question, as those of the other benchmarks did then."""


class SilentJudge(JudgeServer):
    """Answers nothing, and keeps what it was asked for."""

    def __init__(self) -> None:
        super().__init__(Behaviour())
        self.calls: list[str] = []

    def handle(self, connection: Any, method: str, path: str, key: str, body: bytes) -> None:  # noqa: ARG002
        """Note a call, which a run with all replies at hand has no reason for."""
        self.calls.append(f"{method} {path} {body[:200]!r}")
        connection.send(401, '{"error": {"message": "nothing may be asked here"}}')


def _check(run: RecordedRun, cache: Path, url: str, bench: pytest.MonkeyPatch) -> None:
    """Judge a recorded run with this cache, and compare all that was recorded."""
    for name, value in run.variables(RECORDING, cache).items():
        bench.setenv(name, value)
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", url)
    now = judge(run, cache.parent / "output")
    recorded = json.loads((RECORDING / "runs" / f"{run.name}.json").read_text(encoding="utf-8"))
    _compare_own_scores(recorded, now)
    changes = [text for text in differences(recorded, now) if not _UNJUDGED.fullmatch(text)]
    assert not changes, "\n".join([f"{len(changes)} changes", *changes[:20]])


def _compare_own_scores(recorded: dict[str, Any], now: dict[str, Any]) -> None:
    """Take out ``score``, a caption's share of each metric then, its ``caption_score`` now.

    Now that is in the metric's unit, and ``score`` is what lmms-eval takes a standard error of.
    """
    for task, judged in recorded["tasks"].items():
        for place, document in enumerate(judged["documents"]):
            for metric, item in document.items():
                of_now = now["tasks"][task]["documents"][place][metric]
                assert ("score" in item) == ("caption_score" in of_now)
                if "score" in item:
                    unit = 1 if metric == "vdc_score" or task.startswith("msvd_eval") else 100
                    share = of_now["caption_score"] / unit
                    assert share == pytest.approx(item.pop("score"), abs=1e-9)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_cache_of_the_version_before_serves_a_full_rerun(
    run: RecordedRun, bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nothing is asked, and every verdict, reason, number and signature is what it was."""
    cache = tmp_path / "cache"
    shutil.copytree(RECORDING / "cache", cache)
    server = SilentJudge()
    with server:
        _check(run, cache, server.url, bench)
    assert not server.calls


def test_a_batch_of_the_version_before_is_collected(
    bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What was submitted by a run that was killed is neither submitted nor paid again."""
    cache = tmp_path / "cache"
    with BatchServer() as server:
        state = json.loads((RECORDING / "batches/state.json").read_text())
        server.batches[state["id"]] = state
        server.files[state["output_file_id"]] = (RECORDING / "batches/replies.jsonl").read_bytes()
        ledger = json.loads((RECORDING / "batches/ledger.json").read_text())
        (cache / "batches").mkdir(parents=True)
        # Of this server, and not so long ago that the provider has deleted the replies.
        ledger |= {"url": server.url, "created_s": time.time()}
        (cache / "batches/recorded.json").write_text(json.dumps(ledger))
        _check(COLLECTED, cache, server.url, bench)
    assert server.requests
    assert all(call.startswith("GET ") for call in server.requests)


def test_what_was_recorded_holds_every_kind_of_verdict() -> None:
    """The recording is of use: replies that can be read, that cannot, refused parameters, names."""
    runs = {
        path.stem: path.read_text(encoding="utf-8") for path in sorted(RECORDING.glob("runs/*"))
    }
    assert set(runs) == {run.name for run in (*RUNS, COLLECTED)}
    for words in ("asked 4 times", "withheld by the provider", "cut at max_tokens", "empty:1/3"):
        assert words in runs["all_tasks"]
    assert '"verdict": "correct"' in runs["all_tasks"]
    assert "NaN" in runs["too_much_unscored"]
    assert "temperature:refused" in runs["refused_parameters"]
    assert "alias:files/judge.gguf" in runs["alias"]
    assert "served:gpt-4o" in runs["served_versions"]
