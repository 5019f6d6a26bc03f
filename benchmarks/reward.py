"""Measures how long a batch of rollouts waits for its rewards.

128 rollouts with 20 questions of CapQuiz each are 2,560 requests; with 256 in flight and 200 ms a
reply that is 2.0 s at best. The judge is ``judge_server.py`` in a process of its own.

    python benchmarks/reward.py
"""

from __future__ import annotations

import argparse
import tempfile
import time
from statistics import median

from judging import serving
from lmms_eval_captions import CaptionReward

_COLOURS = ["red", "green", "blue", "white", "black"]


def main() -> None:
    """Measure and print."""
    arguments = _arguments()
    n_requests = arguments.rollouts * arguments.questions
    ideal_s = n_requests / arguments.concurrency * arguments.latency
    print(
        f"{arguments.rollouts} rollouts of {arguments.questions} questions, {n_requests:,} "
        f"requests, {arguments.concurrency} in flight, {arguments.latency * 1e3:.0f} ms a reply: "
        f"{ideal_s:.2f} s at best",
        flush=True,
    )
    with serving(arguments.port, arguments.latency), tempfile.TemporaryDirectory() as folder:
        reward = CaptionReward(
            "capquiz",
            judge="judge",
            judge_url=f"http://127.0.0.1:{arguments.port}/v1",
            concurrency=arguments.concurrency,
            cache=folder,
            evaluation=None,
        )
        with reward:
            first_s, *others_s = (
                _batch_s(reward, batch, arguments.rollouts, arguments.questions)
                for batch in range(1 + arguments.batches)
            )
            again_s = _batch_s(reward, 0, arguments.rollouts, arguments.questions)
    print(f"first batch, cold: {first_s:.2f} s")
    print(
        f"{len(others_s)} further ones: median {median(others_s):.2f} s, "
        f"worst {max(others_s):.2f} s"
    )
    print(f"the first one once more, all stored: {again_s:.2f} s")


def _batch_s(reward: CaptionReward, batch: int, n_rollouts: int, n_questions: int) -> float:
    """Seconds until a batch of eight captions of each clip has its rewards."""
    places = range(n_rollouts)
    clips = [f"clip {place // 8}" for place in places]
    questions = [
        [
            {
                "question": f"What colour is ball {number} of {clip}?",
                "options": _COLOURS,
                "answer": "red",
                "category": "Attribute",
            }
            for number in range(n_questions)
        ]
        for clip in clips
    ]
    captions = [f"Batch {batch}, caption {place}: " + "a red ball rolls. " * 40 for place in places]
    started_s = time.perf_counter()
    rewards = reward([""] * n_rollouts, captions, clip_id=clips, questions=questions)
    took_s = time.perf_counter() - started_s
    if None in rewards:
        raise RuntimeError(f"{rewards.count(None)} rollouts have no reward")
    return took_s


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the rewards of a batch.")
    parser.add_argument("--rollouts", type=int, default=128)
    parser.add_argument("--questions", type=int, default=20, help="of each")
    parser.add_argument("--batches", type=int, default=5, help="after the first one")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds until a reply")
    parser.add_argument("--concurrency", type=int, default=256, help="requests in flight")
    parser.add_argument("--port", type=int, default=8421)
    return parser.parse_args()


if __name__ == "__main__":
    main()
