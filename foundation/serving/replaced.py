"""Answers that the web process replaces after an awaited change, so that they are no errors."""

from __future__ import annotations

from django.http import HttpResponse


class ReplacedResponse(HttpResponse):
    """An answer whose header asks the web process to wait; its status and body are for processes that do not replace
    it. Django logs the status of other answers from 400 on, which for these would be an error for each watch.
    """

    _has_been_logged = True
