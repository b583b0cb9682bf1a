"""login, logout, token, config, version."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit

import typer

from kueueweb_client import __version__, calls
from kueueweb_client.cli.session import client, context, say, write_table
from kueueweb_client.contexts import Context, load, save
from kueueweb_client.errors import ApiError, ClientError

if TYPE_CHECKING:
    from kueueweb_client.client import Client

_SLOWER_SECONDS: Final = 5
"""The seconds by which each `slow_down` lengthens the pauses (RFC 8628, section 3.5)."""

_config = typer.Typer(help="Servers, tokens, clusters and namespaces that the command knows.", no_args_is_help=True)
_token = typer.Typer(help="Your tokens on the server.", no_args_is_help=True)


def _login(
    url: Annotated[str, typer.Argument(help="The server's address, as in https://kueueweb.example.org")],
    username: Annotated[str, typer.Option("--username", "-u", help="Log in with a password, not in a browser.")] = "",
    token: Annotated[str, typer.Option(help="A token instead of a name and a password.", envvar="KUEUEWEB_TOKEN")] = "",
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from standard input.")
    ] = False,
    open_browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser, or only print its address.")
    ] = True,
    scope: Annotated[
        str, typer.Option(help="The scope of the token from the browser: metrics, read, submit or administer.")
    ] = "administer",
    days: Annotated[
        int | None, typer.Option(min=1, help="The token's lifetime in days (default: the maximum).")
    ] = None,
    name: Annotated[str, typer.Option(help="The context's name (default: the host).")] = "",
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="The default namespace.")] = "",
    cluster: Annotated[str, typer.Option(help="The default cluster.")] = "default",
    ca_file: Annotated[str, typer.Option("--certificate-authority", help="A file of certificates to trust.")] = "",
) -> None:
    """Log in to a server, in a browser unless a name or a token is given, and use it from now on."""
    from kueueweb_client.client import Client

    if urlsplit(url).scheme not in ("http", "https"):
        raise typer.BadParameter(f'"{url}" is not an address like https://kueueweb.example.org', param_hint="URL")
    url = url.rstrip("/")
    with Client(url, token, cluster=cluster, verify=ca_file or True) as asked:
        if not token and not username and not password_stdin:
            import getpass
            import socket

            wish = {"name": f"{getpass.getuser()}@{socket.gethostname()}"[:100], "scope": scope, "days": days}
            token = _token_from_page(asked, wish, open_browser)
        elif not token:
            username = username or typer.prompt("Username")
            password = input() if password_stdin else typer.prompt("Password", hide_input=True)
            token = asked.send(calls.token(username, password))["token"]
    with Client(url, token, cluster=cluster, verify=ca_file or True) as asked:
        session = asked.read("session")
        if not session["authenticated"]:
            raise ApiError(401, "AuthenticationFailed", "the server rejects this token.")
        username = session["user"]["username"]
    name = name or urlsplit(url).netloc
    save(load().with_context(name, Context(url, token, username, cluster, namespace, ca_file)))
    say(f'Logged in to {url} as {username}. Context "{name}" is in use.')


def _token_from_page(asked: Client, wish: Mapping[str, Any], open_browser: bool) -> str:
    """Return a token that the user confirms in a browser, here or elsewhere. Raises `ApiError` without a
    confirmation."""
    codes = asked.send(calls.device_login(wish))
    page = codes["verification_uri_complete"]
    say(f"Confirm the code {codes['user_code']} at {page}")
    if open_browser:
        import webbrowser

        webbrowser.open(page)
    interval = codes["interval"]
    while True:
        time.sleep(interval)
        try:
            return str(asked.send(calls.device_token(codes["device_code"]))["token"])
        except ApiError as error:
            if error.reason == "SlowDown":
                interval += _SLOWER_SECONDS
            elif error.reason != "AuthorizationPending":
                raise


def _logout() -> None:
    """Revoke the token of the current context, and forget it."""
    contexts = load()
    found = context()
    with client() as asked:
        asked.send(calls.log_out())
    if contexts.current:
        save(contexts.with_context(contexts.current, replace(found, token="")))
    say(f"Logged out of {found.url}.")


@_token.command("list")
def list_tokens() -> None:
    """List your tokens, the newest first; the token itself is shown only when it is made."""
    with client() as asked:
        rows = list(asked.rows("auth", "tokens"))
    write_table(
        ["ID", "NAME", "SCOPE", "CREATED", "EXPIRES", "LAST USED"],
        [
            [
                row["id"],
                row["name"] or "-",
                row["scope"],
                row["created_at"],
                row["expires_at"] or "never",
                row["last_used_at"] or "never",
            ]
            for row in rows
        ],
    )


@_token.command("create")
def create_token(
    name: Annotated[str, typer.Argument(help="The purpose of the token.")],
    scope: Annotated[str, typer.Option(help="metrics, read, submit or administer.")] = "administer",
    namespaces: Annotated[
        list[str] | None, typer.Option("--only-namespace", help="Only there; may be repeated.")
    ] = None,
    clusters: Annotated[list[str] | None, typer.Option("--only-cluster", help="Only there; may be repeated.")] = None,
    days: Annotated[
        int | None, typer.Option(min=1, help="The token's lifetime in days (default: the maximum).")
    ] = None,
    service_account: Annotated[
        str, typer.Option("--service-account", help="A token for this machine, not for you.")
    ] = "",
) -> None:
    """Create a token and print it, this once."""
    wish = {"name": name, "scope": scope, "namespaces": namespaces or [], "clusters": clusters or [], "days": days}
    with client() as asked:
        say(asked.send(calls.create_token(wish, service_account))["token"])


@_token.command("revoke")
def revoke_token(
    ids: Annotated[list[str] | None, typer.Argument(help="Ids, as `kueueweb token list` shows them.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All your tokens, including the one of this command.")] = False,
) -> None:
    """Revoke tokens by their ids, or all of them."""
    if bool(ids) == every:
        raise typer.BadParameter("Give either ids or --all.")
    with client() as asked:
        for found in ids or [""]:
            asked.send(calls.revoke_token(found))
            say(f"Token {found} is revoked." if found else "All your tokens are revoked.")


@_config.command("get-contexts")
def get_contexts() -> None:
    """List the contexts; the one in use has a star."""
    contexts = load()
    write_table(
        ["CURRENT", "NAME", "SERVER", "USER", "CLUSTER", "NAMESPACE"],
        [
            [
                "*" if name == contexts.current else "",
                name,
                found.url,
                found.username or "-",
                found.cluster,
                found.namespace or "-",
            ]
            for name, found in contexts.contexts.items()
        ],
    )


@_config.command("use-context")
def use_context(name: str) -> None:
    """Use another context from now on."""
    save(load().using(name))
    say(f'Context "{name}" is in use.')


@_config.command("delete-context")
def delete_context(name: str) -> None:
    """Forget a context. Its token is not revoked: log out for that."""
    save(load().using(name).without(name))
    say(f'Context "{name}" is forgotten.')


@_config.command("rename-context")
def rename_context(old: str, new: str) -> None:
    """Give a context another name."""
    save(load().renamed(old, new))
    say(f'Context "{old}" is called "{new}" now.')


@_config.command("view")
def view(raw: Annotated[bool, typer.Option("--raw", help="With the tokens.")] = False) -> None:
    """Write the configuration file; its tokens only with --raw."""
    from dataclasses import asdict

    from kueueweb_client.documents import to_yaml

    found = load()
    hidden = {
        name: replace(each, token="REDACTED" if each.token and not raw else each.token)
        for name, each in found.contexts.items()
    }
    shown = {name: {key: value for key, value in asdict(each).items() if value} for name, each in hidden.items()}
    say(to_yaml({"current": found.current, "contexts": shown}).rstrip())


@_config.command("current-context")
def current_context() -> None:
    """Write the name of the context in use."""
    if not (name := load().current):
        raise ClientError("No context is selected. Log in: kueueweb login URL.")
    say(name)


@_config.command("set-namespace")
def set_namespace(namespace: str) -> None:
    """Use this namespace where none is given."""
    contexts = load()
    if contexts.current not in contexts.contexts:
        raise ClientError("No context is selected. Log in: kueueweb login URL.")
    save(contexts.with_context(contexts.current, replace(contexts.contexts[contexts.current], namespace=namespace)))
    say(f'Namespace "{namespace}" is now the default.')


def _version() -> None:
    "Print the client's version."
    say(f"kueueweb client {__version__}")


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command("login")(_login)
    app.command("logout")(_logout)
    app.command("version")(_version)
    app.add_typer(_token, name="token")
    app.add_typer(_config, name="config")
