"""Captioners and documents of any task: pictures, several of them, conversations, rounds."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from lmms_eval.api.instance import Instance
from PIL import Image

from hostile_clips import level, write_clip
from lmms_eval_captions.judges.errors import DataError, SettingsError
from lmms_eval_captions.model_wrappers import multi_round
from lmms_eval_captions.model_wrappers.captioner import Batch, Captioner, CaptionJob
from lmms_eval_captions.model_wrappers.no_caption import NoCaption
from lmms_eval_captions.model_wrappers.video.sampling import Uniform

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lmms_eval_captions.model_wrappers.sources import Takes

Doc = dict[str, Any]
GREEDY = {"max_new_tokens": 16, "do_sample": False}


def describe(job: CaptionJob) -> str:
    """What a job shows and says: levels of pictures, frames of videos, texts in place."""
    shown = [
        str(int(clip.frames[0, 0, 0, 0])) if clip.is_image else f"{len(clip.frames)} frames"
        for clip in job.clips
    ]
    turns = [
        f"{turn.role}: " + " ".join(shown[p] if isinstance(p, int) else p for p in turn.content)
        for turn in job.messages
    ]
    return "; ".join(turns)


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


class Rows(list[Doc]):
    """Documents that count how often they are taken, as those of ``datasets`` are decoded."""

    n_taken = 0

    def __getitem__(self, position: Any) -> Any:
        self.n_taken += 1
        return super().__getitem__(position)


@pytest.mark.parametrize("batch_size", [1, 3])
def test_pictures_clips_and_texts_in_one_call(clips: list[Path], batch_size: int) -> None:
    """Each request gets its own answer, whatever its task shows."""
    docs: dict[str, Sequence[Doc]] = {
        "pictures": [{"shown": [picture(shade)]} for shade in (10, 20, 30, 40)],
        "clips": [{"shown": [str(path)]} for path in clips],
        "several": [
            {"shown": [picture(50), str(clips[0]), picture(60)]},
            {"shown": [str(clips[1]), str(clips[0])]},
        ],
        "texts": [{"shown": []}, {"shown": None}],
    }
    answers = ask(Seer(batch_size=batch_size), docs, lambda doc: doc["shown"])
    assert answers == [
        *(f"user: {shade} Describe." for shade in (10, 20, 30, 40)),
        *["user: 3 frames Describe."] * 2,
        "user: 50 3 frames 60 Describe.",
        "user: 3 frames 3 frames Describe.",
        *["user: Describe."] * 2,
    ]


def test_the_pictures_of_a_benchmark_are_not_all_in_memory() -> None:
    """One document is read to see what the task shows; the others when their turn comes, once."""
    pictures: list[weakref.ref[Image.Image]] = []
    most = 0

    def show(doc: Doc) -> list[Image.Image]:
        shown = picture(doc["shade"])
        pictures.append(weakref.ref(shown))
        return [shown]

    def count(_: Batch) -> None:
        nonlocal most
        gc.collect()
        most = max(most, sum(ref() is not None for ref in pictures))

    rows = Rows({"shade": number} for number in range(60))
    answers = ask(Seer(count, batch_size=4), {"coco": rows}, show)
    assert answers == [f"user: {number} Describe." for number in range(60)]
    assert rows.n_taken == 61
    assert most <= 4 * 4


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


def test_a_part_of_a_clip_is_shown_as_if_it_were_all(clips: list[Path]) -> None:
    """Its frames, their times and its length are those of the part; at the end, the last frame."""
    seen: list[CaptionJob] = []
    model = Seer(lambda batch: seen.extend(batch.jobs))
    parts = [(0.5, 1.5), (1.0, 99.0), (50.0, 60.0)]
    docs = [
        {"shown": [{"path": str(clips[0]), "video_start": start_s, "video_end": end_s}]}
        for start_s, end_s in parts
    ]
    ask(model, {"moments": docs}, lambda doc: doc["shown"])
    first, to_end, past = (job.clip for job in seen)
    levels = first.frames[:, 24, 32, 0].tolist()
    assert levels == pytest.approx([level(n) for n in (6, 12, 18)], abs=6)
    assert first.timestamps_s.tolist() == pytest.approx([0.0, 0.5, 1.0])
    assert first.duration_s == pytest.approx(1.0)
    assert first.n_total == 12
    assert to_end.duration_s == pytest.approx(50 / 12 - 1)
    assert len(to_end.frames) == 3
    assert len(past.frames) == 1


@pytest.mark.parametrize(
    ("takes", "shown", "words"),
    [
        ("videos", [picture(1)], "captions videos only, and pictures are shown"),
        ("videos", ["a.mp4", "b.mp4"], "captions one video at a time, and 2 visuals are shown"),
        ("one", [picture(1), picture(2)], "captions one video at a time, and 2 visuals are shown"),
    ],
)
def test_a_task_that_shows_more_than_a_captioner_takes_ends_the_run_by_name(
    takes: Takes, shown: list[object], words: str
) -> None:
    """Before the first caption: an answer about something else would be scored."""
    model = one(takes)()
    with pytest.raises(SettingsError, match=rf"Less {words} \(document 0 of coco\); leave"):
        ask(model, {"coco": [{"shown": shown}]}, lambda doc: doc["shown"])


def test_a_captioner_of_one_clip_takes_one_picture() -> None:
    """Later documents that show more are left out by name."""
    docs = [{"shown": [picture(1)]}, {"shown": [picture(2), picture(3)]}]
    model = one("one")()
    answers = ask(model, {"coco": docs}, lambda doc: doc["shown"])
    assert answers == ["user: 1 Describe.", ""]
    assert "2 visuals are shown" in model.outcome.failures["coco", 1]


def test_a_document_that_shows_nothing_is_lost_to_who_must_be_shown_something(
    clips: list[Path],
) -> None:
    """As a missing video is; it does not end the run."""
    docs: list[Doc] = [{"shown": []}, {"shown": [str(clips[0])]}]
    model = one("videos")()
    assert ask(model, {"t": docs}, lambda doc: doc["shown"]) == ["", "user: 3 frames Describe."]
    assert "shows no video" in model.outcome.failures["t", 0]


TALK: list[Doc] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "video", "url": "a"}, {"type": "text", "text": "What?"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "A dog."}]},
    {"role": "user", "content": [{"type": "text", "text": "Which?"}]},
]


def told(path: Path, n_turns: int) -> list[Doc]:
    """The start of the talk, about a clip."""
    about = {"type": "video", "url": str(path)}
    turns = TALK[:n_turns]
    turns[1] = {"role": "user", "content": [about, {"type": "text", "text": "What?"}]}
    return turns


def test_a_conversation_reaches_the_captioner_whole(clips: list[Path]) -> None:
    """System, user and assistant turns about a clip, which is still read once for all of them."""
    model = SeerChat(batch_size=4)
    docs = {"talks": [{"turns": 4}, {"turns": 2}]}
    answers = ask(model, docs, lambda doc: told(clips[0], doc["turns"]))
    whole = "system: Be brief.; user: 3 frames What?; assistant: A dog.; user: Which?"
    assert answers == [whole, "system: Be brief.; user: 3 frames What?"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (["Is it", None, "cut?"], "user: Is it 3 frames cut?"),
        (["Where?", None], "user: Where? 3 frames"),
        ([None, "Look.", "Where?"], "user: 3 frames Look. Where?"),
        ([None, "Where?"], "user: 3 frames Where?"),
        ([None], "user: 3 frames Describe."),
    ],
)
def test_a_message_about_a_clip_is_told_as_it_is_written(
    content: list[str | None], expected: str, clips: list[Path]
) -> None:
    """Texts before the clip, or several behind it; the request's own where there is none."""
    parts = [
        {"type": "text", "text": part} if part else {"type": "video", "url": str(clips[0])}
        for part in content
    ]
    turns = [{"role": "user", "content": parts}]
    assert ask(SeerChat(), {"talks": [{}]}, lambda _: turns) == [expected]


def test_a_captioner_of_prompts_reads_the_system_message_and_refuses_to_go_on(
    clips: list[Path],
) -> None:
    """A system message is part of its prompt; earlier turns are none it could be told."""
    kind = type("Less", (SeerChat,), {"takes": "videos"})
    answers = ask(kind(), {"talks": [{}]}, lambda _: told(clips[0], 2))
    assert answers == ["user: 3 frames Be brief.\nWhat?"]
    with pytest.raises(SettingsError, match="a conversation is to be continued"):
        ask(kind(), {"talks": [{}]}, lambda _: told(clips[0], 4))


def test_a_chat_task_of_pictures_is_a_conversation_about_them() -> None:
    """As lmms-eval builds chat messages of image tasks."""

    def messages(doc: Doc) -> list[Doc]:
        content = [{"type": "image", "url": picture(shade)} for shade in doc["shades"]]
        return [{"role": "user", "content": [*content, {"type": "text", "text": "Older?"}]}]

    docs = {"pairs": [{"shades": [1, 2]}, {"shades": [3]}]}
    assert ask(SeerChat(), docs, messages) == ["user: 1 2 Older?", "user: 3 Older?"]


def _rounds(model: Seer, docs: list[Doc], hook: Callable[..., object]) -> list[list[str]]:
    """Answers of a task of several rounds."""
    model.task_dict = {"rounds": {"test": docs}}
    requests = []
    for doc_id in range(len(docs)):
        show = (GREEDY, lambda doc: [picture(doc["shade"])], hook)
        middle = show if model.is_simple else (hook, GREEDY)
        arguments = ("First?", *middle, doc_id, "rounds", "test")
        metadata = {"task": "rounds", "doc_id": doc_id, "repeats": 1}
        requests.append(Instance("generate_until_multi_round", arguments, 0, metadata))
    return model.generate_until_multi_round(requests)


def test_a_task_of_several_rounds_is_answered_to_its_end() -> None:
    """What a round asks and shows follows from the answers before; documents end when they end."""
    given: list[tuple[int, list[str], object]] = []

    def following(
        doc: Doc, round_idx: int, previous_output: list[str], previous_round_info: object
    ) -> tuple[object, ...]:
        given.append((round_idx, previous_output, previous_round_info))
        if round_idx == doc["n_rounds"]:
            return None, None, True, [*previous_output, None], None
        return [picture(100 + round_idx)], f"Round {round_idx}?", False, previous_output, round_idx

    docs = [{"shade": 1, "n_rounds": 3}, {"shade": 2, "n_rounds": 1}]
    first, second = _rounds(Seer(batch_size=2), docs, following)
    assert first == ["user: 1 First?", "user: 101 Round 1?", "user: 102 Round 2?", ""]
    assert second == ["user: 2 First?", ""]
    assert (3, first[:3], 2) in given


def test_rounds_of_chat_messages_are_answered_too() -> None:
    """lmms-eval's chat form hands over messages in the place of visuals and a text."""

    def messages(
        doc: Doc,
        round_idx: int | None = None,
        previous_output: list[str] | None = None,
        previous_round_info: object = None,
    ) -> object:
        shown = {"type": "image", "url": picture(doc["shade"])}
        asked = f"After {previous_output[-1][-6:]}" if previous_output else "First?"
        turn = {"role": "user", "content": [shown, {"type": "text", "text": asked}]}
        if round_idx is None:
            return [turn]
        return [turn], round_idx == 2, previous_output, previous_round_info

    answers = _rounds(SeerChat(), [{"shade": 7}], messages)
    assert answers == [["user: 7 First?", "user: 7 After First?"]]


def test_marks_in_the_text_of_a_message_say_where_something_is_shown(clips: list[Path]) -> None:
    """As in a request of the simple form: models whose own marks they are would refuse them."""
    video = {"type": "video", "url": str(clips[0])}
    ten, twenty = ({"type": "image", "url": picture(shade)} for shade in (10, 20))
    brief = {"role": "system", "content": "Be brief."}

    def user(*parts: Mapping[str, object], text: str) -> dict[str, object]:
        return {"role": "user", "content": [*parts, {"type": "text", "text": text}]}

    talks = [
        [user(ten, twenty, text="Is <image> like <image>?")],
        [brief, user(video, text="<video>\nWhat is it?")],
        [user(ten, text="<image> or <image>?")],
    ]
    answers = ask(SeerChat(), {"t": [{"talk": talk} for talk in talks]}, lambda doc: doc["talk"])
    assert answers == [
        "user: Is 10 like 20 ?",
        "system: Be brief.; user: 3 frames What is it?",
        "user: 10 or ?",
    ]


def test_a_task_that_never_ends_its_rounds_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would go on for ever."""
    monkeypatch.setattr(multi_round, "_MOST_ROUNDS", 3)

    def following(_doc: Doc, **_: object) -> tuple[object, ...]:
        return [], "Again?", False, None, None

    with pytest.raises(DataError, match="expected the rounds of rounds to end"):
        _rounds(Seer(), [{"shade": 1}], following)


def test_frames_of_pictures_are_plain_arrays() -> None:
    """(1, height, width, 3), uint8, in RGB, as those of clips."""
    seen: list[CaptionJob] = []
    coloured = Image.new("RGB", (5, 2), (1, 2, 3))
    ask(Seer(lambda batch: seen.extend(batch.jobs)), {"t": [{}]}, lambda _: [coloured])
    frames = seen[0].clip.frames
    assert (frames.shape, str(frames.dtype)) == ((1, 2, 5, 3), "uint8")
    assert frames[0, 0, 0].tolist() == [1, 2, 3]


def test_what_a_file_is_says_its_content(clips: list[Path], tmp_path: Path) -> None:
    """A video that is called a picture is a video, also to who captions videos alone."""
    misnamed = tmp_path / "clip.png"
    misnamed.write_bytes(clips[0].read_bytes())
    still = tmp_path / "still.png"
    picture(9).save(still)
    docs: list[Doc] = [{"shown": [str(misnamed)]}, {"shown": [str(still)]}]
    assert ask(Seer(), {"t": docs}, lambda doc: doc["shown"]) == [
        "user: 3 frames Describe.",
        "user: 9 Describe.",
    ]
    videos = ask(one("videos")(), {"t": docs}, lambda doc: doc["shown"])
    assert videos == ["user: 3 frames Describe.", "user: 1 frames Describe."]
