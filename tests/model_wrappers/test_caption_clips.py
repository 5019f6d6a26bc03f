"""Clips are captioned by a function as a run of lmms-eval captions them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from caption_requests import GREEDY, caption_all
from hostile_clips import write_clip
from judge_server import Behaviour, JudgeServer
from lmms_eval_captions.judges.errors import CaptionError, SettingsError
from lmms_eval_captions.lmms_eval_tasks.plugin import manifests
from lmms_eval_captions.model_wrappers.caption_baseline import CaptionBaseline
from lmms_eval_captions.model_wrappers.caption_clips import ClipCaptioner
from lmms_eval_captions.model_wrappers.caption_hf import CaptionHf
from lmms_eval_captions.model_wrappers.caption_jobs import Answer
from lmms_eval_captions.model_wrappers.captioner import Batch, Captioner
from lmms_eval_captions.model_wrappers.captioner_names import CAPTIONERS, captioner_class
from lmms_eval_captions.model_wrappers.no_caption import NoCaption
from zoo import ARCHITECTURES

pytestmark = [pytest.mark.keeps_captions, pytest.mark.filterwarnings("ignore:.*")]

PROMPT = "Describe the camera, then the background."
MINE = """
from lmms_eval_captions.model_wrappers.caption_jobs import Answer
from lmms_eval_captions.model_wrappers.captioner import Batch, Captioner
from lmms_eval_captions.model_wrappers.video.sampling import Uniform


class Mine(Captioner):
    sampling = Uniform(2)

    def __init__(self, *, word="a", **common):
        super().__init__(**common)
        self.word = word

    def caption(self, batch):
        words = [f"{self.word} {job.path.stem} {job.prompt}" for job in batch.jobs]
        return [f"<think>Hm.</think> {said} " for said in words]
"""


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Four clips."""
    folder = tmp_path_factory.mktemp("clips")
    return [write_clip(folder / f"clip{n}.mp4", 6 + 3 * n) for n in range(4)]


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What two captioners take, one of them a tiny checkpoint."""
    checkpoint = ARCHITECTURES["qwen2_5_vl"].write(tmp_path_factory.mktemp("model") / "qwen")
    return {
        "caption_baseline": "n_frames=5",
        "caption_hf": f"pretrained={checkpoint},device=cpu,max_num_frames=4,batch_size=2",
    }


@pytest.fixture(autouse=True)
def _no_judge(bench: pytest.MonkeyPatch) -> None:
    """A cache folder of the test's own, and a judge that could not be asked."""
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", "no address")


def _in_a_run(name: str, arguments: str, clips: list[Path]) -> list[str]:
    """Captions of a run, as its tasks are handed them."""
    model = captioner_class(name).create_from_arg_string(arguments, {"batch_size": 1})
    return [text.strip() for text in caption_all(model, clips, {"vdc_camera": PROMPT})]


@pytest.mark.parametrize("name", ["caption_baseline", "caption_hf"])
def test_captions_are_those_of_a_run(
    name: str, clips: list[Path], arguments: Mapping[str, str]
) -> None:
    """However the clips are divided and ordered, and though the run wrote them anew."""
    expected = _in_a_run(name, f"{arguments[name]},reuse=false", clips)
    assert len({*expected}) > 1 or name == "caption_baseline"
    with ClipCaptioner(name, arguments[name], prompt=PROMPT, generation=GREEDY) as captioner:
        assert captioner.captions([clips[2], clips[0], clips[2]]) == [
            expected[2],
            expected[0],
            expected[2],
        ]
        assert captioner.captions([]) == []
        assert captioner.captions([str(clip) for clip in clips]) == expected


@pytest.mark.parametrize("name", ["caption_baseline", "caption_hf"])
def test_what_was_captioned_is_taken_again(
    name: str, clips: list[Path], arguments: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another captioner, a run's or this one's, has kept needs no model; a rest is written."""
    in_run = _in_a_run(name, arguments[name], clips[:2])
    written: list[Path] = []
    captioners: dict[str, type[Captioner]] = {
        "caption_baseline": CaptionBaseline,
        "caption_hf": CaptionHf,
    }
    caption = captioners[name].caption

    def counted(self: Captioner, batch: Batch) -> Sequence[Answer]:
        written.extend(job.path for job in batch.jobs)
        return caption(self, batch)

    monkeypatch.setattr(captioners[name], "caption", counted)
    by_name = dict(part.split("=", 1) for part in arguments[name].split(","))
    with ClipCaptioner(name, by_name, prompt=PROMPT, generation=GREEDY) as captioner:
        first = captioner.captions(clips)
    assert first[:2] == in_run
    assert sorted(written) == clips[2:]
    with ClipCaptioner(name, arguments[name], prompt=PROMPT, generation=GREEDY) as again:
        assert again.captions(clips[::-1]) == first[::-1]
    assert sorted(written) == clips[2:]


def test_a_clip_that_cannot_be_read_has_a_reason(clips: list[Path], tmp_path: Path) -> None:
    """The others have their captions; where all are lost, each says why."""
    broken, gone = tmp_path / "broken.mp4", tmp_path / "gone.mp4"
    broken.write_bytes(b"no video")
    with ClipCaptioner("caption_baseline", prompt=PROMPT) as captioner:
        fine, bad, lost = captioner.captions([clips[0], broken, gone])
        assert fine
        assert not isinstance(fine, NoCaption)
        for none, path in ((bad, broken), (lost, gone)):
            assert isinstance(none, NoCaption)
            assert path.name in none.reason
        for none in captioner.captions([gone, tmp_path / "song.mp3", "http://a.test/a.mp4"]):
            assert isinstance(none, NoCaption)
            assert none.reason


def test_a_clip_that_was_replaced_is_looked_at_anew(tmp_path: Path) -> None:
    """A path is no clip: between two calls another may have come to lie there."""
    place, other = tmp_path / "clip.mp4", tmp_path / "other.mp4"
    write_clip(place, 30)
    write_clip(other, 8, size=(160, 64))
    with ClipCaptioner("caption_baseline", prompt=PROMPT) as captioner:
        (before,) = captioner.captions([place])
        other.replace(place)
        (after,) = captioner.captions([place])
    with ClipCaptioner("caption_baseline", "reuse=false", prompt=PROMPT) as fresh:
        assert fresh.captions([place]) == [after]
    assert before != after


def test_a_class_of_the_user_s_own(clips: list[Path], tmp_path: Path) -> None:
    """By its file or module; what it thinks is left out, as lmms-eval does it."""
    (tmp_path / "mine.py").write_text(MINE)
    name = f"{tmp_path / 'mine.py'}:Mine"
    with ClipCaptioner(name, "word=b", prompt="Why?") as captioner:
        assert captioner.captions(clips[:2]) == ["b clip0 Why?", "b clip1 Why?"]
    with ClipCaptioner("caption_custom", f"class={name}", prompt="Why?") as captioner:
        assert captioner.captions(clips[:1]) == ["a clip0 Why?"]


def test_an_endpoint_is_asked_once_for_each_clip(
    clips: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``caption_openai`` answers several calls; what it was paid for is not asked again."""
    with JudgeServer(Behaviour(), reply=lambda prompt: f"Of: {prompt}") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        given = "model=m,max_num_frames=2"
        with ClipCaptioner("caption_openai", given, prompt="Why?") as captioner:
            assert captioner.captions(clips[:2]) == ["Of: Why?"] * 2
            assert captioner.captions(clips[1:]) == ["Of: Why?"] * 3
        n_asked = server.counts.n_requests
        with ClipCaptioner("caption_openai", given, prompt="Why?") as again:
            assert again.captions(clips) == ["Of: Why?"] * 4
        assert server.counts.n_requests == n_asked == 4


def test_captions_that_are_written_already(clips: list[Path], tmp_path: Path) -> None:
    """``caption_file`` finds them by the clip's name, and says which are missing."""
    path = tmp_path / "captions.jsonl"
    path.write_text('{"video_id": "clip1", "caption": "A ball. "}\n')
    with ClipCaptioner("caption_file", f"path={path},missing=skip", prompt="Why?") as captioner:
        none, found = captioner.captions(clips[:2])
        assert isinstance(none, NoCaption)
        assert found == "A ball."
    with (
        ClipCaptioner("caption_file", f"path={path}", prompt="Why?") as captioner,
        pytest.raises(
            CaptionError, match=r"1 of 2 captions are missing, for '.*clip0\.mp4 \(clips"
        ),
    ):
        captioner.captions(clips[:2])


@pytest.mark.parametrize(
    ("name", "arguments", "prompt", "message"),
    [
        ("caption_hff", "", "Why?", "one of caption_file, caption_baseline, caption_hf, .*custom"),
        ("no_such_module:Mine", "", "Why?", "there is no module 'no_such_module'"),
        ("mine:Mine", "class=yours:Yours", "Why?", "expected no argument class="),
        ("caption_baseline", "frames=3", "Why?", r"does not know \['frames'\]"),
        ("caption_baseline", "", " ", "expected a prompt"),
    ],
)
def test_what_cannot_be_used_is_refused(
    name: str, arguments: str, prompt: str, message: str
) -> None:
    """Before anything is captioned, in words."""
    with pytest.raises(SettingsError, match=message):
        ClipCaptioner(name, arguments, prompt=prompt)


def test_generation_settings_are_read_before_the_model_is_made() -> None:
    """A wrong one costs no loading of weights."""
    with pytest.raises(SettingsError, match="max_new_tokens"):
        ClipCaptioner("caption_hf", prompt="Why?", generation={"max_new_tokens": "many"})


def test_a_closed_captioner_captions_nothing(clips: list[Path]) -> None:
    """Its model is gone; closing twice is no error."""
    captioner = ClipCaptioner("caption_baseline", prompt=PROMPT)
    captioner.close()
    captioner.close()
    with pytest.raises(ValueError, match="closed"):
        captioner.captions(clips)


def test_every_name_that_lmms_eval_knows_has_a_class() -> None:
    """The names are those of the entry point, and the classes those that it names."""
    for manifest in manifests():
        made = captioner_class(manifest.model_id)
        path = manifest.chat_class_path or manifest.simple_class_path
        assert f"{made.__module__}.{made.__qualname__}" == path
    assert {manifest.model_id for manifest in manifests()} == {*CAPTIONERS, "caption_custom"}
