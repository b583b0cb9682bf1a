"""`manage.py job_rules`: write the rules that follow from the kinds of jobs into deploy/kubernetes.

`clusters.jobs.registry` is the only list of kinds: the webhook's configurations and the permissions of the accounts are
written from it. In a file with other rules, ours stand between two comments.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from django.core.management.base import BaseCommand, CommandParser

from clusters.api_objects import JOB_FLOWS, JOB_TEMPLATES
from clusters.jobs.framework.job_kind import Stopping
from clusters.jobs.registry import JOB_KINDS
from clusters.webhook.configurations import Target, webhook_configurations

_FOLDER: Final = Path(__file__).resolve().parents[3] / "deploy" / "kubernetes"
_WEBHOOKS: Final = "webhook-configurations.yaml"
FILES: Final = ("rbac.yaml", "multikueue.yaml", _WEBHOOKS)
_SECTION: Final = re.compile(
    r"(?P<first>^# kinds of jobs: (?P<name>\w+) .*\n)(?:.*\n)*?(?=# end of the kinds of jobs$)", re.MULTILINE
)
# The rules for pods are written by hand: they are needed for more than jobs.
_KINDS: Final = [kind for kind in JOB_KINDS.values() if kind.group]
_FLOW_GROUP: Final = JOB_FLOWS.api_version.partition("/")[0]
_Rules = list[dict[str, Any]]


class Command(BaseCommand):
    help = "Write the rules that follow from the kinds of jobs into deploy/kubernetes."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--folder", type=Path, default=_FOLDER)

    def handle(self, *args: object, folder: Path, **options: object) -> None:
        """Write the files whose rules have changed."""
        for name in FILES:
            text = (folder / name).read_text(encoding="utf-8")
            written = with_rules(name, text)
            if written != text:
                (folder / name).write_text(written, encoding="utf-8")
                self.stdout.write(f"{name}: written")


def with_rules(name: str, text: str) -> str:
    """Return the text of a file of deploy/kubernetes with its job rules replaced."""
    if name == _WEBHOOKS:
        comment = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
        return comment + _yaml([found for _, found in webhook_configurations(Target("kueueweb", "webhook"))])
    return _SECTION.sub(lambda found: f"{found['first']}{_yaml([_RULES[found['name']]()])}", text)


def _by_group(verbs: Iterable[str], resources: Iterable[tuple[str, str]]) -> _Rules:
    """Return a rule per API group."""
    plurals: defaultdict[str, set[str]] = defaultdict(set)
    for group, plural in resources:
        plurals[group].add(plural)
    return [
        {"apiGroups": [group], "resources": sorted(found), "verbs": list(verbs)}
        for group, found in sorted(plurals.items())
    ]


def _read() -> _Rules:
    """Permit to read jobs, and the objects without which some kinds of them cannot be read."""
    flows = ((_FLOW_GROUP, each.plural) for each in (JOB_FLOWS, JOB_TEMPLATES))
    referred = ((each.api_version.partition("/")[0], each.plural) for kind in _KINDS for each in kind.refers_to)
    return _by_group(("get", "list", "watch"), (*((kind.group, kind.plural) for kind in _KINDS), *referred, *flows))


_RULES: Final[Mapping[str, Callable[[], _Rules]]] = {
    "read": _read,
    "push": lambda: _by_group(("create", "patch", "delete"), ((kind.group, kind.plural) for kind in _KINDS)),
    "watcher": lambda: _by_group(
        ("patch",),
        (
            *((kind.group, kind.plural) for kind in _KINDS if kind.stopping is Stopping.SUSPEND),
            *((_FLOW_GROUP, plural) for plural in (JOB_FLOWS.plural, f"{JOB_FLOWS.plural}/status")),
        ),
    ),
    "statuses": lambda: _by_group(
        ("patch",), ((kind.group, f"{kind.plural}/status") for kind in _KINDS if kind.managed_by_path)
    ),
    "workers": lambda: _by_group(
        ("get", "list", "create", "delete"), ((kind.group, kind.plural) for kind in _KINDS if kind.multikueue)
    ),
}
"""The rules between two comments, by the name in the first comment."""


class _Dumper(yaml.SafeDumper):
    """Writes equal parts out each time, as the files of deploy/kubernetes do."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _yaml(documents: list[Any]) -> str:
    return yaml.dump_all(documents, Dumper=_Dumper, default_flow_style=None, sort_keys=False, width=140)
