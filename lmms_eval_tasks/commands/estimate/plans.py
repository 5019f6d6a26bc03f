"""What each task would ask a judge, for an estimate: a literal table from task to its questions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.endpoint.chain import Chain
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.judge_config import JudgeConfig
from lmms_eval_captions.judges.protocols import capquiz, vcapsbench, vdc, vidcapbench
from lmms_eval_captions.judges.protocols.gveval import GVeval, Setting
from lmms_eval_captions.judges.endpoint.picture import Picture
from lmms_eval_captions.judges.settings import DataSettings
from lmms_eval_captions.lmms_eval_tasks.capquiz.data import read_videos as read_capquiz
from lmms_eval_captions.lmms_eval_tasks.msvd_eval.data import read_items as read_msvd_eval
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.data import read_videos as read_vcapsbench
from lmms_eval_captions.lmms_eval_tasks.vdc.data import ASPECTS, read_questions
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.data import read_videos as read_vidcapbench

Asker = Callable[[str, JudgeConfig, int], Chain[object]]
"""Makes one question's requests from a caption, the judge and the number of the judge run."""

_HERE: Final = Path(__file__).parents[2]
_NO_PICTURE: Final = Picture(b"", "image/jpeg")


@dataclass(frozen=True, slots=True)
class Document:
    """One caption to be judged."""

    videos: tuple[str, ...]
    """Names of the video, in the order that captions are looked up by."""
    askers: Sequence[Asker]
    """One a question."""
    aspect: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a task asks."""

    benchmark: str
    """Folder of the benchmark; its template holds ``metadata.judge``."""
    documents: Callable[[DataSettings], Iterable[Document]]
    caption_chars: int
    """Length of a caption where none is given, by our judgement."""

    @property
    def template(self) -> Path:
        """YAML that holds the judge's defaults."""
        return _HERE / self.benchmark / "_default_template_yaml"


def _vdc(
    settings: DataSettings, aspect: str, matcher: Callable[[str, str], float] | None = None
) -> Iterator[Document]:
    def asker(question: vdc.Question, caption: str, config: JudgeConfig, run: int) -> Chain[object]:
        return partial(
            vdc.judge_question,
            question=question,
            caption=caption,
            config=config,
            run=run,
            matcher=matcher,
        )

    for video_id, pairs in read_questions(settings, aspect).items():
        questions = [vdc.Question(pair["question"], pair["answer"]) for pair in pairs]
        yield Document((video_id,), [partial(asker, one) for one in questions], aspect)


def _vidcapbench(settings: DataSettings, subset: str) -> Iterator[Document]:
    def asker(
        question: vidcapbench.Question, caption: str, config: JudgeConfig, run: int
    ) -> Chain[object]:
        return partial(
            vidcapbench.judge_question, question=question, caption=caption, config=config, run=run
        )

    for video in read_vidcapbench(settings, subset):
        questions = [
            vidcapbench.Question(
                pair["question"], pair["answer"], pair["primary_category"], pair["sub_category"]
            )
            for pair in video.pairs
        ]
        askers = [partial(asker, one) for one in questions]
        yield Document((video.video_id, video.video_dir), askers)


def _vcapsbench(settings: DataSettings) -> Iterator[Document]:
    def asker(
        question: vcapsbench.Question, caption: str, config: JudgeConfig, run: int
    ) -> Chain[object]:
        return partial(
            vcapsbench.judge_question, question=question, caption=caption, config=config, run=run
        )

    for video in read_vcapsbench(settings):
        questions = [
            # What the gold answer is costs nothing.
            vcapsbench.Question(one["category"], one["question"], "yes")
            for one in video.questions
        ]
        yield Document((video.video_id,), [partial(asker, one) for one in questions])


def _capquiz(settings: DataSettings) -> Iterator[Document]:
    def asker(
        question: capquiz.Question, caption: str, config: JudgeConfig, run: int
    ) -> Chain[object]:
        return partial(
            capquiz.judge_question, question=question, caption=caption, config=config, run=run
        )

    for row in read_capquiz(settings):
        rows = row["questions"]
        questions = [
            capquiz.Question(one["category"], one["question"], tuple(one["options"]), one["answer"])
            for one in (rows if isinstance(rows, list) else [])
        ]
        yield Document((str(row["video"]),), [partial(asker, one) for one in questions])


def _msvd_eval(settings: DataSettings, setting: Setting) -> Iterator[Document]:
    scorer = GVeval(setting)

    def asker(
        references: Sequence[str], caption: str, config: JudgeConfig, run: int
    ) -> Chain[object]:
        return partial(
            scorer.judge,
            caption=caption,
            references=references,
            # Videos are not looked up: a picture's tokens do not depend on what it shows.
            picture=(lambda: _NO_PICTURE) if scorer.sees else None,
            config=config,
            run=run,
        )

    for item in read_msvd_eval(settings):
        yield Document((item.video_id, item.vname), [partial(asker, item.references)])


_VDC_CHARS: Final = {
    "camera": 400,
    "short": 150,
    "background": 600,
    "main_object": 600,
    "detailed": 1200,
}

PLANS: Final[Mapping[str, Plan]] = {
    **{
        f"vdc_{aspect}": Plan("vdc", partial(_vdc, aspect=aspect), _VDC_CHARS[aspect])
        for aspect in ASPECTS
    },
    **{
        f"vdc_rouge_{aspect}": Plan(
            # What matching gives costs nothing.
            "vdc",
            partial(_vdc, aspect=aspect, matcher=lambda _gold, _predicted: 0.0),
            _VDC_CHARS[aspect],
        )
        for aspect in ASPECTS
    },
    "vidcapbench_ae": Plan("vidcapbench", partial(_vidcapbench, subset="AE"), 800),
    "vidcapbench_he": Plan("vidcapbench", partial(_vidcapbench, subset="HE"), 800),
    "vcapsbench": Plan("vcapsbench", _vcapsbench, 1400),
    "capquiz": Plan("capquiz", _capquiz, 600),
    "capquiz_detailed": Plan("capquiz", _capquiz, 6000),
    "msvd_eval_ref_only": Plan("msvd_eval", partial(_msvd_eval, setting="ref_only"), 60),
    "msvd_eval_ref_free": Plan("msvd_eval", partial(_msvd_eval, setting="ref_free"), 60),
    "msvd_eval_combined": Plan("msvd_eval", partial(_msvd_eval, setting="combined"), 60),
}
"""Task to what it asks. A new benchmark joins with a line here."""

_VDC_GROUP: Final = tuple(f"vdc_{aspect}" for aspect in ASPECTS)
_VIDCAPBENCH_GROUP: Final = ("vidcapbench_ae", "vidcapbench_he")
_MSVD_GROUP: Final = ("msvd_eval_ref_only", "msvd_eval_ref_free", "msvd_eval_combined")

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "vdc_score": _VDC_GROUP,
    "vdc_rouge": tuple(f"vdc_rouge_{aspect}" for aspect in ASPECTS),
    "vidcapbench": _VIDCAPBENCH_GROUP,
    "msvd_eval": _MSVD_GROUP,
    "video_captions": (
        *_VDC_GROUP,
        *_VIDCAPBENCH_GROUP,
        "vcapsbench",
        "capquiz",
        *_MSVD_GROUP,
    ),
}


def tasks_of(names: str) -> list[str]:
    """Tasks in a comma-separated list of tasks and groups, each once.

    Raises:
        SettingsError: If a name is not known.

    >>> tasks_of("capquiz,vidcapbench_ae,capquiz")
    ['capquiz', 'vidcapbench_ae']
    """
    tasks: dict[str, None] = {}
    for name in filter(None, (name.strip() for name in names.split(","))):
        if name not in PLANS and name not in GROUPS:
            known = ", ".join([*GROUPS, *PLANS])
            raise SettingsError(f"--tasks: {name!r} is none of ours; expected any of {known}")
        tasks.update(dict.fromkeys(GROUPS.get(name, (name,))))
    if not tasks:
        raise SettingsError("--tasks: expected at least one task, got none")
    return list(tasks)
