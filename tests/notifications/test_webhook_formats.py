"""The bodies that chat services read, and their refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Cluster
from notifications.models import Delivery, WebhookFormat
from notifications.services.delivery import deliver
from notifications.services.webhook_formats import Content, body_of, check_answer
from tests.api_client import SchemaClient
from tests.http_receiver import receiving
from tests.notifications.test_notifications import RULES

CONTENT = Content(
    "QuotaUsed", "east", "a <b> & c", "95% used", "https://kueueweb.example.org/queues/main", "2026-01-05T09:00:00Z"
)
TEXT = "a <b> & c\n95% used\nhttps://kueueweb.example.org/queues/main"


def test_each_service_gets_its_form() -> None:
    bodies: dict[WebhookFormat, Any] = {form: body_of(form, CONTENT) for form in WebhookFormat}
    assert (bodies[WebhookFormat.JSON]["text"], bodies[WebhookFormat.JSON]["event"]) == (TEXT, "QuotaUsed")
    assert bodies[WebhookFormat.FEISHU] == {"msg_type": "text", "content": {"text": TEXT}}
    assert bodies[WebhookFormat.DINGTALK] == {"msgtype": "text", "text": {"content": TEXT}}
    section = bodies[WebhookFormat.SLACK]["blocks"][0]["text"]
    assert section == {
        "type": "mrkdwn",
        "text": "*<https://kueueweb.example.org/queues/main|a &lt;b&gt; &amp; c>*\n95% used",
    }
    (attachment,) = bodies[WebhookFormat.TEAMS]["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert [block["text"] for block in attachment["content"]["body"]] == [
        "a <b> & c",
        "95% used",
        "Cluster east, 2026-01-05T09:00:00Z",
    ]
    assert attachment["content"]["actions"][0]["url"] == CONTENT.link


@pytest.mark.parametrize(
    ("form", "answer"),
    [
        (WebhookFormat.FEISHU, b'{"code": 19024, "msg": "Key Words Not Found"}'),
        (WebhookFormat.DINGTALK, b'{"errcode": 310000, "errmsg": "keywords not in content"}'),
    ],
)
def test_a_refusal_in_a_successful_answer_is_a_failure(form: WebhookFormat, answer: bytes) -> None:
    with pytest.raises(ValueError, match=r"refused the message: \d+ [Kk]ey ?[Ww]ords"):
        check_answer(form, answer)
    check_answer(WebhookFormat.JSON, answer)


@pytest.mark.parametrize("answer", [b'{"code": 0}', b'{"errcode": 0, "errmsg": "ok"}', b"ok", b"[]"])
@pytest.mark.parametrize("form", list(WebhookFormat))
def test_other_answers_are_a_success(form: WebhookFormat, answer: bytes) -> None:
    check_answer(form, answer)


@pytest.mark.django_db
def test_the_test_of_a_rule_is_sent_in_its_format(cluster: Cluster, bob: SchemaClient, settings: Any) -> None:
    settings.OUTGOING_NETWORKS = ["127.0.0.0/8"]
    with receiving() as receiver:
        rule = {
            "event": "QuotaUsed",
            "channels": ["webhook"],
            "webhook_url": receiver.url,
            "webhook_format": "feishu",
        }
        made = bob.post(RULES, rule).json()
        bob.post(f"{RULES}{made['id']}/test/")
        assert deliver(timezone.now()) == 1
        assert json.loads(receiver.asked[0][1])["msg_type"] == "text"
        receiver.answer = b'{"code": 19024, "msg": "Key Words Not Found"}'
        bob.post(f"{RULES}{made['id']}/test/")
        assert deliver(timezone.now()) == 0
    assert Delivery.objects.latest("id").error == "feishu refused the message: 19024 Key Words Not Found"
