"""`meve serve`: serves documents and memories to other programs, and manages their tokens."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from meve._extras import require
from meve.cli._error_handling import handle_errors, refuse_ignored
from meve.cli._index_place import Collection, load_index
from meve.cli._memory_options import (
    KeyFile,
    MasterKey,
    PolicyFile,
    RecordKeys,
    Tenant,
    keep_opening,
    open_memory,
    parse_span,
    parse_user,
    refuse_password,
)
from meve.cli._render import print_line, write_output
from meve.errors import ConfigurationError

serve_app = typer.Typer(
    name="serve",
    help="Serve an index and a memory to other programs by MCP and REST, and manage their bearer tokens.",
    invoke_without_command=True,
    rich_markup_mode=None,
)

Tokens = Annotated[Path, typer.Option(help="The file of bearer tokens.", metavar="FILE")]


def serve(
    context: typer.Context,
    index: Annotated[
        str | None,
        typer.Option(
            help="The index to search: a folder, or the URL of a server.", metavar="DIR|URL", callback=refuse_password
        ),
    ] = None,
    collection: Collection = None,
    memory: Annotated[
        str | None,
        typer.Option(
            envvar="MEVE_MEMORY",
            help="The memory, created if missing: a file, or postgresql://user@host/database.",
            metavar="FILE",
            callback=refuse_password,
        ),
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="As whom all requests act, without --tokens; int:42 is a number.", metavar="ID")
    ] = None,
    tokens: Annotated[
        Path | None, typer.Option(help="The file of bearer tokens; each names its user.", metavar="FILE")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on; others than loopback need --tokens.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any that is free.")] = 8322,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A host name by which clients call the server; may be repeated.")
    ] = None,
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Serve one MCP client over standard input and output.")
    ] = False,
    maintain_every: Annotated[
        str | None,
        typer.Option(help="Run `meve memory maintain` now and at this interval, such as 1h or 1d.", metavar="SPAN"),
    ] = None,
    may_erase: Annotated[
        bool, typer.Option("--may-erase", help="Let `forget` erase what the user said, instead of hiding it.")
    ] = False,
    rate: Annotated[int, typer.Option(min=1, help="Requests per second and user in the long run.")] = 10,
    burst: Annotated[int, typer.Option(min=1, help="Requests per user at once.")] = 40,
    policy: PolicyFile = None,
    key: KeyFile = None,
    key_file: RecordKeys = None,
    tenant: Tenant = None,
    master_key: MasterKey = None,
) -> None:
    """Serve an index, a memory or both until stopped: REST under /v1, MCP at /mcp, a page at /inspector."""
    if context.invoked_subcommand is not None:
        return
    if stdio:
        refuse_ignored(context, "--stdio", "host", "port", "allow_host", "rate", "burst")
    from meve.service.server.server import NEEDS

    require("meve serve", NEEDS)
    from meve.service.server.limits import ServerLimits
    from meve.service.server.operations import Caller, Operations
    from meve.service.server.server import check_address, serve_http, serve_stdio
    from meve.service.server.tokens import TokenFile

    _check(index, memory, user, tokens, stdio=stdio)
    if collection is not None and index is None:
        raise ConfigurationError(f"--collection needs --index URL, where it stands, got {collection!r}")
    interval = _parse_interval(maintain_every, memory)
    granted = None if tokens is None else TokenFile(tokens)
    if granted is not None:
        granted.grants()  # the file must be there, and private
    if not stdio:
        check_address(host, granted, allow_host or ())  # before the models load
    local = Caller(user_id=None if user is None else parse_user(user), may_inspect=True)
    keep_opening(key_file, tenant, master_key)
    with ExitStack() as stack:
        opened = None if memory is None else stack.enter_context(open_memory(memory, policy, key, make=True))
        retriever = None if index is None else load_index(index, collection)
        if retriever is not None:
            stack.callback(retriever.close)
        if opened is not None and interval is not None:
            opened.maintain_every(interval, at_once=True)
        operations = Operations(retriever=retriever, memory=opened, may_erase=may_erase)
        if stdio:
            serve_stdio(operations, local, stack.close)
            return
        serve_http(
            operations, host, port, local=local, tokens=granted, allowed=allow_host or (),
            limits=ServerLimits(requests_per_second=rate, burst=burst),
            announce=lambda url: write_output(
                f"listening on {url}: REST under {url}/v1, inspector at {url}/inspector, MCP at {url}/mcp\n"
            ),
        )  # fmt: skip


def _parse_interval(maintain_every: str | None, memory: str | None) -> float | None:
    """Return the seconds between two runs of maintenance; None for no runs."""
    span = parse_span(maintain_every, "--maintain-every")
    if span is None:
        return None
    if memory is None:
        raise ConfigurationError("--maintain-every needs --memory, which it maintains")
    return span.total_seconds()


def _check(index: str | None, memory: str | None, user: str | None, tokens: Path | None, *, stdio: bool) -> None:
    if index is None and memory is None:
        raise ConfigurationError("there is nothing to serve: give --index, --memory, or both")
    if stdio and tokens is not None:
        raise ConfigurationError("--stdio serves one client, which acts as --user: leave --tokens out")
    if user is not None and tokens is not None:
        raise ConfigurationError("with --tokens, each token names its user: leave --user out")
    if memory is not None and user is None and tokens is None:
        raise ConfigurationError("--memory needs --user, as whom all requests act, or --tokens, which name users")


def grant(
    user: Annotated[str, typer.Option(help="The user that the token acts as; int:42 is a number.", metavar="ID")],
    tokens: Tokens,
    read_only: Annotated[bool, typer.Option("--read-only", help="Permit no writing.")] = False,
    inspect: Annotated[
        bool, typer.Option("--inspect", help="Permit the inspector to show all of the memory, and to change it.")
    ] = False,
    name: Annotated[str | None, typer.Option(help="A name for the token; made from the user's by default.")] = None,
) -> None:
    """Print a new bearer token for a user. Only its hash is stored, so it can't be printed again."""
    from meve.service.server.tokens import TokenFile

    token = TokenFile(tokens).grant(parse_user(user), read_only=read_only, may_inspect=inspect, name=name)
    write_output(f"{token}\n")


def revoke(name: Annotated[str, typer.Argument(help="The token's name.", metavar="NAME")], tokens: Tokens) -> None:
    """Remove a bearer token at once."""
    from meve.service.server.tokens import TokenFile

    TokenFile(tokens).revoke(name)
    print_line(f"revoked {name}")


def list_tokens(tokens: Tokens) -> None:
    """List the bearer tokens by name, without the tokens."""
    from meve.service.server.tokens import TokenFile

    for each in TokenFile(tokens).grants():
        user = f"int:{each.user}" if isinstance(each.user, int) else each.user
        rights = f"{'reads' if each.read_only else 'reads and writes'}{', inspects' if each.may_inspect else ''}"
        print_line(f"{each.name}  {user}  {rights}")


serve_app.callback()(handle_errors(serve))
for _command, _name in ((grant, "grant"), (revoke, "revoke"), (list_tokens, "tokens")):
    serve_app.command(_name)(handle_errors(_command))
