"""Tasks of lmms-eval's own kinds on a few rows of local data, for runs that leave nothing here.

Each is what lmms-eval's folder of that name has, hooks included; only the data are a local file,
and the scores of texts are their lengths (its own need Java).
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from datasets import Dataset, Features, Image, Sequence, Value
from PIL import Image as Pictures

if TYPE_CHECKING:
    from pathlib import Path

HOOKS = """
def lengths(doc, results):
    return {"n_letters": len(results[0])}
"""
LENGTHS = """
process_results: !function hooks.lengths
metric_list:
  - metric: n_letters
    aggregation: mean
    higher_is_better: true
"""
TASKS = {
    # lmms_eval/tasks/coco_cap/coco2014_cap_val.yaml
    "pictures_cap": """
output_type: generate_until
doc_to_visual: !function lmms_eval.tasks.coco_cap.utils.coco_doc_to_visual
doc_to_text: "Provide a one-sentence caption for the provided image."
doc_to_target: answer
"""
    + LENGTHS,
    # lmms_eval/tasks/blink/_default_template_yaml
    "pictures_choice": """
output_type: generate_until
doc_to_visual: !function lmms_eval.tasks.blink.utils.blink_doc_to_visual
doc_to_text: !function lmms_eval.tasks.blink.utils.blink_doc_to_text
doc_to_messages: !function lmms_eval.tasks.blink.utils.blink_doc_to_messages
doc_to_target: answer
process_results: !function lmms_eval.tasks.blink.utils.blink_process_results
metric_list:
  - metric: blink_acc
    aggregation: !function lmms_eval.tasks.blink.utils.blink_aggregate_results
    higher_is_better: true
lmms_eval_specific_kwargs:
  default:
    pre_prompt: "Note: You only need to respond with {}.\\n"
""",
    # lmms_eval/tasks/vatex/vatex_test.yaml
    "videos_cap": """
output_type: generate_until
doc_to_visual: !function lmms_eval.tasks.vatex.utils.vatex_test_doc_to_visual
doc_to_text: !function lmms_eval.tasks.vatex.utils.vatex_test_doc_to_text
doc_to_target: answer
lmms_eval_specific_kwargs:
  default:
    prompt: Provide a brief single-sentence caption for the last video below.
"""
    + LENGTHS,
    # lmms_eval/tasks/arc: a text and its choices, by likelihoods
    "likelihoods": """
output_type: multiple_choice
doc_to_text: "Question: {{question}}"
doc_to_target: 0
doc_to_choice: ["yes", "no"]
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
""",
}
COMMON = """
task: {name}
dataset_path: parquet
dataset_kwargs:
  data_files:
    test: {file}
test_split: test
generation_kwargs:
  max_new_tokens: 8
  temperature: 0
  do_sample: false
"""


def write_tasks(folder: Path, clips: list[Path]) -> Path:
    """A folder for ``--include_path``; clips go where VATEX looks for them, see ``hf_home``."""
    folder.mkdir(parents=True)
    (folder / "hooks.py").write_text(HOOKS)
    data = {
        "pictures_cap": _pictures(),
        "pictures_choice": _choices(),
        "videos_cap": Dataset.from_dict({"videoID": [clip.stem for clip in clips]}),
        "likelihoods": Dataset.from_dict({"question": ["Is it?", "Was it?"]}),
    }
    for name, text in TASKS.items():
        file = folder / f"{name}.parquet"
        data[name].to_parquet(file)
        (folder / f"{name}.yaml").write_text(COMMON.format(name=name, file=file) + text)
    videos = hf_home(folder) / "vatex_test"
    videos.mkdir(parents=True)
    for clip in clips:
        shutil.copy(clip, videos / f"{clip.stem}.mp4")
    return folder


def hf_home(folder: Path) -> Path:
    return folder / "home"


def _picture(shade: int, size: tuple[int, int]) -> Pictures.Image:
    return Pictures.linear_gradient("L").resize(size).point(lambda level: (level + shade) % 256)


def _pictures() -> Dataset:
    """Pictures of several shapes."""
    sizes = [(64, 48), (48, 96), (30, 30)]
    return Dataset.from_dict(
        {
            "image": [_picture(60 * number, size) for number, size in enumerate(sizes)],
            "answer": ["a", "b", "c"],
        },
        features=Features({"image": Image(), "answer": Value("string")}),
    )


def _choices() -> Dataset:
    """Two pictures, then one, then two."""
    rows = {
        "idx": ["a", "b", "c"],
        "prompt": ["Which is darker?\n(A) one (B) two"] * 3,
        "choices": [["one", "two"]] * 3,
        "answer": ["(A)", "(B)", "(A)"],
        "sub_task": ["t"] * 3,
        "image_1": [_picture(shade, (40, 40)) for shade in (0, 90, 180)],
        "image_2": [_picture(20, (56, 28)), None, _picture(220, (28, 28))],
    }
    features = Features(
        {
            **{name: Value("string") for name in ("idx", "prompt", "answer", "sub_task")},
            "choices": Sequence(Value("string")),
            "image_1": Image(),
            "image_2": Image(),
        }
    )
    return Dataset.from_dict({name: rows[name] for name in features}, features=features)
