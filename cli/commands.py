"""The command line: every command with its help, arguments and examples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lmms_eval_captions.cli.options import Command

# fmt: off
GROUPS: Final[Mapping[str, tuple[Command, ...]]] = {
"Run and score": (
Command("run", "run", "lmms-eval with the same arguments, then a check of its results", """
    Runs lmms-eval with the same arguments, then checks what this run wrote, as check does. A first
    argument that is not an option is a command that starts lmms-eval. Exit code: 0 if every score
    can be trusted; 1 if one cannot, or the run wrote none; 2 for unusable arguments or settings;
    else lmms-eval's own, 128 plus the number for a signal.

    ARGUMENTS...  lmms-eval's arguments, or a command with its own
    -o, --output DIR  short for --output_path DIR --log_samples

    lmms-eval-captions run --model caption_file --model_args path=captions.jsonl \\
        --tasks vdc_score --judge gpt-4.1-mini --max-cost 20 -o results/mine
    lmms-eval-captions run accelerate launch --num_processes 2 -m lmms_eval \\
        --model qwen2_5_vl --tasks vdc_score --output_path results/qwen
    """),
Command("score", "score",
        "score captions in files: of a benchmark, or of any clips in Parquet files", """
    With --tasks, scores captions of a benchmark like lmms-eval --model caption_file, without
    lmms-eval. With --protocol, scores the captions of Parquet files: a file of scores for each
    file, complete or not there. Started again, both resume; replies are kept, nothing is asked
    twice. Exit code: 0; 1 if a file could not be scored or too much is unscored; 2 for a usage
    error.

    FILES*  with --tasks: files of captions
    --tasks TASKS  tasks and groups, comma-separated, such as vdc_score
    -o, --output DIR  with --tasks: folder of the results
    --missing error|skip|drop  with --tasks: stop if a caption is missing, leave its questions
        unscored, or leave the caption out (default: error)
    --in PATTERN...  Parquet files, folders of them or patterns (repeatable)
    --out DIR  folder of the scores, lists and summary
    --protocol NAME  what is asked about each caption: custom questions by one of the benchmarks'
        protocols, or gveval_ref_free, vllm_judge (the video), gveval_ref_only (a reference
        caption), gveval_combined (both); a wrong name lists them all
    --column OURS=YOURS  name of a column in the files, of clip_id, caption, questions, reference,
        video (repeatable)
    --videos DIR  folder in which the videos lie that rows name (default: the current one)
    --captioner NAME  writes missing captions, of the column video: caption_hf, caption_openai or
        another of ours, or a custom class as package.module:Class
    --captioner-args ARGS  as --model_args of lmms-eval
    --prompt TEXT  question to the captioner (default: the protocol's)
    --keep SHARE  write the best clips, such as 0.8 or 80 percent of them, with how many of these
        would not be among the best by their true scores
    --worst SHARE  share of the clips in the list of the worst (default: 0.05)
    --engine local|ray  ray: on the machines of a Ray cluster, with the extra
        lmms-eval-captions[ray] (default: local)
    --address ADDRESS  of a Ray cluster, or auto (default: Ray is started on this machine)
    --actors N  scorers on Ray, each with a captioner if there is one (default: one per node)
    --gpus NUMBER  GPUs of each actor on Ray, for its captioner (default: 0)

    lmms-eval-captions score captions.jsonl --tasks vdc_score --judge gpt-4.1-mini -o results/mine
    lmms-eval-captions score --in clips.parquet --out scored --protocol vllm_judge --keep 0.8
    """),
Command("estimate", "estimate", "calls, tokens and cost of a run, before anything is sent", """
    Counts the requests of a run from the benchmarks' own questions (LMMS_CAPTIONS_DATA or the hub)
    and prompts. Asks no judge. Exit code: 0, or 1 if a task cannot be estimated.

    --tasks NAMES  tasks and groups, comma-separated; either these or --build
    --build KIND ...  requests of `build` with these arguments
    --captions, --model_args CAPTIONS  captions to judge: a file or folder, or the arguments of
        --model caption_file, path=FILE[,column=NAME][,missing=skip|drop] (default: captions of
        typical length)
    --captioner ARGS  arguments of --model caption_openai, such as model=gpt-4o,max_num_frames=16,
        to estimate its captions too (default: captioning is not estimated)
    --seconds-per-reply S  seconds until the judge has replied (default: assumed from its output
        tokens)

    lmms-eval-captions estimate --tasks vdc_score --captions captions.jsonl --judge gpt-4.1-mini
    """),
Command("doctor", "doctor", "settings, software, judge and data that a run would use", """
    Lists the settings that are set, checks installed packages and data, and asks the judge one
    question. Exit code: 0 without a problem, 1 with one, 2 if a setting cannot be used.

    --all  list every setting, with the default of unset ones

    lmms-eval-captions doctor --judge qwen3 --judge-url http://127.0.0.1:8000/v1
    """),
Command("check", "run",
        "exit with 1 if a results folder holds a score that is nan or incomplete", """
    Checks the newest results of every task of every model below a folder. Exit code: 0 if every
    score can be trusted; 1 if one cannot: it is nan, too many questions are unscored
    (LMMS_CAPTIONS_MAX_UNSCORED), or the judge is suspicious; 2 if there is nothing to check.

    FOLDER  lmms-eval's --output_path, or one results file
    --since TIME  leave out runs that ended before, such as 2h ago or 2026-01-31T18:30; exit code 2
        if none ended since (default: all runs)
    --accept-doubts  report a suspicious judge as a warning, not a problem

    lmms-eval-captions check results/mine --since 2h
    """),
Command("tasks-path", "doctor", "print the folder of the task definitions", """
    Prints the folder of the task definitions, for lmms-eval's --include_path.

    lmms-eval --include_path "$(lmms-eval-captions tasks-path)" --tasks list
    """),
),
"Read results": (
Command("compare", "results",
        "which captioner is better, and is it significant; tables as in the papers", """
    Compares captioners on the questions that all have a verdict on: ranking, differences to the
    first folder with simultaneous intervals and p-values, groups of questions, videos. With one
    folder or --paper: the table of the benchmark's paper. Asks no judge. Exit code: 0; with --gate
    0 for GO, 1 for NO-GO, 3 for INCONCLUSIVE; 2 if the results cannot be compared.

    FOLDER...  results folders, the baseline first; each model below one is a captioner
    --tasks NAMES  tasks and groups, separated by commas (default: all)
    --group SECTION  section of the breakdown to compare groups of, such as categories (default: the
        benchmark's first)
    --gate TASK:METRIC>=BOUND  bound on the difference to the first folder, such as
        'vdc_acc>=-0.5', TASK: only if several have the metric; all must hold (repeatable)
    --across-judges  compare although captions were judged in different ways, with a warning
    --paper  the table of the benchmark's paper, a row per captioner
    --intervals  with --paper: each score with its 95% interval
    --mean  with --paper: a column with the mean over tasks (VDC, MSVD-Eval)
    --published  with --paper: the paper's own rows, with their judge
    --force  with --paper: also scores by the offline stand-in
    --format text|markdown|latex|csv|json  output format (default: text)
    -o, --output FILE  file to write (default: stdout)

    lmms-eval-captions compare results/baseline results/mine
    lmms-eval-captions compare results/baseline results/mine --gate 'vdc_acc>=-0.5'
    lmms-eval-captions compare results/* --paper --published --format latex
    """),
Command("report", "results",
        "one HTML file: scores, comparison, groups, videos with verdicts and replies", """
    Writes one HTML file that works without a network and can be passed around: scores with their
    intervals, the comparison of captioners, groups of questions, and every video with its caption,
    questions, verdicts and the judge's replies. Needs --log_samples for captions and replies.

    FOLDER...  results folders or results files
    -o, --output FILE  file to write (default: report.html)
    --tasks NAMES  tasks and groups, separated by commas (default: all)
    --videos DATA  folder with the videos (default: LMMS_CAPTIONS_DATA)
    --frames COUNT  frames of each video, 0 for none (default: 4)
    --framed COUNT  videos with frames, those that score worst (default: 50)

    lmms-eval-captions report results/* -o report.html
    """),
Command("agree", "results",
        "how far judges of the same captions agree, who is more lenient, what they cost", """
    Compares judges on captions that are the same word for word: Cohen's kappa, Gwet's AC1 and
    Krippendorff's alpha with intervals over videos, confusion tables, leniency by group, slope over
    caption length, ranks of the captioners, dollars; first a sentence per judge. With one folder,
    the judge's runs are compared. Asks no judge.

    FOLDER...  results folders with the same captions, of one captioner or several, each scored by
        several judges, the judge to compare with first; which belong together is found from the
        captions
    --tasks NAMES  tasks and groups, separated by commas (default: all)
    --format text|markdown|latex|json  output format (default: text)
    -o, --output FILE  file to write (default: stdout)

    lmms-eval-captions agree results/gpt-4o results/qwen3 --tasks vdc_score
    """),
Command("stability", "results",
        "how often the judge repeats its verdicts, the noise of scores, and a split by it", """
    Share of questions with the same verdict in all judge runs, by captioner and group; the
    difference of scores below which the judge's noise explains it; with --split, question files of
    those that are stable and of the others. Needs captions that were judged with
    LMMS_CAPTIONS_JUDGE_RUNS of at least 2, better 3.

    FOLDER...  results folders
    --tasks NAMES  tasks and groups, separated by commas (default: all)
    --split DIR  write <benchmark>-stable and <benchmark>-unstable there: official question files,
        each folder a value of LMMS_CAPTIONS_DATA
    --only GROUP  split off unstable questions of this group only, such as 'physical laws'
        (repeatable)
    --format text|markdown|latex|json  output format (default: text)
    -o, --output FILE  file to write (default: stdout)

    lmms-eval-captions stability results/mine --tasks vidcapbench_ae --split splits
    """),
Command("label", "label",
        "a page on which people grade what the judge graded, or choose between captions", """
    Writes one HTML file that works offline: a person answers questions by keyboard or mouse and
    exports JSONL, which lmms-eval-captions labels reads. Needs results with --log_samples, or with
    --build the folder of a benchmark built from your own clips, whose questions are checked.

    FOLDER*  folders given to lmms-eval as --output_path, or results files
    --build DATA/KIND  ask if the questions that lmms-eval-captions build wrote are good, before
        some are selected: once for each criterion
    --videos DIR  with --build: folder of the clips (default: the one that a complete build links)
    --limit N  with --build: ask about N questions, drawn at random (default: all)
    --pairs  ask which of two captioners' captions of a video is better, without their names
    --n N  how many are asked, drawn at random (default: 200)
    --tasks NAMES  tasks, separated by commas (default: all)
    --seed SEED  seed of the sample (default: 0)
    --frames COUNT  frames of each video, 0 for none (default: 4; with --build 8)
    --reveal after|demand|never  when the judge's verdict is shown: after the answer, then on
        demand, never (default: after)
    -o, --output FILE  file to write (default: label.html)

    lmms-eval-captions label results/mine --n 200 -o label.html
    """),
Command("labels", "label",
        "agreement of people and judge, scores corrected by labels, Elo of captioners", """
    Reads what pages of lmms-eval-captions label exported. Graded questions: agreement among
    annotators and with the judge, both scores next to each other, and the score corrected by the
    labels, with intervals over videos. Captions side by side: Elo and Bradley-Terry.

    FILE...  exported JSONL files
    --against FOLDER...  results that the page of graded questions was made of
    --build DATA/KIND  folder of the benchmark whose questions were checked: agreement by criterion,
        and how many questions are kept
    --annotators N  with --build: fewest people that a question needs (default: 1)
    --seed SEED  seed of Elo's order of matches (default: 0)
    --format text|markdown|latex|json  output format; json has all digits (default: text)
    -o, --output FILE  file to write (default: stdout)

    lmms-eval-captions labels labels-*.jsonl --against results/mine
    """),
Command("meta-eval", "meta_eval",
        "how well metrics agree with people: Kendall's tau on a benchmark's human ratings", """
    Correlates metrics of the published candidates with the annotators' ratings: classic metrics
    (needs java), G-VEval if LMMS_CAPTIONS_JUDGE names a judge (msvd), and your own scores, next to
    the agreement of annotators among themselves. For foil: how often a metric prefers the right
    caption.

    BENCHMARK:msvd|flickr8k-expert|flickr8k-cf|vatex-eval|foil  whose ratings
    --data DIR  folder of the published files, except for msvd (default: flickr8k, vatex_eval or
        foil below LMMS_CAPTIONS_DATA)
    --scores FILE  your own metric: .json (an object from video to number or to columns), .jsonl or
        .csv (repeatable)
    --items FILE  except for msvd: write the captions that your own metric is to score, with the
        names that --scores expects, and stop
    --references N  references of each caption: 1 to 9 for vatex-eval, 1 or 4 for foil (default: the
        most)
    --ratings each|mean  flickr8k-expert: compare with every expert's rating, or with the mean of a
        caption's three, as G-VEval's released code does (default: each)
    --gveval ref_only|ref_free|combined*  msvd: settings of G-VEval to ask the judge for; none
        without a name (default: all if LMMS_CAPTIONS_JUDGE is set, else none)
    --no-classic  leave the classic metrics out
    --frames first_middle_last|thirds  frames that G-VEval's judge sees: the paper's, or the
        released code's (default: first_middle_last)
    --resamples N  draws of the intervals (default: 1000; 200 except for msvd)
    -o, --output FILE  also write the report as JSON

    lmms-eval-captions meta-eval msvd --scores mine.json
    """),
),
"Build and verify": (
Command("build", "build", "make a benchmark of your own clips, by the pipelines of the papers", """
    Makes the files of a benchmark from a folder of clips; its tasks score captions of them with
    LMMS_CAPTIONS_DATA=DATA. Every stage is a file in DATA/KIND/build; the same command resumes a
    stopped build, and sends nothing twice. Exit code: 0 if the benchmark is complete, 1 if requests
    failed or no question is left, 2 if it cannot be built as asked.

    KIND:capquiz|vcapsbench|vdc|vidcapbench  benchmark whose form the questions have
    --videos DIR  folder of clips (required)
    -o, --output DATA  root of benchmark data, in which the benchmark's folder is made (required)
    --writer MODELS  vision models that write: NAME[@URL[#KEY_VARIABLE]], comma-separated; without
        an address, at LMMS_CAPTIONS_JUDGE_URL or OPENAI_BASE_URL (required)
    --solver MODELS  models that read text only: they answer without the clip, group questions,
        judge (default: the writers)
    --viewer MODELS  vision models of the sighted check (default: the first writer)
    --per-video N  most questions per clip (default: 20; vidcapbench: 40; vdc: 20 per aspect)
    --limit N  take the first N clips (default: all)
    --frames N  frames per clip (default: 16; vdc: 32)
    --frame-pixels N  area to which larger frames are shrunk (default: 262144)
    --max-tokens N  longest reply of a writer; smaller for servers with a short context (default:
        16384)
    --timeout-s S  longest wait for a reply in seconds (default: 600)
    --max-cost USD  cost limit of this run for all models together (default: none)
    --categories FILE  custom categories of questions: YAML of names and definitions
    --labels FILE...  answers of people, from the page of `label --build`; they replace the sighted
        check
    --annotators N  fewest people per question in --labels, in the paper 3 (default: 1)
    --license TEXT  licence of the clips, for the data card
    --seed SEED  random seed for shuffling (default: 0)
    --until STAGE  stop after this stage, such as shortlist
    --stage STAGE  run only this stage, again; earlier ones must have run

    lmms-eval-captions build capquiz --videos clips --writer gpt-4o -o data
    """),
Command("build clips", "build",
        "cut long videos at scene changes into clips of 3 to 15 seconds that move", """
    Cuts videos at scene changes (PySceneDetect) into clips of 3 to 15 seconds, as VidCapBench does,
    leaves out still images (optical flow), and chooses clips so that short and long ones are
    equally many. Writes clips with their sound, and clips.jsonl with the fate of every part. The
    same command resumes a stopped run. Exit code 1 without a clip. Needs the extra: pip install
    'lmms-eval-captions[scenes]'.

    SOURCE  folder of videos, or one video
    -o, --output DIR  folder of the clips (required)
    --min-s S  shortest clip in seconds (default: 3)
    --max-s S  longest clip in seconds (default: 15)
    --n N  number of clips, balanced by length (default: all)
    --still-below PIXELS  motion below which a part is a still image, in pixels per quarter of a
        second at a longer side of 160; 0 keeps still images (default: 0.15)
    --seed SEED  seed of the choice of clips (default: 0)
    --limit N  read the first N videos (default: all)

    lmms-eval-captions build clips films -o clips --n 500
    """),
Command("judge verify", "verification", "verify that an endpoint is the judge it claims to be", """
    Asks the judge about 60 captions with planted facts per benchmark, and probes the endpoint:
    model name, truncation, temperature 0, cached replies. Verdicts are compared with the right
    ones, or with a record of the judge that you trust. Exit code: 0 for PASSED, 1 for FAILED, 3 for
    UNDECIDED, 2 for an error.

    --tasks NAMES  benchmarks or tasks, comma-separated (default: all)
    --against FILE  record of the trusted judge, written by -o (default: the right verdicts)
    --format text|json  output format (default: text)
    -o, --output FILE  write the record there

    lmms-eval-captions judge verify --judge gpt-4.1-mini -o gpt-4.1-mini.json
    """),
Command("t2v-verify", "verification",
        "compare videos that were generated from captions with their originals", """
    VidCapBench's training-free verification: similarity of videos that a text-to-video model made
    from captions to the captioned videos (PSNR, SSIM, CLIP), ratings by people from 1 to 5, and
    Pearson's correlation with caption scores over captioners. Runs no generator. Exit code: 1 if
    nothing could be compared or rated.

    --generated DIR  one folder per captioner, with VIDEO.mp4 or GENERATOR/VIDEO.mp4 in it
        (required)
    --original DIR  the captioned videos, with the same names (required)
    --frames N  evenly spaced frames (default: 8)
    --clip CHECKPOINT  CLIP checkpoint of transformers on this machine: similarity of its embeddings
    --captions FILE  .jsonl or .csv with captioner, video and caption: similarity of videos with
        their captions, by --clip
    --ratings FILE  .csv or .jsonl of people's ratings: captioner, video, rater, VA, SC, AR, LC, and
        generator if there are several
    --scores PATH...  caption scores to correlate with: a .csv or .jsonl file with captioner and
        columns of numbers, or results folders named like the captioners
    -o, --output FILE  write everything, by video, as JSON

    lmms-eval-captions t2v-verify --generated made --original videos --scores results/*
    """),
),
}
"""Commands in the order of the list in ``--help``."""
# fmt: on
COMMANDS: Final = {command.name: command for group in GROUPS.values() for command in group}
