"""Mean rating of captions from 1 to 5."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lmms_eval_captions.metrics.mean_over_videos import mean_over_videos


def mean_rating(videos: Iterable[Sequence[float | None]]) -> float:
    """Mean rating of the captions along one dimension.

    Args:
        videos: One sequence per caption with its rating in [1, 5]; ``None`` is unscored.

    Returns:
        Rating in [1, 5], higher is better; ``nan`` when nothing was scored.

    Raises:
        ValueError: If a rating is outside [1, 5].

    Source:
        CapQuiz, section 4.1: a Likert scale of 1-5. The paper prints correlations of such ratings
        with people's alone, and no means.

    >>> mean_rating([[5.0], [None], [2.0]])
    3.5
    """
    videos = [list(ratings) for ratings in videos]
    for rating in (rating for ratings in videos for rating in ratings):
        if rating is not None and not 1.0 <= rating <= 5.0:
            raise ValueError(f"mean_rating: expected ratings between 1 and 5, got {rating!r}")
    return mean_over_videos(videos)
