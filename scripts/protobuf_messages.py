"""Writes Kubernetes' protobuf messages as a table: python scripts/protobuf_messages.py (needs Go)

Each message is {number of a field: "name kind"}, as the struct tags of Kubernetes' Go types say. Kinds are string, int,
bool, raw, the special types of SPECIAL, or a message. `[]`: a list, `map:`: a map of such values. `*`: kept although it
is empty, as JSON keeps it. A field without a name is written into the object itself.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

RELEASE: Final = "v0.36.3"
SOURCES: Final = (
    ("k8s.io/api", ("authentication/v1", "authorization/v1", "batch/v1", "core/v1")),
    ("k8s.io/apimachinery", ("pkg/apis/meta/v1",)),
)
ROOTS: Final = (
    "DeleteOptions", "Job", "Namespace", "SelfSubjectAccessReview", "SelfSubjectReview", "SelfSubjectRulesReview",
)  # fmt: skip
SPECIAL: Final = frozenset({"FieldsV1", "IntOrString", "MicroTime", "Quantity", "Time"})
TARGET: Final = Path(__file__).resolve().parent.parent / "kueueweb" / "wire" / "encodings" / "protobuf_messages.json"
_SCALARS: Final = {
    "string": "string", "int32": "int", "int64": "int", "bool": "bool", "[]byte": "raw", "types.UID": "string",
}  # fmt: skip
_STRUCT: Final = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_ALIAS: Final = re.compile(r"^type (\w+) ((?:\[\]|map\[\w+\])*[\w.]+)$", re.MULTILINE)
_FIELD: Final = re.compile(
    r'^\s+(?:(\w+)\s+)?(\S+)\s+`json:"([^"]*)"[^`]*?protobuf:"(\w+),(\d+)[^"]*"[^`]*`', re.MULTILINE
)
_ANSWERED: Final = frozenset({"SelfSubjectReviewStatus"})
"""Parts that only servers send."""


def sources() -> Iterator[str]:
    """Yield the files with the types, from Go's module proxy."""
    for module, packages in SOURCES:
        command = ["go", "mod", "download", "-json", f"{module}@{RELEASE}"]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd="/")
        folder = Path(json.loads(done.stdout)["Dir"])
        for package in packages:
            yield (folder / package / "types.go").read_text()


def messages(texts: list[str]) -> dict[str, dict[str, str]]:
    """Return the messages that the roots need."""
    structs = {name: body for text in texts for name, body in _STRUCT.findall(text)}
    aliases = {name: kind for text in texts for name, kind in _ALIAS.findall(text)}
    found: dict[str, dict[str, str]] = {}
    wanted = list(ROOTS)
    while wanted:
        name = wanted.pop()
        if name in found:
            continue
        found[name] = {}
        for named, kind, json_tag, _, number in _FIELD.findall(structs[name]):
            if kind in _ANSWERED:
                continue
            key, *options = json_tag.split(",")
            word = _kind(kind, structs, aliases)
            kept = kind.startswith("*") or not {"omitempty", "omitzero", "inline"} & set(options)
            inline = not named and "inline" in options
            found[name][number] = f"{'' if inline else key} {'*' if kept else ''}{word}"
            inner = re.sub(r"^(\[\]|map:)", "", word)
            if inner not in SPECIAL and inner not in _SCALARS.values():
                wanted.append(inner)
    return dict(sorted(found.items()))


def _kind(kind: str, structs: dict[str, str], aliases: dict[str, str]) -> str:
    """Return the word for a type of Go."""
    kind = kind.removeprefix("*")
    if kind in _SCALARS:
        return _SCALARS[kind]
    if kind.startswith("[]"):
        return f"[]{_kind(kind[2:], structs, aliases)}"
    if made := re.fullmatch(r"map\[[\w.]+\](.+)", kind):
        return f"map:{_kind(made[1], structs, aliases)}"
    name = kind.rpartition(".")[2]
    if name in SPECIAL or name in structs:
        return name
    return _kind(aliases[name], structs, aliases)


def main() -> None:
    """Write the file."""
    found = messages(list(sources()))
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(fields)}" for name, fields in found.items())
    TARGET.write_text(f'{{"roots": {json.dumps(ROOTS)}, "messages": {{\n{lines}\n}}}}\n')


if __name__ == "__main__":
    main()
