"""The Django admin looks like the product, and who may use it is told where it is."""

import pytest
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.test import Client

pytestmark = pytest.mark.django_db


def test_its_pages_have_our_name_and_our_stylesheet() -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    page = client.get("/admin/").content.decode()
    assert "<title>Configuration and records · kueueweb</title>" in page
    assert '<link rel="stylesheet" href="/static/kueueweb/admin.css">' in page
    assert finders.find("kueueweb/admin.css")


@pytest.mark.parametrize("may", [True, False])
def test_the_session_says_who_may_use_it(may: bool) -> None:
    client = Client()
    client.force_login(User.objects.create_user("somebody", is_staff=may))
    assert client.get("/api/v1/session/").json()["user"]["may_use_admin"] is may
