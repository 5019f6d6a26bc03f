"""What judging shares of its prompts' beginnings: counted, simulated, measured on a server.

    python benchmarks/prefixes.py shares                # what can be shared, prompt by prompt
    python benchmarks/prefixes.py simulate              # what one and four replicas would find
    python benchmarks/prefixes.py server --model MODEL  # what a vLLM server finds in its cache

Each says more with ``--help``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import prefix_caches
import prefix_server
import prefix_shares

PARTS: Final[Mapping[str, Callable[[Sequence[str]], int]]] = {
    "shares": prefix_shares.main,
    "simulate": prefix_caches.main,
    "server": prefix_server.main,
}


def main(argv: Sequence[str]) -> int:
    """Run the part that the first word names with the words behind it."""
    part = PARTS.get(argv[0]) if argv else None
    if part is None:
        sys.stderr.write(f"{__doc__}\nexpected one of {', '.join(PARTS)} as the first word\n")
        return 2
    return part(argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
