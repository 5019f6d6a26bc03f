"""What writers, solvers and reviewers are asked: the papers' words where a paper prints them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest import SHARED
from lmms_eval_captions.judges.protocols.prompt import read_yaml
from lmms_eval_captions.judges.protocols.prompt_folder import Prompts

FOLDER = Path(__file__).resolve().parents[4] / "judges" / "protocols" / "prompts"
NAMES = sorted(path.stem for path in FOLDER.glob("build_*.yaml"))
CAPQUIZ = "003_b7038d4830a5474f.txt"
VDC = "004_dec2e5a25833334d.txt"


def _signs(text: str) -> str:
    """Text without white space and marks of layout, which the extraction of a paper changes."""
    return re.sub(r"[\s*\\`#-]+", "", text)


def _paper(file: str) -> str:
    path = SHARED / "papers" / file
    if not path.is_file():
        pytest.skip(f"no text of the paper at {path}")
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("prompt", "file", "values"),
    [
        pytest.param("build_capquiz_domain", CAPQUIZ, {}, id="figure-5"),
        pytest.param(
            "build_capquiz_blind",
            CAPQUIZ,
            {"question": "{question}", "options": "{options}"},
            id="figure-7-upper",
        ),
        pytest.param("build_capquiz_cluster", CAPQUIZ, {"pairs": ""}, id="figure-7-lower"),
        pytest.param("build_vdc_captions.first", VDC, {}, id="appendix-K-first"),
        pytest.param(
            "build_vdc_captions.second",
            VDC,
            {
                f"{name}_caption": f"{name} caption".replace("_", " ")
                for name in ("short", "background", "main_object", "camera", "reference")
            },
            id="appendix-K-second",
        ),
    ],
)
def test_prompts_are_the_papers(prompt: str, file: str, values: dict[str, str]) -> None:
    """Each message stands in the paper from its first word to its last, but for marks of layout."""
    printed = _signs(_paper(file))
    for message in Prompts().load(prompt).render(**values):
        assert _signs(str(message["content"])) in printed


def test_the_prompt_of_vdc_pairs_is_the_papers() -> None:
    """Filled with the number and the caption of appendix L, both messages are in it."""
    paper = _paper(VDC)
    caption = paper[paper.index("The camera work is dynamic, featuring") :]
    caption = caption[: caption.index("Please generate")]
    for message in Prompts().load("build_vdc_pairs").render(n_pairs="20", caption=caption):
        assert _signs(str(message["content"])) in _signs(paper)


def test_the_prompt_of_capquiz_pairs_is_the_papers() -> None:
    """Filled with its number, its definitions and no examples, the prompt is figure 6."""
    categories = Prompts().text("build_capquiz_categories", "categories")
    definitions = re.sub(r'^ +- \{"category".*\n?', "", categories, flags=re.MULTILINE)
    assert len(categories.splitlines()) - len(definitions.splitlines()) == 20
    [message] = Prompts().load("build_capquiz_write").render(n_pairs="TEN", categories=definitions)
    printed = _paper(CAPQUIZ).replace("[...] Demos omitted for brevity ...]", "")
    assert _signs(str(message["content"])) in _signs(printed)


@pytest.mark.parametrize("name", ["build_vidcapbench_categories"])
def test_definitions_of_vidcapbench_are_the_papers(name: str) -> None:
    """Each definition stands in appendix C.1."""
    printed = _signs(_paper("000_278cce88e5c9a5a7.txt"))
    text = Prompts().text(name, "categories")
    definitions = [line.partition(": ")[2] for line in text.splitlines() if line.startswith("-")]
    assert len(definitions) == 16
    for definition in definitions:
        assert _signs(definition) in printed


@pytest.mark.parametrize("name", NAMES)
def test_every_prompt_says_where_its_words_come_from(name: str) -> None:
    """Its first line names the paper, or says that the paper prints none and the words are ours."""
    first = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8").partition("\n")[0]
    assert re.match(
        r"# (Source: .*(figure|section|appendix)|Ours: the paper .* prints none)", first
    )


@pytest.mark.parametrize(
    ("name", "slots"),
    [
        ("build_capquiz_domain", set()),
        ("build_capquiz_write", {"n_pairs", "categories"}),
        ("build_capquiz_blind", {"question", "options"}),
        ("build_capquiz_cluster", {"pairs"}),
        ("build_capquiz_sighted", {"question", "options", "option_id_str"}),
        ("build_vdc_captions.first", set()),
        (
            "build_vdc_captions.second",
            {
                "short_caption",
                "background_caption",
                "main_object_caption",
                "camera_caption",
                "reference_caption",
            },
        ),
        ("build_vdc_pairs", {"n_pairs", "caption"}),
        ("build_vdc_sighted", {"question", "answer"}),
        ("build_vcapsbench_pairs_from_caption", {"n_pairs", "categories", "caption"}),
        ("build_vcapsbench_pairs_from_frames", {"n_pairs", "categories"}),
        ("build_vcapsbench_merge", {"pairs"}),
        ("build_vcapsbench_sighted", {"question"}),
        ("build_vidcapbench_pairs", {"n_pairs", "categories"}),
        ("build_vidcapbench_review", {"question", "answer", "sub_category", "why"}),
    ],
)
def test_prompts_have_the_slots_that_are_filled(name: str, slots: set[str]) -> None:
    """And end with a message of the user, to which frames can be attached."""
    assert Prompts().load(name).slots == slots
    assert Prompts().messages(name)[-1]["role"] == "user"


def test_no_prompt_is_left_out_here() -> None:
    """What is packaged for building is what the tests above look at."""
    keys = {(name, key) for name in NAMES for key in read_yaml(name)}
    assert len(keys) == 15 + 3
