"""What objects look like wherever one is named: an image, a text, or its name."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wellsep.report.sections.scatter import LONGEST_TEXT, MOST_KINDS, object_names

LARGEST = 32  # pixels of a side
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
        encoded = base64.b64encode(_png(_sheet(_in_bytes(tiles)))).decode("ascii")
        return {"png": encoded, "across": ACROSS, "size": SHOWN, "tiles": list(self.tiles)}


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
    image = np.asarray(image, dtype=float)[..., :3] if image.ndim == 3 else np.asarray(image, float)
    step = -(-max(image.shape[:2]) // LARGEST)
    if step > 1:
        h, w = (side // step * step for side in image.shape[:2])
        blocks = image[:h, :w].reshape(h // step, step, w // step, step, *image.shape[2:])
        image = blocks.mean(axis=(1, 3))
    return image


def _in_bytes(tiles: np.ndarray) -> np.ndarray:
    """The tiles from black to white: 0 to 255, 0 to 1, or from their least to their greatest."""
    low, high = float(np.nanmin(tiles)), float(np.nanmax(tiles))
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    elif low >= 0 and 128 < high <= 255:
        low, high = 0.0, 255.0
    scaled = (np.nan_to_num(tiles) - low) * (255 / max(high - low, 1e-12))
    return np.clip(np.rint(scaled), 0, 255).astype(np.uint8)


def _sheet(tiles: np.ndarray) -> np.ndarray:
    """(rows · h, ACROSS · w[, 3]) all tiles side by side."""
    tiles = tiles if tiles.dtype == np.uint8 else _in_bytes(tiles)
    rows = -(-len(tiles) // ACROSS)
    h, w, *rest = tiles.shape[1:]
    whole = np.full((rows * ACROSS, h, w, *rest), 255, dtype=np.uint8)
    whole[: len(tiles)] = tiles
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
