"""The admission checks that a ClusterQueue requires, and the flavors that they apply to."""

from typing import Any, Final

from kinds import openapi
from kinds.declaration import Reading
from kinds.field_types import FieldType
from scheduling.manifest import FieldReader, MistakeReason
from scheduling.manifest.field_reader import suggestion
from scheduling.manifest.syntax import dns_subdomain
from scheduling.model.admission_check import AdmissionCheckRule

_MAX: Final = 64
_MAX_NAME_LENGTH: Final = 316

Checks = list[dict[str, Any]]
"""[{name, onFlavors}]"""


class AdmissionChecks(FieldType):
    """`admissionChecksStrategy`; our JSON lists the checks themselves. v1beta1's plain checks apply to every flavor."""

    @property
    def default(self) -> Checks:
        return []

    def read(self, holder: FieldReader, key: str, reading: Reading, *, required: bool) -> Checks:
        flavors = {flavor for group in reading.values["resource_groups"] for flavor in group.flavors}
        if reading.in_json:
            return _read_checks(holder.items(key, max_items=_MAX), "on_flavors", flavors)
        plain = holder.texts("admissionChecks", max_items=_MAX) if reading.version == "v1beta1" else []
        strategy = holder.fields(key)
        if strategy is None:
            return [{"name": name, "onFlavors": []} for name in plain]
        if plain:
            holder.error(
                "admissionChecks",
                "must not be combined with admissionChecksStrategy",
                "Move them into admissionChecksStrategy.",
                MistakeReason.FORBIDDEN,
            )
        checks = _read_checks(strategy.items("admissionChecks", min_items=1, max_items=_MAX), "onFlavors", flavors)
        strategy.close()
        return checks

    def schema(self) -> openapi.Schema:
        check = {
            "name": openapi.text("The AdmissionCheck."),
            "onFlavors": openapi.listing(openapi.text(), "The flavors that need the check; empty: all flavors."),
        }
        checks = openapi.listing(openapi.tree(check, ("name",)), "The checks, each for all flavors or for some.")
        return openapi.tree({"admissionChecks": checks})

    def beside(self, version: str) -> dict[str, openapi.Schema]:
        checks = openapi.listing(openapi.text(), "Checks for all flavors. Newer versions have admissionChecksStrategy.")
        return {"admissionChecks": checks} if version == "v1beta1" else {}

    def write(self, value: Checks) -> dict[str, Any]:
        return {"admissionChecks": [{key: found for key, found in check.items() if found} for check in value]}

    def to_json(self, value: Checks) -> list[dict[str, Any]]:
        return [{"name": check["name"], "on_flavors": check.get("onFlavors") or []} for check in value]

    def core(self, value: Checks) -> tuple[AdmissionCheckRule, ...]:
        return tuple(AdmissionCheckRule(rule["name"], tuple(rule.get("onFlavors") or ())) for rule in value)


def _read_checks(items: list[FieldReader], flavors_key: str, flavors: set[str]) -> Checks:
    checks: Checks = []
    for item in items:
        name = item.text("name", required=True, max_length=_MAX_NAME_LENGTH)
        on_flavors = item.texts(flavors_key, max_items=_MAX, syntax=dns_subdomain)
        item.close()
        for index, flavor in enumerate(on_flavors):
            if flavor not in flavors:
                path = f"{item.at(flavors_key)}[{index}]"
                rule = "must be a flavor of this ClusterQueue"
                item.report.error(path, flavor, rule, suggestion(flavor, flavors))
        if any(check["name"] == name for check in checks):
            item.error("name", "Duplicate value", "Join their flavors.", MistakeReason.DUPLICATE)
        checks.append({"name": name, "onFlavors": on_flavors})
    return checks
