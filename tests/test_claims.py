"""The claims of the README about the product: each is quoted here with the tests that fail without it.

The README may be worded anew: then the quotation here, and its tests, are looked at anew too.
"""

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent

CLAIMS: Final[dict[str, tuple[str, ...]]] = {
    "decides which job starts, on whose quota and on which slice of which GPU": (
        "tests/scheduler/leader/test_engine_devices.py",
        "tests/acceptance/test_device_capacity.py::test_slices_never_exceed_a_device_whatever_happens",
    ),
    "pushes the decision to Kubernetes": (
        "tests/clusters/push/test_sweep.py",
        "tests/kubernetes/test_life.py::test_a_job_runs_on_its_slices_to_the_end",
    ),
    "shows and explains it live": (
        "tests/e2e/test_overview.py::test_a_submitted_job_shows_up_in_the_numbers",
        "tests/scheduler/api/test_explanation_views.py",
    ),
    "Queues, cohorts, borrowing, preemption and fair sharing work as in [Kueue]": (
        "tests/conformance/test_kueue.py::test_family",
        "tests/conformance/test_lifecycle.py::test_family",
    ),
    "whose manifests kueueweb reads and writes": (
        "tests/clusters/manifests/test_get.py::test_what_is_read_applies_unchanged_and_makes_the_same_elsewhere",
        "tests/queues/manifests/test_round_trip.py::test_cluster_queues",
    ),
    "GPUs are shared by memory and cores as in [HAMi]": ("tests/conformance/test_hami.py::test_family",),
    "with HAMi's annotations": ("tests/gpus/test_annotations.py", "tests/clusters/push/test_binder.py"),
    "Quota and devices are one decision: a job without free devices waits": (
        "tests/clusters/test_placed_pods.py::test_what_no_node_takes_is_not_admitted_and_says_why",
        "tests/scheduling/cycle/test_flavor_placement.py",
    ),
    "Users log in with an OpenID Connect provider, whose groups give them roles, or with local accounts": (
        "tests/accounts/test_oidc.py::test_the_first_login_makes_the_user_and_opens_a_session",
        "tests/accounts/test_oidc.py::test_groups_give_roles_and_take_them_away",
        "tests/accounts/test_session.py::test_a_browser_logs_in_and_out",
    ),
    "its page says why and what it lacks": (
        "tests/scheduling/advice/test_explanation.py",
        "tests/e2e/test_workloads.py::test_a_workload_that_cannot_be_placed_says_what_is_missing",
    ),
    "two simulated clusters of 108 and 8 devices, where tenants keep submitting jobs": (
        "tests/kueueweb/demo/test_story.py::test_the_clusters_have_as_many_devices_as_the_readme_says",
        "tests/kueueweb/management/test_demo.py::test_it_ends_cleanly_and_starts_again",
        "tests/kueueweb/demo/test_jobs.py",
        "tests/e2e/test_gpus.py::test_every_device_of_every_node_is_there",
        "tests/kueueweb/management/test_demo_seed.py::test_tenants_may_submit_in_their_own_namespace_only",
    ),
    "starts its own PostgreSQL and Valkey": (
        "tests/kueueweb/embedded/test_postgres.py::test_it_serves_keeps_its_data_and_leaves_nothing",
        "tests/kueueweb/embedded/test_valkey.py",
    ),
    "Ctrl-C stops everything": ("tests/kueueweb/management/test_demo.py::test_it_ends_cleanly_and_starts_again",),
    "runs all tests against a real PostgreSQL, Valkey, Celery worker and websocket": (
        "tests/acceptance/test_crash.py",
        "tests/kueueweb/test_consumers.py",
        "tests/e2e/test_login.py::test_a_visitor_is_asked_to_log_in",
    ),
    "Queues are defined in Kueue's YAML, jobs as manifests or JSON": (
        "tests/clusters/management/test_apply_and_get.py::test_a_file_is_applied_to_the_default_cluster_which_it_makes",
        "tests/queues/api/test_workload_views.py::test_one_workload",
    ),
    "over REST or with the command of [client/]": (
        "tests/client/test_package.py::test_the_client_imports_only_its_own_dependencies",
        "tests/e2e/test_command_line.py::test_from_login_to_a_finished_job",
    ),
    "mode *observe* writes nothing": (
        "tests/clusters/test_modes.py::test_nothing_is_written_to_a_cluster_that_another_scheduler_runs",
    ),
    "mode *shadow* compares both schedulers' decisions": (
        "tests/clusters/test_shadow.py::test_a_difference_is_shown_with_both_reasons",
    ),
    "the way there and back; running jobs are not touched": (
        "tests/clusters/test_switch.py::test_the_switch_and_back_leaves_running_jobs_alone",
    ),
    "`manage.py simulate` decides a scenario without a cluster or a database": (
        "tests/scheduler/management/test_simulate.py::test_decisions_over_time",
    ),
    "docker compose -f docker-compose.yml -f deploy/compose.production.yml up --build --detach": (
        "tests/test_compose.py::test_production_leaves_out_the_demo",
    ),
    "the image with `make test-containers`": (
        "tests/containers/test_containers.py::test_every_service_gets_healthy",
        "tests/test_compose.py::test_the_services_of_the_compose_file_work_together",
        "tests/containers/test_containers.py::test_a_submitted_job_finishes",
        "tests/containers/test_containers.py::test_a_restart_is_survived",
    ),
    "the manifests with `make test-kubernetes`": (
        "tests/kubernetes/test_life.py::test_the_deployment_s_manifests_are_accepted",
    ),
}


def test_each_bad_day_names_tests_that_are_there() -> None:
    """Each row of the table names the tests that fail if its statement is not true."""
    text = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    table = text.partition("### Bad days")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("|")][2:]
    assert len(rows) >= 16
    for row in rows:
        tests = re.findall(r"`([\w/]+\.py)::(test_\w+)`", row[-1])
        assert tests, f"{row[0]}: no test is named"
        for file, name in tests:
            source = (ROOT / "tests" / "clusters" / file).read_text(encoding="utf-8")
            assert re.search(rf"^def {name}\(", source, re.MULTILINE), f"{row[0]}: {file}::{name}"


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_readme_still_says_so_and_its_tests_are_there(claim: str) -> None:
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert claim in text
    for test in CLAIMS[claim]:
        file, _, name = test.partition("::")
        source = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"def {name or 'test_'}", source), test
