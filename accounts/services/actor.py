"""Tells the database which user makes a request, so that its triggers write the user into each audit record.

The setting `kueueweb.actor` belongs to the connection, not to a transaction, because a request has several transactions
and the user is known before the first. It is cleared at the end of the request.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any, Final

import orjson
from django.db import DatabaseError, connection


@dataclass(slots=True)
class Actor:
    """The user and origin of a request. `username` is empty until the request is authenticated."""

    username: str = ""
    credential: str = ""
    """`session`, `password`, `oidc`, or `token` and its name."""
    address: str = ""
    user_agent: str = ""
    request_id: str = ""
    request: str = ""
    """Method and path."""
    reason: str = ""


_actor: ContextVar[Actor | None] = ContextVar("actor", default=None)
_told: ContextVar[bool] = ContextVar("told", default=False)
_SAFE_METHODS: Final = ("GET ", "HEAD ", "OPTIONS ")


@contextmanager
def acting(actor: Actor) -> Iterator[Actor]:
    """Attribute changes within the block to this actor, as soon as `act_as` names the user."""
    token, told = _actor.set(actor), _told.set(False)
    try:
        yield actor
    finally:
        if _told.get():
            _forget()
        _actor.reset(token)
        _told.reset(told)


def act_as(username: str, credential: str) -> None:
    """Set the authenticated user of the request. Only requests that may change something tell the database, because
    it costs a query."""
    actor = _actor.get()
    if actor is None:
        return
    actor.username, actor.credential = username, credential
    if not actor.request.startswith(_SAFE_METHODS):
        tell_actor()


def credential() -> str:
    """Return the credential by which the user authenticated; empty before that."""
    actor = _actor.get()
    return actor.credential if actor is not None else ""


def request_id() -> str:
    """Return the identifier of the request; empty outside of one."""
    actor = _actor.get()
    return actor.request_id if actor is not None else ""


@contextmanager
def because(reason: str) -> Iterator[None]:
    """Put this reason before the user's own reason in the audit records of the block's transactions."""
    actor = _actor.get()
    if actor is None:
        with acting(Actor(reason=reason)):
            tell_actor()
            yield
        return
    given = actor.reason
    actor.reason = f"{reason}: {given}" if given else reason
    tell_actor()
    try:
        yield
    finally:
        actor.reason = given
        if not connection.needs_rollback:
            tell_actor()


def tell_actor() -> None:
    """Attribute further writes on this connection to the present actor."""
    actor = _actor.get()
    if actor is not None:
        _told.set(True)
        _set(orjson.dumps(asdict(actor)).decode())


def renew_actor(**_: Any) -> None:
    """Receiver of `connection_created`: set the actor on a connection that replaces a broken one within a request."""
    if _told.get():
        tell_actor()


def _set(text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('kueueweb.actor', %s, false)", [text])


def _forget() -> None:
    try:
        if connection.connection is not None:
            _set("")
    except DatabaseError:
        connection.close()  # the next request must not inherit it
