"""slurm.conf and the dump of sacctmgr as flavors, queues and rights (pure).

A partition is a view of nodes, and several may have the same node. So the nodes that are in the same partitions are one
ResourceFlavor, whose quota is that of the Cohort `slurm`, and a partition is a ClusterQueue without quota of its own
that borrows from the flavors of its nodes. An account is a namespace, with a LocalQueue for each partition that it may
use; its users may submit there.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from clusters.manifests.translation.quota_tree import API_VERSION, object_name
from clusters.manifests.translation.translated import JsonObject, Translation
from scheduling.manifest import MistakeReason

SOURCE: Final = "slurm.conf"
COHORT: Final = "slurm"
NODE_LABEL: Final = "kueueweb.io/slurm-nodes"
"""The label that the nodes of a flavor get."""
_MAX_HOSTS: Final = 65_536
_MAX_LABEL: Final = 63
_SETTING: Final = re.compile(r"^\s*[A-Za-z]+\s*=", re.ASCII)
_DUMPED: Final = re.compile(r"^(Cluster|Parent|Account|User) - '", re.ASCII)
_PAIR: Final = re.compile(r"(\w+)\s*=\s*(\"[^\"]*\"|\S+)")
_NO: Final = frozenset({"NO", "0", "FALSE"})
_STOPPED: Final = {"DOWN": "Hold", "DRAIN": "Hold", "INACTIVE": "Hold"}
_WEIGHTS: Final = {
    "PriorityWeightAge": "age",
    "PriorityWeightFairshare": "fairShare",
    "PriorityWeightJobSize": "jobSize",
    "PriorityWeightPartition": "queue",
    "PriorityWeightQOS": "class",
}
_TRES: Final = {"CPU": "cpu", "MEM": "memory", "GRES/GPU": "nvidia.com/gpu"}
_OF_PARTITIONS: Final = frozenset(
    {"PartitionName", "Nodes", "State", "Default", "MaxTime", "DefaultTime", "PriorityTier", "PriorityJobFactor",
     "AllowAccounts", "DenyAccounts"}
)  # fmt: skip
_LOST: Final = {
    "MaxTime": "state the limit in the jobs (`--time`, activeDeadlineSeconds)",
    "DefaultTime": "state the limit in the jobs (`--time`, activeDeadlineSeconds)",
    "Default": "name a LocalQueue `default` in the namespaces where jobs name no queue",
    "PreemptType": "a queue preempts by the priority of its workloads' classes",
    "PreemptMode": "REQUEUE is the only mode: an evicted workload waits again; pods are not suspended",
}
_SCHEDULING: Final = ("Priority", "Preempt", "Sched", "AccountingStorageEnforce", "MaxJobCount", "MaxArraySize")
_ACCOUNT_FIELDS: Final = frozenset({"Description", "Organization", "Fairshare", "DefaultAccount", "AdminLevel", "QOS"})


def is_slurm_conf(text: str) -> bool:
    """Return whether a text is a slurm.conf: its first line is a setting."""
    return bool(_SETTING.match(_first_line(text)))


def is_sacctmgr_dump(text: str) -> bool:
    """Return whether a text was written by `sacctmgr dump`."""
    return bool(_DUMPED.match(_first_line(text)))


def _first_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")), "")


_COUNTS: Final = ("CPUs", "Boards", "Sockets", "SocketsPerBoard", "CoresPerSocket", "ThreadsPerCore", "RealMemory")
"""Settings of a node that are whole numbers."""


@dataclass(slots=True)
class _Read:
    settings: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, Mapping[str, int]] = field(default_factory=dict)
    partitions: list[Mapping[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class _Account:
    name: str
    fields: Mapping[str, str]
    parent: str
    users: list[str] = field(default_factory=list)


def translate_slurm(conf: str, dump: str = "") -> Translation:
    """Return the translation of a slurm.conf, with the accounts of a dump."""
    made = Translation(SOURCE)
    read = _read(conf, made)
    accounts = _accounts(dump, made)
    if not read.partitions:
        made.refuse("PartitionName", None, "Required value: a partition", "Add one.", MistakeReason.REQUIRED)
    if made.refusals:
        return made
    members = {partition["PartitionName"]: _nodes_of(partition, read, made) for partition in read.partitions}
    flavors = _flavors(read, members)
    resources = ["cpu", "memory", *(["nvidia.com/gpu"] if any("gpu" in node for node in read.nodes.values()) else [])]
    made.shared += [_flavor(name) for name in flavors]
    made.shared.append(_cohort(read, flavors, resources, made))
    for partition in read.partitions:
        queue = _cluster_queue(partition, read, flavors, members[partition["PartitionName"]], resources, made)
        made.manifests.append(made.annotated(queue))
    for account in accounts:
        made.manifests += _account_objects(account, read.partitions, made)
    if not accounts:
        made.lose("accounts", "no LocalQueues: convert the output of `sacctmgr dump` along with it, or create them")
    return made


# slurm.conf


def _read(text: str, made: Translation) -> _Read:
    read = _Read()
    for line in re.sub(r"\\\n", " ", text).splitlines():
        pairs = {key: value.strip('"') for key, value in _PAIR.findall(line.partition("#")[0])}
        if not pairs:
            continue
        first = next(iter(pairs))
        if first == "NodeName":
            if pairs["NodeName"] != "DEFAULT":
                read.nodes |= dict.fromkeys(_hosts(pairs["NodeName"], made), _amounts(pairs, made))
        elif first == "PartitionName":
            read.partitions += [pairs] if pairs["PartitionName"] != "DEFAULT" else []
        else:
            read.settings |= pairs
        if "DEFAULT" in (pairs.get("NodeName"), pairs.get("PartitionName")):
            made.refuse(first, "DEFAULT", "Unsupported value", "Write the defaults at each line.")
    for name in sorted(read.settings):
        if name.startswith(_SCHEDULING) and name not in _KNOWN:
            made.lose(name, _LOST.get(name, "no counterpart"))
    return read


def _amounts(pairs: Mapping[str, str], made: Translation) -> dict[str, int]:
    """Return the cores, MiB and GPUs of a node."""
    for name in _COUNTS:
        if not re.fullmatch(r"\d*", pairs.get(name, ""), re.ASCII):
            made.refuse(f"NodeName={pairs['NodeName']} {name}", pairs[name], "Invalid value", "Write a whole number.")
            return {}
    if "RealMemory" not in pairs:
        made.lose(f"NodeName={pairs['NodeName']}", "without RealMemory, Slurm and the quota count 1 MiB: add it")
    cores = int(pairs.get("CPUs") or 0)
    if not cores:
        sockets = int(pairs.get("Boards") or 1) * int(pairs.get("Sockets") or pairs.get("SocketsPerBoard") or 1)
        cores = sockets * int(pairs.get("CoresPerSocket") or 1) * int(pairs.get("ThreadsPerCore") or 1)
    found = {"cpu": cores, "memory": int(pairs.get("RealMemory") or 1)}
    for part in filter(None, pairs.get("Gres", "").split(",")):
        kind, *rest = re.sub(r"\(.*?\)", "", part).split(":")
        if kind == "gpu":
            found["gpu"] = found.get("gpu", 0) + (int(rest[-1]) if rest and rest[-1].isdigit() else 1)
    return found


def _hosts(text: str, made: Translation) -> list[str]:
    """Expand a host list: `n[1-3,7],login`, `rack[0-3]n[0-7]`."""
    found: list[str] = []
    if re.search(r"[\[\]]", re.sub(r"\[[^\[\]]*\]", "", text)):
        made.refuse("NodeName", text, "Invalid value: not a list of hosts", "Close each bracket.")
    for part in re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", text):
        names = [""]
        for number, piece in enumerate(re.split(r"\[([^\]]*)\]", part)):
            ends = _numbers(piece, _MAX_HOSTS // len(names)) if number % 2 else [piece]
            if not ends:
                made.refuse("NodeName", text, "Invalid value: not a list of hosts", "Write it like n[1-3,7].")
                return []
            names = [f"{name}{end}" for name in names for end in ends]
        found += names
    return found


def _numbers(text: str, most: int) -> list[str]:
    """Expand the inside of brackets: `1-3,07`; nothing if it is no list of numbers, or a longer one."""
    found: list[str] = []
    for span in text.split(","):
        low, _, high = span.partition("-")
        last = high or low
        if not (low.isdecimal() and last.isdecimal()) or not 0 <= int(last) - int(low) < most - len(found):
            return []
        found += [f"{number:0{len(low)}}" for number in range(int(low), int(last) + 1)]
    return found


def _nodes_of(partition: Mapping[str, str], read: _Read, made: Translation) -> list[str]:
    text = partition.get("Nodes", "")
    names = [*read.nodes] if text == "ALL" else _hosts(text, made)
    if unknown := [name for name in names if name not in read.nodes]:
        path = f"PartitionName={partition['PartitionName']} Nodes"
        made.refuse(path, unknown[0], "Not found: no NodeName line names it", "Add the node.")
    return [name for name in names if name in read.nodes]


def _flavors(read: _Read, members: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the nodes of each flavor. Nodes in the same partitions are one flavor."""
    inside = {name: frozenset(nodes) for name, nodes in members.items()}
    groups: dict[tuple[str, ...], list[str]] = {}
    for node in read.nodes:
        if names := tuple(name for name, nodes in inside.items() if node in nodes):
            groups.setdefault(names, []).append(node)
    found: dict[str, list[str]] = {}
    for names, nodes in groups.items():
        found[_flavor_name(names, found)] = nodes
    return found


def _flavor_name(partitions: Sequence[str], taken: Collection[str]) -> str:
    """Return the joined names of the partitions, with a hash if they are taken or longer than the value of a label."""
    name = object_name("-".join(partitions))
    if name not in taken and len(name) <= _MAX_LABEL:
        return name
    unique = hashlib.sha256(",".join(partitions).encode()).hexdigest()[:8]
    return f"{name[: _MAX_LABEL - 9].rstrip('-.')}-{unique}"


def _flavor(name: str) -> JsonObject:
    spec = {"nodeLabels": {NODE_LABEL: name}}
    return {"apiVersion": API_VERSION, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def _cohort(
    read: _Read, flavors: Mapping[str, Sequence[str]], resources: Sequence[str], made: Translation
) -> JsonObject:
    for name, nodes in flavors.items():
        made.keep(f"NodeName={','.join(nodes)}", f"ResourceFlavor {name}: label these nodes {NODE_LABEL}={name}")
    sums = {name: [_quota(each, _total(read, nodes, each)) for each in resources] for name, nodes in flavors.items()}
    metadata: JsonObject = {"name": COHORT}
    if weights := _weights(read.settings, made):
        metadata["annotations"] = {"kueueweb.io/priority-weights": json.dumps(weights)}
    spec = {"resourceGroups": [_group(resources, sums)]}
    return {"apiVersion": API_VERSION, "kind": "Cohort", "metadata": metadata, "spec": spec}


def _total(read: _Read, nodes: Sequence[str], resource: str) -> int:
    return sum(read.nodes[node].get("gpu" if "/" in resource else resource, 0) for node in nodes)


def _quota(resource: str, amount: int) -> JsonObject:
    return {"name": resource, "nominalQuota": f"{amount}Mi" if resource == "memory" else str(amount)}


def _group(resources: Sequence[str], cells: Mapping[str, list[JsonObject]]) -> JsonObject:
    flavors = [{"name": name, "resources": amounts} for name, amounts in cells.items()]
    return {"coveredResources": [*resources], "flavors": flavors}


def _cluster_queue(
    partition: Mapping[str, str],
    read: _Read,
    flavors: Mapping[str, Sequence[str]],
    nodes: Sequence[str],
    resources: Sequence[str],
    made: Translation,
) -> JsonObject:
    path = f"PartitionName={partition['PartitionName']}"
    mine = {name: [_quota(each, 0) for each in resources] for name, inside in flavors.items() if inside[0] in nodes}
    made.keep(path, f"ClusterQueue {object_name(partition['PartitionName'])}, with {', '.join(mine)}")
    spec: JsonObject = {
        "cohortName": COHORT,
        "namespaceSelector": _selector(partition),
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
        "resourceGroups": [_group(resources, mine)],
    }
    if stopped := _STOPPED.get(partition.get("State", "UP").upper()):
        spec["stopPolicy"] = stopped
    annotations: dict[str, str] = {}
    if tier := partition.get("PriorityTier") or partition.get("PriorityJobFactor"):
        annotations["kueueweb.io/queue-priority"] = tier
        made.keep(f"{path} PriorityTier", "kueueweb.io/queue-priority")
    if read.settings.get("SchedulerType", "sched/backfill") == "sched/backfill":
        annotations["kueueweb.io/backfill"] = "easy"
    for name in sorted(partition.keys() - _OF_PARTITIONS) + [each for each in _LOST if each in partition]:
        if not (name == "Default" and partition[name].upper() in _NO):
            made.lose(f"{path} {name}", _LOST.get(name, "no counterpart"))
    metadata: JsonObject = {"name": object_name(partition["PartitionName"])}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": API_VERSION, "kind": "ClusterQueue", "metadata": metadata, "spec": spec}


def _selector(partition: Mapping[str, str]) -> JsonObject:
    for name, operator in (("AllowAccounts", "In"), ("DenyAccounts", "NotIn")):
        if partition.get(name, "ALL").upper() != "ALL":
            accounts = [object_name(each) for each in partition[name].split(",")]
            expression = {"key": "kubernetes.io/metadata.name", "operator": operator, "values": accounts}
            return {"matchExpressions": [expression]}
    return {}


def _weights(settings: Mapping[str, str], made: Translation) -> JsonObject:
    """Return the weights of the multifactor priority."""
    if settings.get("PriorityType", "priority/multifactor") != "priority/multifactor":
        made.lose("PriorityType", "workloads are ordered by the priority of their class, and time")
        return {}
    found: JsonObject = {ours: int(settings[name]) for name, ours in _WEIGHTS.items() if int(settings.get(name) or 0)}
    resources: dict[str, int] = {}
    for part in filter(None, settings.get("PriorityWeightTRES", "").split(",")):
        name, _, weight = part.partition("=")
        if ours := _TRES.get(name.upper()):
            resources[ours] = int(weight)
        else:
            made.lose(f"PriorityWeightTRES {name}", "no counterpart")
    if resources:
        found["resources"] = resources
    if not found:
        return {}
    for name, ours in (("PriorityMaxAge", "maxAgeSeconds"), ("PriorityDecayHalfLife", "halfLifeSeconds")):
        if seconds := _seconds(settings.get(name, "")):
            found[ours] = seconds
    if settings.get("PriorityFavorSmall", "NO").upper() not in _NO:
        found["favorSmall"] = True
    made.keep("PriorityWeight...", "kueueweb.io/priority-weights of the Cohort")
    return found


_KNOWN: Final = frozenset(
    {*_WEIGHTS, "PriorityType", "PriorityWeightTRES", "PriorityMaxAge", "PriorityDecayHalfLife", "PriorityFavorSmall",
     "SchedulerType"}
)  # fmt: skip


def _seconds(text: str) -> int:
    """Read days-hours, hours:minutes or minutes, as slurm.conf writes lengths of time; 0 if it is none."""
    found = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", text)
    if found is None:
        return 0
    days, first, second, third = (int(each or 0) for each in found.groups())
    if found[1] or found[4]:
        return days * 86_400 + first * 3600 + second * 60 + third
    return first * 3600 + second * 60 if found[3] else first * 60


# The dump of sacctmgr


def _accounts(text: str, made: Translation) -> list[_Account]:
    found: dict[str, _Account] = {}
    parent = "root"
    for line in text.splitlines():
        if not _DUMPED.match(line):
            continue
        kind, _, rest = line.partition(" - ")
        name, *pairs = _fields(rest)
        fields = dict(pair.partition("=")[::2] for pair in pairs)
        if kind == "Parent":
            parent = name
        elif kind == "Account":
            found[name] = _Account(name, fields, parent)
        elif kind == "User" and parent in found:
            found[parent].users.append(name)
            _lose_fields(made, f"User {name} of {parent}", fields)
            if fields.get("Fairshare", "1") != "1":
                made.lose(f"User {name} of {parent}, Fairshare", "shares are those of LocalQueues: the account's")
    return list(found.values())


def _fields(text: str) -> Iterator[str]:
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = ":", True, ""
    yield from lexer


def _lose_fields(made: Translation, path: str, fields: Mapping[str, Any]) -> None:
    for name in sorted(fields.keys() - _ACCOUNT_FIELDS):
        made.lose(f"{path}, {name}={fields[name]}", "limit the users in kueueweb.io/user-limits of a ClusterQueue")


def _account_objects(
    account: _Account, partitions: Sequence[Mapping[str, str]], made: Translation
) -> Iterator[JsonObject]:
    path, namespace = f"Account {account.name}", object_name(account.name)
    _lose_fields(made, path, account.fields)
    made.keep(path, f"namespace {namespace}")
    if account.parent != "root":
        made.lose(
            f"{path}, Parent {account.parent}", "accounts below each other share as if they were beside each other"
        )
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    for partition in partitions:
        if not _may_use(partition, account.name):
            continue
        name = object_name(partition["PartitionName"])
        spec: JsonObject = {"clusterQueue": name}
        share = account.fields.get("Fairshare", "1")
        if share.isdigit() and share != "1":
            spec["fairSharing"] = {"weight": share}
        metadata = {"name": name, "namespace": namespace}
        yield {"apiVersion": API_VERSION, "kind": "LocalQueue", "metadata": metadata, "spec": spec}
    for user in account.users:
        binding = {"user": user, "role": "submitter", "namespace": namespace}
        name = object_name(f"{namespace}-{user}")
        yield {"apiVersion": "kueueweb.io/v1", "kind": "RoleBinding", "metadata": {"name": name}, "spec": binding}


def _may_use(partition: Mapping[str, str], account: str) -> bool:
    allowed = partition.get("AllowAccounts", "ALL")
    return (allowed.upper() == "ALL" or account in allowed.split(",")) and account not in partition.get(
        "DenyAccounts", ""
    ).split(",")
