"""A range in tiles, of which the last one may be smaller."""
from dataclasses import dataclass

import nki.language as nl

from .kernel_helpers import div_ceil


@dataclass
class Tile(nl.NKIObject):
    index: int = 0
    start: int = 0
    size: int = 0

    @property
    def end(self):
        return self.start + self.size

    def ds(self):
        return nl.ds(self.start, self.size)


def TiledRange(size, tile_size):
    """The tiles of range(size), or of another Tile."""
    first, n = (size.start, size.size) if isinstance(size, Tile) else (0, size)
    tiles = ()
    for i in range(div_ceil(n, tile_size)):
        tiles = tiles + (Tile(index=i, start=first + i * tile_size, size=min(tile_size, n - i * tile_size)),)
    return tiles
