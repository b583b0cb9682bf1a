"""The command's verbs, and what its exit code means.

0 done; 1 refused, or the workload failed; 2 used wrongly; 3 not there; 4 not logged in, or not permitted; 5 a conflict;
6 the server does not answer; 124 not in time.
"""

from __future__ import annotations

import sys
from typing import Annotated, Final

import typer

from kueueweb_client.cli import audit, create_commands, files, login, logs, read_commands, workload_commands
from kueueweb_client.cli.session import err, options
from kueueweb_client.errors import ApiError, ClientError, Failed, Timeout, Unreachable

_BY_STATUS: Final = {401: 4, 403: 4, 404: 3, 409: 5, 412: 5, 428: 5, 503: 6}

app = typer.Typer(
    name="kueueweb",
    help="The command line of kueueweb: queues, quota and GPUs, with kubectl's and kueuectl's verbs.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def before(
    context: Annotated[str, typer.Option(help="Use this context instead of the current one.")] = "",
    cluster: Annotated[str, typer.Option(help="Use this cluster instead of the context's.")] = "",
) -> None:
    """Keep the options that stand before the command."""
    options.context, options.cluster = context, cluster


login.register(app)
read_commands.register(app)
files.register(app)
create_commands.register(app)
workload_commands.register(app)
audit.register(app)
logs.register(app)


def exit_code(error: ClientError) -> int:
    """Return the exit code for an error."""
    if isinstance(error, ApiError):
        return _BY_STATUS[403] if error.reason == "AccessDenied" else _BY_STATUS.get(error.status, 1)
    if isinstance(error, Unreachable):
        return 6
    return 124 if isinstance(error, Timeout) else 1


def main() -> None:
    """Run the command; an error is one message and an exit code, never a traceback."""
    try:
        app()
    except ClientError as error:
        err.print(f"error: {error}" if not isinstance(error, Failed) else str(error), markup=False, style="red")
        sys.exit(exit_code(error))


if __name__ == "__main__":
    main()
