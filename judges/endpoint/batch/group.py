"""Requests on their way into one batch."""

from __future__ import annotations

from dataclasses import dataclass, field

from lmms_eval_captions.judges.endpoint.batch.api import ENDPOINT


@dataclass(slots=True)
class Group:
    """Requests that go into one batch, all to one model."""

    model: str
    bodies: dict[str, bytes] = field(default_factory=dict)
    n_bytes: int = 0

    def add(self, custom_id: str, body: bytes) -> None:
        """Add a request."""
        self.bodies[custom_id] = body
        self.n_bytes += len(line_of(custom_id, body))

    def halves(self) -> tuple[Group, Group]:
        """The same requests in two groups; of more than one."""
        first, second = Group(self.model), Group(self.model)
        for index, (custom_id, body) in enumerate(self.bodies.items()):
            (first if 2 * index < len(self.bodies) else second).add(custom_id, body)
        return first, second


def line_of(custom_id: str, body: bytes) -> bytes:
    """A request as a line of a batch's file."""
    return b'{"custom_id":"%s","method":"POST","url":"%s","body":%s}\n' % (
        custom_id.encode("ascii"),
        ENDPOINT.encode("ascii"),
        body,
    )
