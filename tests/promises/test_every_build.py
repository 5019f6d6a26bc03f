"""Every kind of build, ended at every stage, and with every malformed reply to every request."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import pytest

from builder_replies import MARKS, Asked, Told, reply_to
from builder_server import Builder, BuilderServer, Form, spoil_nothing
from building_runs import in_this_process, options_of
from ended_builds import contents, hasten, name_clips, start
from lmms_eval_captions.construction.build import KINDS as NAMES
from lmms_eval_captions.construction.build import Built, kind_of
from lmms_eval_captions.construction.pipeline import kept
from lmms_eval_captions.judges.errors import JudgeError
from planted_questions import names_in

PER_VIDEO = 40
"""More than are written: nothing is dropped by chance."""
FURTHER: Mapping[str, tuple[str, ...]] = {"build_vdc_captions": ("build_vdc_second",)}
"""Requests that go by the name of another's prompt."""


@dataclass(frozen=True)
class Moment:
    """When a build is ended."""

    stage: str
    step: str | None
    """Behind a third of this step's requests; ``None`` for before the stage's file is written."""


def stages_of(kind: str) -> dict[str, tuple[str, ...]]:
    """Stage to the requests that it makes."""
    options = options_of(kind, Path(), Path(), "http://127.0.0.1:1/v1")
    return {
        stage.name: tuple(
            step
            for prompt in stage.prompts
            for step in (prompt, *FURTHER.get(prompt, ()))
            if step in MARKS
        )
        for stage in kind_of(kind).stages(options)
    }


@dataclass(frozen=True)
class Undisturbed:
    """A build to which nothing happened."""

    built: Built
    files: Mapping[str, bytes]
    steps: Counter[str]
    n_answered: int


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    hasten(monkeypatch)


@pytest.fixture(scope="module")
def clips_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """A folder of so many clips, the same for all tests: its path is in the stages' files."""
    folder = tmp_path_factory.mktemp("clips")
    return cache(lambda n: name_clips(folder / str(n), n))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Builds to which nothing happens, one of each kind, of the same clips and questions."""
    made: dict[tuple[str, Path, int], Undisturbed] = {}

    def of(kind: str, clips: Path, n_questions: int) -> Undisturbed:
        key = kind, clips, n_questions
        if key not in made:
            folder = tmp_path_factory.mktemp(kind)
            with BuilderServer(Builder(Told(n_questions=n_questions))) as server:
                built = _build(kind, clips, folder, server)
                steps, n_answered = Counter(server.builder.steps), server.counts.n_answered
            made[key] = Undisturbed(built, contents(folder / "data" / kind), steps, n_answered)
        return made[key]

    return of


def _build(kind: str, clips: Path, folder: Path, server: BuilderServer, **further: Any) -> Built:
    given = {"cache": folder / "cache", "per_video": PER_VIDEO, **further}
    return in_this_process(kind, clips, folder / "data", server.url, **given)


def _every_step() -> Iterator[tuple[str, str]]:
    """Each kind with each step of its stages, once."""
    for kind in NAMES:
        steps = (step for of_stage in stages_of(kind).values() for step in of_stage)
        yield from ((kind, step) for step in dict.fromkeys(steps))


def moments_of(kind: str) -> Iterator[Moment]:
    """Two of each stage: amid its requests, and when its work is done and not yet written."""
    seen: set[str] = set()
    for stage, steps in stages_of(kind).items():
        yield from (Moment(stage, step) for step in steps if step not in seen)
        yield Moment(stage, None)
        seen.update(steps)


@pytest.mark.parametrize("number", [signal.SIGKILL], ids=["killed"])
@pytest.mark.parametrize("kind", ["vdc", "vcapsbench"])
def test_a_build_that_is_ended_at_every_stage_asks_nothing_twice(
    kind: str,
    number: signal.Signals,
    tmp_path: Path,
    clips_of: Callable[[int], Path],
    undisturbed: Any,
) -> None:
    """Ended again and again, it asks what was not answered, and writes what it would have."""
    clips = clips_of(2)
    whole: Undisturbed = undisturbed(kind, clips, 4)
    with BuilderServer(Builder(Told(n_questions=4))) as server:
        for moment in moments_of(kind):
            _end_at(moment, kind, number, clips, tmp_path, server, whole.steps)
        built = _build(kind, clips, tmp_path, server)
        assert built.n_lost == 0
        assert server.n_repeated() == 0
        assert server.counts.n_answered == whole.n_answered
    assert contents(tmp_path / "data" / kind) == whole.files


@pytest.mark.parametrize("kind", NAMES)
def test_replies_of_a_schema_make_the_same_benchmark(
    kind: str, tmp_path: Path, clips_of: Callable[[int], Path], undisturbed: Any
) -> None:
    """A list of questions comes as an object that holds it."""
    clips = clips_of(2)
    with BuilderServer(Builder(Told(n_questions=4))) as server:
        _build(kind, clips, tmp_path, server, is_structured=True)
        assert server.builder.n_structured
    assert contents(tmp_path / "data" / kind) == undisturbed(kind, clips, 4).files


def _end_at(
    moment: Moment,
    kind: str,
    number: signal.Signals,
    clips: Path,
    folder: Path,
    server: BuilderServer,
    steps: Counter[str],
) -> None:
    """Start the build and end it at a moment, with its stage's file not yet written."""
    builder = server.builder
    builder.answer_again()
    before: str | None = moment.stage
    if moment.step is not None:
        before = None
        builder.hang_from = moment.step, steps[moment.step] // 3
    process = start(
        number, before, kind, clips, folder / "data", server.url,
        cache=folder / "cache", per_video=PER_VIDEO,
    )  # fmt: skip
    if moment.step is not None:
        assert builder.hung.wait(30), f"{moment}: nothing was asked"
        _wait_until_quiet(builder, folder / "cache")
        os.kill(process.pid or 0, number)
    process.join(30)
    assert process.exitcode == (-number if number == signal.SIGKILL else 1), moment
    assert not list((folder / "data" / kind / "build").glob(f"[0-9][0-9]-{moment.stage}.jsonl"))


def _wait_until_quiet(builder: Builder, cache: Path) -> None:
    """Wait until what was answered is kept, and what is under way hangs."""
    before, now = -1, 0
    while now != before:
        time.sleep(0.15)
        sizes = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file())
        before, now = now, builder.steps.total() + sizes


LISTS: Final = (
    "build_capquiz_write", "build_vcapsbench_pairs_from_caption", "build_vdc_pairs",
    "build_vcapsbench_pairs_from_frames", "build_vidcapbench_pairs",
)  # fmt: skip
"""Steps that ask for a list of questions."""
FREE: Final = (
    "vcapsbench_caption", "vidcapbench_caption", "build_vdc_second", "vidcapbench_answer",
)  # fmt: skip
"""Steps that ask for free words: nearly every text is an answer."""
CAPTIONS: Final = (
    "vcapsbench_caption", "vidcapbench_caption", "build_vdc_captions", "build_vdc_second",
)  # fmt: skip
"""Steps that all questions of a clip may depend on."""
FAULTS: Final[Mapping[Form, str | None]] = {
    "no JSON": "no JSON",
    "wrong keys": "wrong keys",
    "six options": None,
    "2,000 questions": "too many",
    "loop": "repeats itself",
    "empty": "empty",
}
"""Why a list cannot be read; a list of questions with six options can."""
MALFORMED: Final[tuple[Form, ...]] = (*FAULTS, "400")


def is_malformed(step: str, form: Form) -> bool:
    if form in ("empty", "400"):
        return True
    return step in LISTS or (step not in FREE and form in ("no JSON", "wrong keys"))


class Spoiler:
    """Spoils one request of each of some steps, each about another clip.

    Args:
        form: How.
        steps: Of which steps; the nth is spoilt for the nth clip.
        clips: The clips, as :class:`.Asked` has them.
    """

    def __init__(self, form: Form, steps: Sequence[str], clips: Sequence[str]) -> None:
        self._form = form
        self._clip_of = dict(zip(steps, clips, strict=False))
        self.hit: dict[str, Asked] = {}

    def __call__(self, asked: Asked, _number: int) -> Form | None:
        """See :data:`.builder_server.Spoil`."""
        if self._clip_of.get(asked.step) != asked.clip:
            return None
        hit = self.hit.setdefault(asked.step, asked)
        return self._form if hit.identity == asked.identity else None

    def touched(self, told: Told) -> set[str]:
        """The objects that the spoilt requests, or the replies to them, are about."""
        texts = [asked.text + reply_to(asked, told) for asked in self.hit.values()]
        return {name for text in texts for name in names_in(text)}

    @property
    def captioned(self) -> set[str]:
        """Clips of which a caption is spoilt, that all questions may come from."""
        return {asked.clip for step, asked in self.hit.items() if step in CAPTIONS}


def questions_of(built: Built) -> set[tuple[object, ...]]:
    """The questions that are left, whatever their places are."""
    keys = ("video", "question", "answer", "category", "subset")
    rows = kept(built.context.rows[list(built.context.rows)[-1]])
    return {(*(row.get(key) for key in keys), frozenset(row.get("options", ()))) for row in rows}


@pytest.mark.parametrize("form", MALFORMED)
@pytest.mark.parametrize("kind", ["capquiz"])
def test_a_malformed_reply_costs_itself_alone(
    kind: str, form: Form, tmp_path: Path, clips_of: Callable[[int], Path], undisturbed: Any
) -> None:
    """It is counted by its reason; every question that it is not about is as it would be."""
    clips, told = clips_of(6), Told(n_questions=8)
    whole: Undisturbed = undisturbed(kind, clips, 8)
    spoiler = Spoiler(form, _spoilt_steps(kind, form), _clips_of(whole))
    with BuilderServer(Builder(told, spoiler)) as server:
        built = _build(kind, clips, tmp_path, server)
        assert set(spoiler.hit) == set(_spoilt_steps(kind, form))
        _check_counts(built, spoiler, form)
        touched, captioned = spoiler.touched(told), spoiler.captioned
        expected, left = (
            {each for each in questions_of(of) if not _is_about(each, touched | captioned)}
            for of in (whole.built, built)
        )
        assert left == expected
        assert len(left) >= len(questions_of(whole.built)) / 10


def _spoilt_steps(kind: str, form: Form) -> list[str]:
    """Steps of a kind to which a reply of this form is none."""
    steps = dict.fromkeys(step for of_stage in stages_of(kind).values() for step in of_stage)
    return [step for step in steps if is_malformed(step, form)]


def _clips_of(whole: Undisturbed) -> list[str]:
    """The clips as the server tells them apart, by the questions about them."""
    return sorted({names_in(str(each[1]))[-1].split("-")[0] for each in questions_of(whole.built)})


def _is_about(question: tuple[object, ...], touched: set[str]) -> bool:
    name = names_in(str(question[1]))[-1]
    return name in touched or name.split("-")[0] in touched


def _check_counts(built: Built, spoiler: Spoiler, form: Form) -> None:
    """Every spoilt reply is in the count of its stage, with its reason, and nothing else is."""
    stages = stages_of(built.kind.name)
    failures: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    for done in built.done:
        failures.update(done.head["requests"]["failures"])
        faults.update({k: n for k, n in done.head["requests"]["faults"].items() if n})
    readable = sum(step in LISTS for step in spoiler.hit) if form == "six options" else 0
    n = len(spoiler.hit) - readable
    assert failures == (
        Counter({"refused" if form == "400" else "unreadable": n}) if n else Counter()
    )
    lists = [step for step in spoiler.hit if step in LISTS]
    if form in FAULTS and FAULTS[form] is not None:
        assert faults[f"reply: {FAULTS[form]}"] == len(lists)
    assert set(spoiler.hit) <= {step for steps in stages.values() for step in steps}


@pytest.mark.parametrize("form", ["500"])
@pytest.mark.parametrize("kind", NAMES)
def test_an_outage_at_every_stage_costs_a_second_start(
    kind: str, form: Form, tmp_path: Path, clips_of: Callable[[int], Path], undisturbed: Any
) -> None:
    """The build ends with the endpoint's words, keeps what it was told, and then asks the rest.

    Of three clips two are without a reply: one alone would be the request's own fault, see below.
    """
    clips = clips_of(3)
    whole: Undisturbed = undisturbed(kind, clips, 4)
    with BuilderServer(Builder(Told(n_questions=4))) as server:
        for steps in stages_of(kind).values():
            server.builder.spoil = partial(_in_steps, steps, form)
            if steps:
                # An outage, or where a request was answered between two failures, too few replies.
                with pytest.raises(JudgeError, match=r"no reply to any request|have no reply"):
                    _build(kind, clips, tmp_path, server)
        server.builder.spoil = spoil_nothing
        assert _build(kind, clips, tmp_path, server).n_lost == 0
        assert server.n_repeated() == 0
        assert server.counts.n_answered == whole.n_answered
    assert contents(tmp_path / "data" / kind) == whole.files


@dataclass
class LastOf:
    """Spoils the last of a step's requests to come, each time that it is sent."""

    step: str
    n: int
    """Requests of that step."""
    form: Form
    _places: dict[bytes, int] = field(default_factory=dict)

    def __call__(self, asked: Asked, _number: int) -> Form | None:
        """See :data:`.builder_server.Spoil`."""
        if asked.step != self.step:
            return None
        place = self._places.setdefault(asked.identity, len(self._places))
        return self.form if place == self.n - 1 else None


@pytest.mark.parametrize("form", ["500"])
@pytest.mark.parametrize(("kind", "step"), list(_every_step())[:4])
def test_the_last_request_that_is_never_answered_is_lost_alone(
    kind: str,
    step: str,
    form: Form,
    tmp_path: Path,
    clips_of: Callable[[int], Path],
    undisturbed: Any,
) -> None:
    clips = clips_of(2)
    whole: Undisturbed = undisturbed(kind, clips, 4)
    with BuilderServer(Builder(Told(n_questions=4))) as server:
        server.builder.spoil = LastOf(step, whole.steps[step], form)
        assert _build(kind, clips, tmp_path, server).n_lost == 1
        server.builder.spoil = spoil_nothing
        assert _build(kind, clips, tmp_path, server).n_lost == 0
        assert server.n_repeated() == 0
    assert contents(tmp_path / "data" / kind) == whole.files


def _in_steps(steps: Sequence[str], form: Form, asked: Asked, number: int) -> Form | None:
    """Spoil all requests of some steps, but for the first of each, which tells that all is well."""
    return form if asked.step in steps and number else None
