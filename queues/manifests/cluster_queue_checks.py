"""Which admission checks a ClusterQueue asks for, and on which of its flavors."""

from typing import Any, Final

from queues.manifests.resource_groups import ResourceGroupSpec
from scheduling.manifest import Fields, MistakeReason
from scheduling.manifest.fields import suggestion
from scheduling.manifest.syntax import dns_subdomain

_MOST: Final = 64
_LONGEST_NAME: Final = 316


def read_admission_checks(spec: Fields, version: str, groups: tuple[ResourceGroupSpec, ...]) -> list[dict[str, Any]]:
    """`[{name, onFlavors}]`; v1beta1's plain `admissionChecks` apply to every flavor."""
    plain = spec.texts("admissionChecks", most=_MOST) if version == "v1beta1" else []
    strategy = spec.fields("admissionChecksStrategy")
    if strategy is None:
        return [{"name": name, "onFlavors": []} for name in plain]
    if plain:
        spec.error(
            "admissionChecks",
            "must not be set beside admissionChecksStrategy",
            "Move them into admissionChecksStrategy.",
            MistakeReason.FORBIDDEN,
        )
    flavors = {flavor for group in groups for flavor in group.flavors}
    checks: list[dict[str, Any]] = []
    for item in strategy.items("admissionChecks", least=1, most=_MOST):
        name = item.text("name", required=True, longest=_LONGEST_NAME)
        on_flavors = item.texts("onFlavors", most=_MOST, syntax=dns_subdomain)
        _check_flavors(item, on_flavors, flavors)
        item.close()
        if any(check["name"] == name for check in checks):
            item.error("name", "is there twice", "Join their onFlavors.", MistakeReason.DUPLICATE)
        checks.append({"name": name, "onFlavors": on_flavors})
    strategy.close()
    return checks


def _check_flavors(item: Fields, on_flavors: list[str], flavors: set[str]) -> None:
    for index, flavor in enumerate(on_flavors):
        if flavor not in flavors:
            path = f"{item.at('onFlavors')}[{index}]"
            rule = "must be a flavor of this ClusterQueue"
            item.report.error(path, flavor, rule, suggestion(flavor, flavors))


def write_admission_checks(checks: list[dict[str, Any]]) -> dict[str, Any]:
    """`admissionChecksStrategy` of a manifest."""
    return {
        "admissionChecks": [{key: value for key, value in check.items() if value or key == "name"} for check in checks]
    }
