"""Objects one by one: what they look like, how well they fit their cluster, which to check."""

from __future__ import annotations

import base64
import os
import struct
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wellsep.evaluate import PartitionDetails
from wellsep.report.pack import Section, pack
from wellsep.report.sections.scatter import (
    LONGEST_TEXT,
    MOST_KINDS,
    object_names,
    object_values,
    thinned,
)

N_WORST = 12
PROFILE = 120  # points of a silhouette profile
STRIP = 2400  # marks of a strip plot, over all clusters
# Values that are drawn as strips: their title, and 1 where large ones are bad, -1 where small ones.
STRIPS = {"margin": ("margin", -1), "lcd": ("local connectivity disagreement", 1)}
LARGEST = 32  # pixels of a side of an image
SHOWN = 26  # of a side on the page
N_TEXTS = 3  # objects of a group that are shown by their texts
N_NAMES = 5  # by their names
ACROSS = 40  # tiles in a row of the sheet
MOST_BYTES = 1_400_000  # of the sheet; base64 makes a third more of it
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")


class Members:
    """Names, texts and images of the objects; collects which images the page needs."""

    def __init__(self, ids: Any, columns: Mapping[str, np.ndarray]) -> None:
        self.ids = ids
        self.images = next((v for v in columns.values() if is_images(v)), None)
        texts = (v for v in columns.values() if v.ndim == 1 and is_text(v))
        self.texts = next(texts, None)
        self.tiles: dict[int, int] = {}  # object -> its place on the sheet
        self.pictured = self.images is not None or self.texts is not None

    def of(self, positions: Sequence[int] | np.ndarray) -> list[dict[str, Any]]:
        """How some objects are shown: few, where that is by their texts."""
        objects = np.asarray(positions, dtype=np.intp)
        if self.texts is not None and self.images is None and len(objects) > 1:
            objects = objects[:N_TEXTS]
        if not self.pictured:
            objects = objects[:N_NAMES]
        names = objects.tolist() if self.ids is None else object_names(self.ids, objects)
        shown = []
        for position, name in zip(objects.tolist(), names, strict=True):
            text = "" if self.texts is None else str(self.texts[position])[:LONGEST_TEXT]
            at = None
            if self.images is not None:
                tile = self.tiles.setdefault(position, len(self.tiles))
                x, y = -(tile % ACROSS) * SHOWN, -(tile // ACROSS) * SHOWN
                at = f"background-position:{x}px {y}px"
            shown.append({"position": position, "name": name, "text": text, "at": at})
        return shown

    def sheet(self, more: np.ndarray) -> dict[str, Any] | None:
        """The images as one PNG, also those of ``more`` objects as far as they fit."""
        if self.images is None:
            return None
        tiles = np.stack([_tile(self.images[i]) for i in self.tiles] or [_tile(self.images[0])])
        room = int(MOST_BYTES / max(len(_png(_sheet(tiles))) / len(tiles), 1)) - len(tiles)
        extra = [int(i) for i in more if int(i) not in self.tiles][: max(room, 0)]
        for i in extra:
            self.tiles[i] = len(self.tiles)
        if extra:
            tiles = np.concatenate([tiles, np.stack([_tile(self.images[i]) for i in extra])])
        encoded = base64.b64encode(_png(_sheet(tiles))).decode("ascii")
        return {"png": encoded, "across": ACROSS, "size": SHOWN, "tiles": list(self.tiles)}


def known_columns(objects: Any, n: int, ids: Any) -> dict[str, np.ndarray]:
    """Columns about the objects, by name, each of one value per object; images too."""
    if isinstance(objects, str | os.PathLike) and Path(objects).is_dir():
        return {"image": images_of_folder(Path(objects), ids, n)}
    if isinstance(objects, np.ndarray) and is_images(objects):
        objects = {"image": objects}
    if not hasattr(objects, "keys") or not hasattr(objects, "__getitem__"):
        raise TypeError(
            "objects must be a frame or a mapping of names to columns, an array of images or a "
            f"folder of them, got {type(objects).__name__}."
        )
    columns = {str(name): np.asarray(objects[name]) for name in objects}
    for name, values in columns.items():
        if not is_images(values):
            columns[name] = values = values.reshape(-1)
        if len(values) != n:
            raise ValueError(
                f"objects[{name!r}] must have one value per object ({n}), got {len(values)}."
            )
        if values.ndim == 1 and n and all(str(v).lower().endswith(PICTURES) for v in values):
            columns[name] = read_images(values)
    return columns


def is_images(values: np.ndarray) -> bool:
    """Whether a column holds an image per object: (n, h, w) or (n, h, w, channels)."""
    return values.ndim == 3 or (values.ndim == 4 and values.shape[3] in (3, 4))


def is_text(values: np.ndarray) -> bool:
    """Whether a column holds texts of its own for most objects."""
    return values.dtype.kind in "UO" and len({str(value) for value in values}) > MOST_KINDS


def read_images(paths: Iterable[Any]) -> np.ndarray:
    """(n, h, w, 3) small images from files."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(
            "images in files need the package pillow; install it, or give an array of images."
        ) from None
    tiles = []
    for path in paths:
        with Image.open(path) as image:
            image.thumbnail((LARGEST, LARGEST))
            square = Image.new("RGB", (LARGEST, LARGEST), "white")
            square.paste(image.convert("RGB"), ((LARGEST - image.width) // 2, 0))
            tiles.append(np.asarray(square))
    return np.stack(tiles)


def images_of_folder(folder: Path, ids: Any, n: int) -> np.ndarray:
    """The images of a folder: files named after the objects' ids, else in the order of names."""
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in PICTURES)
    named = {path.stem: path for path in files}
    if ids is not None and all(str(one) in named for one in ids):
        files = [named[str(one)] for one in ids]
    if len(files) != n:
        raise ValueError(
            f"objects must be a folder with one image per object ({n}), got {len(files)} in "
            f"{folder}."
        )
    return read_images(files)


def _tile(image: np.ndarray) -> np.ndarray:
    """An image of at most LARGEST pixels a side: every so many pixels, averaged."""
    image = np.asarray(image, dtype=float)[:, :, :3] if image.ndim == 3 else image.astype(float)
    step = -(-max(image.shape[:2]) // LARGEST)
    if step > 1:
        h, w = (side // step * step for side in image.shape[:2])
        blocks = image[:h, :w].reshape(h // step, step, w // step, step, *image.shape[2:])
        image = blocks.mean(axis=(1, 3))
    return image


def _sheet(tiles: np.ndarray) -> np.ndarray:
    """(rows · h, ACROSS · w[, 3]) all tiles side by side, from black to white.

    Their range is 0 to 255, 0 to 1, or from their least to their greatest.
    """
    low, high = float(np.nanmin(tiles)), float(np.nanmax(tiles))
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    elif low >= 0 and 128 < high <= 255:
        low, high = 0.0, 255.0
    scaled = (np.nan_to_num(tiles) - low) * (255 / max(high - low, 1e-12))
    rows = -(-len(tiles) // ACROSS)
    h, w, *rest = tiles.shape[1:]
    whole = np.full((rows * ACROSS, h, w, *rest), 255, dtype=np.uint8)
    whole[: len(tiles)] = np.clip(np.rint(scaled), 0, 255)
    grid = whole.reshape(rows, ACROSS, h, w, *rest).swapaxes(1, 2)
    return grid.reshape(rows * h, ACROSS * w, *rest)


def _png(pixels: np.ndarray) -> bytes:
    """8-bit grey or RGB pixels as PNG (ISO/IEC 15948)."""
    height, width = pixels.shape[:2]
    kind = 0 if pixels.ndim == 2 else 2
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    chunks = (
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@dataclass(frozen=True, eq=False)
class Silhouettes:
    """Silhouette widths of a partition, cluster by cluster, the greatest first."""

    clusters: tuple[str, ...]
    widths: tuple[np.ndarray, ...]
    objects: tuple[np.ndarray, ...]
    means: np.ndarray  # (K,)
    mean: float


@dataclass(frozen=True, eq=False)
class Strips:
    """One value per object, cluster by cluster, and the objects to check."""

    title: str
    clusters: tuple[str, ...]
    values: tuple[np.ndarray, ...]
    objects: tuple[np.ndarray, ...]
    worst: np.ndarray  # positions of objects, the worst first
    worse: int  # 1: large values are bad, -1: small ones


def silhouette_figure(
    codes: np.ndarray, clusters: tuple[str, ...], widths: np.ndarray
) -> Silhouettes:
    """Silhouette widths (n,) cluster by cluster, the greatest first.

    Examples
    --------
    >>> widths = np.array([0.71, 0.78, 0.78, 0.71])
    >>> found = silhouette_figure(np.array([0, 0, 1, 1]), ("a", "b"), widths)
    >>> found.widths[0].tolist(), found.objects[0].tolist()
    ([0.78, 0.71], [1, 0])
    """
    kept = _sorted_by_cluster(widths, codes, len(clusters))
    values = tuple(widths[objects] for objects in kept)
    return Silhouettes(
        clusters=clusters,
        widths=values,
        objects=kept,
        means=np.array([_mean(v) for v in values]),
        mean=_mean(np.concatenate(values)) if values else float("nan"),
    )


def strip_figure(
    kind: str, codes: np.ndarray, clusters: tuple[str, ...], values: np.ndarray
) -> Strips:
    """Margins or local connectivity disagreements (n,) cluster by cluster, and the worst."""
    title, worse = STRIPS[kind]
    kept = _sorted_by_cluster(values, codes, len(clusters))
    known = np.flatnonzero(np.isfinite(values) & (codes >= 0))
    worst = known[np.argsort(-worse * values[known], kind="stable")][:N_WORST]
    if worse > 0:
        worst = worst[values[worst] > 0]
    return Strips(title, clusters, tuple(values[objects] for objects in kept), kept, worst, worse)


def _sorted_by_cluster(values: np.ndarray, codes: np.ndarray, k: int) -> tuple[np.ndarray, ...]:
    """Objects of each cluster that have a value, the greatest first."""
    found = []
    for cluster in range(k):
        members = np.flatnonzero((codes == cluster) & np.isfinite(values))
        found.append(members[np.argsort(-values[members], kind="stable")])
    return tuple(found)


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def objects_section(details: PartitionDetails, drawn: np.ndarray, members: Members) -> Section:
    """Widths, margins and local connectivity of the objects, and those to check."""
    codes, clusters, values = details.codes, details.clusters, object_values(details)
    strips = {
        kind: strip_figure(kind, codes, clusters, values[kind]) for kind in STRIPS if kind in values
    }
    worst = worst_table(details, values, strips, members.ids)
    found: dict[str, Any] = {
        "partition": details.partition,
        "clusters": list(clusters),
        "sizes": details.sizes,
        "worst": worst,
    }
    if "width" in values:
        silhouettes = silhouette_figure(codes, clusters, values["width"])
        found["silhouettes"] = {
            "mean": silhouettes.mean,
            "means": silhouettes.means,
            "profiles": [pack(thinned(w, PROFILE), "f4") for w in silhouettes.widths],
        }
    found |= {kind: strip_payload(strip, drawn, members.ids) for kind, strip in strips.items()}
    shown = (
        [one for i in worst["position"] for one in members.of([i])] if members.pictured else None
    )
    told = {"space": details.space, "notes": details.notes, "members": shown}
    return Section("objects", {"objects": found}, found | told)


def worst_table(
    details: PartitionDetails,
    values: Mapping[str, np.ndarray],
    strips: Mapping[str, Strips],
    ids: Any,
) -> dict[str, list[Any]]:
    """The objects to check: borderline, isolated, or with the lowest widths."""
    why: defaultdict[int, list[str]] = defaultdict(list)
    for kind, strip in strips.items():
        for i in strip.worst.tolist():
            beyond = kind == "margin" and values[kind][i] < 0
            borderline = "on the wrong side" if beyond else "borderline"
            why[i].append(borderline if kind == "margin" else "isolated")
    widths = values.get("width", np.empty(0))
    low = np.flatnonzero(widths < 0)
    for i in low[np.argsort(widths[low], kind="stable")][:N_WORST].tolist():
        why[i].append("nearer to another cluster")
    rows = sorted(why, key=lambda i: (-len(why[i]), i))
    table: dict[str, list[Any]] = {
        "object": object_names(ids, np.array(rows, dtype=np.intp)),
        "cluster": [details.clusters[details.codes[i]] for i in rows],
    }
    if (details.nearest >= 0).any():
        names = [*details.clusters, ""]  # the last: none
        table["rival"] = [names[details.nearest[i]] for i in rows]
    for name, own in values.items():
        table[name] = own[rows].tolist()
    table["why"] = [", ".join(why[i]) for i in rows]
    table["position"] = rows
    return table


def strip_payload(strips: Strips, drawn: np.ndarray, ids: Any) -> dict[str, Any]:
    """Some objects of every cluster: drawn ones, and all that are listed as worst."""
    per = max(12, STRIP // max(len(strips.clusters), 1))
    shown, quartiles = [], []
    for values, objects in zip(strips.values, strips.objects, strict=True):
        pick = thinned(np.flatnonzero(np.isin(objects, drawn)), per)
        pick = np.union1d(pick, np.flatnonzero(np.isin(objects, strips.worst)))
        shown.append({"values": pack(values[pick], "f4"), "objects": pack(objects[pick], "i4")})
        quartiles.append(np.quantile(values, [0.25, 0.5, 0.75]) if len(values) else [np.nan] * 3)
    return {
        "clusters": shown,
        "quartiles": quartiles,
        "worst": strips.worst,
        "worst_names": object_names(ids, strips.worst),
    }
