"""The five roads of ``docs/roads``: played on the sample, and what they print made comparable.

``python tests/support/roads.py [NAME ...]`` plays them and writes what they print beside them, from
where the pages show it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from runs import environment

ROADS: Final = Path(__file__).resolve().parents[2] / "docs" / "roads"
NAMES: Final = tuple(sorted(path.stem for path in ROADS.glob("*.sh")))
_MARK: Final = re.compile(r"^# --8<-- \[(start|end):\S+\]$", re.MULTILINE)
"""Stands around each step of a script, and around what it printed."""
_CHANGING: Final[Mapping[str, str]] = {
    r"(?<!\d)\d{8}_\d{6}(?!\d)": "20260101_120000",
    r"(?<!\d)\d{8}-\d{6}-\w+": "20260101-120000-1",
    r"http://127\.0\.0\.1:\d{4,}/": "http://127.0.0.1:8000/",
    r"\blmms-eval-captions([: ])\d[\w.+]*": r"lmms-eval-captions\g<1>0.0.0",
    r"(?<=, )[\d.]+ s, the whole run [\d.]+ s\b": "1 s, the whole run 9 s",
    r"\bgenai-prices [\d.]+\d": "genai-prices 0.0.0",
    r" ssl:default \[.*?\]": "",
}


def play(name: str, folder: Path, sample: Path, *, timeout_s: float = 600.0) -> str:
    """Run a road's script as a reader does.

    Args:
        name: The script's name without its ending.
        folder: Empty; what the script writes goes there.
        sample: A cache folder that holds the built-in sample, which need not be drawn again.
        timeout_s: After which it is ended.

    Returns:
        What it printed, step by step, with what changes between runs made the same.
    """
    roads, work, cache = folder / "docs" / "roads", folder / "work", folder / "cache"
    shutil.copytree(ROADS, roads)
    shutil.copytree(sample, cache)
    work.mkdir()
    script = roads / f"{name}.sh"
    script.write_text(_MARK.sub(r"echo '\g<0>'", script.read_text()))
    own = Path(sys.executable).parent
    env = environment(cache, PATH=f"{own}{os.pathsep}{os.environ['PATH']}")
    done = subprocess.run(
        ("bash", str(script)),
        cwd=work,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    places = {
        str(cache): "~/.cache/lmms-eval-captions",
        str(roads): "docs/roads",
        str(work): "~/try",
    }
    return f"{_same(done.stdout, places)}exit code of the script: {done.returncode}\n"


def _same(printed: str, places: Mapping[str, str]) -> str:
    for path, name in places.items():
        printed = printed.replace(path, name)
    for pattern, text in _CHANGING.items():
        printed = re.sub(pattern, text, printed)
    return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())


def record(names: Sequence[str]) -> None:
    """Write what roads print beside their scripts."""
    with tempfile.TemporaryDirectory() as folder:
        sample = Path(folder) / "sample"
        sample_root(sample)
        for name in names or NAMES:
            (ROADS / f"{name}.txt").write_text(play(name, Path(folder) / name, sample))


if __name__ == "__main__":
    record(sys.argv[1:])
