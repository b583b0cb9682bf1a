"""Tells a user's live streams that a question has an answer, or has failed. The answer is read over REST, with the
reader's rights."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, Literal

from channels.layers import get_channel_layer
from redis import RedisError

from scheduler.live.rights import user_group
from scheduler.live.shapes import LiveQuestionFrame
from studio.models import Question, QuestionState

_TIMEOUT_SECONDS: Final = 0.5

_STATES: Final[dict[QuestionState, Literal["Answered", "Failed"]]] = {
    QuestionState.ANSWERED: "Answered",
    QuestionState.FAILED: "Failed",
}

_log = logging.getLogger(__name__)


def announce_answer(question: Question) -> None:
    """Send the frame through its own connection, which is then closed. Without Redis, readers poll."""
    frame: LiveQuestionFrame = {
        "type": "question",
        "cluster": question.cluster.name,
        "id": question.pk,
        "kind": question.kind,
        "state": _STATES.get(QuestionState(question.state), "Running"),
    }
    try:
        # Not asgiref's async_to_sync: it starts a thread, and the studio has none when it forks.
        asyncio.run(_send(user_group(question.user_id), {"type": "question.ended", "frame": frame}))
    except (RedisError, OSError, TimeoutError) as error:
        _log.warning(
            ("The live streams of user %s were not notified of question %s: %s"), question.user_id, question, error
        )


async def _send(group: str, message: dict[str, Any]) -> None:
    await asyncio.wait_for(get_channel_layer().group_send(group, message), _TIMEOUT_SECONDS)
