"""Typed readers of environment variables.

A value that cannot be read fails when the settings load, naming the variable, what it held and what it should hold.
Every variable `NAME` can also be given as `NAME_FILE`, a path whose content is the value (secrets mounted as files).
"""

import getpass
import os
import re
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from django.core.exceptions import ImproperlyConfigured

_MIN_SECRET_LENGTH = 32
_MIN_SECRET_CHARACTERS = 8
_PLACEHOLDER = re.compile(r"change.?(me|it|this)|placeholder|insecure|your.?(secret|password|key)|^\.+$", re.IGNORECASE)
_EXAMPLE_HOST = re.compile(r"(^|\.)(example(\.(com|org|net))?|invalid)$", re.IGNORECASE)
_SERVICES = {"run", "studio", "watch_cluster"}
"""Commands without a user: their writes are attributed to the service."""
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}
_BASE_PATH = re.compile(r"(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)+")
_ACCOUNT = re.compile(r"system:serviceaccount:(?!kube-)[a-z0-9-]+:[a-z0-9.-]+|(?!system:)[^\s*]+")
_ORIGIN = re.compile(r"https?://[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*(?::\d{1,5})?")


def text(name: str, default: str = "") -> str:
    """Read the variable, or the content of the file that `NAME_FILE` points to, or return the default."""
    path = os.environ.get(f"{name}_FILE", "")
    if path and name in os.environ:
        raise _bad(name, "…", f"only one of {name} and {name}_FILE")
    if path:
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise _bad(f"{name}_FILE", path, f"a readable file ({error.strerror})") from error
    return os.environ.get(name, default).strip()


def boolean(name: str, default: bool) -> bool:
    """Read 1, true, yes, on; or 0, false, no, off; in any case."""
    value = text(name).lower()
    if not value:
        return default
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise _bad(name, value, "true or false")


def integer(name: str, default: int, minimum: int = 0) -> int:
    """Read a whole number, at least `minimum`."""
    value = text(name)
    if not value:
        return default
    try:
        number = int(value)
    except ValueError:
        raise _bad(name, value, f"a whole number, at least {minimum}") from None
    if number < minimum:
        raise _bad(name, value, f"a whole number, at least {minimum}")
    return number


def number(name: str, default: float, minimum: float = 0.0) -> float:
    """Read a number, at least `minimum`."""
    value = text(name)
    if not value:
        return default
    try:
        result = float(value)
    except ValueError:
        raise _bad(name, value, f"a number, at least {minimum}") from None
    if not result >= minimum:
        raise _bad(name, value, f"a number, at least {minimum}")
    return result


def choice(name: str, default: str, choices: tuple[str, ...]) -> str:
    """Read one of a few words."""
    value = text(name, default)
    if value not in choices:
        raise _bad(name, value, "one of " + ", ".join(choices))
    return value


def words(name: str, default: str = "") -> list[str]:
    """Read words separated by commas; empty ones are dropped."""
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def cluster_accounts(name: str, default: str = "") -> list[str]:
    """Read names of accounts of a cluster, separated by commas; no patterns, groups, or accounts of the cluster
    itself."""
    found = words(name, default)
    for each in found:
        if not _ACCOUNT.fullmatch(each):
            raise _bad(name, each, "service accounts of kueueweb, such as system:serviceaccount:kueueweb:kueueweb-push")
    return found


def base_path(name: str) -> str:
    """Read a path such as /kueueweb, without a final slash; empty for the root."""
    path = text(name).rstrip("/")
    if path and not _BASE_PATH.fullmatch(path):
        raise _bad(name, path, "a path such as /kueueweb, of letters, digits, -, _ and .")
    return path


def origins(name: str) -> list[str]:
    """Read origins, separated by commas: https://host or https://host:port."""
    found = words(name)
    for word in found:
        if not _ORIGIN.fullmatch(word):
            raise _bad(name, word, "origins such as https://portal.example.org, without a path and without *")
    return found


def networks(name: str) -> list[str]:
    """Read addresses and networks, separated by commas."""
    found = words(name)
    try:
        return [str(ip_network(word)) for word in found]
    except ValueError as error:
        raise _bad(name, ",".join(found), f"addresses or networks such as 10.0.0.7,10.1.0.0/16 ({error})") from None


def secret(name: str, *, lenient: bool = False) -> str:
    """Read a secret for signing. Unless `lenient`, it must not be a placeholder or short; it may be empty if the
    feature is not used."""
    value = text(name)
    weak = len(value) < _MIN_SECRET_LENGTH or len(set(value)) < _MIN_SECRET_CHARACTERS
    if value and not lenient and (weak or _PLACEHOLDER.search(value)):
        raise ImproperlyConfigured(
            f"The environment variable {name} is a placeholder or easy to guess: it must be a random text of "
            f"at least {_MIN_SECRET_LENGTH} characters. python3 -c 'import secrets; "
            "print(secrets.token_urlsafe(48))' creates one."
        )
    return value


def credential(name: str, *, lenient: bool = False) -> str:
    """Read a credential that another service has issued: any text except a placeholder."""
    value = text(name)
    if not lenient and _PLACEHOLDER.search(value):
        raise ImproperlyConfigured(f"The environment variable {name} is a placeholder. Set the provider's value.")
    return value


def issuer(name: str, *, lenient: bool = False) -> str:
    """Read the URL of an OpenID Connect provider: `https`, or `http` on this machine; empty if there is none."""
    url = text(name)
    parts = urlsplit(url)
    if not url:
        return ""
    own = parts.hostname in {"localhost", "127.0.0.1", "::1"}
    if not parts.hostname or parts.query or parts.fragment or (parts.scheme != "https" and not own):
        raise _bad(name, _redacted(url), "a URL like https://login.company.org/realms/main, without ? and #")
    if parts.path.endswith("/.well-known/openid-configuration"):
        raise _bad(name, url, "the issuer itself, without /.well-known/openid-configuration")
    if not lenient and (_PLACEHOLDER.search(url) or _EXAMPLE_HOST.search(parts.hostname)):
        raise ImproperlyConfigured(f"The environment variable {name} is a placeholder: {url}. Set your provider's URL.")
    return url


def check_oidc(
    *, issuer: str, client_id: str, scopes: Sequence[str], local_login: bool, group_roles: Sequence[str]
) -> None:
    """Raise ImproperlyConfigured for contradictory settings of the login by a provider."""
    if issuer and not client_id:
        raise ImproperlyConfigured("OIDC_ISSUER is set, but OIDC_CLIENT_ID is not. Register kueueweb at the provider.")
    if not issuer and (client_id or group_roles):
        raise ImproperlyConfigured("OIDC_CLIENT_ID or OIDC_GROUP_ROLES is set, but OIDC_ISSUER is not.")
    if issuer and "openid" not in scopes:
        raise _bad("OIDC_SCOPES", ",".join(scopes), "a list that contains openid")
    if not issuer and not local_login:
        raise ImproperlyConfigured("LOCAL_LOGIN is false and OIDC_ISSUER is not set: no user could log in.")


def database(name: str, *, lenient: bool = False) -> dict[str, Any]:
    """Read Django's database settings from a libpq URL, `postgresql://user:password@host:port/name?option=value`.

    A unix socket is a folder in `host`: `postgresql:///kueueweb?host=/run/postgresql&user=kueueweb`. Without a value,
    return a database that fails with this message on first use: commands that need no database (simulate, place) run
    without it.
    """
    url = text(name)
    if not url:
        return {"ENGINE": "kueueweb.dummy_database", "NAME": ""}
    if urlsplit(url).scheme not in {"postgresql", "postgres"}:
        raise _bad(name, _redacted(url), "a URL like postgresql://user:password@host:5432/name")
    from psycopg import ProgrammingError, conninfo  # imported here: it is slow, and not every command needs it

    try:
        parts = dict(conninfo.conninfo_to_dict(url))
    except ProgrammingError as error:
        raise _bad(name, _redacted(url), f"a libpq URL ({str(error).strip()})") from None
    _refuse_placeholder(name, str(parts.get("password") or ""), lenient)
    if not parts.get("dbname"):
        raise _bad(name, _redacted(url), "a URL with the database's name as its path")
    return {
        "ENGINE": "foundation.postgresql",
        "NAME": parts.pop("dbname"),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": str(parts.pop("port", "") or ""),
        "OPTIONS": parts,
    }


def process_name(arguments: Sequence[str]) -> str:
    """Return the name of this process in the database, from its command line; the audit shows it if no user acts. The
    audit's triggers recognise processes without a user by "kueueweb service"."""
    path, words = Path(arguments[0] if arguments else ""), list(arguments[1:])
    program = path.parent.name if path.name == "__main__.py" else path.name
    if program == "celery":
        queue = next((words[index + 1] for index, word in enumerate(words[:-1]) if word in ("-Q", "--queues")), "")
        kind = next((word for word in words if word in ("worker", "beat")), "")
        return f"kueueweb service celery {kind} {queue}".strip()
    command = words[0] if program in {"manage.py", "kueueweb"} and words else ""
    if command in _SERVICES:
        return f"kueueweb service {command}"
    if command == "serve":
        return "kueueweb web"
    return f"{program} {command} of {_account()}".replace("  ", " ")


def _account() -> str:
    """Return the operating system's user; a container may run as a user without a name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def redis_url(name: str, default: str, *, lenient: bool = False) -> str:
    """Read a URL of the forms that redis-py accepts: `redis://`, `rediss://` or `unix:///path/to/socket?db=0`."""
    url = text(name, default)
    parts = urlsplit(url)
    if parts.scheme not in {"redis", "rediss", "unix"} or (parts.scheme == "unix" and not parts.path):
        raise _bad(name, _redacted(url), "a URL like redis://:password@host:6379/0 or unix:///path/to/socket?db=0")
    _refuse_placeholder(name, unquote(parts.password or ""), lenient)
    return url


def celery_broker_url(url: str) -> str:
    """Return the same server as a URL of Celery's transport, which calls a unix socket `redis+socket://`."""
    parts = urlsplit(url)
    if parts.scheme != "unix":
        return url
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    virtual_host = query.pop("db", "0")
    return f"redis+socket://{parts.path}?{urlencode({'virtual_host': virtual_host, **query})}"


def _refuse_placeholder(name: str, password: str, lenient: bool) -> None:
    if not lenient and _PLACEHOLDER.search(password):
        raise ImproperlyConfigured(f"The password in {name} is a placeholder. Set a real one, there and in the server.")


def _redacted(url: str) -> str:
    """Return the URL without its password: an error message must not carry the secret into a log."""
    password = urlsplit(url).password
    return url.replace(f":{password}@", ":…@") if password else url


def _bad(name: str, value: str, wanted: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"The environment variable {name} is {value!r}, but must be {wanted}.")
