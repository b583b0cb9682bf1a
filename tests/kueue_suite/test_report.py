"""The table of specs says how many passed, and why each other one did not."""

from __future__ import annotations

from typing import Any

from tests.kueue_suite.report import results, table


def spec(line: int, state: str, **fields: Any) -> dict[str, Any]:
    """A spec as Ginkgo reports it."""
    return {
        "LeafNodeType": "It",
        "LeafNodeText": f"does {line}",
        "LeafNodeLocation": {"FileName": "/kueue/test/job_test.go", "LineNumber": line},
        "ContainerHierarchyTexts": ["Job"],
        "State": state,
        "RunTime": 2_400_000_000,
        **fields,
    }


def test_specs_that_ran_are_counted_and_failures_say_where_and_at_which_step() -> None:
    failure = {"Message": "Expected\n  a | b", "Location": {"FileName": "/kueue/util.go", "LineNumber": 7}}
    events = [{"SpecEventType": "By", "Message": "create a job"}, {"SpecEventType": "Node"}]
    before = {**spec(3, "passed"), "LeafNodeType": "BeforeSuite"}
    refused = {**spec(2, "failed"), "LeafNodeType": "BeforeSuite", "LeafNodeText": "", "Failure": {"Message": "gone"}}
    reports: list[dict[str, Any]] = [
        {"SpecReports": [before, spec(20, "failed", Failure=failure, SpecEvents=events), spec(4, "skipped")]},
        {"SpecReports": [spec(9, "passed")]},
        {"SpecReports": [refused, spec(30, "skipped")]},
        {"SpecReports": None},
    ]
    assert table(results(reports)).splitlines() == [
        "1 of 3 specs passed (2 failed)",
        "",
        "| spec | what | result | s | why |",
        "|---|---|---|---|---|",
        "| job_test.go:2 | Job / BeforeSuite | failed | 2 | job_test.go:2: gone |",
        "| job_test.go:9 | Job / does 9 | passed | 2 |  |",
        "| job_test.go:20 | Job / does 20 | failed | 2 | util.go:7 at step 'create a job': Expected a / b |",
    ]
