"""A minute of `make test-crash`: kill -9 of whatever comes, under load, and nothing that was answered is lost."""

from __future__ import annotations

from tests.acceptance.crash.run import run
from tests.services_plugin import short_temporary_folder


def test_a_minute_of_random_kills() -> None:
    with short_temporary_folder() as folder:
        report = run(folder, minutes=1.0, seed=7, mean_pause=5.0, say=lambda text: None)
    assert report.faults == [], report.text()
    assert report.kills.total() >= 5
    assert report.promises
