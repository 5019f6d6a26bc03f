"""Settings files in YAML, read within bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import yaml

from lmms_eval_captions.judges.files.bounded_files import check_depth, read_whole

if TYPE_CHECKING:
    from pathlib import Path

_MOST_BYTES: Final = 256 * 2**10
"""PyYAML reads some 100 kB a second."""
_MOST_VALUES: Final = 100_000
"""Values, those that an alias stands for counted each time."""
_MOST_BITS: Final = 64


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader without what grows: merge keys; and a key stands once in a mapping."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(
                    None, None, "found a merge key <<, which is not read here", key.start_mark
                )
            name = (key.tag, key.value if isinstance(key.value, str) else repr(key.start_mark))
            if name in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"found the key {key.value!r:.80} twice", key.start_mark
                )
            seen.add(name)


def read_yaml_file(path: Path) -> object:
    """What a user's YAML or JSON file holds.

    Raises:
        OSError: If it cannot be read, or is no regular file.
        ValueError: If it is no YAML in UTF-8 or beyond a bound; in words of one line.
    """
    text = read_whole(path, _MOST_BYTES).decode("utf-8-sig")
    loader = None
    try:
        loader = _Loader(text)
        value: object = loader.get_single_data()
    except RecursionError:
        raise ValueError("nested too deep") from None
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())[:200]) from error
    except (ValueError, LookupError, AttributeError, TypeError, OverflowError) as error:
        # A tag on a text that is none of its kind: !!bool maybe, !!timestamp soon.
        raise ValueError(f"a value that is not what it is marked as: {error!r:.160}") from error
    finally:
        if loader is not None:
            loader.dispose()
    check_depth(value, _MOST_VALUES)
    _check_numbers(value)
    return value


def _check_numbers(value: object) -> None:
    """Refuse whole numbers that can be neither written nor computed with."""
    if isinstance(value, dict):
        for key, item in value.items():
            _check_numbers(key)
            _check_numbers(item)
    elif isinstance(value, list | tuple | set):
        for item in value:
            _check_numbers(item)
    elif isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise ValueError(f"a whole number of more than {_MOST_BITS} bits")
