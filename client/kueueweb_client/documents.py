"""YAML as the server takes it: without anchors and aliases."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any


@cache
def _dumper() -> type[Any]:
    import yaml  # imported late, so that commands without YAML start faster

    class Plain(yaml.SafeDumper):
        """Writes a value that occurs twice out twice."""

        def ignore_aliases(self, data: Any) -> bool:
            """Yes, of everything."""
            return True

    return Plain


def to_yaml(*documents: Any, sort_keys: bool = False) -> str:
    """The documents as one text."""
    import yaml

    dumped: str = yaml.dump_all(
        list(_plain(documents)), Dumper=_dumper(), sort_keys=sort_keys, allow_unicode=True, width=2**16
    )
    return dumped


def _plain(documents: Iterable[Any]) -> Iterable[Any]:
    return (dict(document) if isinstance(document, dict) else document for document in documents)
