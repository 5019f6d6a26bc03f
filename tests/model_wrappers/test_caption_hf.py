"""``caption_hf`` with tiny checkpoints of several families, loaded by path."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from transformers import AutoProcessor

from caption_requests import GREEDY, caption_all, results_of
from hostile_clips import write_all, write_clip
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.lmms_eval_tasks.sample import sample_root
from lmms_eval_captions.model_wrappers.caption_files.columns import ASPECTS
from lmms_eval_captions.model_wrappers.caption_hf import CaptionHf
from runs import environment, run_lmms_eval
from zoo import ARCHITECTURES

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore:.*")

PROMPTS = {"short": "Describe.", "long": "Describe the camera, then the background, in detail."}


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Clips of several lengths and shapes."""
    folder = tmp_path_factory.mktemp("clips")
    shapes = [(3, (64, 48)), (24, (64, 48)), (9, (48, 96)), (1, (32, 32)), (12, (160, 64))]
    return [
        write_clip(folder / f"{index}.mp4", n, size=size) for index, (n, size) in enumerate(shapes)
    ]


@pytest.fixture(scope="module", params=["qwen2_5_vl", "llava_onevision", "internvl"])
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of each family."""
    return ARCHITECTURES[request.param].write(tmp_path_factory.mktemp("model") / request.param)


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One checkpoint."""
    return ARCHITECTURES["qwen2_5_vl"].write(tmp_path_factory.mktemp("model") / "qwen")


def make(checkpoint: Path, **arguments: Any) -> CaptionHf:
    """A captioner on the CPU."""
    return CaptionHf(
        **{"pretrained": str(checkpoint), "device": "cpu", "max_num_frames": 5, **arguments}
    )


def test_batched_is_unbatched(checkpoint: Path, clips: list[Path]) -> None:
    """Greedy captions and token counts do not depend on what stands beside them in a batch."""
    alone = results_of(make(checkpoint, batch_size=1), clips, PROMPTS)
    together = results_of(make(checkpoint, batch_size=4), clips, PROMPTS)
    assert [(result.text, result.token_counts) for result in alone] == [
        (result.text, result.token_counts) for result in together
    ]
    assert all(len(result.text) == result.token_counts.output_tokens == 16 for result in alone)
    assert len({result.text for result in alone}) >= 8, "captions follow clip and prompt"


def test_hostile_clips_are_captioned_to_the_end(checkpoint: Path, tmp_path: Path) -> None:
    """Every clip has a caption or a named reason with a real processor and model, too."""
    readable = write_all(tmp_path)
    model = make(checkpoint, batch_size=6, max_num_frames=3)
    captions = caption_all(model, [tmp_path / name for name in readable])
    for doc_id, (name, caption) in enumerate(zip(readable, captions, strict=True)):
        reason = model.outcome.failures.get(("task", doc_id))
        assert bool(caption) != bool(reason), (name, caption, reason)
        assert bool(caption) == readable[name], (name, reason)


def test_the_real_clip(qwen: Path, shared_data: Path) -> None:
    """A 720p clip goes through at a frame rate, with a cap."""
    model = make(qwen, fps=2, max_num_frames=6, frame_pixels=56 * 84)
    [result] = results_of(model, [shared_data / "media" / "video1.mp4"])
    assert len(result.text) == 16


def test_a_sampled_caption_differs_from_the_greedy_one(qwen: Path, clips: list[Path]) -> None:
    """Temperature and stops of the request reach the model."""
    model = make(qwen)
    [greedy] = caption_all(model, clips[:1])
    [drawn] = caption_all(model, clips[:1], settings={"max_new_tokens": 16, "temperature": 5.0})
    assert greedy != drawn
    [cut] = caption_all(model, clips[:1], settings={**GREEDY, "until": [greedy[4:6]]})
    assert cut == greedy[:4]
    [beams] = caption_all(model, clips[:1], settings={**GREEDY, "num_beams": 3})
    assert len(beams) == 16


def test_a_model_without_videos_is_shown_images(qwen: Path, clips: list[Path]) -> None:
    """A processor that knows no videos gets the frames one by one."""
    model = make(qwen)
    model.processor.video_processor = None
    alone = caption_all(model, clips[:3])
    assert all(len(caption) == 16 for caption in alone)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pretrained": ""}, "expected --model_args pretrained"),
        ({"dtype": "int8"}, "dtype='int8'"),
        ({"max_num_frames": 0}, "max_num_frames: expected"),
        ({"frames": 8}, "does not know"),
    ],
)
def test_wrong_arguments_are_named(qwen: Path, arguments: dict[str, object], message: str) -> None:
    """Each wrong argument is answered."""
    with pytest.raises(SettingsError, match=message):
        make(qwen, **arguments)


def test_a_checkpoint_without_chat_template_is_refused(qwen: Path, tmp_path: Path) -> None:
    """A base model cannot be asked."""
    processor = AutoProcessor.from_pretrained(qwen)
    processor.chat_template = processor.tokenizer.chat_template = None
    processor.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text((qwen / "config.json").read_text())
    with pytest.raises(SettingsError, match="no chat template"):
        make(tmp_path)


@pytest.mark.nightly
def test_one_process_is_two_processes(qwen: Path, tmp_path: Path) -> None:
    """The whole command line writes the same captions with one process and with two."""
    sample_root(tmp_path / "cache")
    env = environment(tmp_path / "cache", LMMS_CAPTIONS_JUDGE="lexical")
    arguments = (
        "--model", "caption_hf", "--tasks", "vdc_score", "--batch_size", "3",
        "--device", "cpu",
        "--model_args", f"pretrained={qwen},max_num_frames=4",
        "--gen_kwargs", "max_new_tokens=12",
    )  # fmt: skip

    def captions(name: str, n_processes: int) -> dict[str, list[str]]:
        run = run_lmms_eval(tmp_path / name, *arguments, env=env, n_processes=n_processes)
        assert run.returncode == 0, run.log
        samples = {aspect: run.samples(f"vdc_{aspect}") for aspect in ASPECTS}
        return {
            aspect: [
                json.dumps(row["filtered_resps"])
                for row in sorted(rows, key=lambda row: row["doc_id"])
            ]
            for aspect, rows in samples.items()
        }

    by_one_process = captions("one", 1)
    assert all(len(set(rows)) > 1 for rows in by_one_process.values())
    assert captions("two", 2) == by_one_process
