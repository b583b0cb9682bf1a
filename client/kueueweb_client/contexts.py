"""Contexts of the command line: servers and tokens, as in kubectl, in one file that only its owner can read.

KUEUEWEB_CONFIG names another file. KUEUEWEB_URL, KUEUEWEB_TOKEN, KUEUEWEB_CLUSTER and KUEUEWEB_NAMESPACE take
precedence over it.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from kueueweb_client.errors import ClientError, NotLoggedIn


@dataclass(frozen=True, slots=True)
class Context:
    """A server, the user's token there, and the default cluster and namespace."""

    url: str
    token: str = ""
    username: str = ""
    cluster: str = "default"
    namespace: str = ""
    ca_file: str = ""


@dataclass(frozen=True, slots=True)
class Contexts:
    """All contexts by name, and the one in use."""

    current: str = ""
    contexts: dict[str, Context] = field(default_factory=dict)

    def with_context(self, name: str, context: Context) -> Contexts:
        """Return these contexts with one more, which becomes the current one."""
        return Contexts(name, {**self.contexts, name: context})

    def without(self, name: str) -> Contexts:
        """Return the contexts without one."""
        left = {key: value for key, value in self.contexts.items() if key != name}
        return Contexts("" if self.current == name else self.current, left)

    def renamed(self, old: str, new: str) -> Contexts:
        """Return the contexts with one of them renamed. Raises `ClientError` if the old name does not exist, or the new
        one does."""
        self.using(old)
        if new in self.contexts:
            raise ClientError(f'Duplicate value: there is a context "{new}"')
        names = {name: new if name == old else name for name in self.contexts}
        current = new if self.current == old else self.current
        return Contexts(current, {names[name]: context for name, context in self.contexts.items()})

    def using(self, name: str) -> Contexts:
        """Return the contexts with another current one. Raises `ClientError` for an unknown name."""
        if name not in self.contexts:
            raise ClientError(f'There is no context "{name}". Known: {", ".join(sorted(self.contexts)) or "none"}.')
        return replace(self, current=name)


def config_file() -> Path:
    """Return the file of the contexts."""
    if named := os.environ.get("KUEUEWEB_CONFIG"):
        return Path(named)
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "kueueweb" / "config.yaml"


def load() -> Contexts:
    """Load the contexts of the file. Raises `ClientError` for a file of another format."""
    import yaml

    file = config_file()
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
        contexts = {name: Context(**values) for name, values in (content.get("contexts") or {}).items()}
    except FileNotFoundError:
        return Contexts()
    except (yaml.YAMLError, TypeError, AttributeError) as error:
        raise ClientError(f"{file} cannot be read: {error}. Correct it, or remove it and log in again.") from error
    return Contexts(content.get("current", ""), contexts)


def save(contexts: Contexts) -> None:
    """Write the file. Only its owner can read it, from its first byte on, and it is never half written."""
    import yaml

    file = config_file()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    written: dict[str, Any] = {
        "current": contexts.current,
        "contexts": {name: asdict(context) for name, context in contexts.contexts.items()},
    }
    new = file.with_suffix(".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as output:
        yaml.safe_dump(written, output, sort_keys=False)
    new.replace(file)


def current(name: str = "") -> Context:
    """Return the context in use: the named one, or else the file's; the environment's values take precedence."""
    contexts = load()
    if name:
        contexts = contexts.using(name)
    found = contexts.contexts.get(contexts.current, Context(url=""))
    values = {
        key: os.environ[variable]
        for key, variable in (
            ("url", "KUEUEWEB_URL"),
            ("token", "KUEUEWEB_TOKEN"),
            ("cluster", "KUEUEWEB_CLUSTER"),
            ("namespace", "KUEUEWEB_NAMESPACE"),
        )
        if os.environ.get(variable)
    }
    found = replace(found, **values)
    if not found.url:
        raise NotLoggedIn(
            "No server is configured. Log in: kueueweb login URL, or set KUEUEWEB_URL and KUEUEWEB_TOKEN."
        )
    return found
