"""Entry points of other packages: indices, metrics and adapters that they bring.

A package declares an object under one of ``GROUPS``. It is looked at when a name is asked for that
wellsep does not know, or when all names are listed, and never when wellsep is imported.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Container
from importlib.metadata import entry_points
from typing import Any, NamedTuple

GROUPS = ("wellsep.indices", "wellsep.metrics", "wellsep.adapters")


class Plugin(NamedTuple):
    """One object of another package."""

    name: str
    package: str
    value: Any


@functools.cache
def read_plugins(group: str) -> dict[str, Plugin]:
    """Return the objects of a group by name; one that fails is left out with a warning."""
    found: dict[str, Plugin] = {}
    for entry in entry_points(group=group):
        package = entry.dist.name if entry.dist is not None else entry.module
        if entry.name in found:
            first = found[entry.name].package
            _left_out(group, entry.name, package, f"{first} has one of that name")
            continue
        try:
            found[entry.name] = Plugin(entry.name, package, entry.load())
        except (ImportError, AttributeError) as error:
            _left_out(group, entry.name, package, f"{type(error).__name__}: {error}")
    return found


def _left_out(group: str, name: str, package: str, why: str) -> None:
    warnings.warn(
        f"{name!r} ({group}) of the package {package} was left out: {why}. All other names work. "
        "Update or uninstall that package.",
        RuntimeWarning,
        stacklevel=2,
    )


def new_plugins(group: str, kind: type, known: Container[str]) -> list[Any]:
    """Objects of a group whose names are not known yet; each must bear the name of its entry."""
    found = []
    for name, plugin in read_plugins(group).items():
        if name in known:
            continue
        if not isinstance(plugin.value, kind) or plugin.value.name != name:  # type: ignore[attr-defined]
            rule = f"of the class {kind.__name__} and have the name {name!r}"
            raise refuse_plugin(group, plugin, rule, repr(plugin.value))
        found.append(plugin.value)
    return found


def refuse_plugin(group: str, plugin: Plugin, rule: str, got: str) -> TypeError:
    """The error for an object that is not what its group holds."""
    return TypeError(
        f"{plugin.name!r} ({group}) of the package {plugin.package} must be {rule}, got {got}; "
        "update or uninstall that package."
    )
