"""The header in which an answer warns holds any text."""

from __future__ import annotations

from django.http import HttpResponse

from accounts.api.warning_header import warning_header


def test_control_characters_quotes_and_other_scripts_make_a_valid_header() -> None:
    answer = HttpResponse(headers=warning_header(['a\r\nX-Forged: 1\x00\x7f\t"b\\ é']))
    assert answer.headers["Warning"] == '299 - "a  X-Forged: 1   \\"b\\\\ ?"'
    assert "X-Forged" not in answer.headers
