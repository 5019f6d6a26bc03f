"""What a build is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from lmms_eval_captions.lmms_eval_tasks.named_models import Model

Role = Literal["writer", "solver", "viewer"]
"""Writers see the clip and write; solvers read text alone; viewers check by the frames."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The arguments of ``build KIND``, checked."""

    kind: str
    videos: Path
    """Folder of clips."""
    data: Path
    """Root of benchmark data; the benchmark's folder is made below it."""
    writers: tuple[Model, ...]
    solvers: tuple[Model, ...]
    viewers: tuple[Model, ...]
    per_video: int
    """Most questions of a clip, of an aspect of a clip where the benchmark has aspects, >= 1."""
    limit: int | None = None
    """Clips that are taken, the first ones; ``None`` for all."""
    n_frames: int = 16
    """Of a clip, evenly spaced."""
    frame_pixels: int = 512 * 512
    """Larger frames are shrunk to that area."""
    max_tokens: int = 16_384
    """Longest reply of a writer."""
    timeout_s: float = 600.0
    seed: int = 0
    """Of every shuffle and choice."""
    max_cost_usd: float | None = None
    categories: Path | None = None
    """File of own categories in the place of the paper's."""
    license: str = ""
    """Licence of the clips, for the data card."""
    labels: tuple[Path, ...] = ()
    """Files of people's answers, which stand in the place of the sighted check."""
    annotators: int = 1
    """Fewest people that must have told of a question by each criterion, >= 1."""
    until: str | None = None
    """The last stage that is run; ``None`` for all, and the benchmark's files."""
    stage: str | None = None
    """The one stage that is run; ``None`` for all."""

    def models(self, role: Role) -> tuple[Model, ...]:
        """The models of a role."""
        return {"writer": self.writers, "solver": self.solvers, "viewer": self.viewers}[role]

    @property
    def folder(self) -> Path:
        """The benchmark's folder."""
        return self.data / self.kind

    @property
    def all_models(self) -> dict[Role, tuple[Model, ...]]:
        """Role to its models."""
        return {role: self.models(role) for role in get_args(Role)}
