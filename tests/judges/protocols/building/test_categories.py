"""Categories have names and a text, ours or one's own."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.protocols.building.categories import load_categories
from lmms_eval_captions.judges.protocols.prompt_folder import Prompts
from lmms_eval_captions.lmms_eval_tasks.capquiz import data as capquiz
from lmms_eval_captions.lmms_eval_tasks.vcapsbench import data as vcapsbench
from lmms_eval_captions.lmms_eval_tasks.vidcapbench import data as vidcapbench


def _prompts(tmp_path: Path, name: str, text: str) -> Prompts:
    (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump({"categories": text}))
    return Prompts(tmp_path)


def test_the_packaged_categories_are_those_of_the_benchmarks() -> None:
    """What is asked for is what scores are broken down by, in names and in groups."""
    quiz = load_categories(Prompts(), "build_capquiz_categories")
    assert quiz.groups == {"": tuple(capquiz.GROUP_OF)}
    assert load_categories(Prompts(), "build_vcapsbench_categories").groups == vcapsbench.GROUPS
    groups = load_categories(Prompts(), "build_vidcapbench_categories").groups
    assert groups == vidcapbench.CATEGORIES


def test_the_examples_of_capquiz_are_whole_questions() -> None:
    """Two for each category, each with five different options, the answer among them."""
    categories = load_categories(Prompts(), "build_capquiz_categories")
    assert len(categories.examples) == len(set(categories.examples)) == 20
    lines = [line.strip("- ") for line in categories.text.splitlines() if '"options"' in line]
    shown = [yaml.safe_load(line) for line in lines]
    assert [example["category"] for example in shown] == [
        name for name in categories.names for _ in range(2)
    ]
    for example in shown:
        assert len(set(example["options"])) == 5
        assert example["answer"] in example["options"]
    places = [example["options"].index(example["answer"]) for example in shown]
    assert len(set(places)) == 5


def test_own_categories_replace_ours(tmp_path: Path) -> None:
    """In the layout of our file; the text goes to the writer as it is."""
    text = "Traffic:\n- sign: which signs there are\n- right of way: who goes first\n"
    text += "Weather:\n- rain: how wet it is"
    categories = load_categories(
        _prompts(tmp_path, "build_vcapsbench_categories", text), "build_vcapsbench_categories"
    )
    assert categories.text == text
    assert categories.groups == {"Traffic": ("sign", "right of way"), "Weather": ("rain",)}
    assert categories.names == ("sign", "right of way", "rain")
    assert categories.examples == ()


def test_own_categories_without_groups_are_in_none(tmp_path: Path) -> None:
    """A plain list is enough, and so is CapQuiz's layout with other names."""
    name = "build_vcapsbench_categories"
    plain = load_categories(_prompts(tmp_path, name, "- sign: signs\n- rain: wet"), name)
    assert plain.groups == {"": ("sign", "rain")}
    (tmp_path / "other").mkdir()
    name = "build_capquiz_categories"
    text = "1. Category: Signs\n  - **Definition:** Which signs there are."
    assert load_categories(_prompts(tmp_path / "other", name, text), name).names == ("Signs",)


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ("intent & emotion reasoning", "Intent & Emotion Reasoning"),
        ("Intent_Emotion Reasoning", "Intent & Emotion Reasoning"),
        ("**Entity**", "Entity"),
        ("Entities", None),
        ("", None),
    ],
)
def test_names_are_known_in_any_case_and_with_any_marks(written: str, known: str | None) -> None:
    """As models write them."""
    assert load_categories(Prompts(), "build_capquiz_categories").named(written) == known


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("Signs and rain.", "at least one category", id="prose"),
        pytest.param("- sign: a\n- Sign: b", "each category once", id="twice"),
    ],
)
def test_a_file_without_usable_categories_is_refused(text: str, words: str, tmp_path: Path) -> None:
    """Before anything is asked, with the file's name and the layout to follow."""
    name = "build_vidcapbench_categories"
    with pytest.raises(SettingsError, match=words) as error:
        load_categories(_prompts(tmp_path, name, text), name)
    assert f"{name}.yaml" in str(error.value)
