"""What a benchmark that can be built is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from lmms_eval_captions.lmms_eval_tasks.commands.building.options import Options
from lmms_eval_captions.lmms_eval_tasks.commands.building.stages import Stage
from lmms_eval_captions.lmms_eval_tasks.commands.building.work import Row, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A benchmark and the pipeline that makes its files."""

    name: str
    """The benchmark's, and that of its folder of data."""
    builds: str
    """What it makes, for the command's help."""
    source: str
    """Paper and sections of the pipeline."""
    tasks: tuple[str, ...]
    """Tasks that score captions with what was built."""
    per_video: int
    """Questions of a clip, where the user does not say."""
    n_frames: int
    """Frames of a clip, where the user does not say."""
    categories: Mapping[str, str]
    """Category to its definition, the paper's; own ones may take their place unless empty."""
    stages: Callable[[Options], Sequence[Stage]]
    write: Callable[[Work, list[Row]], Mapping[str, int]]
    """Writes the benchmark's files of the rows that are left; file to its number of questions.
    Raises :class:`DataError` where one cannot be written."""
    video_folder: str
    """Where the benchmark's reader looks for clips, below its folder."""
    needs_solver: bool = True
    """Whether a model that reads text alone is asked."""
    task_files: Mapping[str, str] = field(default_factory=dict)
    """Task to the file that it reads, where a build may have no questions for one of several."""

    def tasks_of(self, files: Collection[str]) -> tuple[str, ...]:
        """The tasks that score captions where a build wrote these files."""
        if all(name in files for name in self.task_files.values()):
            return self.tasks
        return tuple(task for task, name in self.task_files.items() if name in files)
