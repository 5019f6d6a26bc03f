"""Prompts are the papers', or the user's folder's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from conftest import SHARED
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.protocols.prompt import Prompt, Prompts, read_yaml

PAPER = SHARED / "papers" / "004_dec2e5a25833334d.txt"


def _words(text: str) -> str:
    """Text without markup and line breaks, which the extraction of a paper does not keep."""
    return re.sub(r"[\s*]+", " ", text).strip()


def _paper() -> str:
    if not PAPER.is_file():
        pytest.skip(f"the paper's text is not at {PAPER}")
    return _words(PAPER.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        pytest.param(
            "vdc_answer",
            {"question": "What objects are the cyclist's hands interacting with?"},
            id="appendix-Q",
        ),
        pytest.param(
            "vdc_match",
            {
                "question": "What type of surface can be seen covering the floor?",
                "answer": "carpet",
                "predicted_answer": "Carpeted surface.",
            },
            id="appendix-R",
        ),
    ],
)
def test_vdc_prompts_are_those_of_the_paper(name: str, values: dict[str, str]) -> None:
    """Filled with the paper's example, each message is in the paper word for word."""
    paper = _paper()
    caption = paper[paper.index("The setting is an urban street") :]
    caption = caption[: caption.index(" question:")]
    slots = Prompts().load(name).slots
    messages = Prompts().load(name).render(**{"caption": caption, **values})
    assert slots <= {"caption", *values}
    for message in messages:
        assert _words(str(message["content"])) in paper


@pytest.mark.parametrize("aspect", ["camera", "background", "main_object", "detailed"])
def test_vdc_caption_prompts_are_those_of_the_paper(aspect: str) -> None:
    """The caption prompts of appendix H, which prints none for short captions."""
    assert str(read_yaml("vdc_caption")[aspect]) in _paper()


@given(st.text(), st.text())
def test_slots_are_filled_with_the_text_unchanged(caption: str, question: str) -> None:
    """Braces, quotes and the names of other slots in a caption change nothing."""
    prompt = Prompt([{"role": "user", "content": "a {{caption}} b {{question}} c"}])
    for tricky in (caption, caption + "{{question}}", "{caption} %s \\1 {{caption}}"):
        assert prompt.render(caption=tricky, question=question) == [
            {"role": "user", "content": f"a {tricky} b {question} c"}
        ]


def test_a_slot_without_a_value_is_an_error() -> None:
    """A prompt is never sent with a hole in it."""
    with pytest.raises(KeyError, match="question"):
        Prompts().load("vdc_answer").render(caption="x")


OURS = Path(__file__).resolve().parents[3] / "judges" / "protocols" / "prompts"
NAMES = sorted(path.stem for path in OURS.glob("*.yaml"))
ANSWER = "messages:\n  - {role: user, content: 'Mine: {{caption}} -- {{question}}'}\n"


def _folder(tmp_path: Path, **files: str) -> Path:
    folder = tmp_path / "prompts"
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


def test_a_file_replaces_ours_and_the_others_stay(tmp_path: Path) -> None:
    prompts = Prompts(_folder(tmp_path, vdc_answer=ANSWER))
    messages = prompts.load("vdc_answer").render(caption="{{question}} {x}", question="Why?")
    assert messages == [{"role": "user", "content": "Mine: {{question}} {x} -- Why?"}]
    assert prompts.read("vdc_match") == read_yaml("vdc_match")
    assert prompts.text("vdc_caption", "short") == Prompts().text("vdc_caption", "short")
    assert prompts.replaced == ("vdc_answer",)


def test_all_of_ours_are_accepted_and_change_nothing(tmp_path: Path) -> None:
    """A copied folder passes the checks, and no signature claims prompts that say what ours do."""
    files = {name: (OURS / f"{name}.yaml").read_text(encoding="utf-8") for name in NAMES}
    prompts = Prompts(_folder(tmp_path, **files))
    prompts.check()
    assert prompts.replaced == tuple(NAMES)
    for name in NAMES:
        keys = [name] if "messages" in read_yaml(name) else [f"{name}.{k}" for k in read_yaml(name)]
        assert prompts.extras(keys) == {}


def test_a_file_may_hold_several_prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A benchmark's prompts for judge and captioner stand in one file, each under its own key."""
    ours = {
        "facts": [{"role": "user", "content": "List the facts of {{caption}}"}],
        "verdict": [{"role": "user", "content": "Does {{text}} say {{fact}}?"}],
        "caption": "Describe.",
    }
    package = "lmms_eval_captions.judges.protocols"
    monkeypatch.setattr(f"{package}.prompt.read_yaml", lambda _: ours)
    monkeypatch.setattr(f"{package}.prompt._packaged_names", lambda: ["mine"])
    assert Prompts().load("mine.verdict").slots == {"text", "fact"}
    changed = {**ours, "facts": [{"role": "user", "content": "Facts of {{caption}}"}]}
    prompts = Prompts(_folder(tmp_path, mine=yaml.safe_dump(changed)))
    said = prompts.load("mine.facts").render(caption="a dog")
    assert said == [{"role": "user", "content": "Facts of a dog"}]
    assert prompts.text("mine", "caption") == "Describe."
    assert prompts.extras(["mine.verdict", "mine.caption"]) == {}
    assert set(prompts.extras(["mine.facts"])) == {"prompts"}
    broken = {**ours, "verdict": [{"role": "user", "content": "Does {{text}} say it?"}]}
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "mine.yaml").write_text(yaml.safe_dump(broken))
    with pytest.raises(SettingsError, match=r"\['fact'\] missing"):
        Prompts(tmp_path / "broken").check()


def test_the_signature_follows_the_prompts_that_are_used(tmp_path: Path) -> None:
    """It holds a hash of those that differ from ours; others move nothing."""
    captions = {**read_yaml("vdc_caption"), "short": "One sentence, please."}
    folder = _folder(tmp_path, vdc_answer=ANSWER, vdc_caption=yaml.safe_dump(captions))
    prompts = Prompts(folder)
    answer = prompts.extras(["vdc_answer", "vdc_match"])
    assert len(answer["prompts"]) == 8
    assert set(answer["prompts"]) <= set("0123456789abcdef")
    assert prompts.extras(["vdc_match", "vdc_caption.camera"]) == {}
    assert prompts.extras(["vdc_answer", "vdc_caption.camera"]) == answer
    both = prompts.extras(["vdc_answer", "vdc_caption.short"])
    assert both != answer
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "vdc_answer.yaml").write_text(ANSWER.replace("Mine", "Yours"))
    assert Prompts(tmp_path / "other").extras(["vdc_answer"]) != answer
    assert Prompts().extras(["vdc_answer", "vdc_caption.short"]) == {}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        pytest.param(
            "vdc_answer",
            "messages: [{role: user, content: 'About {{caption}}.'}]",
            r"expected the slots {{caption}}, {{question}}, got \['question'\] missing",
            id="slot-missing",
        ),
        pytest.param(
            "vdc_answer",
            "messages: [{role: user, content: '{{caption}} {{question}} {{answer}}'}]",
            r"got \['answer'\] unknown",
            id="slot-unknown",
        ),
        pytest.param(
            "vdc_answer",
            "messages: [{role: user, content: '{caption} {question} {{Caption}}'}]",
            r"got \['caption', 'question'\] missing and \['Caption'\] unknown",
            id="single-braces",
        ),
        pytest.param("vdc_answer", "messages: [", "expected a YAML file in UTF-8", id="yaml"),
        pytest.param("vdc_answer", "Answer this.", "expected the keys messages, got", id="text"),
        pytest.param("vdc_answer", "messages: Ask!", "expected a list of messages", id="no-list"),
        pytest.param("vdc_answer", "messages: []", "expected a list of messages", id="no-message"),
        pytest.param("vdc_answer", "prompt: x", r"got the keys \['prompt'\]", id="other-key"),
        pytest.param(
            "vdc_answer", "messages: [{role: user}]", "a role and a content", id="no-content"
        ),
        pytest.param(
            "vdc_answer",
            "messages: [{role: judge, content: '{{caption}} {{question}}'}]",
            "a role among system, user, assistant",
            id="role",
        ),
        pytest.param(
            "vdc_answer",
            "messages: [{role: user, content: {{caption}}}]",
            "vdc_answer.yaml",
            id="slot-without-quotes",
        ),
        pytest.param(
            "vdc_answer",
            "messages: [{role: system, content: '{{caption}} {{question}}'}]",
            "a last message of the role user",
            id="system-alone",
        ),
        pytest.param("vdc_caption", "camera: Look.", "expected the keys camera, short", id="keys"),
        pytest.param("vcapsbench_caption", "caption: ' '", "expected a text under", id="blank"),
        pytest.param("vcapsbench_caption", "caption: [a]", "expected a text under", id="list"),
        pytest.param(
            "vcapsbench_caption", "caption: 'Say {{what}}.'", "no slots under 'caption'", id="slot"
        ),
    ],
)
def test_a_file_of_another_shape_is_refused(
    name: str, text: str, words: str, tmp_path: Path
) -> None:
    """The error names the variable and the file, what was expected and what came."""
    folder = _folder(tmp_path, **{name: text})
    with pytest.raises(SettingsError, match=words) as error:
        Prompts(folder).check()
    assert str(error.value).startswith(f"LMMS_CAPTIONS_PROMPTS: {folder / name}.yaml: expected ")


@pytest.mark.parametrize("name", ["vdc_anwser.yaml", "vdc_answer.yml", "README.md", "prompts"])
def test_a_name_that_is_none_of_ours_is_refused(name: str, tmp_path: Path) -> None:
    """A typing error would otherwise leave our prompt in place, and nobody would know."""
    folder = _folder(tmp_path, vdc_answer=ANSWER)
    (folder / name).write_text(ANSWER)
    with pytest.raises(SettingsError, match="is none of our prompts") as error:
        Prompts(folder).check()
    assert name in str(error.value)
    assert "vdc_answer.yaml, vdc_caption.yaml, vdc_match.yaml" in str(error.value)
