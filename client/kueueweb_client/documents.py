"""YAML as the server takes it: without anchors and aliases."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml


class _Plain(yaml.SafeDumper):
    """Writes a value that occurs twice out twice."""

    def ignore_aliases(self, data: Any) -> bool:
        """Yes, of everything."""
        return True


def to_yaml(*documents: Any, sort_keys: bool = False) -> str:
    """The documents as one text."""
    return yaml.dump_all(list(_plain(documents)), Dumper=_Plain, sort_keys=sort_keys, allow_unicode=True)


def _plain(documents: Iterable[Any]) -> Iterable[Any]:
    return (dict(document) if isinstance(document, dict) else document for document in documents)
