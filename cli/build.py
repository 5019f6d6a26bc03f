"""Subcommands ``build KIND``, ``build clips`` and ``estimate --build``."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from lmms_eval_captions.cli.options import above_zero, add_command, dollars, positive

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from lmms_eval_captions.construction.build import Built
    from lmms_eval_captions.construction.clips import ClipOptions, Outcome
    from lmms_eval_captions.construction.pipeline import Done, Kind, Options
    from lmms_eval_captions.lmms_eval_tasks.named_models import Model

KINDS = ("capquiz", "vcapsbench", "vdc", "vidcapbench")
_INTERRUPTED = 130
"""Exit code after Ctrl-C, as in shells."""
_MODELS = (
    "NAME[@URL[#KEY_VARIABLE]], comma-separated; without an address, at LMMS_CAPTIONS_JUDGE_URL or "
    "OPENAI_BASE_URL"
)


def add_build(commands: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the parser of ``lmms-eval-captions``."""
    command = commands.add_parser(
        "build",
        help="make a benchmark of your own clips, by the pipelines of the papers",
        description="Makes the files of a benchmark from a folder of clips; its tasks score "
        "captions of them with LMMS_CAPTIONS_DATA=DATA.",
    )
    kinds = command.add_subparsers(required=True, metavar="KIND")
    _add_kinds(kinds, _build)
    _add_clips(kinds)


def estimate_build(words: Sequence[str]) -> int:
    """Print an estimate of a build.

    Args:
        words: Arguments of ``build``; ``-o`` is optional.
    """
    parser = argparse.ArgumentParser(prog="lmms-eval-captions estimate --build")
    _add_kinds(parser.add_subparsers(required=True, metavar="KIND"), _estimate, needs_output=False)
    arguments = parser.parse_args(words)
    return int(arguments.run(arguments))


def _add_kinds(
    kinds: _SubParsersAction[argparse.ArgumentParser],
    run: Callable[[argparse.Namespace], int],
    *,
    needs_output: bool = True,
) -> None:
    for name in KINDS:
        kind = add_command(
            kinds,
            name,
            run,
            help=f"questions in the form of {name}",
            description="Every stage is a file in DATA/KIND/build; the same command resumes a "
            "stopped build, and sends nothing twice. Exit code: 0 if the benchmark is complete, 1 "
            "if requests failed or no question is left, 2 if it cannot be built as asked.",
            example=f"lmms-eval-captions build {name} --videos clips --writer gpt-4o -o data",
        )
        _add_arguments(kind, needs_output=needs_output)
        kind.set_defaults(kind=name)


def _add_arguments(command: argparse.ArgumentParser, *, needs_output: bool) -> None:
    add = command.add_argument
    add("--videos", type=Path, required=True, metavar="DIR", help="folder of clips")
    add(
        "-o", "--output", type=Path, required=needs_output, default=Path("lmms-eval-captions-data"),
        metavar="DATA", help="root of benchmark data, in which the benchmark's folder is made",
    )  # fmt: skip
    add("--writer", required=True, metavar="MODELS", help=f"vision models that write: {_MODELS}")
    add(
        "--solver", metavar="MODELS",
        help="models that read text only: they answer without the clip, group questions, judge "
        "(default: the writers)",
    )  # fmt: skip
    add(
        "--viewer", metavar="MODELS",
        help="vision models of the sighted check (default: the first writer)",
    )  # fmt: skip
    add(
        "--per-video", type=positive, metavar="N",
        help="most questions per clip (default: 20; vidcapbench: 40; vdc: 20 per aspect)",
    )  # fmt: skip
    add("--limit", type=positive, metavar="N", help="take the first N clips (default: all)")
    add("--frames", type=positive, metavar="N", help="frames per clip (default: 16; vdc: 32)")
    add(
        "--frame-pixels", type=positive, default=512 * 512, metavar="N",
        help="area to which larger frames are shrunk (default: 262144)",
    )  # fmt: skip
    add(
        "--max-tokens", type=positive, default=16_384, metavar="N",
        help="longest reply of a writer; smaller for servers with a short context (default: 16384)",
    )  # fmt: skip
    add(
        "--timeout-s", type=above_zero, default=600.0, metavar="S",
        help="longest wait for a reply in seconds (default: 600)",
    )  # fmt: skip
    add(
        "--max-cost", type=dollars, metavar="USD",
        help="cost limit of this run for all models together (default: none)",
    )  # fmt: skip
    add(
        "--categories", type=Path, metavar="FILE",
        help="custom categories of questions: YAML of names and definitions",
    )  # fmt: skip
    add(
        "--labels", type=Path, nargs="+", default=(), metavar="FILE",
        help="answers of people, from the page of `label --build`; they replace the sighted check",
    )  # fmt: skip
    add(
        "--annotators", type=positive, default=1, metavar="N",
        help="fewest people per question in --labels (default: 1; the paper: 3)",
    )  # fmt: skip
    add("--license", default="", metavar="TEXT", help="licence of the clips, for the data card")
    add("--seed", type=int, default=0, metavar="N", help="random seed for shuffling (default: 0)")
    add("--until", metavar="STAGE", help="stop after this stage, such as shortlist")
    add("--stage", metavar="STAGE", help="run only this stage, again; earlier ones must have run")


def _options(
    arguments: argparse.Namespace, parse: Callable[[str, str], tuple[Model, ...]]
) -> tuple[Kind, Options]:
    from lmms_eval_captions.construction.build import kind_of
    from lmms_eval_captions.construction.pipeline import Options

    kind = kind_of(arguments.kind)
    writers = parse("--writer", arguments.writer)
    options = Options(
        kind=kind.name,
        # Stages are of the same clips, however their folder is written.
        videos=arguments.videos.expanduser().resolve(),
        data=arguments.output.expanduser(),
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
        labels=tuple(path.expanduser() for path in arguments.labels),
        annotators=arguments.annotators,
        stage=arguments.stage,
        until=arguments.until,
        license=arguments.license,
    )
    return kind, options


def _build(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.construction.build import build
    from lmms_eval_captions.construction.card import warnings_of, write_card
    from lmms_eval_captions.construction.pipeline import FOLDER
    from lmms_eval_captions.judges.settings import read_judge_settings
    from lmms_eval_captions.lmms_eval_tasks.named_models import parse_models

    settings = read_judge_settings()
    kind, options = _options(
        arguments, lambda option, text: parse_models(option, text, settings.endpoint)
    )
    for warning in warnings_of(options):
        print(f"warning: {warning}", file=sys.stderr)
    try:
        built = build(kind, options, settings)
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


def _screen(built: Built) -> Iterator[str]:
    """Yield the lines of the report: each stage, what failed, and what to do next."""
    from lmms_eval_captions.construction.card import CARD
    from lmms_eval_captions.construction.pipeline import FOLDER, spent

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
    from lmms_eval_captions.construction.card import further_faults
    from lmms_eval_captions.construction.models import length_advice
    from lmms_eval_captions.lmms_eval_tasks.text_table import text_table

    rows = [("stage", "in", "kept", "requests", "unreadable", "")]
    for done in stages:
        head, n_requests = done.head, done.head["requests"]["n_requests"]
        n_unreadable = head["requests"]["failures"].get("unreadable", 0)
        rows.append(
            (
                head["stage"],
                f"{head['n_before']:,}" if head["n_before"] else "",
                f"{head['n_kept']:,}",
                f"{n_requests:,}" if n_requests else "",
                f"{n_unreadable:,}" if n_requests else "",
                "" if done.is_new else "from its file",
            )
        )
    yield from text_table(rows, n_left=1)
    for done in stages:
        name = done.head["stage"]
        for reason, n in sorted(done.head["dropped"].items(), key=lambda pair: -pair[1]):
            yield f"  {name}: {n:,} x {reason}"
        for fault, n in further_faults(done.head).items():
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
    from lmms_eval_captions.construction.people import CHECKS
    from lmms_eval_captions.construction.pipeline import FOLDER

    options = built.options
    yield (
        f"Stopped after the stage {built.done[-1].stage.name!r}: its file is in "
        f"{options.folder / FOLDER}. The benchmark's files are not written: the same command "
        f"without {'--stage' if options.stage else '--until'} resumes"
    )
    names = [stage.name for stage in built.kind.stages(options)]
    following = names[len(built.done) :]
    if options.until and following and following[0] in CHECKS:
        yield (
            "To have people check the questions: lmms-eval-captions label --build "
            f"{options.folder} --videos {options.videos} -o page.html; then the same command with "
            "--labels and the exported files in place of --until"
        )


def _estimate(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.construction.build import estimate_table
    from lmms_eval_captions.judges.settings import read_judge_settings
    from lmms_eval_captions.lmms_eval_tasks.named_models import Model, split_address

    settings = read_judge_settings()

    def names(_option: str, text: str) -> tuple[Model, ...]:
        # Nothing is sent: neither addresses nor keys are needed.
        return tuple(Model(split_address(part)[0], settings.endpoint) for part in text.split(","))

    kind, options = _options(arguments, names)
    print("\n".join(estimate_table(kind, options, settings)))
    return 0


def _add_clips(kinds: _SubParsersAction[argparse.ArgumentParser]) -> None:
    command = add_command(
        kinds,
        "clips",
        _clips,
        help="cut long videos at scene changes into clips of 3 to 15 seconds that move",
        description="Cuts videos at scene changes (PySceneDetect) into clips of 3 to 15 seconds, "
        "as VidCapBench does, leaves out still images (optical flow), and chooses clips so that "
        "short and long ones are equally many. Writes clips with their sound, and clips.jsonl with "
        "the fate of every part. The same command resumes a stopped run. Exit code 1 without a "
        "clip. Needs the extra: pip install 'lmms-eval-captions[scenes]'.",
        example="lmms-eval-captions build clips films -o clips --n 500",
    )
    add = command.add_argument
    add("source", type=Path, metavar="SOURCE", help="folder of videos, or one video")
    add("-o", "--output", type=Path, required=True, metavar="DIR", help="folder of the clips")
    add(
        "--min-s", type=float, default=3.0, metavar="S",
        help="shortest clip in seconds (default: 3)",
    )  # fmt: skip
    add(
        "--max-s", type=float, default=15.0, metavar="S",
        help="longest clip in seconds (default: 15)",
    )  # fmt: skip
    add(
        "--n", type=positive, metavar="N",
        help="number of clips, balanced by length (default: all)",
    )  # fmt: skip
    add(
        "--still-below", type=float, default=0.15, metavar="PIXELS",
        help="motion below which a part is a still image, in pixels per quarter of a second at a "
        "longer side of 160; 0 keeps still images (default: 0.15)",
    )  # fmt: skip
    add("--seed", type=int, default=0, metavar="N", help="seed of the choice of clips (default: 0)")
    add("--limit", type=positive, metavar="N", help="read the first N videos (default: all)")


def _clips(arguments: argparse.Namespace) -> int:
    from lmms_eval_captions.construction.clips import ClipOptions, build_clips
    from lmms_eval_captions.construction.scenes import require_tools

    options = ClipOptions(
        min_s=arguments.min_s,
        max_s=arguments.max_s,
        still_below=arguments.still_below,
        n=arguments.n,
        seed=arguments.seed,
        limit=arguments.limit,
    )
    require_tools()
    output = arguments.output.expanduser()
    outcome = build_clips(
        arguments.source.expanduser(),
        output,
        options,
        log=lambda line: print(line, file=sys.stderr, flush=True),
    )
    for line in _clips_report(outcome, options, output):
        print(line)
    return 0 if any(part["kept"] for part in outcome.parts) else 1


def _clips_report(outcome: Outcome, options: ClipOptions, output: Path) -> Iterator[str]:
    """Yield the counts of a run, and why videos could not be read."""
    from lmms_eval_captions.construction.clips import CLIPS, bin_of
    from lmms_eval_captions.lmms_eval_tasks.text_table import text_table

    fates = Counter(part["fate"] for part in outcome.parts)
    bins = Counter(bin_of(part, options) for part in outcome.parts if part["kept"])
    counts = [("videos", outcome.n_sources), ("scenes", outcome.n_scenes)]
    counts += [(fate, fates[fate]) for fate in ("too short", "still", "unreadable", "left out")]
    counts += [
        (f"of {low_s:g} to {high_s:g} s", bins[index])
        for index, (low_s, high_s) in enumerate(pairwise(options.edges_s))
    ]
    counts.append(("clips", fates["kept"]))
    yield f"Clips in {output}"
    yield from text_table([(name, f"{n:,}") for name, n in counts], n_left=1)
    for part in [each for each in outcome.parts if each["fate"] == "unreadable"][:10]:
        yield f"{part['source']}: {part['reason']}"
    yield f"{output / CLIPS} lists the fate of every part."
    if not fates["kept"]:
        yield "No clip was made: lower --min-s or --still-below, or give other videos."
