"""What operators and tenants ask a dashboard, each answered in at most three clicks from the overview.

A click is a press of the pointer, on a link, a button, a row or a field. Typing is free, and so is a key.
"""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import Api, device_of

MAX_CLICKS = 3


class Pointer:
    """A page on which clicks are counted."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0

    def click(self, target: Locator) -> None:
        target.click()
        self.clicks += 1

    def go(self, name: str) -> None:
        """Open a page by the navigation."""
        self.click(self.page.get_by_role("navigation", name="Pages").get_by_role("link", name=name, exact=True))

    @property
    def main(self) -> Locator:
        return self.page.get_by_role("main")

    @property
    def dialog(self) -> Locator:
        return self.page.get_by_role("dialog")


@pytest.fixture
def pointer(page: Page, log_in: Callable[[str], None]) -> Iterator[Pointer]:
    """The admin at the overview. Afterwards, no task may have taken more than three clicks."""
    log_in("admin")
    found = Pointer(page)
    yield found
    assert found.clicks <= MAX_CLICKS


@pytest.fixture
def jobs(admin: Api) -> Iterator[list[str]]:
    """The workloads of a test, which end with it: names in ai-research, or namespaces with names."""
    found: list[str] = []
    yield found
    for name in found:
        admin.post(f"workloads/{name if '/' in name else f'ai-research/{name}'}/cancel/", {})


def test_why_does_this_job_wait(pointer: Pointer, admin: Api, jobs: list[str]) -> None:
    jobs.append(admin.submit("task-waits", gpus=9, memory_mib=32_768, cores_percent=100))
    pointer.page.reload()
    judgement = pointer.page.get_by_role("region", name="State of the cluster")
    pointer.click(judgement.get_by_role("link", name=re.compile("no devices free")))
    pointer.click(pointer.main.get_by_role("link", name=re.compile("task-waits")).first)
    why = pointer.main.get_by_role("region", name="Why it waits")
    expect(why).to_contain_text("It can never start: it requests 9 GPU")


LENT = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {{name: task-{name}}}
spec:
  cohort: tasks
  namespaceSelector: {{}}
  preemption: {{reclaimWithinCohort: Any}}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu, nvidia.com/total-gpumem, nvidia.com/total-gpucores]
    flavors:
    - name: gpu-v100-32gb
      resources:
      - {{name: cpu, nominalQuota: "{cpu}"}}
      - {{name: memory, nominalQuota: 4Gi}}
      - {{name: nvidia.com/gpu, nominalQuota: 9}}
      - {{name: nvidia.com/total-gpumem, nominalQuota: 81920}}
      - {{name: nvidia.com/total-gpucores, nominalQuota: 900}}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {{name: task-{name}, namespace: ai-research}}
spec: {{clusterQueue: task-{name}}}
"""


def test_which_job_took_my_gpu(pointer: Pointer, admin: Api, jobs: list[str]) -> None:
    for name, cpu in (("borrows", 0), ("lends", 2)):
        admin.apply(LENT.format(name=name, cpu=cpu))
    victim = admin.submit("task-victim", queue="task-borrows", cpu="2")
    jobs.append(victim)
    pointer.page.goto(f"/workloads/ai-research/{victim}")
    expect(pointer.main).to_contain_text("It is running")
    preemptor = admin.submit("task-preemptor", queue="task-lends", cpu="2")
    jobs.append(preemptor)
    expect(pointer.main).not_to_contain_text("It is running")
    pointer.go("Decisions")
    row = pointer.main.get_by_role("row").filter(has_text="task-victim").filter(has_text="task-preemptor")
    expect(row.first).to_contain_text("Preempted")


def unfinished(admin: Api) -> set[str]:
    """Return the namespaces and names of the workloads that have not finished."""
    rows = admin.get("workloads/?limit=200")["results"]
    return {f"{row['namespace']}/{row['name']}" for row in rows if row["status"] != "Finished"}


def test_submit_a_job(pointer: Pointer, admin: Api, jobs: list[str]) -> None:
    before = unfinished(admin)
    pointer.go("Workloads")
    pointer.click(pointer.main.get_by_role("button", name=re.compile("^Submit")))
    expect(pointer.dialog.get_by_role("textbox", name="Manifest")).to_contain_text("kind: Job")
    pointer.click(pointer.dialog.get_by_role("button", name="Submit", exact=True))
    expect(pointer.dialog).to_have_count(0)
    expect(pointer.page.get_by_role("alert").first).to_be_visible()
    jobs.extend(unfinished(admin) - before)
    assert jobs


def test_raise_a_quota_and_see_the_effect_first(pointer: Pointer, admin: Api, jobs: list[str]) -> None:
    admin.apply(LENT.format(name="raised", cpu=1).replace("cohort: tasks", "cohort: raised"))
    jobs.append(admin.submit("task-raised", queue="task-raised", cpu="3"))
    pointer.page.keyboard.press("Control+k")
    pointer.dialog.get_by_role("textbox").fill("task-raised")
    option = pointer.page.get_by_role("option").filter(has_text=re.compile("^task-raised")).first
    pointer.click(option)
    expect(pointer.page).to_have_url(re.compile("/queues/task-raised"))
    pointer.click(pointer.main.get_by_role("button", name="Edit the quota of cpu, flavor gpu-v100-32gb"))
    pointer.dialog.get_by_label("Nominal quota of cpu, flavor gpu-v100-32gb").fill("4")
    expect(pointer.page.get_by_role("status").filter(has_text="1 workload would start")).to_contain_text("task-raised")


def test_which_node_is_the_emptiest(pointer: Pointer) -> None:
    pointer.go("Nodes")
    table = pointer.main.get_by_role("table", name="Nodes")
    pointer.click(table.get_by_role("button", name=re.compile("GPU")).first)
    expect(pointer.page).to_have_url(re.compile("sort="))
    expect(table.get_by_role("row")).to_have_count(7)


def test_drain_a_card_and_see_who_stops(pointer: Pointer, admin: Api, jobs: list[str]) -> None:
    jobs.append(admin.submit("task-drained", memory_mib=81_920, cores_percent=100))
    slice_ = device_of(admin, jobs[-1], pointer.page)
    device = admin.get(f"devices/{slice_['uuid']}/")
    pointer.go("GPUs")
    node = pointer.main.get_by_role("region", name=f"Node {slice_['node']}")
    pointer.click(node.get_by_role("button", name=re.compile(rf"^Device {device['index']} .*: Full,")))
    pointer.click(pointer.dialog.get_by_role("button", name="Drain", exact=True))
    question = pointer.page.get_by_role("dialog", name=re.compile("^Drain "))
    expect(question).to_contain_text(re.compile(r"1 workload stops.*: ai-research/\S*task-drained"))


def test_who_used_most_gpu_hours(pointer: Pointer) -> None:
    pointer.go("Reports")
    pointer.click(pointer.main.get_by_role("tab", name="Use and cost"))
    expect(pointer.main).to_contain_text("GPU-hours")


def test_all_clusters_beside_each_other(pointer: Pointer) -> None:
    pointer.page.goto("/?cluster=*")
    expect(pointer.main.get_by_role("table", name="Clusters").get_by_role("row")).to_have_count(2)


def test_set_an_alert_and_try_it(pointer: Pointer) -> None:
    pointer.click(pointer.page.get_by_role("link", name=re.compile("^Notifications")))
    pointer.click(pointer.page.get_by_text("A queue's quota is nearly used up"))
    pointer.page.get_by_role("textbox", name="Used at least, in % of the nominal quota").fill("75")
    pointer.page.keyboard.press("Enter")
    rule = pointer.page.get_by_role("listitem").filter(has_text="A queue's quota is nearly used up")
    expect(rule).to_contain_text("at 75 %, after 10 min")
    pointer.click(rule.get_by_role("button", name=re.compile("^Send a test")))
    expect(pointer.page.get_by_role("alert").filter(has_text="This is a test")).to_be_visible()
    rule.get_by_role("button", name=re.compile("^Delete the rule")).click()
    expect(rule).to_have_count(0)


def test_what_happened_in_a_quarter_of_an_hour(pointer: Pointer) -> None:
    pointer.go("Decisions")
    expect(pointer.main.get_by_role("heading", name="Decisions", level=1)).to_be_visible()
    pointer.click(pointer.main.get_by_role("button", name=re.compile("^Time")))
    pointer.click(pointer.page.get_by_role("button", name=re.compile("15 minutes")))
    expect(pointer.page).to_have_url(re.compile("last="))


def test_which_gpus_are_held_and_idle(pointer: Pointer) -> None:
    pointer.go("GPUs")
    pointer.click(pointer.main.get_by_role("button", name=re.compile("Held but idle")))
    expect(pointer.page).to_have_url(re.compile("idle=true"))


def test_hold_many_jobs(pointer: Pointer, admin: Api, jobs: list[str]) -> None:
    jobs.extend(admin.submit(f"task-held-{number}") for number in range(3))
    pointer.page.goto("/workloads?search=task-held")
    rows = pointer.main.get_by_role("table", name="Workloads").locator("tbody").get_by_role("row")
    expect(rows).to_have_count(3)  # the box selects the rows that are there
    pointer.click(pointer.main.get_by_role("checkbox", name=re.compile("all")).first)
    pointer.click(pointer.page.get_by_role("toolbar").get_by_role("button", name="Hold"))
    pointer.click(pointer.dialog.get_by_role("button", name="Hold"))
    expect(pointer.page.get_by_role("alert").filter(has_text="3 workloads")).to_be_visible()


def test_a_link_shares_a_filtered_view(pointer: Pointer, admin: Api, jobs: list[str]) -> None:
    jobs.append(admin.submit("task-shared"))
    pointer.page.goto("/workloads?state=Running&search=task-shared")
    rows = pointer.main.get_by_role("table", name="Workloads").locator("tbody").get_by_role("row")
    expect(rows).to_have_count(1)
    pointer.page.reload()
    expect(rows).to_have_count(1)
