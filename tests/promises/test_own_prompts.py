"""Prompts of one's own in every benchmark, from the captioner's to the judge's last one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from conftest import ServerFactory
from five_tasks import write_clip
from judge_server import last_text
from lmms_eval_captions.judges.errors import SettingsError
from lmms_eval_captions.judges.protocols.prompt import read_yaml
from lmms_eval_captions.judges.settings import read_settings
from lmms_eval_captions.lmms_eval_tasks.capquiz import hooks as capquiz
from lmms_eval_captions.lmms_eval_tasks.commands.doctor import examine
from lmms_eval_captions.lmms_eval_tasks.judge_run import JUDGE_RUN
from lmms_eval_captions.lmms_eval_tasks.msvd_eval import hooks as msvd_eval
from lmms_eval_captions.lmms_eval_tasks.own import hooks as own_gveval
from lmms_eval_captions.lmms_eval_tasks.own import rating_hooks as own_rating
from lmms_eval_captions.lmms_eval_tasks.signature import Signature
from lmms_eval_captions.lmms_eval_tasks.vcapsbench import hooks as vcapsbench
from lmms_eval_captions.lmms_eval_tasks.vdc import hooks as vdc
from lmms_eval_captions.lmms_eval_tasks.vdc import vdd_hooks as vdc_vdd
from lmms_eval_captions.lmms_eval_tasks.vidcapbench import hooks as vidcapbench

Doc = dict[str, Any]

_PAIR = {"question": "What?", "answer": "yes"}
_VIDCAP = {**_PAIR, "primary_category": "video content", "sub_category": "events"}
_QUIZ = {"category": "Entity", "question": "Who?", "options": list("vwxyz"), "answer": "v"}
DOCS: dict[str, tuple[ModuleType, Doc]] = {
    "vdc": (vdc, {"video_id": "a", "aspect": "short", "questions": [_PAIR]}),
    "vdc_vdd": (vdc_vdd, {"video_id": "a", "aspect": "short", "reference": "A dog."}),
    "vidcapbench": (
        vidcapbench,
        {
            "video_id": "a",
            "video_dir": "a",
            "subset": "AE",
            "caption_format": "vript",
            "questions": [_VIDCAP],
        },
    ),
    "vcapsbench": (
        vcapsbench,
        {
            "video_id": "a",
            "n_malformed": 0,
            "n_malformed_in_file": 0,
            "questions": [{**_PAIR, "category": "color"}],
        },
    ),
    "capquiz": (
        capquiz,
        {"video": "a", "domain": "Nature", "caption_prompt": "detailed", "questions": [_QUIZ]},
    ),
    "msvd_eval": (
        msvd_eval,
        {"video_id": "a", "vname": "a", "setting": "ref_only", "references": ["A dog."]},
    ),
    "own_gveval": (own_gveval, {"video_id": "a.mp4", "judge": "gveval"}),
    "own_rating": (own_rating, {"video_id": "a.mp4", "judge": "vllm_judge"}),
}
USED = [
    ("vdc", "vdc_caption", "short"),
    ("vdc", "vdc_answer", None),
    ("vdc", "vdc_match", None),
    ("vdc_vdd", "vdc_caption", "short"),
    ("vdc_vdd", "vdc_vdd", None),
    ("vidcapbench", "vidcapbench_caption", "vript"),
    ("vidcapbench", "vidcapbench_answer", None),
    ("vidcapbench", "vidcapbench_judge", None),
    ("vcapsbench", "vcapsbench_caption", "caption"),
    ("vcapsbench", "vcapsbench_answer", None),
    ("capquiz", "capquiz_caption", "detailed"),
    ("capquiz", "capquiz_answer", None),
    ("msvd_eval", "gveval_caption", "msvd_eval"),
    ("msvd_eval", "gveval_accr_ref_only", None),
    ("own_gveval", "own_caption", "own"),
    ("own_gveval", "gveval_accr_ref_free", None),
    ("own_rating", "own_caption", "own"),
    ("own_rating", "video_rating", None),
]
UNUSED = [
    ("vdc", "vdc_caption", "camera"),
    ("vdc", "vdc_vdd", None),
    ("vdc_vdd", "vdc_match", None),
    ("vdc", "vidcapbench_answer", None),
    ("vidcapbench", "vidcapbench_caption", "free"),
    ("capquiz", "capquiz_caption", "standard"),
    ("msvd_eval", "gveval_accr_combined", None),
    ("own_gveval", "video_rating", None),
    ("own_rating", "gveval_accr_ref_free", None),
]


@pytest.fixture
def bench(bench: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """The shared one, with a clip of one's own, which judges that see are shown."""
    write_clip(tmp_path / "data/own/videos/a.mp4", "a")
    bench.setenv("LMMS_CAPTIONS_DATA", str(tmp_path / "data"))
    return bench


@pytest.fixture
def replace(bench: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str, str | None], None]:
    """Puts words of its own before one of our prompts."""

    def put(name: str, key: str | None) -> None:
        content: Any = {**read_yaml(name)}
        if key is not None:
            content[key] = f"In my words: {content[key]}"
        else:
            *before, last = content["messages"]
            mine = {**last, "content": f"In my words: {last['content']}"}
            content = {"messages": [*before, mine]}
        folder = tmp_path / "prompts"
        folder.mkdir()
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(content, allow_unicode=True))
        bench.setenv("LMMS_CAPTIONS_PROMPTS", str(folder))
        JUDGE_RUN.close()

    return put


def _signature(hooks: ModuleType, doc: Mapping[str, object]) -> str:
    items = hooks.process_results(doc, ["A dog runs."])
    return str(hooks.aggregate_signature([items["signature"]]))


@pytest.mark.parametrize(("benchmark_name", "prompt", "key"), USED)
def test_a_prompt_that_is_used_is_sent_and_in_the_signature(
    benchmark_name: str,
    prompt: str,
    key: str | None,
    bench: pytest.MonkeyPatch,
    serve: ServerFactory,
    replace: Callable[[str, str | None], None],
) -> None:
    """Captioner or judge gets the words, replies of our words do not serve, all else stays."""
    hooks, doc = DOCS[benchmark_name]
    server = serve()
    server.keep_bodies = True
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    before = _signature(hooks, doc)
    assert "prompts:" not in before
    n_before = len(server.bodies)
    text = hooks.doc_to_text(doc)
    replace(prompt, key)
    signature = _signature(hooks, doc)
    field = Signature.parse(signature).fields["prompts"]
    assert len(field) == 8
    assert signature.replace(f"|prompts:{field}", "") == before
    sent = [last_text(body) for body in server.bodies[n_before:]]
    if key is None:
        assert any(words.startswith("In my words: ") for words in sent)
        assert hooks.doc_to_text(doc) == text
    else:
        assert sent == []
        assert hooks.doc_to_text(doc) == f"In my words: {text}"


@pytest.mark.parametrize(("benchmark_name", "prompt", "key"), UNUSED)
def test_a_prompt_that_is_not_used_moves_nothing(
    benchmark_name: str,
    prompt: str,
    key: str | None,
    bench: pytest.MonkeyPatch,
    serve: ServerFactory,
    replace: Callable[[str, str | None], None],
) -> None:
    """Neither what is asked nor the signature changes, and a rerun sends nothing."""
    hooks, doc = DOCS[benchmark_name]
    server = serve()
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    before, text = _signature(hooks, doc), hooks.doc_to_text(doc)
    n_before = server.counts.n_requests
    replace(prompt, key)
    assert (_signature(hooks, doc), hooks.doc_to_text(doc)) == (before, text)
    assert server.counts.n_requests == n_before


@pytest.mark.parametrize("benchmark_name", DOCS)
def test_a_bad_folder_stops_before_captioning_and_ends_judging_in_words(
    benchmark_name: str, bench: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The captioner's prompt raises the error itself; a hook keeps it as the reason."""
    hooks, doc = DOCS[benchmark_name]
    bench.setenv("LMMS_CAPTIONS_PROMPTS", str(tmp_path / "gone"))
    with pytest.raises(SettingsError, match="LMMS_CAPTIONS_PROMPTS: expected a folder"):
        hooks.doc_to_text(doc)
    record = hooks.process_results(doc, ["A dog runs."])["unscored"].wait()
    assert "LMMS_CAPTIONS_PROMPTS: expected a folder" in str(record["reasons"])


def test_asking_captioners_needs_no_settings_of_the_judge(bench: pytest.MonkeyPatch) -> None:
    """They are read later: a launcher may set them once captioning has ended."""
    bench.setenv("LMMS_CAPTIONS_JUDGE_RUNS", "not yet known")
    for hooks, doc in DOCS.values():
        assert hooks.doc_to_text(doc)


def test_the_doctor_says_what_is_replaced(
    bench: pytest.MonkeyPatch, tmp_path: Path, replace: Callable[[str, str | None], None]
) -> None:
    """The names of the files, or what is wrong with them."""
    bench.setenv("LMMS_CAPTIONS_JUDGE", "lexical")
    replace("vdc_match", None)
    (found,) = [one for one in examine(read_settings()) if one.topic == "prompts"]
    assert (found.ok, found.text) == (True, f"{tmp_path / 'prompts'} replaces vdc_match")
    bench.setenv("LMMS_CAPTIONS_PROMPTS", str(tmp_path / "gone"))
    JUDGE_RUN.close()
    (found,) = [one for one in examine(read_settings()) if one.topic == "prompts"]
    assert not found.ok
    assert "No such file" in found.text
