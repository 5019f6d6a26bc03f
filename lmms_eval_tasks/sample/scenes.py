"""Content of the sample's clips, from which pictures, questions and captions are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Color = Literal[
    "black", "white", "gray", "red", "orange", "yellow", "green", "blue", "purple", "brown", "pink"
]
Shape = Literal["circle", "square", "triangle", "rectangle"]
Motion = Literal["still", "left", "right", "up", "down"]
Camera = Literal["static", "pans left", "pans right", "zooms in", "zooms out"]
Light = Literal["constant", "darker", "brighter"]
Pattern = Literal["plain", "dotted"]

RGB: dict[Color, tuple[int, int, int]] = {
    "black": (12, 12, 12), "white": (245, 245, 245), "gray": (128, 128, 128),
    "red": (215, 30, 35), "orange": (245, 130, 20), "yellow": (245, 220, 40),
    "green": (35, 155, 60), "blue": (35, 70, 215), "purple": (125, 40, 160),
    "brown": (120, 70, 30), "pink": (245, 150, 190),
}  # fmt: skip
"""Red, green and blue of each colour name, in 0-255."""


@dataclass(frozen=True, slots=True)
class Thing:
    """One object of a shot."""

    color: Color
    shape: Shape
    motion: Motion = "still"
    """Direction in the scene, seen from the viewer; a panning camera is not motion."""
    center: tuple[float, float] = (0.5, 0.5)
    """Position at the start, as shares of the frame's width and height from the upper left."""
    size: float = 0.3
    """Height as a share of the frame's height."""

    @property
    def name(self) -> str:
        """Colour and shape, such as ``red circle``."""
        return f"{self.color} {self.shape}"


@dataclass(frozen=True, slots=True)
class Shot:
    """One stretch of video without a cut."""

    background: Color
    things: tuple[Thing, ...]
    """The main object first, at least one."""
    pattern: Pattern = "plain"
    camera: Camera = "static"
    light: Light = "constant"
    text: str = ""
    """Capital letters painted in white at the top of the frame, or nothing."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One clip: its shots follow each other with hard cuts and last equally long."""

    video_id: str
    shots: tuple[Shot, ...]

    @property
    def main(self) -> Thing:
        """The main object of the first shot."""
        return self.shots[0].things[0]


_SHOTS: tuple[tuple[Shot, ...], ...] = (
    (Shot("white", (Thing("red", "circle", "right", (0.2, 0.5)),)),),
    (Shot("gray", (Thing("blue", "square", "down", (0.6, 0.25)),)),),
    (
        Shot(
            "black",
            tuple(
                Thing("green", "circle", center=center, size=0.25)
                for center in ((0.2, 0.35), (0.5, 0.65), (0.8, 0.35))
            ),
        ),
    ),
    (Shot("gray", (Thing("blue", "triangle", center=(0.7, 0.5)),), "dotted", "pans right"),),
    (Shot("white", (Thing("orange", "square", size=0.25),), "dotted", "zooms in"),),
    (
        Shot("white", (Thing("red", "triangle", center=(0.35, 0.5), size=0.4),)),
        Shot("black", (Thing("yellow", "circle", center=(0.65, 0.5), size=0.35),)),
    ),
    (Shot("white", (Thing("green", "square", size=0.4),), light="darker"),),
    (Shot("blue", (Thing("yellow", "rectangle", center=(0.5, 0.7), size=0.2),), text="HELLO"),),
    (
        Shot(
            "white",
            (
                Thing("purple", "rectangle", "left", (0.7, 0.25), size=0.2),
                Thing("orange", "circle", "right", (0.25, 0.72), size=0.25),
            ),
        ),
    ),
    (Shot("green", (Thing("yellow", "circle", center=(0.3, 0.5)),), "dotted", "pans left"),),
    (Shot("blue", (Thing("red", "triangle", size=0.4),), light="brighter"),),
    (Shot("blue", (Thing("white", "square", size=0.5),), "dotted", "zooms out"),),
)
SCENES: tuple[Scene, ...] = tuple(
    Scene(f"sample_{number:02d}", shots) for number, shots in enumerate(_SHOTS, 1)
)
