"""The command's verbs, and what its exit code means.

0 success; 1 refused, or the workload failed; 2 wrong usage; 3 not found; 4 not logged in, or not permitted; 5 conflict;
6 the server does not answer; 124 time-out; 141 the reader of the output has closed it.
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from kueueweb_client import __version__
from kueueweb_client.cli.session import options
from kueueweb_client.errors import ApiError, ClientError, ClosedOutput, Failed, NotLoggedIn, Timeout, Unreachable

_BY_STATUS: Final = {401: 4, 403: 4, 404: 3, 409: 5, 412: 5, 428: 5, 503: 6}
_CLOSED_PIPE: Final = 141
"""The exit code of a process that SIGPIPE ends, which is how kubectl ends."""
MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "read_commands": ("get", "list", "describe", "top", "headroom", "overview", "api-resources"),
    "workload_commands": ("submit", "wait", "stop", "resume", "queue", "explain"),
    "action_commands": (
        "hold", "release", "requeue", "cancel", "priority", "cordon", "uncordon", "drain", "preview", "history",
        "report",
    ),
    "files": ("apply", "diff", "delete"),
    "edit_commands": ("edit", "patch", "label", "annotate"),
    "create_commands": ("create",),
    "logs": ("logs",),
    "audit": ("audit",),
    "mcp_command": ("mcp",),
    "slurm_commands": ("sbatch", "squeue", "scancel", "sacct", "sinfo", "sprio"),
    "convert_command": ("convert",),
    "login": ("login", "logout", "token", "config", "version"),
    "documentation": ("completion", "man"),
}  # fmt: skip
"""The modules of the commands, in the order of the help. A command's module is imported when the command is used."""
_MODULE_OF: Final = {name: module for module, names in MODULES.items() for name in names}


def _keep(name: str) -> Any:
    def keep(value: str) -> str:
        if value:
            setattr(options, name, value)
        return value

    return keep


Context = Annotated[
    str, typer.Option("--context", help="Use this context instead of the current one.", callback=_keep("context"))
]
Cluster = Annotated[
    str, typer.Option("--cluster", help="Use this cluster instead of the context's.", callback=_keep("cluster"))
]
Namespace = Annotated[
    str,
    typer.Option("--namespace", "-n", help="The namespace (default: the context's).", callback=_keep("namespace")),
]


class LazyGroup(TyperGroup):
    """Imports the module of a command when the command is used or shown."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of `MODULES`."""
        return list(_MODULE_OF)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command with the options that all take."""
        if cmd_name in _MODULE_OF and cmd_name not in self.commands:
            module = import_module(f"kueueweb_client.cli.{_MODULE_OF[cmd_name]}")
            part = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
            part.callback()(_global_options)
            module.register(part)
            group = typer.main.get_group(part)
            self.commands.update(group.commands)
            for name in MODULES[_MODULE_OF[cmd_name]]:
                _add_options(self.commands[name], group.params)
        return self.commands.get(cmd_name)


def _global_options(context: Context = "", cluster: Cluster = "", namespace: Namespace = "") -> None:
    """The options that are accepted both before and after the name of a command."""


def _add_options(command: Any, found: Sequence[Any]) -> None:
    """Add the options that the command does not have itself."""
    if isinstance(command, TyperGroup):
        for each in command.commands.values():
            _add_options(each, found)
    elif isinstance(command, TyperCommand):
        taken = {word for parameter in command.params for word in parameter.opts}
        for option in found:
            if option.opts[0] not in taken:
                added = copy.copy(option)
                added.expose_value = False
                added.opts = [word for word in option.opts if word not in taken]
                command.params.append(added)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kueueweb client {__version__}")
        raise typer.Exit


app = typer.Typer(
    name="kueueweb",
    cls=LazyGroup,
    help="The command line of kueueweb: queues, quota and GPUs, with kubectl's and kueuectl's verbs.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def before(
    context: Context = "",
    cluster: Cluster = "",
    namespace: Namespace = "",
    version: Annotated[
        bool, typer.Option("--version", help="Print the client's version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Keep the options that precede the command."""
    options.context, options.cluster, options.namespace = context, cluster, namespace


def exit_code(error: ClientError) -> int:
    """Return the exit code for an error."""
    if isinstance(error, ApiError):
        return _BY_STATUS[403] if error.reason == "AccessDenied" else _BY_STATUS.get(error.status, 1)
    if isinstance(error, NotLoggedIn):
        return _BY_STATUS[401]
    if isinstance(error, Unreachable):
        return 6
    return 124 if isinstance(error, Timeout) else 1


def main() -> None:
    """Run the command; an error is one message and an exit code, never a traceback."""
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except (ClosedOutput, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # no reader is left for the buffered output
        sys.exit(_CLOSED_PIPE)
    except ClientError as error:
        typer.secho(f"error: {error}" if not isinstance(error, Failed) else str(error), err=True, fg="red")
        sys.exit(exit_code(error))


if __name__ == "__main__":
    main()
