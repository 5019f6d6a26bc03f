"""Who judged the published numbers: rows for each benchmark, with their sources.

``docs/published-judges.md`` shows the same as a page; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedJudge:
    """Who judged one set of published numbers."""

    numbers: str
    """Which ones."""
    judge: str
    source: str
    """Where that is said, and in which words."""


PUBLISHED: Final[Mapping[str, tuple[PublishedJudge, ...]]] = {
    "vdc": (
        PublishedJudge(
            numbers="AuroraCap, Table 7 (VDCscore), by the paper",
            judge="gpt-4o-2024-08-06",
            source='AuroraCap, section 3.2.1: "We prompt GPT-4o to read the detailed predicted '
            'captions"; its footnote: "gpt-4o-2024-08-06"; appendices Q and R',
        ),
        PublishedJudge(
            numbers="AuroraCap, Table 7 (VDCscore), by all that is public besides",
            judge="Llama-3.1-8B-Instruct",
            source='one of the authors, https://github.com/wenhaochai/aurora/issues/11: "we did '
            "not use ChatGPT for evaluation; instead, we used LLaMA-3.1-8B as the LLM evaluation "
            'assistant"; page of lmms-eval\'s own task (lmms_eval/tasks/vdc/README.md): "We use '
            'LLama3.1-8B to evaluate the answers"',
        ),
        PublishedJudge(
            numbers="VidCapBench, Tables 3 and 7, columns of VDC",
            judge="gpt-4o-2024-08-06",
            source='VidCapBench, Table 3: "Score" is "calculated using GPT-4o based on the method '
            'in Chai et al. (2024)"; footnote 3 names GPT-4o-20240806',
        ),
    ),
    "vidcapbench": (
        PublishedJudge(
            numbers="VidCapBench, Table 3 and all others but Table 10",
            judge="gpt-4o-2024-08-06, mean of three runs with seeds 0, 1 and 2",
            source='VidCapBench, section 4.1: "averaged over three independent runs, utilizing '
            'GPT-4o with random seeds set to 0, 1, and 2"; footnote 3: "Throughout this paper, we '
            'employ GPT-4o-20240806 for GPT-4o"',
        ),
        PublishedJudge(
            numbers="VidCapBench, Table 10, rows of other evaluators",
            judge="Qwen2-72B and Llama-3.3-70B, greedy",
            source='VidCapBench, appendix D, "Influence of the judge model": "we substitute GPT-4o '
            'with Qwen2-72B and Llama-3.3-70B as the judge model"',
        ),
        PublishedJudge(
            numbers="what the released script gives",
            judge="gpt-4o, whichever snapshot that is on the day",
            source="the authors' released script, which names the judge gpt-4o",
        ),
    ),
    "vcapsbench": (
        PublishedJudge(
            numbers="VCapsBench, Table 1 and section 4.1",
            judge="Gemini-2.5-Pro-Preview, consensus of three",
            source='VCapsBench, Table 1: "Gemini-2.5-Pro-Preview as a TextQA expert"; section 4: '
            '"each caption was queried three times, and a consensus response was obtained"',
        ),
        PublishedJudge(
            numbers="VCapsBench, Table 3 (appendix A.1)",
            judge="GPT-4.1, no snapshot named",
            source='VCapsBench, Table 3: "GPT-4.1 as a TextQA expert"; Table 4 of the same paper '
            "and the released code call the judge of these numbers GPT-4o (gpt4o)",
        ),
        PublishedJudge(
            numbers="VCapsBench, Table 4, rows Manual",
            judge="people",
            source="VCapsBench, appendix, Table 4; no row holds together, see the benchmark's page",
        ),
    ),
    "capquiz": (
        PublishedJudge(
            numbers="CapQuiz, Tables 3 and 4",
            judge="GPT-4.1 (its tables name gpt-4.1-2025-04-14 as a captioner)",
            source='CapQuiz, section 3.4: "we employ GPT-4.1 as the judge in our experiments"; '
            'Limitations: "we utilize GPT-4.1 as the judge"',
        ),
        PublishedJudge(
            numbers="CapQuiz, Table 2, VLLM-as-a-Judge",
            judge="Gemini-2.5-pro, which sees the video",
            source='CapQuiz, section 4.1: "we prompted Gemini-2.5-pro to judge based on the video '
            'content"; appendix B',
        ),
    ),
    "msvd_eval": (
        PublishedJudge(
            numbers="G-VEval, Tables 4 and 5 (MSVD-Eval)",
            judge="GPT-4o, no snapshot in the paper; gpt-4o-2024-05-13 in the released code",
            source='G-VEval, section 3: "G-VEval leverages GPT-4o"; released code '
            "ztangaj/gveval@fee3fd7, which also sets temperature 1",
        ),
    ),
}
"""Benchmark to its rows."""
