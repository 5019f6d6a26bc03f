"""Documents name only what exists, and the site has all of them."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Final

import pytest
from docs_site import documents, for_site, linked_files

from lmms_eval_captions.cli.main import main
from lmms_eval_captions.lmms_eval_tasks.signature import CAPTIONS, DOUBTS, QUESTIONS, SERVED
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks
from lmms_eval_captions.lmms_eval_tasks.this_run import RUN_RECORD
from lmms_eval_captions.model_wrappers.captioner import Captioner
from lmms_eval_captions.model_wrappers.hf.prompts import PROMPT_FORMS
from lmms_eval_captions.model_wrappers.model_args import arguments_of

ROOT: Final = Path(__file__).resolve().parents[2]
DOCUMENTS: Final = tuple(documents())
ROOMS: Final = (
    "analysis",
    "cli",
    "construction",
    "scorer",
    "verification",
    "judges",
    "lmms_eval_tasks",
    "metrics",
    "model_wrappers",
)


def _text(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


def _anchors(document: Path) -> set[str]:
    """Anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.casefold()) for heading in headings)
    return {heading.replace(" ", "-") for heading in kept}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    """Each link to a file or a heading has its end."""
    for target in re.findall(r"\]\(([^)\s]+)\)", _text(document)):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        path = (ROOT / document).parent / name if name else ROOT / document
        assert path.exists(), target
        assert not anchor or anchor in _anchors(path), target


def test_every_folder_is_a_room_of_the_architecture() -> None:
    """A newcomer finds each folder of modules in the table, or the one that it is in."""
    text = _text("ARCHITECTURE.md")
    inits = [path for room in ROOMS for path in (ROOT / room).rglob("__init__.py")]
    folders = {path.parent.relative_to(ROOT).as_posix() for path in inits}
    assert len(folders) > 20
    shown = [folder for folder in folders if f"`{folder}/`" in text]
    below = tuple(f"{folder}/" for folder in shown if "/" in folder)
    hidden = [each for each in folders if each not in shown and not each.startswith(below)]
    assert sorted(hidden) == []


def test_the_front_page_is_short() -> None:
    assert len(_text("README.md").splitlines()) < 200


def test_the_site_leads_to_every_page() -> None:
    """Each document, and the page of messages, is in the navigation, and nothing else is."""
    nav = _text("mkdocs.yml").partition("\nnav:\n")[2]
    assert sorted(re.findall(r"([\w/-]+\.md)$", nav, re.MULTILINE)) == sorted(
        [*documents().values(), "messages.md"]
    )


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_a_page_takes_from_elsewhere_is_there(document: str) -> None:
    """Sections of other documents, and files that are shown between backticks."""
    place = documents()[document]
    shown = for_site(_text(document), document, place, {**documents(), **linked_files()})
    assert "<!-- include:" not in shown
    # A formatter of Python makes an expression of the sign that shows a file.
    assert re.findall(r"^-+8 *<.*", shown, re.MULTILINE) == re.findall(
        r'^--8<-- "[^"\n]+"$', shown, re.MULTILINE
    )
    for name in re.findall(r'^--8<-- "([^":]+)', shown, re.MULTILINE):
        assert (ROOT / name).is_file(), name


@pytest.mark.parametrize("name", ["hf", "vllm", "openai", "auroracap"])
def test_every_argument_of_a_captioner_is_in_its_table(name: str) -> None:
    """Nobody reads the code for them, nor tries one that is not there any more."""
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
    # What all captioners take has a table of its own.
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


def test_the_variable_for_programs_is_on_the_page_of_settings() -> None:
    """It is none of the table, as nobody sets it by hand."""
    assert f"`{RUN_RECORD}`" in _text("docs/settings.md")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_that_are_named_are_there(
    document: str, capsys: pytest.CaptureFixture[str]
) -> None:
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
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]+", rest.partition("#")[0]):
            assert option in printed or option in words, (command, option)
