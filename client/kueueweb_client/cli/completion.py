"""Completes kinds and names without a request: names are those that earlier commands have shown.

They are kept in a file of the user's cache, by server, cluster, kind and namespace.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kueueweb_client.cli.session import options
from kueueweb_client.contexts import current
from kueueweb_client.errors import ClientError
from kueueweb_client.nouns import NOUNS, Noun, noun_named

if TYPE_CHECKING:
    from kueueweb_client.client import Client

_MAX_NAMES: Final = 500
"""Maximum number of names of a kind in the cache."""
_MAX_LISTS: Final = 200


def _file() -> Path:
    if named := os.environ.get("KUEUEWEB_CONFIG"):
        return Path(named).with_suffix(".names.json")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "kueueweb" / "names.json"


def _load() -> dict[str, list[str]]:
    try:
        found = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _key(url: str, cluster: str, noun: Noun, namespace: str) -> str:
    return " ".join((url.rstrip("/"), cluster, noun.plural, namespace))


def remember(asked: Client, noun: Noun, namespace: str, names: Sequence[str]) -> None:
    """Remember names that a command has shown, the newest first. A cache that cannot be written is skipped."""
    if not names or (noun.namespaced and not namespace):
        return
    known = _load()
    key = _key(asked.url, asked.cluster, noun, namespace)
    before = known.pop(key, [])
    merged = list(dict.fromkeys([*names, *before]))[:_MAX_NAMES]
    if merged == before:
        return
    kept = {key: merged, **dict(list(known.items())[: _MAX_LISTS - 1])}
    file = _file()
    new = file.with_suffix(f".{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as output:
            json.dump(kept, output)
        new.replace(file)
    except OSError:
        return


def names(noun: Noun, namespace: str) -> list[str]:
    """Return the known names of a kind; none without a context."""
    try:
        found = current(options.context)
    except ClientError:
        return []
    where = (namespace or options.namespace or found.namespace) if noun.namespaced else ""
    return _load().get(_key(found.url, options.cluster or found.cluster, noun, where), [])


def kinds(incomplete: str) -> list[str]:
    """Complete a kind; after a comma, the next one."""
    before, comma, last = incomplete.rpartition(",")
    words = [noun.plural for noun in NOUNS] + ["all"]
    short = [word for noun in NOUNS for word in noun.words[1:]]
    found = [word for word in words if word.startswith(last)] or [word for word in short if word.startswith(last)]
    return [before + comma + word for word in found]


def kinds_and_names(ctx: Any, args: list[str], incomplete: str) -> Iterator[str]:
    """Complete a kind, and after it names of that kind; also KIND/NAME."""
    given = [word for word in (ctx.params.get("kinds") or ctx.params.get("names") or ()) if word]
    first = ctx.params.get("kind") or (given[0] if given else "")
    kind, slash, begun = incomplete.partition("/")
    namespace = ctx.params.get("namespace") or ""
    if slash:
        if noun := noun_named(kind):
            yield from (f"{kind}/{name}" for name in names(noun, namespace) if name.startswith(begun))
    elif not first:
        yield from kinds(incomplete)
    elif noun := noun_named(first):
        yield from (name for name in names(noun, namespace) if name.startswith(incomplete))


def _names_of(kind: str) -> Any:
    noun = noun_named(kind)
    assert noun is not None, f"{kind} is a kind"

    def complete(ctx: Any, args: list[str], incomplete: str) -> list[str]:
        namespace = ctx.params.get("namespace") or ""
        return [name for name in names(noun, namespace) if name.startswith(incomplete)]

    return complete


workload_names = _names_of("workload")
node_names = _names_of("node")
