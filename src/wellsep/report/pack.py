"""What a page is made of, and how it is packed: base64 arrays, JSON that cannot end its script."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

from wellsep._files.arrays import to_json
from wellsep._text.sentences import count

LEVELS = 4095  # 12 bits a coordinate: finer than any screen shows it
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # they turn text round
_ESCAPES = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
    **{character: f"\\u{ord(character):04x}" for character in BIDI},
}
NOT_SENT = {"page": False}  # metadata of a field that the script knows from elsewhere


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table."""

    key: str
    label: str  # the heading
    kind: str  # "name", "text", "int", "float", "share" or "interval"
    values: tuple[Any, ...]  # None where there is none; an interval is a pair
    help: str = field(default="", metadata=NOT_SENT)  # a sentence
    direction: int = 0  # 1 larger is better, -1 smaller is better, 0 neither


@dataclass(frozen=True, eq=False)
class RankingTable:
    """The ranking, best first."""

    rows: np.ndarray  # the partition (or K, or cluster) each row is about
    columns: tuple[Column, ...]
    # Params that all runs share.
    same: Mapping[str, Any] = field(default_factory=dict, metadata=NOT_SENT)
    classes: np.ndarray | None = None  # which distinct clustering each row is


@dataclass(frozen=True, eq=False)
class Section:
    """A part of the page."""

    name: str  # which form of the template writes it
    data: Mapping[str, Any] = field(default_factory=dict)  # what the script draws
    shown: Any = None  # what the template writes besides
    absent: str = ""  # the sentence that says why there is nothing to show


@dataclass(frozen=True, eq=False)
class Page:
    """A page before it is written."""

    kind: str  # "ranking", "choice of k", "stability", "clusters" or "resolutions"
    title: str
    lead: tuple[tuple[str, str], ...]  # the answer as pieces ("name" or "text", words)
    sure: tuple[str, ...]  # sentences on how certain it is
    facts: tuple[tuple[str, str], ...]  # (number, words)
    table: RankingTable
    paragraphs: tuple[str, ...]  # the explanation
    sections: tuple[Section, ...]  # what follows, in the order in which it is read
    about: Mapping[str, Any] = field(default_factory=dict)  # what else the script needs
    chip: str = ""  # the kind of verdict, in two or three words
    picks: tuple[tuple[str, tuple[str, ...]], ...] = ()  # (clustering, judges that place it first)
    provenance: tuple[tuple[str, str], ...] = ()  # (word, text): how to make the page again

    @property
    def data(self) -> dict[str, Any]:
        """What the script draws."""
        found = {**self.about, "table": to_payload(self.table)}
        found["explanation"] = list(self.paragraphs)
        for section in self.sections:
            found |= section.data
        return found


def fact(number: int, noun: str, plural: str | None = None) -> tuple[str, str]:
    """A number and its noun, as the head of a page shows them.

    Examples
    --------
    >>> fact(1, "run"), fact(2000, "object")
    (('1', 'run'), ('2,000', 'objects'))
    """
    shown, _, words = count(number, noun, plural).partition(" ")
    return shown, words


def pack(array: Any, dtype: str) -> dict[str, str]:
    """An array as little-endian base64; the page reads "f4", "u1", "u2", "i4".

    Examples
    --------
    >>> pack([1, 2, 255], "u1")
    {'$': 'u1', 'b': 'AQL/'}
    """
    data = np.ascontiguousarray(array).astype("<" + dtype)
    return {"$": dtype, "b": base64.b64encode(data.tobytes()).decode("ascii")}


def pack_codes(codes: Any, k: int) -> dict[str, str]:
    """Numbers of ``k`` clusters in one byte each, or two; the largest number is noise."""
    none, dtype = (65535, "u2") if k > 254 else (255, "u1")
    return pack(np.where(np.asarray(codes) < 0, none, codes), dtype)


def pack_bits(flags: Any) -> dict[str, Any]:
    """Booleans, eight to a byte, the first in the highest bit."""
    flags = np.asarray(flags, dtype=bool).reshape(-1)
    text = base64.b64encode(np.packbits(flags).tobytes()).decode("ascii")
    return {"$": "bits", "n": int(flags.size), "b": text}


def pack_plane(xy: np.ndarray) -> dict[str, Any]:
    """Points on a grid of 4096 × 4096 in three bytes each, with the way back to coordinates.

    Both axes have the same scale, so that circles stay circles.

    Examples
    --------
    >>> import numpy as np
    >>> packed = pack_plane(np.array([[0.0, 0.0], [4095.0, 10.0]]))
    >>> packed["x"], packed["y"], packed["s"], base64.b64decode(packed["b"])[3:]
    (0.0, 0.0, 1.0, b'\\xff\\xf0\\n')
    """
    xy = np.asarray(xy, dtype=float)
    low = xy.min(axis=0) if len(xy) else np.zeros(2)
    high = xy.max(axis=0) if len(xy) else np.zeros(2)
    scale = max(float((high - low).max()) / LEVELS, 1e-300)
    q = np.clip(np.rint((xy - low) / scale), 0, LEVELS).astype(np.uint16)
    x, y = q[:, 0], q[:, 1]
    three = np.column_stack([x >> 4, (x & 15) << 4 | y >> 8, y & 255]).astype(np.uint8)
    return {
        "$": "plane",
        "b": base64.b64encode(three.tobytes()).decode("ascii"),
        "x": float(low[0]),
        "y": float(low[1]),
        "s": scale,
        "w": int(q[:, 0].max(initial=0)),
        "h": int(q[:, 1].max(initial=0)),
    }


def to_payload(figure: Any) -> dict[str, Any]:
    """A figure as the page's script reads it: its fields by name, those in it as well.

    Fields whose metadata are ``NOT_SENT`` are left out.

    Examples
    --------
    >>> from dataclasses import dataclass, field
    >>> @dataclass
    ... class Dots:
    ...     x: list
    ...     names: list = field(metadata=NOT_SENT)
    >>> to_payload(Dots([1, 2], ["a", "b"]))
    {'x': [1, 2]}
    """

    def plain(value: Any) -> Any:
        if is_dataclass(value) and not isinstance(value, type):
            return to_payload(value)
        return [plain(one) for one in value] if isinstance(value, list | tuple) else value

    sent = (f.name for f in fields(figure) if f.metadata.get("page", True))
    return {name: plain(getattr(figure, name)) for name in sent}


def upper(matrix: np.ndarray) -> np.ndarray:
    """The entries above the diagonal, row by row."""
    return np.asarray(matrix)[np.triu_indices(len(matrix), 1)]


def safe_json(value: Any) -> str:
    """JSON for the inside of a script element: no character of it can end the element.

    Examples
    --------
    >>> safe_json({"name": "</script>", "score": float("nan")})
    '{"name":"\\\\u003c/script\\\\u003e","score":null}'
    """
    plain = to_json(value, nan="null", other=str, digits=7)
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return text
