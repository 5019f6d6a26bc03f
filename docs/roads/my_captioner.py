"""A captioner of one's own: it knows light and colours, and nothing of what moves."""

from lmms_eval_captions.model_wrappers.captioner import Captioner
from lmms_eval_captions.model_wrappers.video.sampling import Uniform

COLOURS = {
    "black": (0, 0, 0),
    "white": (255, 255, 255),
    "gray": (128, 128, 128),
    "red": (220, 30, 30),
    "green": (30, 160, 60),
    "blue": (40, 70, 220),
    "yellow": (240, 220, 40),
}


class MyCaptioner(Captioner):
    """Names the most common colour at the start of each clip, and how its brightness goes."""

    sampling = Uniform(3)  # frames of each clip

    def caption(self, batch):
        """One caption for each job of the batch."""
        return [describe(job.clip.frames) for job in batch.jobs]


def describe(frames):
    """A caption of frames of shape (n, height, width, 3), uint8, RGB."""
    pixels = frames[0].reshape(-1, 3).astype(int)
    near = {name: (abs(pixels - colour).sum(1) < 120).mean() for name, colour in COLOURS.items()}
    first, last = frames[0].mean(), frames[-1].mean()
    light = "gets darker" if last < 0.8 * first else "stays the same"
    return f"The background is {max(near, key=near.get)}. The brightness {light}."
