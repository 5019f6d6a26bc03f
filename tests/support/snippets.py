"""Code blocks of the documentation: run them, and compare or rewrite the output that pages show.

A ``bash`` or ``python`` block directly followed by a ``text`` block is run, and the ``text`` block
is its output. A block with a title is a file that the page's blocks read. A line ``...`` in an
output stands for any lines. Pages start in the folder that the README's quick start leaves.

``python tests/support/snippets.py [PAGE ...]`` rewrites the outputs, ``--report FILE`` writes the
report of the quick start's two captioners.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from judge_server import JudgeServer
from runs import environment

ROOT: Final = Path(__file__).resolve().parents[2]
QUICK_START: Final = "README.md"
_BLOCK: Final = re.compile(
    r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<code>.*?)^```$", re.M | re.S
)
_MARK: Final = "--- end of snippet, exit code "
_ADDRESS: Final = "http://127.0.0.1:8000"
"""Address of the reader's judge; a scripted one stands for it."""
_CHANGING: Final[Mapping[str, str]] = {
    r"\x1b\[\d*m": "",
    r"(?<!\d)\d{8}_\d{6}(?!\d)": "20260101_120000",
    r"(?<!\d)\d{8}-\d{6}-[\w-]+": "20260101-120000-host-1",
    r"(?<!\d)20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d": "2026-01-01 12:00:00",
    r"\d[\d.]* s, the whole run [\d.]+ s\b": "1 s, the whole run 9 s",
    r"\d[\d.]* s, the whole(?=\n)": "1 s, the whole",
    r"\b\d+ calls/s\b": "100 calls/s",
    r"\bgenai-prices [\d.]+\d": "genai-prices 0.0.0",
    r"(?<=[|: (])lmms-eval-captions([: ])\d[\w.]*": r"lmms-eval-captions\g<1>0.1.0",
}
"""Parts of an output that differ from run to run, and their replacement."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A code block with the output that the page shows."""

    language: str
    code: str
    output: str
    start: int
    """Offset of the output in the page."""


def snippets_of(text: str) -> list[Snippet]:
    """Return the blocks of a page that are run."""
    blocks = list(_BLOCK.finditer(text))
    return [
        Snippet(block["language"], block["code"], after["code"], after.start("code"))
        for block, after in pairwise(blocks)
        if block["language"] in ("bash", "python")
        and after["language"] == "text"
        and not text[block.end() : after.start()].strip()
    ]


LATER_PAGES: Final = tuple(
    f"docs/{path.name}"
    for path in sorted(ROOT.glob("docs/*.md"))
    if snippets_of(path.read_text(encoding="utf-8"))
)


def play(page: str, folder: Path, timeout_s: float = 600.0) -> list[str]:
    """Run a page's snippets in one shell.

    Args:
        page: Path of the page from the repository's root.
        folder: Working folder, with the files that the snippets read.
        timeout_s: Time limit.

    Returns:
        The output of each snippet, with the parts that differ from run to run replaced.
    """
    text = (ROOT / page).read_text(encoding="utf-8")
    for block in _BLOCK.finditer(text):
        if block["title"]:
            (folder / block["title"]).write_text(block["code"], encoding="utf-8")
    found = snippets_of(text)
    with JudgeServer() as judge:
        address = judge.url.removesuffix("/v1")
        steps = [_step(snippet).replace(_ADDRESS, address) for snippet in found]
        done = subprocess.run(
            ("bash", "-c", "exec 2>&1\n" + "\n".join(steps)),
            cwd=folder,
            env=snippet_environment(folder.parent / "cache"),
            stdout=subprocess.PIPE,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    printed = same_in_every_run(done.stdout.replace(address, _ADDRESS), folder.parent)
    outputs = re.split(rf"^{_MARK}\d+\n", printed, flags=re.MULTILINE)
    return [output.lstrip("\n") for output in outputs[: len(found)]]


def start(folder: Path) -> list[str]:
    """Run the quick start in an empty folder; return the outputs."""
    shutil.copytree(ROOT / "examples" / "captions", folder, dirs_exist_ok=True)
    return play(QUICK_START, folder)


def play_after(page: str, started: Path, folder: Path) -> list[str]:
    """Run a page's snippets in a copy of the folder that the quick start left."""
    shutil.copytree(started, folder / started.name)
    shutil.copytree(started.parent / "cache", folder / "cache")
    return play(page, folder / started.name)


def is_shown(printed: str, output: str) -> bool:
    """Return whether an output is the one that a page shows."""
    parts = re.split(r"^\.\.\.\n", output, flags=re.MULTILINE)
    return re.fullmatch("(?:.*\n)*?".join(map(re.escape, parts)), printed) is not None


def corrected(printed: str, output: str) -> str:
    """Return what a page should show of an output, shortened where it is shortened today.

    Raises:
        ValueError: If the output no longer has the first line of a shortened part.
    """
    if is_shown(printed, output):
        return output
    lines, kept = printed.splitlines(keepends=True), []
    parts = re.split(r"^(\.\.\.\n)", output, flags=re.MULTILINE)
    if len(parts) == 1:
        return printed
    for part in parts:
        shown = part.splitlines(keepends=True)
        if part == "...\n":
            kept.append(part)
        elif shown:
            alike = [_alike(line) for line in lines]
            if _alike(shown[0]) not in alike:
                raise ValueError(f"no line like {shown[0]!r} in:\n{printed}")
            first = alike.index(_alike(shown[0]))
            kept += lines[first : first + len(shown)]
            lines = lines[first + len(shown) :]
    return "".join(kept)


def rewrite(page: str, printed: Sequence[str]) -> None:
    """Write the outputs of a page's snippets into the page."""
    path = ROOT / page
    text = path.read_text(encoding="utf-8")
    for snippet, output in reversed(list(zip(snippets_of(text), printed, strict=True))):
        end = snippet.start + len(snippet.output)
        text = text[: snippet.start] + corrected(output, snippet.output) + text[end:]
    path.write_text(text, encoding="utf-8")


def same_in_every_run(printed: str, folder: Path) -> str:
    """Return an output with the parts replaced that differ from run to run."""
    printed = printed.replace(str(folder), "~")
    for pattern, replacement in _CHANGING.items():
        printed = re.sub(pattern, replacement, printed)
    return re.sub(r"[ \t]+$", "", printed, flags=re.MULTILINE)


def _alike(line: str) -> str:
    return re.sub(r"[\d.]+", "0", " ".join(line.split()))


def _step(snippet: Snippet) -> str:
    code = snippet.code
    if snippet.language == "python":
        code = f"python - <<'PYTHON'\n{code}PYTHON\n"
    return f"{code}printf '%s\\n' \"{_MARK}$?\""


def snippet_environment(cache: Path) -> dict[str, str]:
    """Return the environment of a reader who has set nothing, with the sample in the cache."""
    own = Path(sys.executable).parent
    env = environment(cache, COLUMNS="80", PATH=f"{own}{os.pathsep}{os.environ['PATH']}")
    del env["LMMS_CAPTIONS_DATA"]  # Pages set it.
    return env


def _report(folder: Path, file: str) -> int:
    """Write the report of two captioners, with captions and replies."""
    shutil.copytree(ROOT / "examples" / "captions", folder, dirs_exist_ok=True)
    run = "lmms-eval-captions run --model caption_file --tasks vdc_score --log_samples"
    script = (
        f"set -e; {run} --model_args path=alpha.jsonl --output_path report/alpha; "
        f"{run} --model_args path=beta.csv,column=text --output_path report/beta; "
        f"lmms-eval-captions report report/alpha report/beta -o '{file}'"
    )
    sample = {"LMMS_CAPTIONS_DATA": "sample", "LMMS_CAPTIONS_JUDGE": "lexical"}
    env = {**snippet_environment(folder.parent / "cache"), **sample}
    return subprocess.run(("bash", "-c", script), cwd=folder, env=env, check=False).returncode


def main(arguments: Sequence[str]) -> int:
    """Rewrite the outputs of pages, by default all and the notebook's, or write the report."""
    with tempfile.TemporaryDirectory() as temporary:
        started = Path(temporary) / "start" / "try"
        started.mkdir(parents=True)
        if arguments[:1] == ["--report"]:
            return _report(started, arguments[1])
        first = start(started)
        for number, page in enumerate(arguments or [QUICK_START, *LATER_PAGES]):
            folder = Path(temporary) / str(number)
            rewrite(page, first if page == QUICK_START else play_after(page, started, folder))
        if not arguments:
            from notebooks import rewrite_notebook

            folder = Path(temporary) / "notebook"
            folder.mkdir()
            rewrite_notebook(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
