"""Load the public names of a package on first use."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from meve.errors import missing_extra


def lazy_exports(package: str, where: Mapping[str, str], *, needs: str, extra: str) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package that imports a name's module on first use.

    Args:
        package: the name of the package.
        where: the module of each public name.
        needs: the import name of the framework that the package is for.
        extra: MeVe's extra that installs the framework.

    Returns:
        A function that raises AttributeError for an unknown name, and MissingExtraError if the framework isn't
        installed.
    """

    def load(name: str) -> Any:  # noqa: ANN401
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {', '.join(sorted(where))}")
        try:
            return getattr(import_module(f"{package}.{where[name]}"), name)
        except ModuleNotFoundError as cause:
            if (cause.name or "").partition(".")[0] != needs.partition(".")[0]:
                raise
            raise missing_extra(needs, extra, name) from cause

    return load
