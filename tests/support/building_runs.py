"""Builds with the scripted models of a server, in this process and in one of their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from lmms_eval_captions.construction.build import Built, build, kind_of
from lmms_eval_captions.construction.pipeline import Options
from lmms_eval_captions.judges.endpoint.endpoint import Endpoint
from lmms_eval_captions.judges.settings import read_judge_settings
from lmms_eval_captions.lmms_eval_tasks.sampling.named_models import Model

WRITERS: Final = ("writer-a", "writer-b")
SOLVERS: Final = ("solver-a", "solver-b")
VIEWERS: Final = ("viewer",)


def options_of(kind: str, videos: Path, data: Path, url: str, **further: Any) -> Options:
    """The options of a build by two writers, two solvers and a viewer behind one address.

    Args:
        kind: The benchmark.
        videos: Folder of clips.
        data: Root of what is built.
        url: The server's.
        further: Fields of :class:`.Options`.
    """
    endpoint = Endpoint(urls=(url,), api_key=None, key_name="OPENAI_API_KEY")
    given: dict[str, Any] = {
        "writers": tuple(Model(name, endpoint) for name in WRITERS),
        "solvers": tuple(Model(name, endpoint) for name in SOLVERS),
        "viewers": tuple(Model(name, endpoint) for name in VIEWERS),
        "per_video": kind_of(kind).per_video,
        "n_frames": 2,
        "timeout_s": 60.0,
        **further,
    }
    return Options(kind=kind, videos=videos, data=data, **given)


def in_this_process(
    kind: str,
    videos: Path,
    data: Path,
    url: str,
    *,
    cache: Path,
    is_structured: bool = False,
    **further: Any,
) -> Built:
    """A build, here and now.

    Args:
        kind: The benchmark.
        videos: Folder of clips.
        data: Root of what is built.
        url: The server's.
        cache: Where replies are kept.
        is_structured: Whether replies are asked for by a schema.
        further: Fields of :class:`.Options`.
    """
    options = options_of(kind, videos, data, url, **further)
    structured = {"LMMS_CAPTIONS_JUDGE_STRUCTURED": "1"} if is_structured else {}
    settings = read_judge_settings({"LMMS_CAPTIONS_CACHE": str(cache), **structured})
    return build(kind_of(kind), options, settings)


def command(kind: str, videos: Path, data: Path, *further: str) -> list[str]:
    """The command line of the same build; its server is named in :func:`environment`."""
    program = "lmms_eval_captions.cli.main"
    models = ["--writer", ",".join(WRITERS), "--solver", ",".join(SOLVERS), "--viewer", *VIEWERS]
    places = ["--videos", str(videos), "-o", str(data)]
    return [sys.executable, "-m", program, "build", kind, *places, *models, *further]


def environment(url: str, cache: Path) -> Mapping[str, str]:
    """The environment of a build that touches nothing of the user's."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("LMMS_", "OPENAI_"))}
    return {**kept, "LMMS_CAPTIONS_JUDGE_URL": url, "LMMS_CAPTIONS_CACHE": str(cache)}
