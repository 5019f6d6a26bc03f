"""The documentation: links, names and numbers exist, and snippets print what the pages show."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from lmms_eval_captions.cli.main import main
from lmms_eval_captions.cli.settings_flags import FLAGS
from lmms_eval_captions.lmms_eval_tasks.judging.this_run import RUN_RECORD
from lmms_eval_captions.lmms_eval_tasks.signature import CAPTIONS, DOUBTS, QUESTIONS, SERVED
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks
from lmms_eval_captions.model_wrappers.captioner import Captioner
from lmms_eval_captions.model_wrappers.hf.prompts import PROMPT_FORMS
from lmms_eval_captions.model_wrappers.model_args import arguments_of
from notebooks import NOTEBOOK, outputs_of, run_notebook
from runs import environment, run_lmms_eval
from snippets import LATER_PAGES, QUICK_START, is_shown, play_after, snippets_of, start

ROOT: Final = Path(__file__).resolve().parents[2]
REPOSITORY: Final = "https://github.com/lmms-eval-captions/lmms-eval-captions/"
DOCUMENTS: Final = tuple(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/*.md", "*/README.md", "*/*/README.md")
    for path in sorted(ROOT.glob(pattern))
    if not path.relative_to(ROOT).parts[0].startswith(".")
)
ROOMS: Final = (
    "analysis", "cli", "construction", "judges", "lmms_eval_tasks", "metrics", "model_wrappers",
    "scorer", "verification",
)  # fmt: skip


def _text(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


def _anchors(document: Path) -> set[str]:
    """Anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.casefold()) for heading in headings)
    return {heading.replace(" ", "-") for heading in kept}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Return the folder that the README's quick start leaves, and the outputs."""
    folder = tmp_path_factory.mktemp("start") / "try"
    folder.mkdir()
    return folder, start(folder)


def _check(page: str, printed: list[str]) -> None:
    for output, snippet in zip(printed, snippets_of(_text(page)), strict=True):
        # Where the program changed on purpose: make docs-fix.
        assert is_shown(output, snippet.output), f"{page} shows\n{snippet.output}\nnot\n{output}"


def test_the_quick_start_prints_what_the_readme_shows(started: tuple[Path, list[str]]) -> None:
    _check(QUICK_START, started[1])


@pytest.mark.parametrize("page", LATER_PAGES)
def test_snippets_print_what_the_page_shows(
    page: str, started: tuple[Path, list[str]], tmp_path: Path
) -> None:
    _check(page, play_after(page, started[0], tmp_path))


@pytest.mark.nightly
def test_the_notebook_prints_what_it_shows(started: tuple[Path, list[str]], tmp_path: Path) -> None:
    for output, shown in zip(run_notebook(tmp_path), outputs_of(NOTEBOOK), strict=True):
        assert is_shown(output, shown)


@pytest.mark.nightly
def test_a_run_is_logged_to_wandb_offline(tmp_path: Path) -> None:
    env = environment(tmp_path / "cache", LMMS_CAPTIONS_JUDGE="lexical", WANDB_MODE="offline")
    captions = ROOT / "examples" / "captions" / "alpha.jsonl"
    line = ("--model", "caption_file", "--model_args", f"path={captions}", "--tasks", "vdc_short")
    wandb = ("--wandb_args", "project=captions,name=alpha", "--wandb_log_samples")
    run = run_lmms_eval(tmp_path / "results", *line, *wandb, env=env, fresh=True)
    assert run.returncode == 0
    assert "vdc_short/vdc_acc 61.66" in run.log
    assert list(tmp_path.glob("wandb/offline-run-*"))


@pytest.mark.nightly
@pytest.mark.parametrize("tool", ["mlflow", "trackio"])
def test_the_program_of_the_tracking_page_logs_a_run(
    tool: str, started: tuple[Path, list[str]], tmp_path: Path
) -> None:
    pytest.importorskip(tool)
    play_after("docs/tracking.md", started[0], tmp_path)
    line = (sys.executable, "log_run.py", "results/alpha", tool)
    assert subprocess.run(line, cwd=tmp_path / started[0].name, check=False).returncode == 0


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    """Each link to a file or heading of the repository, relative or absolute, has its end."""
    for target in re.findall(r"\]\(([^)\s]+)\)", _text(document)):
        name, _, anchor = target.partition("#")
        here = re.match(rf"{REPOSITORY}(?:blob|tree|raw)/main/(.+)", name)
        if here is None and re.match(r"[a-z]+:", target):
            continue
        path = ROOT / here[1] if here else (ROOT / document).parent / name
        path = path if name else ROOT / document
        assert path.exists(), target
        assert not anchor or anchor in _anchors(path), target


def test_the_site_leads_to_every_page() -> None:
    nav = re.findall(r"([\w-]+\.md)$", _text("mkdocs.yml").partition("\nnav:\n")[2], re.MULTILINE)
    assert sorted(nav) == sorted(path.name for path in ROOT.glob("docs/*.md"))


def test_the_documentation_is_short() -> None:
    assert len(_text(QUICK_START).splitlines()) < 110
    assert sum(len(path.read_text("utf-8").split()) for path in ROOT.glob("docs/*.md")) < 15_000


def test_every_room_is_on_the_page_of_the_architecture() -> None:
    text = _text("ARCHITECTURE.md")
    assert [room for room in ROOMS if f"`{room}/`" not in text] == []


@pytest.mark.parametrize("name", ["hf", "vllm", "openai", "auroracap"])
def test_every_argument_of_a_captioner_is_in_its_table(name: str) -> None:
    """The table names the arguments that the class has, and no others."""
    text = _text("model_wrappers/README.md")
    section = text.partition(f"\n## `caption_{name}`\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`\w+`(?:,(?: or)? `\w+`[^|]*?)*) \|", section, re.MULTILINE)
    shown = {word for row in rows for word in re.findall(r"`(\w+)`", row)} - {*PROMPT_FORMS, "r"}
    module = importlib.import_module(f"lmms_eval_captions.model_wrappers.caption_{name}")
    [captioner] = (
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and kind.__name__.lower() == f"caption{name}"
    )
    # Arguments of all captioners have a table of their own.
    above = [kind for kind in captioner.__mro__ if kind not in Captioner.__mro__]
    own = arguments_of(captioner, above[-1]) - {"common"}
    assert shown - {"prompt_format"} == own - {"prompt_format"}


def test_the_arguments_of_all_captioners_are_in_their_table() -> None:
    text = _text("model_wrappers/README.md")
    table = text.partition("Arguments that all of them take")[2].partition("\n### ")[0]
    given_by_options = {"batch_size", "max_batch_size", "device"}
    named = set(re.findall(r"`(\w+)`(?=[^|\n]*\|[^|\n]*\|$)", table, re.MULTILINE))
    assert arguments_of(Captioner, Captioner) - given_by_options <= named


def test_the_page_of_numbers_has_every_metric() -> None:
    """The table and the benchmarks name the same metrics and the same direction."""
    rows = re.findall(
        r"^\| (`[^|]+`) \| [^|]+ \| ([^|]+) \|", _text("docs/numbers.md"), re.MULTILINE
    )
    shown = {name: unit for names, unit in rows for name in re.findall(r"`(\w+)`", names)}
    metrics = {
        name: metric
        for benchmark in all_benchmarks().values()
        for name, metric in benchmark.metrics.items()
    }
    assert set(shown) == set(metrics)
    for name, metric in metrics.items():
        assert ("lower is better" in shown[name]) is not metric.higher_is_better, name


def test_the_page_of_numbers_has_every_field_of_the_signature() -> None:
    section = _text("docs/numbers.md").partition("## The signature")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", section, re.MULTILINE)
    shown = {name for names in rows for name in re.findall(r"`(\w+)`", names)}
    fields = {CAPTIONS, DOUBTS, QUESTIONS, SERVED, "judge", "runs", "protocol", "unscored"}
    for benchmark in all_benchmarks().values():
        for task in benchmark.tasks.values():
            fields |= set(task.extras)
    assert fields - shown == set()


def test_the_page_of_settings_has_the_variable_for_programs() -> None:
    assert f"`{RUN_RECORD}`" in _text("docs/settings.md")


def test_messages_of_the_troubleshooting_page_are_in_the_code() -> None:
    """Each part of a message between ``...`` stands in a source file."""
    sources = [path.read_text("utf-8") for room in ROOMS for path in ROOT.glob(f"{room}/**/*.py")]
    joined = "".join(re.sub(r'"\n\s*f?"', "", source) for source in sources)
    messages = re.findall(r"^- `([^`]+)`:", _text("docs/troubleshooting.md"), re.MULTILINE)
    assert len(messages) >= 28
    parts = [part.strip() for message in messages for part in message.split("...")]
    assert [part for part in parts if part not in joined] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_that_are_named_exist(document: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each subcommand, and each of its options; those of ``run`` are lmms-eval's."""
    text = _text(document).replace("\\\n", " ")
    named = re.findall(r"lmms-eval-captions ([a-z][\w-]+)((?: [^`\n]*)?)(?=`|\n)", text)
    for command, rest in named:
        if document == "CHANGELOG.md" or command == "run" or f"`{command}" in rest:
            continue
        words = [command]
        kind = re.match(r"(?: --build)? (capquiz|vcapsbench|vdc|vidcapbench|clips)\b", rest)
        if kind is not None and (command == "build" or "--build" in kind[0]):
            words += [*(["--build"] if command == "estimate" else []), kind[1]]
        if command == "judge":
            words += rest.split()[:1]
        with pytest.raises(SystemExit) as ended:
            main([*words, "--help"])
        printed = capsys.readouterr().out
        assert ended.value.code == 0, command
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]+", re.split("#|[|>]", rest)[0]):
            known = option in printed or option in words or option in FLAGS
            assert known, (command, option)
