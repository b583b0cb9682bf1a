"""The bodies of webhooks in the forms that chat services read, and the refusals in their answers (pure)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from notifications.models import WebhookFormat


@dataclass(frozen=True, slots=True)
class Content:
    """A notification. `link` is the address of its page; `at` is in RFC 3339."""

    event: str
    cluster: str
    title: str
    message: str
    link: str
    at: str

    @property
    def lines(self) -> list[str]:
        """The title, the message and the link, without empty ones."""
        return [line for line in (self.title, self.message, self.link) if line]


def _json(content: Content) -> dict[str, Any]:
    return {
        "text": "\n".join(content.lines),
        "event": content.event,
        "cluster": content.cluster,
        "title": content.title,
        "message": content.message,
        "link": content.link,
        "at": content.at,
    }


def _slack(content: Content) -> dict[str, Any]:
    """Return a message with Block Kit's sections; `text` is what a notification of the phone shows."""
    title, message, cluster = map(_mrkdwn, (content.title, content.message, content.cluster))
    linked = f"<{content.link}|{title}>" if content.link.startswith("http") else title
    blocks: list[dict[str, Any]] = [_section(f"*{linked}*" + (f"\n{message}" if message else ""))]
    blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": f"Cluster {cluster}, {content.at}"}]})
    return {"text": content.title, "blocks": blocks}


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text[:3000]}}


def _mrkdwn(text: str) -> str:
    """Return the text with the three characters escaped that mean something to Slack."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "¦")


def _teams(content: Content) -> dict[str, Any]:
    """Return an Adaptive Card, as workflows of Microsoft Teams take it."""
    body = [{"type": "TextBlock", "text": content.title, "weight": "Bolder", "size": "Medium", "wrap": True}]
    if content.message:
        body.append({"type": "TextBlock", "text": content.message, "wrap": True})
    body.append({"type": "TextBlock", "text": f"Cluster {content.cluster}, {content.at}", "isSubtle": True})
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
    }
    if content.link.startswith("http"):
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open", "url": content.link}]
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return {"type": "message", "attachments": [attachment]}


def _feishu(content: Content) -> dict[str, Any]:
    return {"msg_type": "text", "content": {"text": "\n".join(content.lines)}}


def _dingtalk(content: Content) -> dict[str, Any]:
    return {"msgtype": "text", "text": {"content": "\n".join(content.lines)}}


_BODIES: Final[Mapping[WebhookFormat, Callable[[Content], dict[str, Any]]]] = {
    WebhookFormat.JSON: _json,
    WebhookFormat.SLACK: _slack,
    WebhookFormat.TEAMS: _teams,
    WebhookFormat.FEISHU: _feishu,
    WebhookFormat.DINGTALK: _dingtalk,
}
_REFUSALS: Final = {WebhookFormat.FEISHU: ("code", "msg"), WebhookFormat.DINGTALK: ("errcode", "errmsg")}
"""The fields of the answers that hold an error's number, 0 for none, and its text. Their HTTP status is 200."""
TELLING_FORMATS: Final = frozenset(_REFUSALS)
"""The formats of services that report a refusal in the body of their answer."""


def body_of(form: WebhookFormat, content: Content) -> dict[str, Any]:
    """Return the JSON body in the format of a chat service."""
    return _BODIES[form](content)


def check_answer(form: WebhookFormat, answer: bytes) -> None:
    """Raise ValueError if a chat service refuses the message in its answer."""
    if form not in _REFUSALS:
        return
    number, text = _REFUSALS[form]
    try:
        found = orjson.loads(answer)
    except orjson.JSONDecodeError:
        return  # another receiver than the format is for
    if isinstance(found, dict) and found.get(number, 0) != 0:
        raise ValueError(f"{form.value} refused the message: {found.get(number)} {found.get(text, '')}".strip())
