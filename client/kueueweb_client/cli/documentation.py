"""man, completion and the fields of kinds: the man page, and the documentation of manifests."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from kueueweb_client import __version__, calls
from kueueweb_client.cli.session import client, say
from kueueweb_client.errors import ClientError
from kueueweb_client.field_docs import describe, find_kind
from kueueweb_client.nouns import Noun

_EXIT_CODES = (
    (0, "done"), (1, "refused, or the workload failed; for diff: there are differences"), (2, "used wrongly"),
    (3, "not there"), (4, "not logged in, or not permitted"), (5, "a conflict"), (6, "the server does not answer"),
    (124, "not in time"), (141, "the reader of the output has closed the pipe"),
)  # fmt: skip


class Shell(StrEnum):
    """The shells with completion."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


def _completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Write the completion script of a shell."""
    from typer._completion_shared import get_completion_script

    say(get_completion_script(prog_name="kueueweb", complete_var="_KUEUEWEB_COMPLETE", shell=shell.value))


def _man(ctx: typer.Context) -> None:
    """Write the page of the manual: kueueweb man | man -l -"""
    root = ctx.find_root()
    say("\n".join(_page(root.command, root)))


def document_kind(noun: Noun, path: str, api_version: str, *, recursive: bool) -> None:
    """Write the documentation of a kind, or of its field at a path such as spec.preemption; "" is the kind itself."""
    with client() as asked:
        addresses = list(asked.send(calls.open_api())["paths"])
        wanted = (f"apis/{api_version}", f"api/{api_version}") if api_version else addresses
        for address in sorted(addresses, key=lambda address: address != noun.address):
            if address not in wanted:
                continue
            found = find_kind(asked.send(calls.open_api(address)), noun.kind)
            if found is not None:
                for line in describe(found, [key for key in path.split(".") if key], recursive=recursive):
                    say(line)
                return
    raise ClientError(f"no documentation of {noun.kind}{f' in {api_version}' if api_version else ''}")


def _page(root: Any, ctx: Any) -> Iterator[str]:
    yield f'.TH "KUEUEWEB" "1" "" "kueueweb {__version__}" "User Commands"'
    yield ".SH NAME"
    yield f"kueueweb \\- {_text(root.help.splitlines()[0])}"
    yield ".SH SYNOPSIS"
    yield ".B kueueweb"
    yield "[OPTIONS] COMMAND [ARGS]..."
    yield ".SH OPTIONS"
    yield from _options(root, ctx)
    yield ".SH COMMANDS"
    yield from _commands(root, ctx, "kueueweb")
    yield ".SH EXIT STATUS"
    for code, meaning in _EXIT_CODES:
        yield f".TP\n.B {code}\n{_text(meaning)}"
    yield ".SH ENVIRONMENT"
    for name, meaning in (
        ("KUEUEWEB_CONFIG", "the file of the contexts"),
        ("KUEUEWEB_URL, KUEUEWEB_TOKEN, KUEUEWEB_CLUSTER, KUEUEWEB_NAMESPACE", "take precedence over the context"),
        ("KUEUEWEB_EDITOR, VISUAL, EDITOR", "the editor of kueueweb edit"),
    ):
        yield f".TP\n.B {name}\n{_text(meaning)}"


def _commands(group: Any, ctx: Any, before: str) -> Iterator[str]:
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if command is None or command.hidden:
            continue
        if isinstance(command, TyperGroup):
            yield from _commands(command, ctx, f"{before} {name}")
            continue
        arguments = " ".join(
            each.metavar or each.name.upper() for each in command.params if not each.opts[0].startswith("-")
        )
        yield f".SS {_text(f'{before} {name} {arguments}'.strip())}"
        yield _text(" ".join((command.help or "").split()))
        yield from _options(command, ctx)


def _options(command: Any, ctx: Any) -> Iterator[str]:
    for parameter in command.params:
        record = parameter.get_help_record(ctx)
        if record and parameter.opts[0].startswith("-"):
            yield f".TP\n.B {_text(record[0])}\n{_text(record[1])}"


def _text(text: str) -> str:
    """Return a text without characters that roff would obey."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line[:1] in (".", "'") else line for line in escaped.splitlines())


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command("completion")(_completion)
    app.command("man")(_man)
