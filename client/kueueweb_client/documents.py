"""YAML as the server takes it: written without anchors and aliases, read with times as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

_TIMESTAMP: Final = "tag:yaml.org,2002:timestamp"


@cache
def _dumper() -> type[Any]:
    import yaml  # imported late, so that commands without YAML start faster

    class Plain(yaml.SafeDumper):
        """Writes a value that occurs twice out twice."""

        def ignore_aliases(self, data: Any) -> bool:
            """Return true: aliases are never written."""
            return True

    return Plain


def to_yaml(*documents: Any, sort_keys: bool = False) -> str:
    """Return the documents as one text."""
    import yaml

    dumped: str = yaml.dump_all(
        list(_plain(documents)), Dumper=_dumper(), sort_keys=sort_keys, allow_unicode=True, width=2**16
    )
    return dumped


def _plain(documents: Iterable[Any]) -> Iterable[Any]:
    return (dict(document) if isinstance(document, dict) else document for document in documents)


@cache
def _loader() -> Any:
    import yaml

    resolvers = {
        first: [(tag, pattern) for tag, pattern in found if tag != _TIMESTAMP]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return type("PlainLoader", (yaml.SafeLoader,), {"yaml_implicit_resolvers": resolvers})


def all_of_yaml(text: str) -> Iterator[Any]:
    """Return the documents of a text. Raises `yaml.YAMLError`."""
    import yaml

    yield from yaml.load_all(text, Loader=_loader())  # a safe loader


def of_yaml(text: str) -> Any:
    """Return the only document of a text. Raises `yaml.YAMLError`."""
    import yaml

    return yaml.load(text, Loader=_loader())  # noqa: S506  # a safe loader
