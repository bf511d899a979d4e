"""`meve kernel`: runs the graph kernel, and manages its keys and its tenants' tokens."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meve._extras import require
from meve.cli._error_handling import handle_errors
from meve.cli._render import print_line, print_message, write_output
from meve.errors import ConfigurationError

if TYPE_CHECKING:
    from meve.service.kernel._store import GraphStore
    from meve.signing_keys import SigningKeys

kernel_app = typer.Typer(
    name="kernel",
    help="Run the graph kernel, which signs the slices of conversations, and manage its keys and tokens.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Graph = Annotated[
    str, typer.Option(envvar="MEVE_KERNEL", help="The graph: a file, or postgresql://user@host/database.")
]
KeyFile = Annotated[Path, typer.Option("--keys", help="The key file.", metavar="FILE")]
KeyId = Annotated[str, typer.Argument(help="The key's id, such as 2026-11.", metavar="ID")]
Name = Annotated[str, typer.Argument(help="A name for the token.", metavar="NAME")]


def serve(
    graph: Graph,
    keys: Annotated[
        Path | None, typer.Option(help="The key file; MEVE_KERNEL_KEYS may hold its content instead.", metavar="FILE")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on; only this machine by default.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any that is free.")] = 8321,
    rate: Annotated[int, typer.Option(min=1, help="Requests per second and tenant in the long run.")] = 200,
    burst: Annotated[int, typer.Option(min=1, help="Requests per tenant at once.")] = 400,
    token_seconds: Annotated[int, typer.Option(min=1, help="The lifetime of a signed slice.")] = 60,
) -> None:
    """Serve the graph kernel until it is stopped."""
    from meve.service.kernel.server import NEEDS

    require("meve kernel serve", NEEDS)
    from meve.service._web.running import is_loopback
    from meve.service.kernel.kernel import GraphKernel
    from meve.service.kernel.limits import KernelLimits
    from meve.service.kernel.server import run_server
    from meve.signing_keys import SigningKeys

    signing = SigningKeys.load(keys)
    limits = KernelLimits(requests_per_second=rate, burst=burst, token_seconds=token_seconds)
    if not is_loopback(host):
        print_message(
            "warning", f"{host} is open to other machines: put TLS in front, since bearer tokens are sent plain"
        )
    run_server(
        GraphKernel.open(graph, signing, limits), host, port,
        lambda url: write_output(f"listening on {url}, signing with key {signing.current}\n"),
        lambda: SigningKeys.load(keys),
    )  # fmt: skip


def new_key(
    id: KeyId,
    keys: KeyFile,
    algorithm: Annotated[str, typer.Option(help="ed25519 or hmac-sha256.")] = "ed25519",
) -> None:
    """Add a new key to a key file, which is created if it is missing. The first key signs; others wait for use-key."""
    from meve.signing_keys import SigningKey, SigningKeys

    key = SigningKey.generate(id, algorithm)  # type: ignore[arg-type]  # checked there
    if keys.exists():
        _save(SigningKeys.load(keys).add(key), keys)
        print_line(f"added key {id}; it signs after `meve kernel use-key {id}`")
    else:
        _save(SigningKeys(current=id, keys=(key,)), keys)
        print_line(f"created {keys} with key {id}, which signs")


def use_key(id: KeyId, keys: KeyFile) -> None:
    """Let another key sign, from the kernel's next start or SIGHUP on."""
    from meve.signing_keys import SigningKeys

    _save(SigningKeys.load(keys).use(id), keys)
    print_line(f"key {id} signs once the kernel is started anew or gets SIGHUP")


def remove_key(id: KeyId, keys: KeyFile) -> None:
    """Remove a key that doesn't sign any more."""
    from meve.signing_keys import SigningKeys

    _save(SigningKeys.load(keys).remove(id), keys)
    print_line(f"removed key {id}; remove it from the verifiers too")


def public_keys(
    keys: KeyFile,
    shared: Annotated[
        bool, typer.Option(help="Include secrets of hmac-sha256; whoever has them can sign slices.")
    ] = False,
) -> None:
    """Print the keys that verifiers need, as JSON."""
    from meve.signing_keys import SigningKeys

    write_output(SigningKeys.load(keys).to_public_json(shared=shared))


def grant(
    name: Name,
    tenant: Annotated[str, typer.Option(help="The tenant's name.")],
    graph: Graph,
    may_add: Annotated[bool, typer.Option(help="Permit adding turns and forgetting conversations.")] = False,
) -> None:
    """Print a new bearer token for a tenant. Only its hash is stored, so it can't be printed again."""
    with closing(_open_store(graph, create=True)) as store:
        write_output(f"{store.grant(name, tenant, may_add=may_add)}\n")


def revoke(name: Name, graph: Graph) -> None:
    """Remove a bearer token at once."""
    with closing(_open_store(graph)) as store:
        store.revoke(name)
    print_line(f"revoked {name}")


def grants(graph: Graph) -> None:
    """List the bearer tokens by name, without the tokens."""
    with closing(_open_store(graph)) as store:
        for each in store.grants():
            print_line(f"{each.name}  {each.tenant}  {'slices and turns' if each.may_add else 'slices'}")


def _open_store(graph: str, *, create: bool = False) -> "GraphStore":
    from meve._postgres import is_postgres_url
    from meve.service.kernel._graphs import open_graph
    from meve.service.kernel._store import GraphStore

    if not create and not is_postgres_url(graph) and not Path(graph).exists():
        raise ConfigurationError(f"there is no file {graph}")
    return GraphStore(open_graph(graph))


def _save(signing: "SigningKeys", path: Path) -> None:
    from meve._private_files import replace_private

    replace_private(path, signing.to_json())


for _command, _name in (
    (serve, "serve"), (new_key, "new-key"), (use_key, "use-key"), (remove_key, "remove-key"),
    (public_keys, "public-keys"), (grant, "grant"), (revoke, "revoke"), (grants, "grants"),
):  # fmt: skip
    kernel_app.command(_name)(handle_errors(_command))
