"""nki.compiler of beta 1: where tensors are allocated.

buffer=ncc.sbuf.alloc(f) and mod_alloc(…) say where each block of a tensor is: its first partition, and its first byte in each
partition, of PSUM in a bank.  The compiler keeps to it.  auto_alloc(), the bare memory and the decorators leave it to the compiler.
"""
import _nkx
from nki.language import no_reorder  # noqa: F401
from nkx import nki_names

_BANK_BYTES = 2048


class _Placed:
    """A memory, and where in it the blocks of a tensor are."""

    def __init__(self, name, place):
        self.name, self.place = name, place

    def nki_text(self):
        return f"nl.{self.name}"  # the addresses are in the stages after the texts

    def address(self, block, partitions, row_bytes):
        """(first partition, byte in each partition) of the block with these indices."""
        at = self.place(block, partitions, row_bytes)
        numbers = 3 if self.name == "psum" else 2
        if not isinstance(at, (tuple, list)) or len(at) != numbers or not all(hasattr(x, "__index__") for x in at):
            form = "(bank, partition, byte)" if self.name == "psum" else "(partition, byte)"
            nki_names.refuse(_nkx.NkiAddress, f"the function of {self.name}.alloc returned {at!r}", f"return {form}")
        *bank, partition, byte = (x.__index__() for x in at)
        return (partition, byte + sum(bank) * _BANK_BYTES)


def _tile(what, block, counts):
    """The number of the block's place, if there are so many along each axis of blocks, which take them in turn."""
    counts = tuple(counts) if isinstance(counts, (tuple, list)) else (counts,)
    if not counts:
        return 0
    if len(counts) != len(block) or not all(hasattr(n, "__index__") and n > 0 for n in counts):
        nki_names.refuse(_nkx.NkiAddress, f"{what} is {counts}, but the tensor has {len(block)} axes of blocks",
                         "give it a positive number for each axis of blocks")
    number = 0
    for i, n in zip(block, counts):
        number = number * n + i % n
    return number


class _Memory(str):
    """A memory on chip: nl.ndarray(…, buffer=ncc.sbuf)."""

    def nki_text(self):
        return f"nl.{self}"

    def alloc(self, func):
        """func(block indices, partitions, bytes in each partition) says where the block is."""
        if not callable(func):
            nki_names.refuse(_nkx.NkiAddress, f"{self}.alloc needs a function, but got {func!r}",
                             f"use {self}.mod_alloc for numbers")
        return _Placed(str(self), func)

    def auto_alloc(self):
        return str(self)


class _Sbuf(_Memory):
    def mod_alloc(self, *, base_addr, base_partition=0, num_par_tiles=(), num_free_tiles=()):
        def place(block, partitions, row_bytes):
            return (base_partition + _tile("num_par_tiles", block, num_par_tiles) * partitions,
                    base_addr + _tile("num_free_tiles", block, num_free_tiles) * row_bytes)
        return _Placed(str(self), place)


class _Psum(_Memory):
    def mod_alloc(self, *, base_bank, base_addr=0, base_partition=0, num_bank_tiles=(), num_par_tiles=(), num_free_tiles=()):
        def place(block, partitions, row_bytes):
            return (base_bank + _tile("num_bank_tiles", block, num_bank_tiles),
                    base_partition + _tile("num_par_tiles", block, num_par_tiles) * partitions,
                    base_addr + _tile("num_free_tiles", block, num_free_tiles) * row_bytes)
        return _Placed(str(self), place)


sbuf, psum = _Sbuf("sbuf"), _Psum("psum")


def _transparent(fn=None, **options):
    return fn if fn is not None else _transparent


skip_middle_end_transformations = enable_stack_allocator = force_auto_alloc = _transparent


def multi_buffer(n):
    return n


__getattr__ = nki_names.attribute_of(__name__)
