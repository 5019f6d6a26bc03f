"""Captioners and documents of any task: one video, pictures, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from lmms_eval.api.instance import Instance
from PIL import Image

from hostile_clips import write_clip
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.model_wrappers.captioner import Batch, Captioner, CaptionJob
from lmms_eval_captions.model_wrappers.no_caption import NoCaption
from lmms_eval_captions.model_wrappers.video.sampling import Uniform

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lmms_eval_captions.model_wrappers.documents import Takes

Doc = dict[str, Any]
GREEDY = {"max_new_tokens": 16, "do_sample": False}


def describe(job: CaptionJob) -> str:
    shown = [
        str(int(clip.frames[0, 0, 0, 0])) if clip.is_image else f"{len(clip.frames)} frames"
        for clip in job.clips
    ]
    return " ".join(shown[part] if isinstance(part, int) else part for part in job.content)


class Seer(Captioner):
    """Says what it is shown and told."""

    sampling = Uniform(3)
    takes: ClassVar[Takes] = "all"

    def __init__(self, act: Callable[[Batch], None] | None = None, **common: Any) -> None:
        super().__init__(**{"device": "cpu", "decode_threads": 2, **common})
        self.act = act

    def caption(self, batch: Batch) -> list[str]:
        """See :func:`describe`."""
        if self.act:
            self.act(batch)
        return [describe(job) for job in batch.jobs]


class SeerChat(Seer):
    """The same in the chat form."""

    is_simple = False


def one(takes: Takes) -> type[Seer]:
    """A captioner that takes less."""
    return type("Less", (Seer,), {"takes": takes})


def picture(shade: int) -> Image.Image:
    """A plain picture."""
    return Image.new("RGB", (4, 3), (shade, shade, shade))


def ask(
    model: Seer,
    docs: Mapping[str, Sequence[Doc]],
    hook: Callable[[Doc], object],
    prompt: str = "Describe.",
) -> list[str]:
    """The captions of every document of some tasks."""
    model.task_dict = {task: {"test": rows} for task, rows in docs.items()}
    requests = []
    for task, rows in docs.items():
        for doc_id in range(len(rows)):
            middle = (GREEDY, hook) if model.is_simple else (hook, GREEDY)
            arguments = (prompt, *middle, doc_id, task, "test")
            metadata = {"task": task, "doc_id": doc_id, "repeats": 1}
            requests.append(Instance("generate_until", arguments, 0, metadata))
    return [result.text for result in model.generate_until(requests)]


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two clips of 12 frames a second."""
    folder = tmp_path_factory.mktemp("clips")
    return [write_clip(folder / f"{n}.mp4", 50 + n) for n in range(2)]


@pytest.mark.parametrize("batch_size", [1, 3])
def test_pictures_clips_and_texts_in_one_call(clips: list[Path], batch_size: int) -> None:
    """Each request gets its own answer, whatever its task shows."""
    docs: dict[str, Sequence[Doc]] = {
        "pictures": [{"shown": [picture(shade)]} for shade in (10, 20, 30, 40)],
        "clips": [{"shown": [str(path)]} for path in clips],
        "several": [{"shown": [picture(50), None, [picture(60)]]}],
    }
    answers = ask(Seer(batch_size=batch_size), docs, lambda doc: doc["shown"])
    assert answers == [
        *(f"{shade} Describe." for shade in (10, 20, 30, 40)),
        *["3 frames Describe."] * 2,
        "50 60 Describe.",
    ]


def test_a_broken_picture_costs_its_own_answer_alone(logged: list[str]) -> None:
    """It is named with its task and document; the next one is answered."""
    docs: dict[str, list[Doc]] = {
        "coco": [{"shown": [picture(1)]}, {"shown": [b"nonsense"]}, {"shown": [picture(3)]}]
    }
    model = Seer(batch_size=3)
    answers = ask(model, docs, lambda doc: doc["shown"])
    assert [bool(answer) for answer in answers] == [True, False, True]
    assert isinstance(answers[1], NoCaption)
    assert "document 1 of coco: expected a readable picture" in answers[1].reason
    assert any("no caption for document 1 of coco" in line for line in logged)


@pytest.mark.parametrize(
    ("takes", "shown", "words"),
    [
        ("videos", [picture(1)], "captions videos only, and pictures are shown"),
        ("videos", ["a.mp4", "b.mp4"], "captions one video at a time, and 2 visuals are shown"),
        ("one", [picture(1), picture(2)], "captions one video at a time, and 2 visuals are shown"),
        ("all", ["a.mp4", picture(2)], "captions pictures, or one video, at a time, and 2 visuals"),
    ],
)
def test_a_task_that_shows_more_than_a_captioner_takes_ends_the_run_by_name(
    takes: Takes, shown: list[object], words: str
) -> None:
    """Before the first caption: an answer about something else would be scored."""
    model = one(takes)()
    with pytest.raises(SettingsError, match=rf"Less {words}.* \(document 0 of coco\); leave"):
        ask(model, {"coco": [{"shown": shown}]}, lambda doc: doc["shown"])


def test_a_captioner_of_one_clip_takes_one_picture() -> None:
    """Later documents that show more are left out by name."""
    docs = [{"shown": [picture(1)]}, {"shown": [picture(2), picture(3)]}]
    model = one("one")()
    answers = ask(model, {"coco": docs}, lambda doc: doc["shown"])
    assert answers == ["1 Describe.", ""]
    assert "2 visuals are shown" in model.outcome.failures["coco", 1]


def test_a_document_that_shows_nothing_is_lost_to_who_must_be_shown_something(
    clips: list[Path],
) -> None:
    docs: list[Doc] = [{"shown": []}, {"shown": [str(clips[0])]}]
    model = one("videos")()
    assert ask(model, {"t": docs}, lambda doc: doc["shown"]) == ["", "3 frames Describe."]
    assert "shows no video" in model.outcome.failures["t", 0]


def test_a_conversation_is_refused_by_name(clips: list[Path]) -> None:
    """It is lost, with the reason and the remedy; so are parts of a video."""

    def messages(doc: Doc) -> list[Doc]:
        video = {"type": "video", "url": str(clips[0]), **doc["bounds"]}
        turns = [{"role": "user", "content": [video, {"type": "text", "text": "What?"}]}]
        return (
            [*turns, {"role": "assistant", "content": "A dog."}, *turns] if doc["talk"] else turns
        )

    docs = [{"talk": True, "bounds": {}}, {"talk": False, "bounds": {"start_time": 3}}]
    model = SeerChat()
    assert ask(model, {"t": [*docs, {"talk": False, "bounds": {}}]}, messages)[:2] == ["", ""]
    assert "got a turn of 'assistant': run this task" in model.outcome.failures["t", 0]
    assert "got a part of" in model.outcome.failures["t", 1]


def test_a_chat_task_of_pictures_is_a_question_about_them() -> None:

    def messages(doc: Doc) -> list[Doc]:
        content = [{"type": "image", "url": picture(shade)} for shade in doc["shades"]]
        return [{"role": "user", "content": [*content, {"type": "text", "text": "Older?"}]}]

    docs = {"pairs": [{"shades": [1, 2]}, {"shades": [3]}]}
    assert ask(SeerChat(), docs, messages) == ["1 2 Older?", "3 Older?"]


def test_what_a_file_is_says_its_content(clips: list[Path], tmp_path: Path) -> None:
    """A video that is called a picture is a video, also to who captions videos alone."""
    misnamed = tmp_path / "clip.png"
    misnamed.write_bytes(clips[0].read_bytes())
    still = tmp_path / "still.png"
    picture(9).save(still)
    docs: list[Doc] = [{"shown": [str(misnamed)]}, {"shown": [str(still)]}]
    assert ask(Seer(), {"t": docs}, lambda doc: doc["shown"]) == [
        "3 frames Describe.",
        "9 Describe.",
    ]
    videos = ask(one("videos")(), {"t": docs}, lambda doc: doc["shown"])
    assert videos == ["3 frames Describe.", "1 frames Describe."]
