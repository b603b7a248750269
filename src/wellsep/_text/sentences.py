"""How results are shown: one palette, the compact tables of notebooks, numbers and names in text.

The first eight cluster colours stay apart for every common kind of colour vision, all twenty for
most, and they stand out from their background by a contrast of at least 3; a test holds them to
it. Every eight clusters there is another mark; beyond twenty, colours come again.
"""

from __future__ import annotations

import difflib
import importlib
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from operator import attrgetter
from typing import Any, ClassVar

# Blue, orange, green, magenta, violet, sky, brown and mauve are the first eight.
CLUSTERS = {
    "light": (
        *("#286099", "#cf741a", "#538064", "#992f63", "#502684", "#3f8fe0", "#70530b", "#a07ca3"),
        *("#e65a76", "#659a10", "#005100", "#751200", "#9c76ef", "#634863"),
        *("#125151", "#9048ab", "#b43f2d", "#0096a8", "#cf6cc6", "#99872d"),
    ),
    "dark": (
        *("#509dbe", "#f0a843", "#1acf9f", "#d0667a", "#8f74d8", "#a7edea", "#a89432", "#c9bdf6"),
        *("#d8fc75", "#248748", "#fc90ea", "#fcabab", "#b45a00", "#2475d8"),
        *("#ab48a2", "#90c648", "#abbd99", "#00d8fc", "#fce190", "#fc7e51"),
    ),
}
PER_MARK = 8  # clusters
MARKS = ("circle", "square", "triangle", "diamond", "cross")
# Rank agreement from −1 over 0 to 1.
DIVERGING = {
    "light": ("#a6480a", "#f3f1ec", "#1d4f86"),
    "dark": ("#e8984a", "#262a31", "#6fb4ea"),
}
# Page, panel, ink, quieter ink, hairline, accent, text on accent, noise.
SURFACES = {
    "light": {
        "page": "#faf9f6",
        "panel": "#ffffff",
        "ink": "#1c1e22",
        "quiet": "#5b5f68",
        "line": "#e2dfd8",
        "accent": "#1f5b8f",
        "on-accent": "#ffffff",
        "wash": "#eef3f8",
        "noise": "#8d8f94",
    },
    "dark": {
        "page": "#14161a",
        "panel": "#1b1e23",
        "ink": "#e9e7e2",
        "quiet": "#a4a8b0",
        "line": "#343840",
        "accent": "#7db9e8",
        "on-accent": "#10141a",
        "wash": "#202b36",
        "noise": "#7d818a",
    },
}

_CELL = "padding:.15em .7em;border:0;border-bottom:1px solid rgba(128,128,128,.25)"
LONG_CELL = 40  # a cell of more characters has several lines
_LONG = "min-width:16em;max-width:24em"
_HEAD = f"{_CELL};border-bottom:2px solid rgba(128,128,128,.6);font-weight:600"


def colour_of(code: int, theme: str = "light") -> str:
    """Colour of a cluster by its number; -1, noise, is grey."""
    if code < 0:
        return SURFACES[theme]["noise"]
    return CLUSTERS[theme][code % len(CLUSTERS[theme])]


def mark_of(code: int) -> str:
    """Mark of a cluster by its number: another one after every eight."""
    return MARKS[max(code, 0) // PER_MARK % len(MARKS)]


def html_box(
    title: str, lines: Iterable[str] = (), table: str = "", folded: Iterable[str] = ()
) -> str:
    """A box for a notebook: title, sentences, table, and sentences that are folded; no script."""
    story, why = (
        "".join(f"<p style='margin:.2em 0;max-width:46em'>{escape(s)}</p>" for s in some)
        for some in (lines, folded)
    )
    head = f"<strong>{escape(title)}</strong>"
    why = f"<details><summary>Why</summary>{why}</details>" if why else ""
    return (
        f"<div style='margin:.4em 0;line-height:1.45'>"
        f"<div style='border-left:3px solid {CLUSTERS['light'][0]};padding-left:.6em'>{head}</div>"
        f"{story}{table}{why}</div>"
    )


def html_table(columns: Mapping[str, Sequence[Any]], *, most: int = 20) -> str:
    """Named columns as a compact table; numbers to the right, the first row's names escaped."""
    head = "".join(
        f"<th style='{_HEAD};text-align:{_side(values)}'>{escape(str(name))}</th>"
        for name, values in columns.items()
    )
    n = max((len(values) for values in columns.values()), default=0)
    body = "".join(
        "<tr>"
        + "".join(
            f"<td style='{_CELL};{width};text-align:{_side(values)}'>{escape(text)}</td>"
            for values in columns.values()
            for text in [cell(values[i])]
            for width in [_LONG if len(text) > LONG_CELL else "white-space:nowrap"]
        )
        + "</tr>"
        for i in range(min(n, most))
    )
    more = f"<p style='opacity:.7;margin:.2em 0'>… and {n - most} more</p>" if n > most else ""
    style = "border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.4em 0;overflow:auto"
    return (
        f"<div style='{style}'><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>{more}</div>"
    )


def cell(value: Any, digits: int = 4) -> str:
    """A value as tables show it: four digits or whole, a dash for none, names with their values."""
    if hasattr(value, "item"):
        value = value.item()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        text = f"{value:.{digits}g}"
        return f"{value:,.0f}" if "e+0" in text else text
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={cell(one, digits)}" for key, one in value.items())
    return str(value)


def _side(values: Sequence[Any]) -> str:
    seen = [v.item() if hasattr(v, "item") else v for v in values]
    numeric = all(v is None or isinstance(v, int | float) for v in seen)
    return "right" if numeric else "left"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: 1 space, 2,000 objects."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listing(items: Iterable[str], most: int = 8) -> str:
    """Items in a row for a sentence, cut after a few: a, b and 1 more."""
    items = list(items)
    if len(items) > most:
        return ", ".join(items[:most]) + f" and {len(items) - most} more"
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)


def quoted(names: Iterable[object], most: int = 8) -> str:
    """Names for an error, in quotation marks and safe to print, cut after a few."""
    names = list(names)
    first = ", ".join(shown(name) for name in names[:most]) or "none"
    return first if len(names) <= most else f"{first} and {len(names) - most} more"


def meant(value: object, names: Iterable[object]) -> str:
    """The end of an error: the name meant by its spelling or its words' first letters, if any."""
    if not isinstance(value, str) or not value or len(value) > 100:
        return "."
    by_spelling = {name.casefold(): name for name in names if isinstance(name, str)}
    by_letters = {
        "".join(word[:1] for word in re.split(r"[\W_]+", folded)): name
        for folded, name in by_spelling.items()
    }
    folded = value.casefold()
    near = difflib.get_close_matches(folded, by_spelling, n=1)
    found = by_spelling[near[0]] if near else by_letters.get(folded)
    return "." if found is None else f"; did you mean {shown(found)}?"


def shown(value: object, longest: int = 120) -> str:
    """A value for an error: its repr, cut and safe to print, or its type where that fails."""
    try:
        text = repr(value)
    except Exception:  # any object may raise anything here
        text = f"<{type(value).__name__} without a repr>"
    return printable(" ".join(text.split()), longest)


def printable(name: str, longest: int | None = None) -> str:
    """A name as one line of a terminal: nothing in it moves the cursor or turns text."""
    name = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
    return name if longest is None or len(name) <= longest else name[: longest - 1] + "…"


def shortened(name: str, longest: int) -> str:
    """A long name with its middle left out: runs of a sweep differ at the end."""
    if len(name) <= longest:
        return name
    end = (longest - 1) // 2
    return name[: longest - 1 - end] + "…" + name[len(name) - end :]


def printable_lines(text: str) -> str:
    """A text of several lines as a terminal may show it."""
    return "\n".join(printable(line) for line in text.split("\n"))


class Shown:
    """Base of result dataclasses: a repr of at most ten lines, and a table for notebooks."""

    _facts: ClassVar[tuple[str, ...]] = ()  # attributes that a repr shows; all fields if empty

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # dataclass writes a repr of its own only where the class has none.
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        facts = facts_of(self)
        lines = [f"{name}={text}" for name, text in facts.items()]
        one = f"{type(self).__name__}({', '.join(lines)})"
        if len(one) <= LONGEST:
            return one
        if len(lines) > MOST_FACTS:
            rest = f"… and {len(lines) - MOST_FACTS} more"
            lines = [*lines[:MOST_FACTS], rest]
        inner = ",\n  ".join(_cut(line, LONGEST - 4) for line in lines)
        return f"{type(self).__name__}(\n  {inner})"

    def _repr_html_(self) -> str:
        facts = facts_of(self)
        table = {"field": list(facts), "value": list(facts.values())}
        return html_box(type(self).__name__, table=html_table(table))


class Views(Shown):
    """Base of results that have a table and sentences; every other view follows from these two.

    A subclass writes `columns` and `sentences`, and another method only where it differs.
    """

    row_names: ClassVar[str] = ""  # column that names the rows of a frame

    def __init_subclass__(cls, row_names: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.row_names = row_names or cls.row_names

    def columns(self) -> dict[str, list[Any]]:
        """Return the table as named columns of plain values; by default a row of the fields."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return {name: [v] for name, v in values.items() if isinstance(v, bool | int | float | str)}

    def sentences(self) -> Iterator[str]:
        """Say what was found, a sentence or a paragraph at a time; by default nothing."""
        return iter(())

    def explain(self) -> str:
        """Say in plain sentences what was found."""
        return "\n".join(self.sentences())

    def to_rows(self) -> list[dict[str, Any]]:
        """Return the table as one mapping per row."""
        return rows_of(self.columns())

    def to_dict(self) -> dict[str, Any]:
        """Return all findings as nested data for JSON, as ``--json`` prints them."""
        return {"table": self.to_rows(), "explanation": list(self.sentences())}

    def to_frame(self) -> Any:
        """Return the table as a pandas DataFrame."""
        frame = need_pandas().DataFrame(self.columns())
        return frame.set_index(self.row_names) if self.row_names else frame

    def __str__(self) -> str:
        return "\n".join(self._printed()) or repr(self)

    def _printed(self) -> tuple[str, ...]:
        """The sentences that print shows; by default all."""
        return tuple(self.sentences())

    @property
    def heading(self) -> str:
        """What stands above the table in a notebook."""
        return re.sub("(?<=[a-z])(?=[A-Z])", " ", type(self).__name__).capitalize()

    def _tables(self) -> tuple[Mapping[str, Any], ...]:
        """The tables that a notebook shows."""
        return (self.columns(),)

    def _picture(self) -> str:
        """HTML that a notebook shows above the tables."""
        return ""

    def _repr_html_(self) -> str:
        first = self._printed()
        others = [sentence for sentence in self.sentences() if sentence not in first]
        tables = "".join(map(html_table, self._tables()))
        return html_box(self.heading, first, self._picture() + tables, others)


def rows_of(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Turn named columns into one mapping per row."""
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def need(module: str, what: str, install: str = "") -> Any:
    """Import an optional package, or say what needs it and how it is installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        missing = (error.name or package).partition(".")[0]  # or one that the package itself needs
        raise ModuleNotFoundError(
            f"{what} needs the package {missing}, which is not installed. "
            f"Install it with: pip install {install or package}.",
            name=missing,
        ) from None


def need_pandas(instead: str = "to_dict()") -> Any:
    """Import pandas; where it is missing, say what has the same numbers."""
    try:
        import pandas
    except ImportError:
        raise ImportError(
            f"to_frame needs pandas: pip install pandas; {instead} has the same numbers."
        ) from None
    return pandas


LONGEST = 100  # characters of a line
MOST_FACTS = 8  # lines between the name of a result and the count of what is left out


def facts_of(result: Any) -> dict[str, str]:
    """Each fact of a result, by default each field, that holds something, in a few words."""
    names = result._facts or [field.name for field in fields(result) if field.repr]
    values = {name: attrgetter(name)(result) for name in names}
    return {
        name: in_short(value)
        for name, value in values.items()
        if value is not None and not (isinstance(value, str | tuple | Mapping) and not value)
    }


def in_short(value: Any) -> str:
    """A value in a few words: numbers and names as they are, of arrays and lists the size."""
    if hasattr(value, "shape") and hasattr(value, "dtype") and value.shape:
        if len(value.shape) == 1 and len(value) <= 4 and value.dtype.kind in "biuf":
            return "[" + ", ".join(cell(v) for v in value) + "]"
        return f"array {tuple(value.shape)} of {value.dtype}"
    if isinstance(value, bool | int) or value is None:
        return repr(value)
    if isinstance(value, str):
        return _cut(repr(value), 60)
    if is_dataclass(value):
        return f"{type(value).__name__}(…)"
    if isinstance(value, Collection):
        return _few(value)
    return cell(value) if hasattr(value, "__float__") else type(value).__name__


def _few(values: Collection[Any], most: int = 3) -> str:
    """The first of some values or keys, and how many there are."""
    first = ", ".join(_cut(in_short(v), 24) for v, _ in zip(values, range(most), strict=False))
    if isinstance(values, Mapping):
        first = f"{{{first}}}" if len(values) <= most else f"{{{first}, …}}"
        return f"{count(len(values), 'key')} {first}"
    return f"({first})" if len(values) <= most else f"{len(values):,} items ({first}, …)"


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
