"""Rows of an array in HBM that numbers on chip select, in NKI beta 1:

    t = nl.load(h[idx[i_p, 0], i_f])

The index of the first axis is a tile with one integer in each partition; the others are index tiles.  nl.load, nl.store,
nl.atomic_rmw and nisa.dma_copy take such an access, which becomes .ap(vector_offset=…).
"""
import _nkx
from nkx.nki_beta1_index import Index
from nkx.nki_names import refuse
from nkx.nki_written import key_text, text


class Rows:
    """access: the Tensor whose first axis has the index 0 throughout; numbers: the tile of row numbers."""

    __array_ufunc__ = None

    def __init__(self, access, numbers, others):
        self.access, self.numbers, self.others = access, numbers, tuple(others)
        self.shape, self.ndim, self.size = access.shape, access.ndim, access.size
        self.dtype, self.buffer, self.memory, self.name = access.dtype, access.buffer, access.memory, access.name

    def nki_text(self):
        return f"{self.name}[{text(self.numbers)}, {key_text(self.others)}]"

    def view(self, box=None):
        """As Tensor.view."""
        numbers = self.numbers.view([box[0], (0, 1)] if box else None)
        whole, (part,) = self.access.view(box), self.memory.parts.values()
        pairs = whole.get_pattern()
        return part.ap([[0, pairs[0][1]], *pairs[1:]], offset=whole.offset, vector_offset=numbers)


def select(t, keys, tensor_type):
    """t[keys], where keys has one entry for each axis and a tile among them."""
    if t.memory.is_on_chip:
        refuse(_nkx.NkiUnsupported, f"{t.name} is on chip, where an index that is a tile selects nothing",
               "gather with nisa.local_gather, or select rows in HBM")
    if any(isinstance(k, tensor_type) for k in keys[1:]):
        refuse(_nkx.NkiBounds, "an index that is a tile selects rows of the first axis only", "reshape the array")
    numbers = keys[0]
    if not numbers.memory.is_on_chip or numbers.ndim != 2 or numbers.shape[1] != 1:
        refuse(_nkx.NkiBounds, f"the row numbers have the shape {numbers.shape} in {numbers.buffer}",
               "load them into SBUF, and give one in each partition: h[idx[i_p, 0], i_f]")
    others = keys[1:]
    if not any(isinstance(k, Index) for k in others):  # slices and integers
        others = [_tile(k, a, t) if isinstance(k, slice) else k for a, k in enumerate(others, 1)]
    return Rows(t[(Index(numbers.shape, 0, (0, 0)), *others)], numbers, others)


def _tile(k, axis, t):
    """A slice as an index tile with the rank of t."""
    start, stop, step = k.indices(t.shape[axis])
    n = len(range(start, stop, step))
    if n < 1 or step < 0:
        refuse(_nkx.NkiBounds, f"the slice {start}:{stop}:{step} of dimension {axis} has no elements")
    return Index([n if d == axis else 1 for d in range(t.ndim)], start, [step if d == axis else 0 for d in range(t.ndim)])
