"""The parameters of deep clusterers, each written once: as an annotation with its sentence."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import Field, field
from typing import Any, NamedTuple, TypeVar, dataclass_transform

from wellsep._checks.arrays import check_count, check_number
from wellsep._checks.values import check_items

_T = TypeVar("_T", bound=type)
_KEYWORD: Any = inspect.Parameter.KEYWORD_ONLY
_POSITIONAL: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
_HEADING = re.compile(r"^(\w+)\n-{3,}\n", re.MULTILINE)
_INHERITED = ("Parameters", "Attributes")  # sections that take over the entries of base classes


class _Declared(NamedTuple):
    """What one class adds to its bases."""

    parameters: dict[str, inspect.Parameter]
    entries: dict[str, dict[str, str]]  # section → name → entry as numpydoc has it


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def with_parameters(cls: _T) -> _T:
    """Write the constructor and the docstring of an estimator from its class body.

    An annotation with a value is a parameter and its default. The docstring's section
    "Parameters" has an entry for each. Those of decorated bases are inherited with their entries;
    a class may have its own default or its own entry for one. `__init__` takes all of them as
    keywords, the class's own first, and the docstring lists them in that order. What is made by
    ``field(default=..., kw_only=False)`` is also taken by position; ``field(init=False)`` is no
    parameter, it gives an attribute that `fit` sets its type.

    Type checkers read the same annotations, as they do for dataclasses: no stub is needed.

    Parameters
    ----------
    cls : type
        The class, changed in place.

    Returns
    -------
    type

    Examples
    --------
    >>> @with_parameters
    ... class Base:
    ...     '''Base.
    ...
    ...     Parameters
    ...     ----------
    ...     epochs : int
    ...         Rounds.
    ...     '''
    ...
    ...     epochs: int = 5
    >>> @with_parameters
    ... class Method(Base):
    ...     '''Method.
    ...
    ...     Parameters
    ...     ----------
    ...     margin : float
    ...         Width.
    ...     '''
    ...
    ...     margin: float = 0.1
    >>> vars(Method(epochs=3))
    {'margin': 0.1, 'epochs': 3}
    >>> print(Method.__doc__)
    Method.
    <BLANKLINE>
    Parameters
    ----------
    margin : float
        Width.
    epochs : int
        Rounds.
    """
    sections = _sections(cls.__doc__ or "")
    entries = {title: _entries(sections.pop(title, "")) for title in _INHERITED}
    made: Any = cls
    made._declared = _Declared(_taken_parameters(cls), entries)
    declared = [vars(base)["_declared"] for base in cls.__mro__ if "_declared" in vars(base)]
    found: dict[str, inspect.Parameter] = {}
    for own in declared:  # from the class up, so that its own come first
        found |= {name: p for name, p in own.parameters.items() if name not in found}
    parameters = sorted(found.values(), key=lambda parameter: parameter.kind)
    made.__init__ = _constructor(cls, parameters)
    if cls.__doc__ is not None:  # python -OO has none
        made.__doc__ = _docstring(cls, [p.name for p in parameters], declared, sections)
    return cls


def _taken_parameters(cls: type) -> dict[str, inspect.Parameter]:
    """The class's own parameters; their defaults leave the class for the signature."""
    taken = {}
    for name, annotation in inspect.get_annotations(cls).items():
        if name not in vars(cls) or str(annotation).startswith("ClassVar"):
            continue
        default, kind = vars(cls)[name], _KEYWORD
        delattr(cls, name)
        if isinstance(default, Field):
            if not default.init:  # an attribute that fit sets
                continue
            default, kind = default.default, _POSITIONAL
        taken[name] = inspect.Parameter(name, kind, default=default, annotation=annotation)
    return taken


def _constructor(cls: type, parameters: list[inspect.Parameter]) -> Callable[..., None]:
    myself = inspect.Parameter("self", _POSITIONAL)
    signature = inspect.Signature([myself, *parameters])

    def __init__(self: Any, *args: Any, **options: Any) -> None:
        try:
            bound = signature.bind(self, *args, **options)
        except TypeError as error:
            raise TypeError(f"{cls.__name__}() {error}") from None
        bound.apply_defaults()
        for parameter in parameters:
            setattr(self, parameter.name, bound.arguments[parameter.name])

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    __init__.__module__ = cls.__module__
    return __init__


def _sections(doc: str) -> dict[str, str]:
    """A numpydoc docstring by section; what precedes the first has the title ""."""
    start, *rest = _HEADING.split(inspect.cleandoc(doc))
    sections = {title: body.strip() for title, body in zip(rest[::2], rest[1::2], strict=True)}
    return {"": start.strip(), **sections}


def _entries(section: str) -> dict[str, str]:
    """The entries of a section by name; an entry begins where a line is not indented."""
    return {entry.split(" : ")[0]: entry for entry in re.split(r"\n(?=\S)", section) if entry}


def _docstring(
    cls: type, names: list[str], declared: list[_Declared], others: dict[str, str]
) -> str:
    entries: dict[str, dict[str, str]] = {title: {} for title in _INHERITED}
    for own in reversed(declared):  # from the top down, so that shared attributes come first
        for title in _INHERITED:
            entries[title] |= own.entries[title]
    if wrong := set(names) ^ entries["Parameters"].keys():
        raise TypeError(
            f"The docstring of {cls.__name__} must have one entry for each parameter, got an "
            f"entry alone or a parameter alone for {', '.join(sorted(wrong))}."
        )
    entries["Parameters"] = {name: entries["Parameters"][name] for name in names}
    inherited = {title: "\n".join(found.values()) for title, found in entries.items()}
    start = others.pop("")
    sections = (inherited | others).items()
    parts = [f"{title}\n{'-' * len(title)}\n{body}" for title, body in sections if body]
    return "\n\n".join([start, *parts])


@with_parameters
class Training:
    """What all deep clusterers share: parameters, and attributes of a fitted one.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    network : str
        Network to train; "auto" chooses by the shape of the objects.
    epochs : int, optional
        Greatest number of epochs.
    learning_rate : float, optional
        Learning rate.
    batch_size : int, optional
        Objects per step.
    preset : {"auto", "paper", "small"}
        Values of the parameters that are None: the paper's, or reduced ones for a CPU. "auto"
        takes the paper's on CUDA.
    device : str
        "auto", "cpu", "cuda" or "cuda:N".
    random_state : int, RandomState or None
        The same number gives the same result on the same device with as many threads.
    checkpoint_dir : path, optional
        Folder to keep the training in; fitting again goes on where it was interrupted.
    checkpoint_every : int, optional
        Epochs between checkpoints that are also written as runs under `checkpoint_dir`/runs.
    resume : bool
        Whether to go on with what lies in `checkpoint_dir`.
    deterministic : bool
        Whether to train on one thread, so that the result on a CPU does not depend on the number
        of threads. It takes longer.

    Attributes
    ----------
    labels_ : array of shape (n,)
        Clusters of the training data.
    embedding_ : array of shape (n, features)
        Embedding of the training data.
    cluster_centers_ : array of shape (n_clusters, features)
        Centres in the embedding.
    history_ : list of dict
        Stage, epoch and loss of every epoch.
    n_iter_ : int
        Epochs run.
    """

    n_clusters: int = field(default=8, kw_only=False)
    network: str = "auto"
    epochs: int | None = None
    learning_rate: float | None = None
    batch_size: int | None = None
    preset: str = "auto"
    device: str = "auto"
    random_state: Any = None
    checkpoint_dir: Any = None
    checkpoint_every: int | None = None
    resume: bool = True
    deterministic: bool = False


def check_training(settings: dict[str, Any]) -> None:
    """Refuse sizes, epochs and rates that no training can use."""
    check_count("batch_size", settings["batch_size"], 2)
    for key, value in settings.items():
        if key.endswith("epochs"):
            check_count(key, value, 0)
        elif key.endswith("learning_rate"):
            check_number(key, value, 0.0, open_left=True)
        elif key in ("n_features", "n_latent", "n_components", "width"):
            check_count(key, value)
        elif key == "hidden":
            for size in check_items("hidden", value, "integers"):
                check_count("hidden", size)
