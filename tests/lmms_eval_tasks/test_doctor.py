"""``lmms-eval-captions doctor`` says what a run would use."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import ServerFactory
from lmms_eval_captions.judges.settings import Settings, read_settings
from lmms_eval_captions.lmms_eval_tasks.cli import main
from lmms_eval_captions.lmms_eval_tasks.doctor import Finding, examine
from lmms_eval_captions.lmms_eval_tasks.joining import tasks_path


def _settings(tmp_path: Path, **variables: str) -> Settings:
    return read_settings({"LMMS_CAPTIONS_CACHE": str(tmp_path / "cache"), **variables})


def _about(topic: str, settings: Settings) -> Finding:
    return next(finding for finding in examine(settings) if finding.topic == topic)


def test_a_judge_that_answers_is_shown_with_its_words(tmp_path: Path, serve: ServerFactory) -> None:
    """The model, where it is, whether a key is set, and what it answered."""
    server = serve(key="sk-1")
    server.reply = lambda _: "ready"
    url = {"LMMS_CAPTIONS_JUDGE_URL": server.url, "LMMS_CAPTIONS_JUDGE": "mine"}
    found = _about("judge", _settings(tmp_path, OPENAI_API_KEY="sk-1", **url))
    assert found.ok
    assert f"mine at {server.url}, key set, answers: 'ready'" in found.text
    found = _about("judge", _settings(tmp_path, OPENAI_API_KEY="sk-2", **url))
    assert not found.ok
    assert "401" in found.text
    assert "sk-2" not in found.text


def test_a_judge_without_a_key_is_a_problem(tmp_path: Path) -> None:
    """Nothing is sent to a remote endpoint without a key."""
    found = _about("judge", _settings(tmp_path))
    assert not found.ok
    assert "OPENAI_API_KEY is not set" in found.text


def test_data_is_found_or_its_absence_explained(tmp_path: Path) -> None:
    """Local data is looked for where a run would."""
    lexical = {"LMMS_CAPTIONS_JUDGE": "lexical"}
    assert _about("data", _settings(tmp_path, LMMS_CAPTIONS_DATA="sample", **lexical)).ok
    found = _about("data", _settings(tmp_path, LMMS_CAPTIONS_DATA=str(tmp_path), **lexical))
    assert not found.ok
    assert "VDCScore_qa" in found.text


def test_the_command_line_prints_all_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A machine that is ready exits with 0, and what is installed is shown."""
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path))
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE", "lexical")
    monkeypatch.setenv("LMMS_CAPTIONS_DATA", "sample")
    assert main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert "lmms-eval 0.7" in printed
    assert "smoke test" in printed


def test_the_tasks_path_holds_the_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    """What is printed can be given to ``--include_path``."""
    assert main(["tasks-path"]) == 0
    printed = Path(capsys.readouterr().out.strip())
    assert printed == tasks_path()
    assert (printed / "vdc" / "vdc_score.yaml").is_file()
