"""``judge verify`` of a real small model: it is itself, and its endpoint does as it is asked.

``make test-real`` runs it and installs the model first; no other target does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_captions.lmms_eval_tasks.commands.cli import main
from small_model import NAME
from vllm_server import KEY, MOST_TOKENS, VllmServer

pytestmark = pytest.mark.real


@pytest.fixture
def verified(
    real_server: VllmServer,
    bench: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> list[dict[str, Any]]:
    """What the first verification says, and one beside its record that asks all of it anew."""
    bench.setenv("LMMS_CAPTIONS_JUDGE", NAME)
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", real_server.url)
    bench.setenv("LMMS_CAPTIONS_JUDGE_TIMEOUT", "600")
    bench.setenv("OPENAI_API_KEY", KEY)
    record = str(tmp_path / "record.json")
    documents = []
    for arguments in (("-o", record), ("--against", record, "--anew")):
        main(["judge", "verify", "--tasks", "capquiz", "--format", "json", *arguments])
        documents.append(json.loads(capsys.readouterr().out))
    return documents


def test_a_real_model_is_itself_and_said_to_be_weak(verified: list[dict[str, Any]]) -> None:
    """Its verdicts are those of its record, to the fingerprint; the server's limit is found."""
    first, again = verified
    part = again["benchmarks"]["capquiz"]
    assert part["against"]["state"] == "passed", part
    assert part["fingerprint"] == first["benchmarks"]["capquiz"]["fingerprint"]
    assert "of the anchors are judged right" in first["why"]
    for document in verified:
        states = {each["name"]: each["state"] for each in document["findings"]}
        evidence = {each["name"]: each["evidence"] for each in document["findings"]}
        for name in ("model", "temperature", "cached replies", "seed", "logprobs"):
            assert states[name] == "ok", evidence[name]
        assert states["truncation"] != "differs", evidence["truncation"]
        # The tests' server is told to end replies there.
        assert states["output cut"] == "differs"
        assert f"after {MOST_TOKENS} tokens" in evidence["output cut"]
    assert {e["name"]: e["state"] for e in again["findings"]}["tokenizer"] == "ok"
