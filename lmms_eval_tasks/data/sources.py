"""Location of a benchmark's data, on the hub and on disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lmms_eval_captions.judges.errors import DataError

ANY_ARCHIVE: Final = ("*.zip", "*.tar", "*.tar.gz", "**/*.zip", "**/*.tar", "**/*.tar.gz")
"""Patterns of a repository in which every archive holds videos."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Location of a benchmark's files and videos, on the hub and below a local root."""

    benchmark: str
    """Name, and the benchmark's folder below ``LMMS_CAPTIONS_DATA``."""
    page: str
    """Web page that provides the data; empty for the user's own, whose location the note gives."""
    license: str = "see its page"
    video_folder: str
    """Folder of the videos below ``LMMS_CAPTIONS_DATA``."""
    hub_repo: str | None = None
    """Dataset repository on the Hugging Face hub, or ``None`` if there is none."""
    revision: str = "main"
    """Commit, tag or branch of the repository."""
    archives: tuple[str, ...] = ANY_ARCHIVE
    """Patterns of the paths of the video archives in the repository."""
    note: str = ""
    """Further advice to a user on how to get the data, a sentence, or nothing."""

    def advice(self) -> str:
        """Return how to get the data locally, in one or two sentences."""
        if not self.page:
            return self.note
        get = f"get its files from {self.page} into DATA/{self.benchmark}"
        if self.hub_repo is not None:
            get = (
                f"run `hf download {self.hub_repo} --repo-type dataset --revision {self.revision} "
                f"--local-dir DATA/{self.benchmark}` (page: {self.page})"
            )
        videos = f"unpack the videos to DATA/{self.video_folder}"
        text = f"To use local files, {get}, {videos}, and set LMMS_CAPTIONS_DATA=DATA"
        return f"{text}. {self.note}" if self.note else text

    def require_repo(self) -> str:
        """Return the hub repository.

        Raises:
            DataError: If the benchmark is not on the hub.
        """
        if self.hub_repo is None:
            why = "is not on the Hugging Face hub" if self.page else "is data of your own"
            raise DataError(f"{self.benchmark} {why}. {self.advice()}")
        return self.hub_repo
