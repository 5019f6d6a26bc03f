"""Prompts with everything constant first, in every benchmark: the same words, read the same way."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
import yaml

from conftest import ServerFactory
from five_tasks import write_clip
from judge_server import JudgeServer
from label_runs import judged_run, page_of
from lmms_eval_captions.judges.protocols.prompt import read_yaml
from lmms_eval_captions.judges.protocols.prompt_examples import examples_of
from lmms_eval_captions.judges.protocols.prompt_folder import Prompts
from lmms_eval_captions.judges.settings import PROMPT_ORDERS, read_settings
from lmms_eval_captions.lmms_eval_tasks.commands.doctor import examine
from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from lmms_eval_captions.lmms_eval_tasks.task_names import all_benchmarks
from prompt_orders import common_beginning, order_blind_reply, sentences, text_of
from test_own_prompts import DOCS, USED

VARIABLE: Final = "LMMS_CAPTIONS_PROMPT_ORDER"
FIELD: Final = "|prompt-order:constant-first"
CAPTIONS: Final = ("A dog runs along the shore.", "Two cats sleep: nothing else moves?")
REORDERED: Final = Prompts(order="constant-first").reordered
ASKED: Final = {
    name: {prompt for benchmark, prompt, key in USED if benchmark == name and key is None}
    for name in DOCS
}
GRADED: Final = [
    next(iter(benchmark.tasks))
    for benchmark in all_benchmarks().values()
    if benchmark.grading is not None
]
_SLOT: Final = re.compile(r"\{\{(\w+)\}\}")
_OF_SECOND_STEP: Final = "Predicted Answer: "
_BLOCK_CHARS: Final = 64
"""Characters of a block of 16 tokens."""


@pytest.fixture
def bench(bench: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """The shared one, with a clip of one's own, which judges that see are shown."""
    write_clip(tmp_path / "data/own/videos/a.mp4", "a")
    bench.setenv("LMMS_CAPTIONS_DATA", str(tmp_path / "data"))
    return bench


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in sample, rendered once."""
    return sample_root(tmp_path_factory.mktemp("sample"))


def _judged(
    order: str, hooks: ModuleType, doc: dict[str, Any], bench: pytest.MonkeyPatch
) -> tuple[dict[str, Any], str]:
    """What each caption's items hold in the end, but for the signature, and that."""
    bench.setenv(VARIABLE, order)
    JUDGE_RUN.close()
    columns: dict[str, list[Any]] = {}
    for caption in CAPTIONS:
        for name, item in hooks.process_results(doc, [caption]).items():
            columns.setdefault(name, []).append(item)
    signature = hooks.aggregate_signature(columns["signature"])
    left_out = {"signature", "breakdown"}
    values = {
        name: [_plain(item.wait()) for item in items]
        for name, items in columns.items()
        if name not in left_out
    }
    return values, signature


def _plain(item: dict[str, Any]) -> dict[str, Any]:
    """An item without what says how it was come by."""
    told = {name: value for name, value in item.items() if name not in ("extras", "n_cached")}
    for judgement in told.get("judgements", ()):
        judgement.pop("cached", None)
    return told


@pytest.mark.parametrize("name", DOCS)
@pytest.mark.parametrize("judge", ["judge", "lexical"])
def test_a_judge_that_does_not_mind_the_order_gives_the_same_scores(
    name: str, judge: str, bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """Every item is equal; the signature says the order where a prompt differs, and only there."""
    hooks, doc = DOCS[name]
    server = _server(serve, bench)
    bench.setenv("LMMS_CAPTIONS_JUDGE", judge)
    paper, printed = _judged("paper", hooks, doc, bench)
    n_printed = server.counts.n_requests
    constant_first, signature = _judged("constant-first", hooks, doc, bench)
    assert constant_first == paper
    assert all(item["n_unscored"] == 0 for item in paper["unscored"])
    differs = bool(ASKED[name] & set(REORDERED))
    assert FIELD not in printed
    assert signature.replace(FIELD, "") == printed
    assert signature.count(FIELD) == differs
    if judge == "judge":
        assert n_printed >= len(CAPTIONS)
        assert (server.counts.n_requests > n_printed) == differs


@pytest.mark.parametrize("name", DOCS)
def test_every_request_says_the_same_sentences_and_what_is_constant_first(
    name: str, bench: pytest.MonkeyPatch, serve: ServerFactory
) -> None:
    """Each slot is filled; two prompts begin alike for as long as what is constant is."""
    hooks, doc = DOCS[name]
    server = _server(serve, bench)
    bodies = {}
    for order in ("paper", "constant-first"):
        n_before = len(server.bodies)
        bench.setenv("LMMS_CAPTIONS_CACHE", str(Path(os.environ["LMMS_CAPTIONS_CACHE"]) / order))
        _judged(order, hooks, doc, bench)
        bodies[order] = server.bodies[n_before:]
    said = [
        sorted(sorted(sentences(body["messages"]).items()) for body in bodies[order])
        for order in ("paper", "constant-first")
    ]
    assert said[0] == said[1]
    for prompt in ASKED[name]:
        texts = map(_all_text, bodies["constant-first"])
        is_second = prompt in ("vdc_match", "vidcapbench_judge")
        own = [text for text in texts if (_OF_SECOND_STEP in text) == is_second]
        assert len({*own}) >= len(CAPTIONS)
        assert common_beginning(own).startswith(_constant(prompt))
        filled = "".join(own)
        assert {slot for slot in _SLOT.findall(filled) if not slot.endswith("score")} == set()


@pytest.mark.parametrize("prompt", sorted(set().union(*ASKED.values())))
def test_what_is_constant_comes_first_and_is_told_to_be_ours(prompt: str) -> None:
    """With a second order or without, no constant words behind a slot fill a block of a cache."""
    paper = _behind_first_slot(Prompts().messages(prompt))
    prompts = Prompts(order="constant-first")
    first = _behind_first_slot(prompts.messages(prompt))
    assert len(first) < _BLOCK_CHARS
    assert (prompt in REORDERED) == (len(paper) >= _BLOCK_CHARS)
    assert sentences(prompts.messages(prompt)) == sentences(Prompts().messages(prompt))
    assert prompts.load(prompt).slots == Prompts().load(prompt).slots
    if prompt in REORDERED:
        ours = Path(__file__).parents[2] / "judges/protocols/prompts/constant_first"
        text = (ours / f"{prompt}.yaml").read_text(encoding="utf-8")
        assert text.startswith("# OUR order of the paper's words")
        assert f"../{prompt}.yaml" in text


@pytest.mark.parametrize("name", DOCS)
def test_replies_that_repeat_the_example_are_told_in_either_order(name: str) -> None:
    """The prompts show the same examples."""
    shown = [examples_of(Prompts(order=order), tuple(ASKED[name])) for order in PROMPT_ORDERS]
    assert shown[0] == shown[1]
    if name in ("vdc", "vdc_vdd", "vcapsbench"):
        assert len(shown[0]) == 1


@pytest.mark.parametrize("task", GRADED)
def test_a_person_is_asked_the_same_in_either_order(
    task: str, bench: pytest.MonkeyPatch, serve: ServerFactory, sample: Path, tmp_path: Path
) -> None:
    """A page of labels has the same questions with the same verdicts of the judge."""
    _server(serve, bench)
    bench.setenv("LMMS_CAPTIONS_DATA", str(sample))
    pages = []
    for order in PROMPT_ORDERS:
        bench.setenv(VARIABLE, order)
        JUDGE_RUN.close()
        judged_run(tmp_path / order / "a", {task: CAPTIONS})
        pages.append(page_of(tmp_path / order / "a", n=10_000))
    data: list[Any] = [page.data for page in pages]
    assert data[0]["items"]
    assert data[0]["items"] == data[1]["items"]
    assert data[0]["gradings"] == data[1]["gradings"]


def test_a_second_order_is_of_a_prompt_that_some_judge_is_asked_with() -> None:
    """None is there that no task uses."""
    asked = {
        prompt
        for benchmark in all_benchmarks().values()
        for task in benchmark.tasks.values()
        for prompt in task.judge_prompts
    }
    assert set(REORDERED) <= asked


def test_a_prompt_of_the_users_is_sent_as_it_was_written(
    bench: pytest.MonkeyPatch, serve: ServerFactory, tmp_path: Path
) -> None:
    """The one that is replaced keeps its order, the other one of the task comes in ours."""
    hooks, doc = DOCS["vdc"]
    server = _server(serve, bench)
    folder = tmp_path / "prompts"
    folder.mkdir()
    *before, last = map(dict, Prompts().messages("vdc_match"))
    mine = {**last, "content": f"Mine. {last['content']}"}
    (folder / "vdc_match.yaml").write_text(yaml.safe_dump({"messages": [*before, mine]}))
    bench.setenv("LMMS_CAPTIONS_PROMPTS", str(folder))
    _, signature = _judged("constant-first", hooks, doc, bench)
    texts = [text_of(body["messages"][-1]) for body in server.bodies]
    matches = [text for text in texts if "Predicted Answer: " in text]
    answers = [text for text in texts if "detailed description: " in text]
    assert len(matches) == len(answers) == len(CAPTIONS)
    assert all(text.startswith("Mine. Please evaluate the following") for text in matches)
    assert all(
        text.endswith("should look like this: {'pred': 'yes', 'score': 4.8}.") for text in matches
    )
    assert all(text.endswith("\n\nquestion: What?") for text in answers)
    assert FIELD in signature
    assert "|prompts:" in signature


def test_prompts_that_are_all_the_users_have_no_second_order(
    bench: pytest.MonkeyPatch, serve: ServerFactory, tmp_path: Path
) -> None:
    """Word for word ours, they are sent as printed, and nothing is asked again."""
    hooks, doc = DOCS["vdc"]
    server = _server(serve, bench)
    _, printed = _judged("paper", hooks, doc, bench)
    n_before = server.counts.n_requests
    folder = tmp_path / "prompts"
    folder.mkdir()
    for prompt in ASKED["vdc"]:
        text = yaml.safe_dump(dict(read_yaml(prompt)), allow_unicode=True)
        (folder / f"{prompt}.yaml").write_text(text, encoding="utf-8")
    bench.setenv("LMMS_CAPTIONS_PROMPTS", str(folder))
    _, signature = _judged("constant-first", hooks, doc, bench)
    assert signature == printed
    assert server.counts.n_requests == n_before


def test_the_doctor_says_which_prompts_come_in_our_order(
    bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The setting, and the names but for those that are replaced."""
    bench.setenv("LMMS_CAPTIONS_JUDGE", "lexical")
    assert [one for one in examine(read_settings()) if one.topic == "prompts"] == []
    bench.setenv(VARIABLE, "constant-first")
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "vdc_match.yaml").write_text(yaml.safe_dump(dict(read_yaml("vdc_match"))))
    bench.setenv("LMMS_CAPTIONS_PROMPTS", str(folder))
    found = [one for one in examine(read_settings()) if one.topic == "prompts"]
    left = ", ".join(name for name in REORDERED if name != "vdc_match")
    assert [one.ok for one in found] == [True, True]
    assert [one.text for one in found] == [
        f"{folder} replaces vdc_match",
        f"with everything constant first, not as printed: {left}",
    ]


def _server(serve: ServerFactory, bench: pytest.MonkeyPatch) -> JudgeServer:
    server = serve()
    server.keep_bodies = True
    server.reply = order_blind_reply
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    return server


def _all_text(body: dict[str, Any]) -> str:
    return "\n".join(map(text_of, body["messages"]))


def _constant(prompt: str) -> str:
    """What a prompt with everything constant first begins with, up to its first slot."""
    messages = Prompts(order="constant-first").messages(prompt)
    return _parts("\n".join(message["content"] for message in messages))[0]


def _behind_first_slot(messages: Any) -> str:
    """The longest constant words behind the first slot that differs from prompt to prompt."""
    parts = _parts("\n".join(message["content"] for message in messages))
    return max(parts[1:], key=len)


def _parts(text: str) -> list[str]:
    """The words between the slots, but for those that are the same in every prompt."""
    text = text.replace("{{option_id_str}}", "A, B, C, D, E, or F")
    return re.split(r"\{\{(?!\w*score\}\})\w+\}\}", text)
