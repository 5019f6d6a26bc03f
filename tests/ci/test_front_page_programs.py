"""What the front page has people type about millions of clips runs as it stands there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from clip_rows import read_rows, rows_of, write_rows
from conftest import ServerFactory
from lmms_eval_captions.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
SECTION = (
    (ROOT / "README.md")
    .read_text(encoding="utf-8")
    .partition("## Millions of clips, and training\n")[2]
    .partition("\n## ")[0]
)


@pytest.fixture(autouse=True)
def _here(serve: ServerFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of clips, and a judge on this machine, whatever it is called."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LMMS_CAPTIONS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE_URL", serve(latency_s=0.0).url)
    monkeypatch.setenv("LMMS_CAPTIONS_JUDGE", "judge")


def test_pandas_goes_in_and_out(capsys: pytest.CaptureFixture[str]) -> None:
    """The program of the page, of whose data frame each caption has its score."""
    write_rows(Path("clips.parquet"), rows_of("capquiz", 12, Path()))
    program = re.search(r"```python\n(import pandas.*?)```", SECTION, re.DOTALL)
    assert program is not None
    names: dict[str, object] = {}
    exec(compile(program[1], "README.md", "exec"), names)  # noqa: S102 - the page's own
    assert len(names["clips"]["capf1"].dropna()) == 12  # type: ignore[index]
    assert "capquiz|judge:gpt-4.1-mini" in capsys.readouterr().out


def test_parquet_goes_in_and_out() -> None:
    """The page's first line of ``score``."""
    write_rows(Path("clips/a.parquet"), rows_of("capquiz", 12, Path()))
    line = next(line for line in SECTION.splitlines() if line.startswith("lmms-eval-captions"))
    assert main(shlex.split(line)[1:]) == 0
    assert len(read_rows(Path("scored/kept.parquet"))) == 10


def test_the_line_for_ray_is_one_of_the_command() -> None:
    """All its arguments are known; there is no cluster here to join."""
    [block] = re.findall(r"```bash\n(.*?)```", SECTION, re.DOTALL)
    lines = block.replace("\\\n", " ").splitlines()
    [line] = [line for line in lines if "--engine ray" in line]
    words = shlex.split(line)[1:]
    with pytest.raises(SystemExit) as end:
        main([*words, "--help"])
    assert end.value.code == 0
