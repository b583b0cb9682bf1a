"""The readers of environment variables: what they take, and how they say what they refuse."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from kueueweb import env


@pytest.mark.parametrize(
    ("given", "read", "wanted"),
    [
        ("yes", lambda: env.boolean("NAME", default=False), True),
        ("OFF", lambda: env.boolean("NAME", default=True), False),
        ("", lambda: env.boolean("NAME", default=True), True),
        ("7", lambda: env.integer("NAME", default=1), 7),
        ("", lambda: env.integer("NAME", default=1), 1),
        ("0.5", lambda: env.number("NAME", default=1.0), 0.5),
        (" a, b,,", lambda: env.words("NAME"), ["a", "b"]),
        ("json", lambda: env.choice("NAME", "console", ("console", "json")), "json"),
        ("unix:///run/r.sock?db=2", lambda: env.redis_url("NAME", ""), "unix:///run/r.sock?db=2"),
    ],
)
def test_it_reads(monkeypatch: pytest.MonkeyPatch, given: str, read: Callable[[], object], wanted: object) -> None:
    monkeypatch.setenv("NAME", given)
    assert read() == wanted


@pytest.mark.parametrize(
    ("given", "read", "says"),
    [
        ("maybe", lambda: env.boolean("NAME", default=False), "true or false"),
        ("1.5", lambda: env.integer("NAME", default=1), "a whole number"),
        ("-1", lambda: env.integer("NAME", default=1), "at least 0"),
        ("nan", lambda: env.number("NAME", default=1.0), "a number"),
        ("xml", lambda: env.choice("NAME", "console", ("console", "json")), "one of console, json"),
        ("http://host", lambda: env.redis_url("NAME", ""), "redis://"),
        ("unix://", lambda: env.redis_url("NAME", ""), "unix:///path"),
        ("mysql://host/name", lambda: env.database("NAME"), "postgresql://"),
        ("postgresql://host", lambda: env.database("NAME"), "database's name"),
        ("postgresql:///name?nonsense=1", lambda: env.database("NAME"), "libpq URL"),
    ],
)
def test_it_names_the_variable_it_refuses(
    monkeypatch: pytest.MonkeyPatch, given: str, read: Callable[[], object], says: str
) -> None:
    monkeypatch.setenv("NAME", given)
    with pytest.raises(ImproperlyConfigured, match="variable NAME is") as error:
        read()
    assert says in str(error.value)


def test_a_secret_comes_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hidden\n")
    monkeypatch.setenv("NAME_FILE", str(tmp_path / "secret"))
    assert env.text("NAME") == "hidden"
    monkeypatch.setenv("NAME", "both")
    with pytest.raises(ImproperlyConfigured, match="only one of NAME and NAME_FILE"):
        env.text("NAME")


def test_a_refused_url_does_not_show_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAME", "mysql://user:hidden@host/name")
    with pytest.raises(ImproperlyConfigured) as error:
        env.database("NAME")
    assert "hidden" not in str(error.value)


def test_a_database_url_becomes_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAME", "postgresql://user:pa%40ss@host:6432/name?sslmode=require")
    assert env.database("NAME") == {
        "ENGINE": "foundation.postgresql",
        "NAME": "name",
        "USER": "user",
        "PASSWORD": "pa@ss",
        "HOST": "host",
        "PORT": "6432",
        "OPTIONS": {"sslmode": "require"},
    }


def test_celery_names_a_unix_socket_in_its_own_way() -> None:
    assert env.celery_broker_url("unix:///run/r.sock?db=2") == "redis+socket:///run/r.sock?virtual_host=2"
    assert env.celery_broker_url("redis://host:6379/1") == "redis://host:6379/1"
