"""Every device of every node, with its slices by tenant."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.e2e.conftest import Api, device_of


def test_every_device_of_every_node_is_there(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    page.goto("/gpus")
    expect(page.get_by_role("region", name=re.compile("^Node "))).to_have_count(6)
    expect(page.get_by_role("button", name=re.compile("^Device "))).to_have_count(48)


def test_a_slice_shows_its_holder(page: Page, log_in: Callable[[str], None], admin: Api) -> None:
    name = admin.submit("device-tenant", memory_mib=20_480, cores_percent=60)
    device = device_of(admin, name, page)
    log_in("admin")
    page.goto("/gpus")
    expect(page.get_by_role("group", name="Tenants")).to_contain_text("ai-research")
    node = page.get_by_role("region", name=f"Node {device['node']}")
    node.get_by_role("button", name=re.compile(r"^Device .*: (Shared|Full),")).first.click()
    expect(page.get_by_role("dialog")).to_contain_text(re.compile("GPU-[0-9a-f]{8}"))


def test_another_tenants_slice_is_occupied_without_a_name(
    page: Page, log_in: Callable[[str], None], admin: Api
) -> None:
    name = admin.submit("device-foreign", memory_mib=32_768, cores_percent=100)
    log_in("operator")
    page.goto("/gpus")
    expect(page.get_by_role("button", name=re.compile("^Device .*: Full,"))).not_to_have_count(0)
    expect(page.get_by_role("main")).not_to_contain_text("ai-research")
    expect(page.get_by_role("main")).not_to_contain_text(name)


def test_an_admin_cordons_and_uncordons_a_device(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    page.goto("/gpus")
    device = page.get_by_role("region", name="Node gpu-a100-02").get_by_role("button", name=re.compile("^Device 7 "))
    device.click()
    drawer = page.get_by_role("dialog", name=re.compile("^Device 7 of"))
    for step, state in (("Cordon", "cordoned"), ("Uncordon", "(free|shared|full)")):
        drawer.get_by_role("button", name=step, exact=True).click()
        page.get_by_role("dialog", name=re.compile(f"^{step} ")).get_by_role("button", name=step, exact=True).click()
        expect(device).to_have_accessible_name(re.compile(f": {state},", re.IGNORECASE))


def test_devices_of_a_cordoned_node_take_nothing_new(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("admin")
    page.goto("/gpus")
    node = page.get_by_role("region", name="Node gpu-a100-02")
    for step, count in (("Cordon", 8), ("Uncordon", 0)):
        node.get_by_role("button", name="Cordon or drain gpu-a100-02").click()
        page.get_by_role("menuitem", name=step, exact=True).click()
        page.get_by_role("dialog").get_by_role("button", name=step, exact=True).click()
        expect(node.get_by_role("button", name=re.compile("^Device .*: Cordoned,"))).to_have_count(count)


def test_only_admins_cordon_nodes(page: Page, log_in: Callable[[str], None]) -> None:
    log_in("operator")
    page.goto("/gpus")
    expect(page.get_by_role("button", name=re.compile("^Device "))).to_have_count(48)
    expect(page.get_by_role("button", name=re.compile("^Cordon or drain "))).to_have_count(0)
