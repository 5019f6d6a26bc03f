"""Every kind of file that others write and the package reads, in parts that are damaged alone."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from lmms_eval_captions.judges.endpoint.batch.ledger import Ledger
from lmms_eval_captions.judges.endpoint.prices import load_prices
from lmms_eval_captions.judges.protocols.prompt_folder import Prompts
from lmms_eval_captions.judges.settings import DataSettings, read_data_settings
from lmms_eval_captions.lmms_eval_tasks.capquiz.data import read_videos as read_capquiz
from lmms_eval_captions.lmms_eval_tasks.commands.check import Limits, check_folder
from lmms_eval_captions.lmms_eval_tasks.commands.meta_eval.score_file import read_scores
from lmms_eval_captions.lmms_eval_tasks.msvd_eval.data import read_items
from lmms_eval_captions.lmms_eval_tasks.signature import Signature
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.data import read_videos as read_vcapsbench
from lmms_eval_captions.lmms_eval_tasks.vcapsbench.published_verdicts import read_published_verdicts
from lmms_eval_captions.lmms_eval_tasks.vdc.data import read_questions
from lmms_eval_captions.lmms_eval_tasks.vidcapbench.data import read_videos as read_vidcapbench
from lmms_eval_captions.model_wrappers.caption_files.records import open_captions

Units = dict[str, object]
"""What a reader gives: the name of a video, item or task to what belongs to it."""
URL: Final = "http://localhost:1/v1"
_WORDS: Final = (
    "dog",
    "schön",
    "三",
    "\u2028",
    "a, b",
    '"',
    "it's",
    "\\",
    "*",
    "😀",
    "<b>",
    "x" * 300,
)


@dataclass(frozen=True)
class Parts:
    """A file in parts; all but the first and the last are a unit each."""

    head: bytes
    units: list[tuple[str, bytes]]
    """Name and text of each."""
    tail: bytes
    between: bytes = b"\n"

    def whole(self) -> bytes:
        """The file."""
        return self.head + self.between.join(text for _, text in self.units) + self.tail


@dataclass(frozen=True)
class Kind:
    """A kind of file."""

    name: str
    path: str
    """Where the file is below a root."""
    make: Callable[[random.Random], Parts]
    read: Callable[[Path], Units]
    """Reads the file below a root."""
    is_json: bool = True
    """Whether each part is JSON, or a member of an object."""
    keeps_units: bool = True
    """Whether parts that are not damaged must come out as they are."""
    may_be_gz: bool = True
    """Whether ``.gz`` may stand behind the name, where the kind may be gzipped at all."""
    wrap: Callable[[bytes], bytes] | None = None
    """What makes the file of its text."""


def kinds(*roots: Path) -> list[Kind]:
    """All kinds; benchmark files begin with those of the first root of local data that has them."""
    return [*_benchmarks(roots), *_captions(), *_others()]


def _content(roots: Sequence[Path], name: str) -> bytes:
    for root in roots:
        if (root / name).is_file():
            return (root / name).read_bytes()
        if (root / f"{name}.gz").is_file():
            return gzip.decompress((root / f"{name}.gz").read_bytes())
    raise FileNotFoundError(f"no {name} below {', '.join(map(str, roots))}")


def _lines(raw: bytes, key: Callable[[Mapping[str, object]], str]) -> list[tuple[str, bytes]]:
    rows = [json.loads(line) for line in raw.split(b"\n") if line.strip()]
    return [(key(row), json.dumps(row, ensure_ascii=False).encode()) for row in rows]


def _benchmarks(roots: Sequence[Path]) -> list[Kind]:
    def of_lines(
        name: str,
        file: str,
        key: Callable[[Mapping[str, object]], str],
        read: Callable[[Path], Units],
    ) -> Kind:
        rows = _lines(_content(roots, f"{name}/{file}"), key)

        def make(rng: random.Random) -> Parts:
            return Parts(b"", rng.sample(rows, min(len(rows), rng.randint(2, 5))), b"\n")

        return Kind(name, f"{name}/{file}", make, read)

    items = json.loads(_content(roots, "msvd_eval/MSVD-Eval.json"))
    members = [(key, _member(key, row)) for key, row in items.items()]

    def make_msvd(rng: random.Random) -> Parts:
        return Parts(b"{", rng.sample(members, min(len(members), 4)), b"}", b",\n")

    return [
        of_lines("vdc", "VDCScore_qa/camera.jsonl", lambda row: next(iter(row)), _vdc),
        of_lines(
            "vidcapbench",
            "VidCapBench-AE_QA.jsonl",
            lambda row: str(row["video_dir"]).split("/")[-1],
            lambda root: {
                video.video_id: video.pairs for video in read_vidcapbench(_settings(root), "AE")
            },
        ),
        of_lines(
            "vcapsbench",
            "VCapsBench_100KQA.jsonl",
            lambda row: str(row["video_id"]),
            lambda root: {v.video_id: v.questions for v in read_vcapsbench(_settings(root))},
        ),
        of_lines(
            "capquiz",
            "capquiz.jsonl",
            lambda row: str(row["video"]),
            lambda root: {str(row["video"]): row for row in read_capquiz(_settings(root))},
        ),
        Kind(
            "msvd_eval",
            "msvd_eval/MSVD-Eval.json",
            make_msvd,
            lambda root: {item.video_id: asdict(item) for item in read_items(_settings(root))},
        ),
    ]


def _vdc(root: Path) -> Units:
    return dict(read_questions(_settings(root), "camera"))


def _settings(root: Path) -> DataSettings:
    return read_data_settings({"LMMS_CAPTIONS_DATA": str(root), "LMMS_CAPTIONS_CACHE": str(root)})


def _member(key: str, value: object) -> bytes:
    return f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}".encode()


def _name(rng: random.Random) -> str:
    return f"{rng.getrandbits(64):016x}"


def _text(rng: random.Random) -> str:
    return "A " + " ".join(rng.choices(_WORDS, k=rng.randint(1, 9)))


def _several(rng: random.Random, row: Callable[[str], bytes]) -> list[tuple[str, bytes]]:
    return [(name, row(name)) for name in (_name(rng) for _ in range(rng.randint(2, 6)))]


def _json_row(**fields: object) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode()


def _csv_row(*cells: str) -> bytes:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="").writerow(cells)
    return stream.getvalue().encode()


def _captions() -> list[Kind]:  # noqa: C901 - one function for each kind
    def reads(file: str) -> Callable[[Path], Units]:
        def read(root: Path) -> Units:
            path = root / file
            path = path if path.exists() else path.with_name(f"{path.name}.gz")
            table = open_captions(path)("vdc_camera")
            return {video: table.find(video) for video in table.videos}

        return read

    def lines(rng: random.Random) -> Parts:
        def row(name: str) -> bytes:
            return _json_row(video_id=name, caption=_text(rng), n=3)

        return Parts(b"", _several(rng, row), b"\n")

    def listed(rng: random.Random) -> Parts:
        def row(name: str) -> bytes:
            return _json_row(video=name, caption=_text(rng))

        return Parts(b"[", _several(rng, row), b"]", b",\n")

    def mapped(rng: random.Random) -> Parts:
        return Parts(b"{", _several(rng, lambda name: _member(name, _text(rng))), b"}", b",\n")

    def table(rng: random.Random) -> Parts:
        head = b"video_id,caption,note\n"
        return Parts(head, _several(rng, lambda name: _csv_row(name, _text(rng), "x")), b"\n")

    def log(rng: random.Random) -> Parts:
        def row(name: str) -> bytes:
            text = [_text(rng)]
            return _json_row(doc_id=1, target=name, resps=[text], filtered_resps=text, vdc={"n": 1})

        return Parts(b"", _several(rng, row), b"\n")

    return [
        Kind("captions.jsonl", "captions.jsonl", lines, reads("captions.jsonl")),
        Kind("captions list", "captions.json", listed, reads("captions.json")),
        Kind("captions object", "captions.json", mapped, reads("captions.json")),
        Kind("captions.csv", "captions.csv", table, reads("captions.csv"), is_json=False),
        Kind("sample log", "logs/20260101_samples_vdc_camera.jsonl", log, reads("logs")),
    ]


def _others() -> list[Kind]:  # noqa: C901 - one function for each kind
    def score_units(root: Path, file: str) -> Units:
        units: dict[str, dict[str, float]] = {}
        for column, scores in read_scores(root / file).items():
            for item, score in scores.items():
                units.setdefault(item, {})[column] = score
        return dict(units)

    def scores(rng: random.Random) -> Parts:
        def row(name: str) -> bytes:
            return _json_row(video_id=name, mine=rng.random(), other=rng.randint(0, 9))

        return Parts(b"", _several(rng, row), b"\n")

    def score_object(rng: random.Random) -> Parts:
        return Parts(b"{", _several(rng, lambda name: _member(name, rng.random())), b"}", b",\n")

    def score_table(rng: random.Random) -> Parts:
        rows = _several(rng, lambda name: _csv_row(name, str(rng.random()), _text(rng)))
        return Parts(b"id,score,words\n", rows, b"\n")

    def verdicts(rng: random.Random) -> Parts:
        def row(name: str) -> bytes:
            return _csv_row("v", _text(rng), f"{name}*Is it?*yes", rng.choice("012"), "yes, so")

        return Parts(b"video_id,caption,question,answer,analysis\n", _several(rng, row), b"\n")

    def verdict_units(root: Path, file: str) -> Units:
        (published,) = read_published_verdicts(root / file)
        return dict(zip(published.categories, published.verdicts, strict=True))

    def results(rng: random.Random) -> Parts:
        def task(name: str) -> bytes:
            metrics = {"signature,none": f"{name}|judge:x|unscored:1/200|v:1", "score,none": 1.5}
            return _member(name, metrics)

        return Parts(b'{"results": {', _several(rng, task), b'}, "config": {}}', b",\n")

    def result_units(root: Path) -> Units:
        report = check_folder(root / "results", Limits(max_unscored=0.5))
        signatures = map(Signature.parse, (line.strip() for line in report.lines if "|" in line))
        return {signature.task: str(signature) for signature in signatures}

    def prices(rng: random.Random) -> Parts:
        def model(name: str) -> bytes:
            return f"  m{name}: {{input: {rng.random()}, output: 2, image_tokens: 3}}".encode()

        return Parts(b"as_of: 2026-01-01\nmodels:\n", _several(rng, model), b"\n")

    def prompts(rng: random.Random) -> Parts:
        text = "  - {role: user, content: 'Mine: {{caption}} -- {{question}}'}"
        return Parts(b"messages:\n", [(_name(rng), text.encode())], b"\n")

    def prompt_units(root: Path) -> Units:
        prompts = Prompts(root / "prompts")
        prompts.check()
        return {"prompt": prompts.load("vdc_answer").render(caption="a", question="b")}

    def ledger(rng: random.Random) -> Parts:
        fields = {
            "url": URL, "model": "m", "batch_id": "b", "created_s": 4e9, "writer": ["here", 1],
            "ids": [_name(rng)],
        }  # fmt: skip
        return Parts(
            b"{", [(key, _member(key, value)) for key, value in fields.items()], b"}", b","
        )

    def ledger_units(root: Path) -> Units:
        Ledger(root / "ledger", URL)
        return {}

    def zipped(text: bytes) -> bytes:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as bundle:
            bundle.writestr("judge/gpt4o_eval_x.csv", text)
        return stream.getvalue()

    def of(file: str, units: Callable[[Path, str], Units]) -> Callable[[Path], Units]:
        return lambda root: units(root, file)

    return [
        Kind("scores.jsonl", "s.jsonl", scores, of("s.jsonl", score_units), may_be_gz=False),
        Kind("scores.json", "s.json", score_object, of("s.json", score_units), may_be_gz=False),
        Kind("scores.csv", "s.csv", score_table, of("s.csv", score_units),
             is_json=False, may_be_gz=False),
        Kind("verdicts.csv", "v.csv", verdicts, of("v.csv", verdict_units),
             is_json=False, may_be_gz=False),
        Kind("verdicts.zip", "v.zip", verdicts, of("v.zip", verdict_units),
             is_json=False, may_be_gz=False, wrap=zipped),
        Kind("results", "results/1_results.json", results, result_units, may_be_gz=False),
        Kind("prices", "p.yaml", prices, lambda root: dict(load_prices(root / "p.yaml").models),
             is_json=False, keeps_units=False, may_be_gz=False),
        Kind("prompts", "prompts/vdc_answer.yaml", prompts, prompt_units,
             is_json=False, keeps_units=False, may_be_gz=False),
        Kind("ledger", "ledger/b.json", ledger, ledger_units, keeps_units=False, may_be_gz=False),
    ]  # fmt: skip
