"""The log's JSON."""

import json
import logging

from kueueweb.logs import json_formatter


def test_a_record_is_one_line_with_its_fields() -> None:
    record = logging.LogRecord("scheduler", logging.WARNING, __file__, 1, "%s waits", ("a job",), None)
    record.cluster = "default"
    line = json_formatter().format(record)
    assert "\n" not in line
    content = json.loads(line)
    assert content["event"] == "a job waits"
    assert content["level"] == "warning"
    assert content["logger"] == "scheduler"
    assert content["cluster"] == "default"


def test_a_traceback_stays_in_its_line() -> None:
    try:
        raise ValueError("why")
    except ValueError as error:
        record = logging.LogRecord(
            "x", logging.ERROR, __file__, 1, "failed", (), (type(error), error, error.__traceback__)
        )
    line = json_formatter().format(record)
    assert "\n" not in line
    assert "ValueError: why" in json.loads(line)["exception"]
