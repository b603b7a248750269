"""Printing of the commands: tables or JSON on stdout, progress and errors on stderr."""

from __future__ import annotations

import contextlib
import itertools
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from wellsep._text import sentences
from wellsep._text.sentences import printable, printable_lines, shortened

ALL_ROWS = "A pipe or a file gets every row."

# Columns of output that goes to a file or a pipe: enough that nothing is cut.
_WIDTH_OF_A_PIPE = 200
_SHORT = 12  # letters of a text that is always printed whole


def rows_shown() -> int | None:
    """How many rows of a long table are printed: 40 on a terminal, else all."""
    return 40 if sys.stdout.isatty() else None


def print_table(columns: Mapping[str, Sequence[Any]], title: str = "", caption: str = "") -> None:
    """Print named columns as they are; those of numbers are set to the right."""
    table = Table(title=cell(title) or None, caption=cell(caption) or None, box=box.SIMPLE_HEAD)
    table.title_justify = table.caption_justify = "left"
    room = console().width // 2
    for position, (name, values) in enumerate(columns.items()):
        widest = max((len(cell(value)) for value in values), default=0)
        whole = position < 2 and widest < room  # a name that is broken cannot be copied
        numeric = len(values) > 0 and all(isinstance(value, int | float) for value in values)
        table.add_column(
            cell(name), justify="right" if numeric else "left", overflow="fold", no_wrap=whole
        )
    for row in zip(*columns.values(), strict=True):
        table.add_row(*map(cell, row))
    console().print(table)


def that_fit(table: Mapping[str, Sequence[Any]], *, over: bool = False) -> dict[str, Sequence[Any]]:
    """Return the first columns that fit the width of the terminal, at least two.

    With ``over``, a column that is too wide is passed over, and narrower ones after it are kept.
    """
    room = console().width
    kept: dict[str, Sequence[Any]] = {}
    for name, values in table.items():
        width = 3 + max([len(name), *(len(cell(value)) for value in values)])
        if width > room and len(kept) > 1:
            if over:
                continue
            break
        room -= width
        kept[name] = values
    return kept


def print_columns(
    table: Mapping[str, Sequence[Any]],
    *,
    title: str = "",
    most: int | None = None,
    rest: str = "",
) -> None:
    """Print the columns that fit, and name the others below.

    Of more than `most` rows the first are printed, and `rest` says how to see the others. Texts in
    the first two columns that take more than half of the width lose their middle.
    """
    table = with_short_names(table)
    n = max((len(values) for values in table.values()), default=0)
    if most is not None and n > most:
        table = {name: values[:most] for name, values in table.items()}
    shown = that_fit(table, over=True)
    left = [name for name in table if name not in shown]
    said = [f"Not shown, the terminal is too narrow: {', '.join(left)}."] if left else []
    if most is not None and n > most:
        said.append(f"{most} of {n:,} rows. {rest}".strip())
    print_table(shown, title, " ".join(said))


def with_short_names(table: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """The table with texts of the first two columns in at most half of the width, or a third."""
    width = console().width
    found = dict(table)
    wide = [
        name
        for name in list(found)[:2]
        if any(isinstance(value, str) and len(value) > _SHORT for value in found[name])
    ]
    room = max(12, width // 2 - 6 if len(wide) < 2 else width // 3 - 6)
    for name in wide:
        found[name] = told_apart(found[name], room)
    return found


def told_apart(values: Sequence[Any], room: int) -> list[Any]:
    """Texts of at most so many letters; those that differ stay different where that can be.

    A long text loses its middle. If two texts would be the same then, all lose what they begin and
    end with alike instead.

    >>> told_apart(["a long name, seed=1, and more", "a long name, seed=2, and more"], 12)
    ['…1, and more', '…2, and more']
    """
    texts = [printable(value) if isinstance(value, str) else value for value in values]
    names = list(dict.fromkeys(text for text in texts if isinstance(text, str)))
    short = {name: shortened(name, room) for name in names}
    if len(set(short.values())) < len(names):
        start = _alike(names)
        end = _alike([name[start:][::-1] for name in names])
        for name in names:
            rest = name[start : len(name) - end]
            tail = name[len(name) - end :]
            left = max(0, room - len(rest) - 1)
            cut = f"…{rest}{tail}" if end <= left else f"…{rest}{tail[: max(0, left - 1)]}…"
            short[name] = shortened(cut, room)
    return [short[text] if isinstance(text, str) else text for text in texts]


def _alike(names: Sequence[str]) -> int:
    """How many letters all names begin with alike."""
    letters = zip(*names, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda one: len(set(one)) == 1, letters))


def print_in_parts(table: Mapping[str, Sequence[Any]]) -> None:
    """Print all columns; those that do not fit go into further tables, beside the first one."""
    (name, first), *rest = with_short_names(table).items()
    while rest:
        shown = that_fit({name: first, **dict(rest)})
        print_table(shown)
        rest = rest[len(shown) - 1 :]


def print_line(text: str = "") -> None:
    """Print one line as it is; [brackets] are no markup."""
    console().print(
        printable_lines(text), markup=False, highlight=False, soft_wrap=not sys.stdout.isatty()
    )


def print_error(text: str) -> None:
    """Print one line on stderr, wrapped between words in a terminal; no cursor is moved."""
    line = printable(" ".join(text.split()))
    if sys.stderr.isatty():
        width = max(20, console(stderr=True).width)
        line = textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
    sys.stderr.write(line + "\n")


def cell(value: Any) -> str:
    """Format a value for rich: three digits, a dash for none, no markup, no moves of the cursor."""
    return escape(printable(sentences.cell(value, 3)))


def console(*, stderr: bool = False) -> Any:
    """Make a console for the present sys.stdout or sys.stderr, so that tests can capture it."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDTH_OF_A_PIPE
    return Console(file=stream, width=width)


@contextlib.contextmanager
def told_when_interrupted(what_is_kept: Callable[[], str]) -> Iterator[None]:
    """When Ctrl-C ends the block, give `main` the sentences that say what was kept."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(what_is_kept()) from None


@contextlib.contextmanager
def progress_bar(name: Callable[[str], str] = str) -> Iterator[Callable[[int, int, str], None]]:
    """Yield ``told(done, total, what)``; it shows a bar on stderr if that is a terminal.

    ``name`` gives the words before the bar for ``what``.
    """
    if not sys.stderr.isatty():
        yield lambda done, total, what: None
        return
    with Progress(console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, visible=False)
        reached = 0

        def told(done: int, total: int, what: str) -> None:
            nonlocal reached
            if done < reached:  # something else has begun: its time left is its own
                bar.reset(task)
            reached = done
            words = escape(name(what))
            bar.update(task, completed=done, total=total, description=words, visible=True)

        yield told
