"""`make test-quick`: which tests it takes for a change, and in which order."""

from __future__ import annotations

from scripts.quick_tests import imports_of_tests, quick_tests

IMPORTS = {
    "tests/scheduling/cycle/test_entry_order.py": {"scheduling.cycle.entry_order"},
    "tests/scheduling/cycle/test_nomination.py": {"scheduling.world"},
    "tests/scheduling/test_traps_order.py": {"scheduling.cycle.nomination", "tests.worlds"},
    "tests/queues/test_holds.py": {"queues.models"},
    "tests/e2e/test_pages.py": {"scheduling.cycle.nomination"},
}


def test_own_tests_come_before_importers_and_these_before_the_room() -> None:
    assert quick_tests(["scheduling/cycle/nomination.py", "README.md"], IMPORTS) == [
        "tests/scheduling/cycle/test_nomination.py",
        "tests/scheduling/test_traps_order.py",
        "tests/scheduling/cycle/test_entry_order.py",
    ]


def test_a_changed_test_comes_first_and_a_helper_brings_those_that_use_it() -> None:
    changed = ["scheduling/cycle/nomination.py", "tests/queues/test_holds.py"]
    assert quick_tests(changed, IMPORTS)[0] == "tests/queues/test_holds.py"
    assert quick_tests(["tests/worlds.py"], IMPORTS) == ["tests/scheduling/test_traps_order.py"]


def test_imports_are_read_from_the_files() -> None:
    found = imports_of_tests()
    assert "scripts.quick_tests.quick_tests" in found["tests/test_quick_tests.py"]
