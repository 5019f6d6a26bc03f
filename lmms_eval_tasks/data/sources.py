"""Where each benchmark is published: one record a benchmark."""

from __future__ import annotations

from dataclasses import dataclass

from lmms_eval_captions.judges.errors import DataError


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a benchmark's files and videos are, on the hub and below a local root."""

    benchmark: str
    """Name, and the benchmark's folder below ``LMMS_CAPTIONS_DATA``."""
    page: str
    """Web page that provides the data."""
    license: str
    """License of the data."""
    video_folder: str
    """Folder of the videos below ``LMMS_CAPTIONS_DATA``."""
    hub_repo: str | None = None
    """Dataset repository on the Hugging Face hub, or ``None`` where there is none."""
    revision: str = "main"
    """Commit, tag or branch of the repository."""
    archives: tuple[str, ...] = ()
    """Patterns of the paths of the video archives in the repository."""
    note: str = ""
    """What else a user must know to get the data, a sentence, or nothing."""

    def advice(self) -> str:
        """What to do to have the data locally, in one or two sentences."""
        get = f"get it from {self.page}"
        if self.hub_repo is not None:
            get = (
                f"run `hf download {self.hub_repo} --repo-type dataset --revision {self.revision} "
                f"--local-dir DATA/{self.benchmark}` (page: {self.page})"
            )
        videos = f"unpack the videos to DATA/{self.video_folder}"
        text = f"To use local files, {get}, {videos}, and set LMMS_CAPTIONS_DATA=DATA"
        return f"{text}. {self.note}" if self.note else text

    def require_repo(self) -> str:
        """The hub repository.

        Raises:
            DataError: If the benchmark is not on the hub.
        """
        if self.hub_repo is None:
            raise DataError(f"{self.benchmark} is not on the Hugging Face hub. {self.advice()}")
        return self.hub_repo


VDC = Source(
    benchmark="vdc",
    page="https://huggingface.co/datasets/wchai/Video-Detailed-Caption",
    license="Apache-2.0",
    video_folder="vdc/videos",
    hub_repo="wchai/Video-Detailed-Caption",
    archives=("videos/videos_*.tar.gz",),
)
"""Video Detailed Captions: ``VDC_1k.jsonl``, ``VDCScore_qa/<aspect>.jsonl``, three shards."""

_VIDEO_ARCHIVE = ("*video*.zip", "*video*.tar", "*video*.tar.gz", "**/*video*.zip")
"""Some repositories hold archives of captions and results beside those of videos."""

_ANY_ARCHIVE = ("*.zip", "*.tar", "*.tar.gz", "**/*.zip", "**/*.tar", "**/*.tar.gz")

VIDCAPBENCH = Source(
    benchmark="vidcapbench",
    page="https://huggingface.co/datasets/VidCapBench/VidCapBench",
    license="see its page",
    video_folder="vidcapbench/videos",
    hub_repo="VidCapBench/VidCapBench",
    archives=_ANY_ARCHIVE,
)
"""``VidCapBench-{AE,HE}_QA.jsonl``; the repository's list of files is unseen."""

VCAPSBENCH = Source(
    benchmark="vcapsbench",
    page="https://huggingface.co/datasets/somos99/VCapsBench",
    license="see its page",
    video_folder="vcapsbench/videos5k",
    hub_repo="somos99/VCapsBench",
    archives=_VIDEO_ARCHIVE,
)
"""``VCapsBench_100KQA.jsonl``; the repository's list of files is unseen."""

CAPQUIZ = Source(
    benchmark="capquiz",
    page="the paper's project page",
    license="not released",
    video_folder="capquiz/videos",
    note="CapQuiz is announced and not released; a local capquiz.jsonl of the schema in the task's "
    "README can be scored.",
)
"""``capquiz.jsonl``, not released."""

MSVD_EVAL = Source(
    benchmark="msvd_eval",
    page="https://huggingface.co/datasets/friedrichor/MSVD",
    license="see its page",
    video_folder="msvd_eval/YouTubeClips",
    hub_repo="friedrichor/MSVD",
    archives=_ANY_ARCHIVE,
    note="MSVD-Eval.json is in https://github.com/ztangaj/gveval: put it at "
    "DATA/msvd_eval/MSVD-Eval.json; VLM2Vec/MSVD holds the raw videos too.",
)
"""``MSVD-Eval.json``; the videos are those of MSVD."""
