"""The scale on which the error of a share hardly depends on the share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def arcsine(share: Floats) -> Floats:
    """The angle in [0, pi / 2] whose squared sine is a share.

    >>> arcsine(np.array([0.0, 0.5, 1.0])).round(3).tolist()
    [0.0, 0.785, 1.571]
    """
    return np.asarray(np.arcsin(np.sqrt(np.clip(share, 0.0, 1.0))))


def arcsine_slope(share: Floats) -> Floats:
    """Derivative of :func:`arcsine`, infinite at 0 and 1.

    >>> arcsine_slope(np.array([0.5])).tolist()
    [1.0]
    """
    inside = np.clip(share, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(0.5 / np.sqrt(inside * (1.0 - inside)))


def share_of_arcsine(angle: Floats) -> Floats:
    """The share of an angle; 0 below and 1 above the angles of shares.

    >>> share_of_arcsine(np.array([-1.0, 0.7853981633974483, 9.0])).round(3).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.asarray(np.sin(np.clip(angle, 0.0, np.pi / 2)) ** 2)
