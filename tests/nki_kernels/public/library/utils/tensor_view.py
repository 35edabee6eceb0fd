"""Views of a tensor, as shape, strides and offset, until get_view() makes one of the language."""
import nki.language as nl

from .kernel_assert import kernel_assert


class TensorView(nl.NKIObject):
    def __init__(self, base, shape=None, strides=None, offset=0):
        self.base = base
        self.shape = tuple(base.shape) if shape is None else tuple(shape)
        if strides is None:
            steps, n = [], 1
            for size in reversed(base.shape):
                steps = [n] + steps
                n = n * size
            strides = steps
        self.strides, self.offset = tuple(strides), offset

    def _with(self, shape, strides, offset=0):
        return TensorView(self.base, shape, strides, self.offset + offset)

    def slice(self, dim, start, end, step=1):
        kernel_assert(0 <= start < end <= self.shape[dim], f"{start}:{end} of dimension {dim}, which has {self.shape[dim]}")
        n = (end - start + step - 1) // step
        return self._with(self.shape[:dim] + (n,) + self.shape[dim + 1:], self.strides[:dim] + (self.strides[dim] * step,) + self.strides[dim + 1:],
                          start * self.strides[dim])

    def select(self, dim, index):
        v = self.slice(dim, index, index + 1)
        return v._with(v.shape[:dim] + v.shape[dim + 1:], v.strides[:dim] + v.strides[dim + 1:])

    def permute(self, dims):
        return self._with([self.shape[d] for d in dims], [self.strides[d] for d in dims])

    def expand_dim(self, dim):
        return self._with(self.shape[:dim] + (1,) + self.shape[dim:], self.strides[:dim] + (0,) + self.strides[dim:])

    def broadcast(self, dim, size):
        kernel_assert(self.shape[dim] == 1, f"dimension {dim} has {self.shape[dim]} elements")
        return self._with(self.shape[:dim] + (size,) + self.shape[dim + 1:], self.strides[:dim] + (0,) + self.strides[dim + 1:])

    def reshape_dim(self, dim, sizes):
        """Splits a dimension; one of the sizes may be -1."""
        known = 1
        for n in sizes:
            known = known * (n if n != -1 else 1)
        sizes = tuple([self.shape[dim] // known if n == -1 else n for n in sizes])
        steps, step = (), self.strides[dim]
        for n in reversed(sizes):
            steps = (step,) + steps
            step = step * n
        return self._with(self.shape[:dim] + sizes + self.shape[dim + 1:], self.strides[:dim] + steps + self.strides[dim + 1:])

    def get_view(self):
        return self.base.ap(pattern=[[s, n] for s, n in zip(self.strides, self.shape)], offset=self.offset)
