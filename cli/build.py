"""Commands ``build KIND`` and ``build clips``, and ``estimate --build``."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from shlex import quote
from typing import Final

from lmms_eval_captions.cli.commands import COMMANDS
from lmms_eval_captions.construction.build import Built, estimate_table, kind_of
from lmms_eval_captions.construction.build import build as build_files
from lmms_eval_captions.construction.card import CARD, further_faults, warnings_of, write_card
from lmms_eval_captions.construction.clips import CLIPS, ClipOptions, Outcome, bin_of
from lmms_eval_captions.construction.clips import build_clips as make_clips
from lmms_eval_captions.construction.models import length_advice
from lmms_eval_captions.construction.people import CHECKS
from lmms_eval_captions.construction.pipeline import FOLDER, Done, Kind, Options, spent
from lmms_eval_captions.construction.scenes import require_tools
from lmms_eval_captions.judges.settings import read_judge_settings
from lmms_eval_captions.lmms_eval_tasks.results.text_table import text_table
from lmms_eval_captions.lmms_eval_tasks.sampling.named_models import (
    Model,
    parse_models,
    split_address,
)

_INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as in shells."""


def build(arguments: Namespace) -> int:
    """Build a benchmark, and report every stage."""
    settings = read_judge_settings()
    kind, options = _options(
        arguments, lambda option, text: parse_models(option, text, settings.endpoint)
    )
    for warning in warnings_of(options):
        print(f"warning: {warning}", file=sys.stderr)
    try:
        built = build_files(kind, options, settings)
    except KeyboardInterrupt:
        print("stopped: every reply is stored, and the same command resumes", file=sys.stderr)
        return _INTERRUPTED
    if built.files:
        write_card(built)
    print("\n".join(_screen(built)))
    if not (built.files or options.stage or options.until):
        print(
            f"lmms-eval-captions: build {kind.name}: no question is left. The files in "
            f"{options.folder / FOLDER} say why each was dropped; take a larger model, more clips, "
            "or another --solver",
            file=sys.stderr,
        )
        return 1
    return 1 if built.n_lost else 0


def estimate_build(words: Sequence[str]) -> int:
    """Print an estimate of a build.

    Args:
        words: Arguments of ``build``; ``-o`` is optional.
    """
    parser = COMMANDS["build"].parser()
    parser.prog = "lmms-eval-captions estimate --build"
    arguments = parser.parse_args([*words[:1], "-o", "lmms-eval-captions-data", *words[1:]])
    settings = read_judge_settings()

    def names(_option: str, text: str) -> tuple[Model, ...]:
        # Nothing is sent: neither addresses nor keys are needed.
        return tuple(Model(split_address(part)[0], settings.endpoint) for part in text.split(","))

    kind, options = _options(arguments, names)
    print("\n".join(estimate_table(kind, options, settings)))
    return 0


def _options(
    arguments: Namespace, parse: Callable[[str, str], tuple[Model, ...]]
) -> tuple[Kind, Options]:
    kind = kind_of(arguments.kind)
    writers = parse("--writer", arguments.writer)
    options = Options(
        kind=kind.name,
        # Stages are of the same clips, however their folder is written.
        videos=arguments.videos.resolve(),
        data=arguments.output,
        writers=writers,
        solvers=parse("--solver", arguments.solver) if arguments.solver else writers,
        viewers=parse("--viewer", arguments.viewer) if arguments.viewer else writers[:1],
        per_video=arguments.per_video or kind.per_video,
        limit=arguments.limit,
        n_frames=arguments.frames or kind.n_frames,
        frame_pixels=arguments.frame_pixels,
        max_tokens=arguments.max_tokens,
        timeout_s=arguments.timeout_s,
        seed=arguments.seed,
        max_cost_usd=arguments.max_cost,
        categories=arguments.categories,
        labels=tuple(arguments.labels),
        annotators=arguments.annotators,
        stage=arguments.stage,
        until=arguments.until,
        license=arguments.license or "",
    )
    return kind, options


def _screen(built: Built) -> Iterator[str]:
    """Yield the lines of the report: each stage, what failed, and what to do next."""
    options = built.options
    yield from _of_stages(built.done)
    yield ""
    yield spent(options.folder / FOLDER)
    if built.n_lost:
        yield f"{built.n_lost:,} requests failed. Rerun the same command to retry only those."
    if built.files:
        yield (
            f"{built.n_questions:,} questions in {options.folder}; the data card is "
            f"{options.folder / CARD}"
        )
        tasks = ",".join(built.kind.tasks_of(built.files))
        yield (
            f"Score captions with: LMMS_CAPTIONS_DATA={options.data} {_judge(built)}"
            f"lmms-eval --model M --tasks {tasks} --output_path results --log_samples"
        )
    elif options.stage or options.until:
        yield from _ended_early(built)


def _of_stages(stages: Sequence[Done]) -> Iterator[str]:
    rows = [("stage", "in", "kept", "requests", "unreadable", "")]
    for done in stages:
        head, n_requests = done.head, done.head["requests"]["n_requests"]
        n_unreadable = head["requests"]["failures"].get("unreadable", 0)
        counts = f"{n_requests:,}" if n_requests else "", f"{n_unreadable:,}" if n_requests else ""
        n_before = f"{head['n_before']:,}" if head["n_before"] else ""
        is_old = "" if done.is_new else "from its file"
        rows.append((head["stage"], n_before, f"{head['n_kept']:,}", *counts, is_old))
    yield from text_table(rows, n_left=1)
    for done in stages:
        name = done.head["stage"]
        faults = sorted(done.head["dropped"].items(), key=lambda pair: -pair[1])
        for fault, n in (*faults, *further_faults(done.head).items()):
            yield f"  {name}: {n:,} x {fault}"
        requests = done.head["requests"]
        reasons = "; ".join(requests["reasons"])
        for failure in ("refused", "unavailable"):
            if n := requests["failures"].get(failure):
                yield f"  {name}: {n:,} of {requests['n_requests']:,} requests {failure}: {reasons}"
        if requests["failures"].get("refused") and length_advice(reasons):
            yield f"  {length_advice(reasons)}"


def _judge(built: Built) -> str:
    """Return settings for the solver as the judge, if it is not where a judge is by default."""
    solver = built.options.solvers[0]
    urls = solver.endpoint.urls
    if urls == built.context.settings.endpoint.urls:
        return ""
    return f"LMMS_CAPTIONS_JUDGE={quote(solver.name)} LMMS_CAPTIONS_JUDGE_URL={','.join(urls)} "


def _ended_early(built: Built) -> Iterator[str]:
    options = built.options
    yield (
        f"Stopped after the stage {built.done[-1].stage.name!r}: its file is in "
        f"{options.folder / FOLDER}. The benchmark's files are not written: the same command "
        f"without {'--stage' if options.stage else '--until'} resumes"
    )
    following = [stage.name for stage in built.kind.stages(options)][len(built.done) :]
    if options.until and following and following[0] in CHECKS:
        yield (
            "To have people check the questions: lmms-eval-captions label --build "
            f"{options.folder} --videos {options.videos} -o page.html; then the same command with "
            "--labels and the exported files in place of --until"
        )


def build_clips(arguments: Namespace) -> int:
    """Cut clips, and report how many were made."""
    options = ClipOptions(
        min_s=arguments.min_s,
        max_s=arguments.max_s,
        still_below=arguments.still_below,
        n=arguments.n,
        seed=arguments.seed,
        limit=arguments.limit,
    )
    require_tools()
    outcome = make_clips(
        arguments.source,
        arguments.output,
        options,
        log=lambda line: print(line, file=sys.stderr, flush=True),
    )
    fates = Counter(part["fate"] for part in outcome.parts)
    print(f"Clips in {arguments.output}")
    for line in _counts(outcome, options, fates):
        print(line)
    for part in [each for each in outcome.parts if each["fate"] == "unreadable"][:10]:
        print(f"{part['source']}: {part['reason']}")
    print(f"{arguments.output / CLIPS} lists the fate of every part.")
    if fates["kept"]:
        return 0
    print("No clip was made: lower --min-s or --still-below, or give other videos.")
    return 1


def _counts(outcome: Outcome, options: ClipOptions, fates: Counter[str]) -> list[str]:
    bins = Counter(bin_of(part, options) for part in outcome.parts if part["kept"])
    counts = [("videos", outcome.n_sources), ("scenes", outcome.n_scenes)]
    counts += [(fate, fates[fate]) for fate in ("too short", "still", "unreadable", "left out")]
    counts += [
        (f"of {low_s:g} to {high_s:g} s", bins[index])
        for index, (low_s, high_s) in enumerate(pairwise(options.edges_s))
    ]
    counts.append(("clips", fates["kept"]))
    return text_table([(name, f"{n:,}") for name, n in counts], n_left=1)
