"""The runs whose replies and numbers are recorded in ``tests/promises/recorded_cache``.

``record_runs.py`` makes the recording with the version that was current then, and
``test_recorded_cache.py`` judges the same with the code as it is. What is used here is what a user
has, too: the YAML files of the tasks, environment variables, and what hooks return.
"""

from __future__ import annotations

import argparse
import inspect
import json
import pickle
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from lmms_eval.utils import load_yaml_config

import lmms_eval_captions.lmms_eval_tasks
from judge_server import Behaviour
from lmms_eval_captions.lmms_eval_tasks.this_run import THIS_RUN

RECORDING: Final = Path(__file__).resolve().parents[1] / "promises" / "recorded_cache"
_TASKS: Final = Path(next(iter(lmms_eval_captions.lmms_eval_tasks.__path__)))
_ALL: Final = (
    *(f"vdc_{a}" for a in ("camera", "short", "background", "main_object", "detailed")),
    *(
        "vdc_rouge_camera",
        "vidcapbench_ae",
        "vidcapbench_he",
        "vcapsbench",
        "capquiz",
        "capquiz_detailed",
    ),
    *("msvd_eval_ref_only", "msvd_eval_ref_free", "msvd_eval_combined"),
)
_GROUPS: Final = ("vdc_score", "vidcapbench", "msvd_eval")
_FEW: Final = ("vdc_camera", "vidcapbench_he", "vcapsbench", "capquiz", "msvd_eval_ref_only")

_ADDED: Final = ("lmms-eval-captions", "captions", "questions", "limit", "offset")
"""Fields of the signature that are not compared: later versions have more of them."""

Payload = dict[str, Any]


@dataclass(frozen=True)
class RecordedRun:
    """Tasks that are judged in one process, and the settings of that process."""

    name: str
    judge: str
    tasks: tuple[str, ...] = _FEW
    environment: tuple[tuple[str, str], ...] = ()
    served: Behaviour = field(default_factory=Behaviour)
    """How the server that was recorded behaved."""
    names: tuple[str, ...] = ()
    """Names of models that it answered as, in turn; the one that was asked for where there is none.
    """
    mode: str = "now"
    n_videos: int = 1
    """Videos that are judged, the first ones of each task."""

    def variables(self, recording: Path, cache: Path) -> dict[str, str]:
        """The environment of the run.

        Args:
            recording: Folder of the recorded data.
            cache: Folder of the replies.
        """
        return {
            "LMMS_CAPTIONS_CACHE": str(cache),
            "LMMS_CAPTIONS_DATA": str(recording / "data"),
            "LMMS_CAPTIONS_JUDGE": self.judge,
            "LMMS_CAPTIONS_JUDGE_MODE": self.mode,
            "LMMS_CAPTIONS_T5": str(recording / "t5"),
            "LMMS_CAPTIONS_MAX_UNSCORED": "1",
            "OPENAI_API_KEY": "sk-test",
            **{
                name: value.replace("RECORDING", str(recording)) for name, value in self.environment
            },
        }


RUNS: Final = (
    RecordedRun("all_tasks", "a-judge", tasks=_ALL, served=Behaviour(logprobs="whole"), n_videos=3),
    RecordedRun("too_much_unscored", "a-judge", environment=(("LMMS_CAPTIONS_MAX_UNSCORED", "0"),)),
    RecordedRun(
        "other_settings",
        "a-judge",
        environment=(
            ("LMMS_CAPTIONS_JUDGE_TEMPERATURE", "0.4"),
            ("LMMS_CAPTIONS_JUDGE_RUNS", "2"),
            ("LMMS_CAPTIONS_VCAPSBENCH_ASKS", "1"),
            ("LMMS_CAPTIONS_VIDCAPBENCH_FORMAT", "vript"),
            ("LMMS_CAPTIONS_PROMPTS", "RECORDING/prompts"),
        ),
        served=Behaviour(logprobs="digits"),
    ),
    RecordedRun(
        "refused_parameters",
        "org/reasoning-judge",
        served=Behaviour(refuses_parameters=True, refuses_seed=True, logprobs="refuse"),
    ),
    RecordedRun(
        "alias",
        "aliased-judge",
        environment=(("LMMS_CAPTIONS_JUDGE_ALIAS", "files/judge.gguf"),),
        names=("files/judge.gguf",),
    ),
    RecordedRun(
        "served_versions",
        "gpt-4o",
        names=("gpt-4o-2024-08-06", "gpt-4o-2024-11-20", "gpt-4o"),
    ),
    RecordedRun("batch", "batch-judge", mode="batch"),
    RecordedRun("lexical", "lexical", n_videos=3),
)
"""What is served from stored replies, or, the last one, by the stand-in, which needs none."""
COLLECTED: Final = RecordedRun("collected_batch", "late-judge", tasks=("capquiz",), mode="batch")
"""A run that was killed when its batch was submitted: another run has to collect the replies."""


@dataclass(frozen=True)
class Task:
    """A task or a group as its YAML file has it."""

    config: Mapping[str, Any]

    def submit(self, captions: Mapping[str, str], n_videos: int) -> list[dict[str, Any]]:
        """Hand in the captions of the first documents; of each, metric to item."""
        stub = Path(self.config["dataset_kwargs"]["data_files"]["test"])
        documents = self.config["process_docs"]([json.loads(stub.read_text())])
        process, name_of = self.config["process_results"], self.config["doc_to_target"]
        return [
            process(document, [captions[_video_in(name_of(document))]])
            for document in list(documents)[:n_videos]
        ]

    def aggregate(self, items: Sequence[Mapping[str, Any]], output: Path) -> dict[str, Any]:
        """Metric to its number."""
        args = argparse.Namespace(output_path=str(output))
        return {
            metric["metric"]: _call(
                metric["aggregation"], [item[metric["metric"]] for item in items], args
            )
            for metric in self.config["metric_list"]
        }

    def aggregate_group(self, tasks: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """The numbers of a group that it does not leave to lmms-eval.

        Args:
            tasks: Task to its numbers and its ``n_documents``.
        """
        parts = [tasks[name] for name in self.config["task"]]
        sizes = [part["n_documents"] for part in parts]
        return {
            metric["metric"]: metric["aggregation"](
                [part["numbers"][metric["metric"]] for part in parts], sizes, False
            )
            for metric in self.config["aggregate_metric_list"]
            if callable(metric["aggregation"])
        }


def judge(run: RecordedRun, output: Path) -> dict[str, Any]:
    """Judge a run's tasks together, as lmms-eval does, within the environment as it is.

    Returns:
        As JSON has it: of every task its numbers, its breakdown where it writes one and what
        becomes of each document; of every group its numbers.
    """
    THIS_RUN.clear()
    captions = json.loads((RECORDING / "captions.json").read_text(encoding="utf-8"))
    tasks = dict(_read_tasks(run.tasks, "task"))
    submitted = {name: task.submit(captions, run.n_videos) for name, task in tasks.items()}
    judged: dict[str, dict[str, Any]] = {}
    for name, task in tasks.items():
        items = submitted[name]
        numbers = task.aggregate(items, output)
        documents = [_written(item) for item in items]
        judged[name] = {"numbers": numbers, "n_documents": len(items), "documents": documents}
    groups = {
        name: group.aggregate_group(judged)
        for name, group in _read_tasks(_GROUPS, "group")
        if set(group.config["task"]) <= set(tasks)
    }
    found = {"tasks": judged, "groups": groups, "breakdowns": THIS_RUN.breakdowns}
    # The package's version stands in signatures, and may rise; fields were added to them.
    names = "|".join(_ADDED)
    text = re.sub(rf"\|({names}):[^|\"\\]*", "", json.dumps(found))
    recorded: dict[str, Any] = json.loads(text)
    return recorded


def differences(recorded: object, now: object, place: str = "") -> Iterator[str]:
    """Where something recorded is missing or another thing now; fields may have been added.

    >>> list(differences({"a": [1.0, float("nan")]}, {"a": [1.5, float("nan")], "b": 2}))
    ['/a/0: 1.0 was recorded, 1.5 now']
    """
    if isinstance(recorded, dict) and isinstance(now, dict):
        for name, value in recorded.items():
            if name in now:
                yield from differences(value, now[name], f"{place}/{name}")
            else:
                yield f"{place}/{name}: {value!r} was recorded, nothing now"
    elif isinstance(recorded, list) and isinstance(now, list) and len(recorded) == len(now):
        for index, (value, other) in enumerate(zip(recorded, now, strict=True)):
            yield from differences(value, other, f"{place}/{index}")
    elif json.dumps(recorded) != json.dumps(now):
        yield f"{place}: {recorded!r} was recorded, {now!r} now"


def _call(hook: Callable[..., Any], items: Sequence[Any], args: argparse.Namespace) -> Any:
    """Aggregate as lmms-eval does, which hands its command line to those that take it."""
    takes_args = "args" in inspect.signature(hook).parameters
    return hook(items, args=args) if takes_args else hook(items)


def _written(items: Mapping[str, Any]) -> dict[str, Any]:
    """What a sample log holds of a document; what an item has in common with its head, once."""
    # Ranks gather items so.
    records = {metric: pickle.loads(pickle.dumps(item)) for metric, item in items.items()}  # noqa: S301
    head = dict(records["unscored"])
    return {
        metric: head
        if metric == "unscored"
        else {name: value for name, value in record.items() if head.get(name) != value}
        for metric, record in records.items()
    }


def _read_tasks(names: Sequence[str], kind: str) -> Iterator[tuple[str, Task]]:
    """Tasks or groups by name, in the order of the names."""
    paths = {path.stem: path for path in _TASKS.glob("*/*.yaml")}
    for name in names:
        config = load_yaml_config(str(paths[name]))
        assert config[kind] == name
        yield name, Task(config)


def _video_in(target: str) -> str:
    return target.removesuffix(".mp4")
