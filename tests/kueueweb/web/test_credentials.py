"""Whose large bodies are taken: tokens and sessions are looked up as they are now."""

from __future__ import annotations

import asyncio

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from knox.models import AuthToken

from foundation.serving.bodies import Headers
from kueueweb.web.credentials import are_known

pytestmark = pytest.mark.django_db(transaction=True)


def known(headers: Headers) -> bool:
    return asyncio.run(are_known(headers))


def test_a_token_of_ours_is_known_and_a_made_up_one_is_not() -> None:
    user = User.objects.create_user("bob")
    _, token = AuthToken.objects.create(user)
    for word in ("Token", "Bearer"):
        assert known([(b"authorization", f"{word} {token}".encode())])
    for made_up in (f"Token {'f' * 64}", "Basic Ym9iOmJvYg==", "", f"Token {token}x"):
        assert not known([(b"authorization", made_up.encode())])
    assert not known([])


def test_a_session_of_ours_is_known_until_it_ends() -> None:
    client = Client()
    client.force_login(User.objects.create_user("bob"))
    cookie = f"theme=dark; {settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"
    headers = [(b"cookie", cookie.encode())]
    assert known(headers)
    client.logout()
    assert not known(headers)
    assert not known([(b"cookie", f"{settings.SESSION_COOKIE_NAME}=made-up".encode())])
