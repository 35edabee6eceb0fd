"""nki.compiler of beta 1: where tensors are allocated.  The compiler here allocates by itself: a request is accepted and
has no effect."""
from nkx import nki_names


class _Memory(str):
    """nl.ndarray(…, buffer=ncc.sbuf.alloc(…)) is in this memory."""

    def alloc(self, *args, **kwargs):
        return str(self)

    mod_alloc = auto_alloc = alloc


sbuf, psum = _Memory("sbuf"), _Memory("psum")


def _transparent(fn=None, **options):
    return fn if fn is not None else _transparent


skip_middle_end_transformations = enable_stack_allocator = force_auto_alloc = _transparent


class no_reorder:
    def __enter__(self):
        return None

    def __exit__(self, *exc):
        return False


def multi_buffer(n):
    return n


__getattr__ = nki_names.attribute_of(__name__)
