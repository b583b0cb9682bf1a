"""Slurm's batch scripts: `#SBATCH` lines as a Job, and Slurm's words for states, times and node lists.

The options, their short forms and the forms of their values are those of sbatch(1). An option that affects the place,
time or resources of a job and that a Job cannot express is refused by its name; one that only changes the words about
it is warned of by its name.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kueueweb_client.errors import ClientError

_SHORT: Final[Mapping[str, str]] = {
    "A": "account", "a": "array", "b": "begin", "c": "cpus-per-task", "C": "constraint", "d": "dependency",
    "D": "chdir", "e": "error", "F": "nodefile", "G": "gpus", "H": "hold", "i": "input", "J": "job-name",
    "L": "licenses", "M": "clusters", "m": "distribution", "N": "nodes", "n": "ntasks", "O": "overcommit",
    "o": "output", "p": "partition", "q": "qos", "Q": "quiet", "s": "oversubscribe", "S": "core-spec", "t": "time",
    "v": "verbose", "W": "wait", "w": "nodelist", "x": "exclude",
}  # fmt: skip
_FLAGS: Final = frozenset({
    "hold", "requeue", "no-requeue", "wait", "quiet", "verbose", "overcommit", "oversubscribe", "parsable", "test-only",
    "contiguous", "reboot", "spread-job", "use-min-nodes", "ignore-pbs", "exclusive", "get-user-env", "no-kill",
})  # fmt: skip
"""Options without a value, or whose value is optional and behind `=`."""
_WRITTEN_ELSEWHERE: Final[Mapping[str, str]] = {
    "output": "`kueueweb logs` reads the output of pods",
    "error": "`kueueweb logs` reads the output of pods",
    "open-mode": "`kueueweb logs` reads the output of pods",
    "mail-type": "notification rules are created on the page Notifications",
    "mail-user": "notification rules are created on the page Notifications",
    "account": "the namespace (-n) is charged",
    "requeue": "an evicted job is queued again automatically",
    "no-requeue": "an evicted job is queued again automatically; a failed one is not",
    "ignore-pbs": "#PBS lines are ignored",
    "quiet": "say --parsable", "verbose": "see `kueueweb explain`",
}  # fmt: skip
_DEVICES: Final = "nvidia.com/gpu of its pod"
_MEMORY: Final = "memory of its pod"
KEPT_AS: Final[Mapping[str, str]] = {
    "job-name": "metadata.name", "partition": "the label kueue.x-k8s.io/queue-name",
    "qos": "the label kueue.x-k8s.io/priority-class", "chdir": "workingDir", "comment": "an annotation",
    "container-image": "image", "dependency": "the annotation kueueweb.io/start-after", "export": "env",
    "nodes": "one pod", "ntasks": "cpu of its pod", "ntasks-per-node": "cpu of its pod",
    "cpus-per-task": "cpu of its pod", "gpus": _DEVICES, "gpus-per-node": _DEVICES, "gpus-per-task": _DEVICES,
    "gres": _DEVICES, "mem": _MEMORY, "mem-per-cpu": _MEMORY, "mem-per-gpu": _MEMORY,
    "time": "activeDeadlineSeconds", "array": "completions and parallelism of an Indexed Job",
}  # fmt: skip
"""The options that a Job honours, and the place of each in it."""
_START_AFTER: Final = "kueueweb.io/start-after"
_CONDITIONS: Final[Mapping[str, str]] = {"afterok": "", "afterany": "afterany:", "after": "after:"}
"""The conditions of `--dependency`, as prefixes in the annotation."""
_REMEDIES: Final[Mapping[str, str]] = {
    "singleton": "name the job before: --dependency=afterany:NAME",
    "afternotok": "use afterany, and let the script look at the result",
    "aftercorr": "use afterok: all tasks of the array before",
}
_SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_MAX_SCRIPT_BYTES: Final = 100_000
"""A little less than the kernel takes as one argument."""
_MAX_ARRAY: Final = 1000


class SlurmError(ClientError):
    """An option that is not honoured, or a value that cannot be read."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch script: its options (long names), its interpreter and its text."""

    options: Mapping[str, str]
    interpreter: Sequence[str]
    script: str


def read_script(text: str, given: Sequence[str] = ()) -> Batch:
    """Read a script. Options that are `given` on the command line take precedence over those of its lines. As in
    sbatch, `#SBATCH` lines count up to the first command."""
    lines = text.splitlines()
    if not lines or not lines[0].startswith("#!"):
        raise SlurmError(
            "This does not look like a batch script. The first line must start with #! and an interpreter."
        )
    if len(text.encode()) > _MAX_SCRIPT_BYTES:
        raise SlurmError(f"Too long: the script has more than {_MAX_SCRIPT_BYTES} bytes. Put it into the image.")
    options: dict[str, str] = {}
    for line in _directives(lines[1:]):
        options |= read_options(shlex.split(line, comments=True))
    return Batch({**options, **read_options(given)}, shlex.split(lines[0][2:]), text)


def _directives(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if line.startswith("#SBATCH"):
            yield line.removeprefix("#SBATCH")
        elif line.strip() and not line.lstrip().startswith("#"):
            return


def read_options(words: Sequence[str]) -> dict[str, str]:
    """Read `--name=value`, `--name value`, `-n value` and `-nvalue` by their long names. Raises `SlurmError`."""
    found: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
        elif word.startswith("-") and len(word) > 1:
            name, value = _SHORT.get(word[1], word[1]), word[2:].removeprefix("=")
            equals = value
        else:
            raise SlurmError(f'Invalid value: "{word}" is not an option')
        if not equals and name not in _FLAGS:
            if not rest:
                raise SlurmError(f"--{name}: Required value")
            value = rest.pop(0)
        found[name] = value
    return found


@dataclass(slots=True)
class _Needs:
    """The resources and limits of a job, as its options are read."""

    tasks: int = 1
    cpus_per_task: int = 1
    gpus: int = 0
    gpu_type: str = ""
    memory_mib: int = 0
    per_cpu_mib: int = 0
    per_gpu_mib: int = 0
    seconds: int = 0
    indices: list[int] = field(default_factory=list)
    at_once: int = 0

    @property
    def requests(self) -> dict[str, str]:
        """The requests of the pod."""
        cpus = self.tasks * self.cpus_per_task
        memory = self.memory_mib or self.per_cpu_mib * cpus or self.per_gpu_mib * self.gpus
        found = {"cpu": str(cpus)}
        if memory:
            found["memory"] = f"{memory}Mi"
        if self.gpus:
            found["nvidia.com/gpu"] = str(self.gpus)
        return found


@dataclass(frozen=True, slots=True)
class Submission:
    """A Job, and for each option that is not honoured a sentence that names it."""

    manifest: dict[str, Any]
    warnings: Sequence[str]
    waits: bool


def job_of(
    batch: Batch, *, namespace: str, image: str, queue: str, arguments: Sequence[str], unique: str
) -> Submission:
    """Convert a batch script to a Job. Raises `SlurmError` for an option that a Job cannot honour."""
    options = dict(batch.options)
    warnings = [f"--{name} is not honoured: {why}" for name, why in _WRITTEN_ELSEWHERE.items() if name in options]
    needs = _needs(options)
    queue = options.pop("partition", "") or queue
    image = _image(options.pop("container-image", "")) or image
    title = options.pop("job-name", "") or "sbatch"
    labels = _labels(queue, options.pop("qos", ""))
    directory, comment = options.pop("chdir", ""), options.pop("comment", "")
    before = start_after(options.pop("dependency", ""))
    environment = _environment(options.pop("export", ""), warnings)
    waits = options.pop("wait", None) is not None
    _refuse_others(options)
    _require("--partition (the LocalQueue)", queue)
    _require("--container-image, --image or KUEUEWEB_IMAGE", image)
    name = f"{_name(title)}-{unique}"
    if _name(title) != title:
        warnings.append(f'--job-name "{title}" is not a valid Kubernetes name: using {_name(title)}')
    environment |= _slurm_environment(title, queue, name, needs)
    container: dict[str, Any] = {
        "name": "main",
        "image": image,
        "command": _command(batch, arguments, needs.indices),
        "env": [{"name": key, "value": value} for key, value in environment.items()] + _index(needs.indices),
        "resources": {"requests": needs.requests, "limits": needs.requests},
        **({"workingDir": directory} if directory else {}),
    }
    if needs.indices:
        warnings.append("--array: tasks that may run at once start together, when there is room for all of them")
    metadata = {"namespace": namespace, "name": name, "labels": labels}
    noted = {"kueueweb.io/comment": comment, _START_AFTER: before}
    if annotations := {key: text for key, text in noted.items() if text}:
        metadata["annotations"] = annotations
    spec = {**_job_spec(needs), "template": _template(needs, container)}
    return Submission({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}, warnings, waits)


def start_after(text: str) -> str:
    """`afterok:a:b,afterany:c` as the annotation that says after which jobs a job starts. Raises `SlurmError`."""
    if "?" in text:
        raise SlurmError(
            f"--dependency={text}: Unsupported value: all conditions must hold. Separate them with commas."
        )
    found: list[str] = []
    for part in text.split(",") if text else ():
        if not part:
            raise SlurmError(f"--dependency={text}: Required value: a condition, as afterok:JOB")
        condition, _, names = part.partition(":")
        if condition not in _CONDITIONS:
            remedy = _REMEDIES.get(condition, f"supported conditions: {', '.join(_CONDITIONS)}")
            raise SlurmError(f"--dependency={part}: Unsupported value: {condition}: {remedy}")
        for name in names.split(":"):
            if not name:
                raise SlurmError(f"--dependency={part}: Required value: the name of a job")
            if "+" in name:
                raise SlurmError(f"--dependency={part}: Unsupported value: a job cannot start minutes after another")
            found.append(_CONDITIONS[condition] + name)
    return ",".join(dict.fromkeys(found))


def jobs_before(manifest: Mapping[str, Any]) -> list[str]:
    """Return the names of the jobs that a Job of `job_of` starts after."""
    text = manifest["metadata"].get("annotations", {}).get(_START_AFTER, "")
    return [item.rpartition(":")[2] for item in text.split(",") if item]


def _labels(queue: str, qos: str) -> dict[str, str]:
    found = {"kueue.x-k8s.io/queue-name": queue}
    return {**found, "kueue.x-k8s.io/priority-class": qos} if qos else found


def _refuse_others(options: Mapping[str, str]) -> None:
    """Raise `SlurmError` for options that are neither honoured nor only written about."""
    others = sorted(options.keys() - _WRITTEN_ELSEWHERE.keys() - {"parsable", "test-only"})
    if others:
        names = ", ".join(f"--{name}" for name in others)
        raise SlurmError(f"Unsupported value: {names}: Jobs do not support this. Remove it, or submit a manifest.")


def _require(option: str, value: str) -> None:
    if not value:
        raise SlurmError(f"Required value: {option}")


def _slurm_environment(title: str, queue: str, name: str, needs: _Needs) -> dict[str, str]:
    """Return the variables that scripts read."""
    return {
        "SLURM_JOB_NAME": title,
        "SLURM_JOB_PARTITION": queue,
        "SLURM_JOB_ID": name,
        "SLURM_NTASKS": str(needs.tasks),
        "SLURM_CPUS_PER_TASK": str(needs.cpus_per_task),
        "SLURM_JOB_NUM_NODES": "1",
        "SLURM_NNODES": "1",
    }


def _job_spec(needs: _Needs) -> dict[str, Any]:
    """Return a Job that is not run again when it fails, as a batch job is not."""
    limit = {"activeDeadlineSeconds": needs.seconds} if needs.seconds else {}
    if not needs.indices:
        return {"suspend": True, "backoffLimit": 0, "parallelism": 1, "completions": 1, **limit}
    count = len(needs.indices)
    return {
        "suspend": True,
        "completionMode": "Indexed",
        "backoffLimitPerIndex": 0,
        "completions": count,
        "parallelism": min(needs.at_once or count, count),
        **limit,
    }


def _template(needs: _Needs, container: Mapping[str, Any]) -> dict[str, Any]:
    spec = {"restartPolicy": "Never", "containers": [dict(container)]}
    if not needs.gpu_type:
        return {"spec": spec}
    return {"metadata": {"annotations": {"nvidia.com/use-gputype": needs.gpu_type}}, "spec": spec}


def _needs(options: dict[str, str]) -> _Needs:
    """Take the options of resources out."""
    needs = _Needs()
    for name, read in _READERS.items():  # the number of tasks must be known before the GPUs per task
        if name in options:
            read(needs, options.pop(name))
    return needs


def _nodes(needs: _Needs, text: str) -> None:
    if text not in ("1", "1-1"):
        raise SlurmError(
            f"--nodes={text}: Unsupported value: a script runs in one pod. Submit a JobSet or an MPIJob for more."
        )


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:9]) > 0):
        raise SlurmError(f'--{name}: Invalid value: "{text}" is not a whole number above 0')
    return int(text)


def _set(name: str, attribute: str) -> Callable[[_Needs, str], None]:
    return lambda needs, text: setattr(needs, attribute, _number(name, text))


def _gpus(name: str) -> Callable[[_Needs, str], None]:
    """`2` or `a100:2`; per task, times the tasks."""

    def read(needs: _Needs, text: str) -> None:
        kind, _, count = text.rpartition(":")
        if "," in text:
            raise SlurmError(f"--{name}={text}: Unsupported value: one type of GPU per job")
        needs.gpus = _number(name, count) * (needs.tasks if name == "gpus-per-task" else 1)
        needs.gpu_type = kind

    return read


def _gres(needs: _Needs, text: str) -> None:
    kind, colon, rest = text.partition(":")
    if kind != "gpu" or "," in text:
        raise SlurmError(f"--gres={text}: Unsupported value: supported values: gpu, gpu:COUNT, gpu:TYPE:COUNT")
    if colon and not rest.rpartition(":")[2].isdigit():
        rest = f"{rest}:1"
    _gpus("gres")(needs, rest or "1")


def _memory(attribute: str, name: str) -> Callable[[_Needs, str], None]:
    """Mebibytes without a unit; K, M, G, T."""

    def read(needs: _Needs, text: str) -> None:
        found = re.fullmatch(r"(\d{1,9})([KMGT]?)B?", text.strip(), re.IGNORECASE)
        if found is None or not int(found[1]):
            rule = (
                ("0 means all of a node, which a Job cannot request") if found else "is not a number with K, M, G or T"
            )
            raise SlurmError(f'--{name}: Invalid value: "{text}": {rule}')
        scale = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2}[found[2].upper()]
        setattr(needs, attribute, max(1, round(int(found[1]) * scale)))

    return read


def _time(needs: _Needs, text: str) -> None:
    needs.seconds = seconds_of(text)


def seconds_of(text: str) -> int:
    """Parse a time limit: minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]]; 0 means no
    limit."""
    if text.upper() in ("UNLIMITED", "INFINITE", "0"):
        return 0
    days, dash, rest = text.rpartition("-")
    parts = rest.split(":")
    if not all(part.isascii() and part.isdigit() for part in (*parts, *([days] if dash else ()))) or len(parts) > 3:
        raise SlurmError(
            f'--time: Invalid value: "{text}" is not minutes, hours:minutes:seconds or days-hours:minutes:seconds'
        )
    numbers = [int(part) for part in parts]
    if dash:
        hours, minutes, seconds = [*numbers, 0, 0][:3]
    elif len(numbers) == 3:
        hours, minutes, seconds = numbers
    else:
        hours, (minutes, seconds) = 0, [*numbers, 0][:2]
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds


def _array(needs: _Needs, text: str) -> None:
    """`0-15`, `1,3,5-7`, `0-15:4`, and `%4` for at most four at once."""
    listed, percent, at_once = text.partition("%")
    for part in listed.split(","):
        found = re.fullmatch(r"(\d{1,7})(?:-(\d{1,7})(?::(\d{1,7}))?)?", part.strip())
        if found is None or (found[3] and not int(found[3])):
            raise SlurmError(f'--array: Invalid value: "{text}" is not like 0-15, 1,3,5-7, 0-15:4 or 0-15%4')
        needs.indices += range(int(found[1]), int(found[2] or found[1]) + 1, int(found[3] or 1))
        if not 0 < len(needs.indices) <= _MAX_ARRAY:
            raise SlurmError(f"--array={text}: Invalid value: 1 to {_MAX_ARRAY} tasks")
    if percent:
        needs.at_once = _number("array", at_once)


_READERS: Final[Mapping[str, Callable[[_Needs, str], None]]] = {
    "nodes": _nodes,
    "ntasks": _set("ntasks", "tasks"),
    "ntasks-per-node": _set("ntasks-per-node", "tasks"),
    "cpus-per-task": _set("cpus-per-task", "cpus_per_task"),
    "gpus": _gpus("gpus"),
    "gpus-per-node": _gpus("gpus-per-node"),
    "gpus-per-task": _gpus("gpus-per-task"),
    "gres": _gres,
    "mem": _memory("memory_mib", "mem"),
    "mem-per-cpu": _memory("per_cpu_mib", "mem-per-cpu"),
    "mem-per-gpu": _memory("per_gpu_mib", "mem-per-gpu"),
    "time": _time,
    "array": _array,
}


def _image(text: str) -> str:
    """Return an image as pyxis writes it: nvcr.io#nvidia/pytorch:24.01."""
    return text.removeprefix("docker://").replace("#", "/")


def _name(text: str) -> str:
    """Return a text as the beginning of a name in Kubernetes, to which nine letters are added."""
    found = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:50].strip("-")
    return found or "job"


def _environment(text: str, warnings: list[str]) -> dict[str, str]:
    """Return the variables of `--export`. Those of the shell are not sent along."""
    found = {key: value for key, mark, value in (part.partition("=") for part in text.split(",")) if mark}
    bare = [part for part in text.split(",") if part and "=" not in part and part not in ("NONE", "NIL")]
    if bare:
        warnings.append(
            f"--export={','.join(bare)} is not honoured: variables of your shell are not sent; write NAME=value"
        )
    return found


def _command(batch: Batch, arguments: Sequence[str], indices: Sequence[int]) -> list[str]:
    program = next((word for word in reversed(batch.interpreter) if not word.startswith("-")), "")
    interpreter = program.rpartition("/")[2]
    script = batch.script
    plain = list(indices) == list(range(len(indices)))
    if indices and not plain:
        if interpreter not in _SHELLS:
            raise SlurmError("--array: Unsupported value: indices that do not count from 0 need a shell script")
        listed = " ".join(map(str, indices))
        first, _, rest = script.partition("\n")
        chosen = f'$(set -- {listed}; shift "$JOB_COMPLETION_INDEX"; echo "$1")'
        script = f"{first}\nSLURM_ARRAY_TASK_ID={chosen}; export SLURM_ARRAY_TASK_ID\n{rest}"
    name = [interpreter] if interpreter in _SHELLS else []  # $0 of the shell command
    return [*batch.interpreter, "-c", script, *name, *arguments]


def _index(indices: Sequence[int]) -> list[dict[str, Any]]:
    if not indices:
        return []
    place = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    found: list[dict[str, Any]] = [{"name": "SLURM_ARRAY_TASK_COUNT", "value": str(len(indices))}]
    if list(indices) == list(range(len(indices))):
        found.append({"name": "SLURM_ARRAY_TASK_ID", "valueFrom": {"fieldRef": {"fieldPath": place}}})
    return found
