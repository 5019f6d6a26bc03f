"""Settings as flags of every command and as a section of a file; a flag wins, then the variable."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lmms_eval_captions.cli.main import main
from lmms_eval_captions.cli.settings_flags import FLAGS, settings_taken
from lmms_eval_captions.judges.errors import SettingsError

JUDGE = "LMMS_CAPTIONS_JUDGE"
COST = "LMMS_CAPTIONS_MAX_COST"


def test_flags_are_taken_off_and_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is lmms-eval's; afterwards the environment is as before."""
    monkeypatch.setenv(JUDGE, "of-variable")
    monkeypatch.delenv(COST, raising=False)
    config = tmp_path / "run.yaml"
    config.write_text("model: caption_file\nlmms_eval_captions:\n  judge: of-file\n  max_cost: 7\n")
    words = ["--model", "m", "--judge=of-flag", "--config", str(config), "--tasks", "vdc_score"]
    with settings_taken(words, (), is_run=True) as rest:
        assert (os.environ[JUDGE], os.environ[COST]) == ("of-flag", "7")
        assert rest[:2] == ["--model", "m"]
        assert rest[-2:] == ["--tasks", "vdc_score"]
        assert Path(rest[rest.index("--config") + 1]).read_text() == "model: caption_file\n"
    assert os.environ[JUDGE] == "of-variable"
    assert COST not in os.environ
    with settings_taken([*words[:2], *words[3:]], (), is_run=True):
        assert os.environ[JUDGE] == "of-variable"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--jugde", "gpt-4o"], "--jugde: no such option; was --judge meant?"),
        (["--judge-ulr", "x"], "was --judge-url meant?"),
        (["--max-cost"], "--max-cost: expected a value"),
        (["--config", "{root}/none.yaml"], "found no file"),
        (["--config", "{root}/misspelt.yaml"], "no setting 'judge_ulr' is known; was judge_url"),
        (["--config", "{root}/list.yaml"], "expected settings under lmms_eval_captions"),
        (["--config", "{root}/broken.yaml"], "expected a YAML file, got"),
    ],
)
def test_mistakes_name_what_was_probably_meant(words: list[str], told: str, tmp_path: Path) -> None:
    """Before anything is started."""
    (tmp_path / "misspelt.yaml").write_text("lmms_eval_captions: {judge_ulr: x}")
    (tmp_path / "list.yaml").write_text("lmms_eval_captions: [judge]")
    (tmp_path / "broken.yaml").write_text("a: [")
    words = [word.format(root=tmp_path) for word in words]
    with pytest.raises(SettingsError, match=r".") as error, settings_taken(words, (), is_run=False):
        pass
    assert told in str(error.value)


def test_every_command_takes_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(JUDGE, raising=False)
    assert main(["estimate", "--tasks", "capquiz", "--data", "sample", "--judge-runs", "2"]) == 0
    twice = capsys.readouterr().out
    assert main(["estimate", "--tasks", "capquiz", "--data", "sample"]) == 0
    assert capsys.readouterr().out != twice
    assert main(["doctor", "--judge", "lexical", "--data", "sample"]) == 0
    assert len(FLAGS) > 20
