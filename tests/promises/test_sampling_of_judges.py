"""All five benchmarks on a server of one's own: nothing of how it samples is left to it."""

from __future__ import annotations

import pytest

from aggregated import signature_of_items
from conftest import ServerFactory
from lmms_eval_captions.judges.endpoint.adapt import NEUTRAL
from lmms_eval_captions.judges.settings import read_judge_settings
from lmms_eval_captions.lmms_eval_tasks.judging import session
from lmms_eval_captions.lmms_eval_tasks.judging.session import SESSION
from test_every_failure import (
    BENCHMARKS,
    Benchmark,
    Judge,
    _check,
    _judge,
    _set,
    bench,  # noqa: F401 - a fixture
    sample,  # noqa: F401 - a fixture of that one
)


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_every_request_names_its_sampling_and_no_signature_does(
    benchmark: Benchmark,
    bench: pytest.MonkeyPatch,  # noqa: F811 - the fixture
    serve: ServerFactory,
) -> None:
    """At every step; and a server that refuses it leads to the same numbers and the same store."""
    server = serve(logprobs="whole")
    server.keep_bodies = True
    server.script = Judge()
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    _set(benchmark, bench)
    items = _judge(benchmark)
    _check(benchmark, items, set())
    assert len(server.bodies) == len(benchmark.order())
    assert all(NEUTRAL.items() <= body.items() for body in server.bodies)
    signature = signature_of_items(items["unscored"])
    assert not [name for name in NEUTRAL if name in signature]

    SESSION.close()
    bench.setattr(session, "added_params", lambda *_: {})
    _check(benchmark, _judge(benchmark), set())
    assert len(server.bodies) == len(benchmark.order())


def test_nothing_is_sent_explicitly_to_providers_and_in_batches(bench: pytest.MonkeyPatch) -> None:  # noqa: F811
    """They have no defaults of a checkpoint, and may refuse a batch for what they do not know."""
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", "http://127.0.0.1:8000/v1")
    assert dict(session.engine_config(read_judge_settings()).added_params) == dict(NEUTRAL)
    bench.setenv("LMMS_CAPTIONS_JUDGE_MODE", "batch")
    assert not session.engine_config(read_judge_settings()).added_params
    bench.setenv("LMMS_CAPTIONS_JUDGE_MODE", "now")
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", "https://api.openai.com/v1")
    assert not session.engine_config(read_judge_settings()).added_params


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_fields_of_ones_own_and_schemas_are_sent_and_in_the_signature(
    benchmark: Benchmark,
    bench: pytest.MonkeyPatch,  # noqa: F811 - the fixture
    serve: ServerFactory,
) -> None:
    """The reply of a protocol whose reply is an object has a schema, all others have none."""
    server = serve(logprobs="whole")
    server.keep_bodies = True
    server.script = Judge()
    bench.setenv("LMMS_CAPTIONS_JUDGE_URL", server.url)
    bench.setenv("LMMS_CAPTIONS_JUDGE_STRUCTURED", "1")
    bench.setenv("LMMS_CAPTIONS_JUDGE_MAX_TOKENS", "2000")
    bench.setenv("LMMS_CAPTIONS_JUDGE_EXTRA_BODY", '{"reasoning_effort": "low"}')
    _set(benchmark, bench)
    items = _judge(benchmark)
    _check(benchmark, items, set())
    assert {body["reasoning_effort"] for body in server.bodies} == {"low"}
    assert {body["max_tokens"] for body in server.bodies} == {2000}
    formats = [body["response_format"] for body in server.bodies if "response_format" in body]
    properties = {tuple(form["json_schema"]["schema"]["properties"]) for form in formats}
    of_vdc: set[tuple[str, ...]] = {("pred", "score")}
    of_vidcapbench: set[tuple[str, ...]] = {("score",)}
    expected = {"vdc_camera": of_vdc, "vdc_vdd_camera": of_vdc}
    expected |= {"vidcapbench_ae": of_vidcapbench, "vidcapbench_he": of_vidcapbench}
    assert properties == expected.get(benchmark.name, set())
    signature = signature_of_items(items["unscored"])
    for field in ("structured:1", "max_tokens:2000", "reasoning_effort:low"):
        assert field in signature
