"""Random views of tensors of NKI: methods with their arguments, and what NumPy makes of the same storage."""
import numpy as np

from support.nki_model import indexed

RANK_MAX = 8
TYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32"]  # no floats, of which some do not equal themselves


def rearranged(a, source, target, sizes):
    """einops.rearrange with tuples of names, where a name or a tuple of names is one dimension."""
    names = [n for part in source for n in (part if isinstance(part, tuple) else (part,))]
    of = dict(sizes)
    for part, n in zip(source, a.shape):
        inner = part if isinstance(part, tuple) else (part,)
        known = int(np.prod([of[k] for k in inner if k in of]))
        of.update({k: n // known for k in inner if k not in of})
    a = without_copy(a, [of[n] for n in names])
    flat = [n for part in target for n in (part if isinstance(part, tuple) else (part,))]
    a = a.transpose([names.index(n) for n in flat])
    return without_copy(a, [int(np.prod([of[n] for n in (part if isinstance(part, tuple) else (part,))])) for part in target])


def without_copy(a, shape):
    """The reshaped view; ValueError if it is none."""
    return np.reshape(a, shape, copy=False)


class Chain:
    """Draws methods for a tensor.  rows: which partitions an index may select on chip: "any", for what DMA reaches, or "engine".
    retypes: a view may have another type than the tensor.  patterns: a view may be an access pattern of its tensor's elements."""

    def __init__(self, rng, on_chip, rows="any", retypes=True, patterns=False):
        self.rng, self.on_chip, self.rows, self.retypes, self.patterns = rng, on_chip, rows, retypes, patterns

    def item(self, d, n):
        """One index of a dimension of n elements."""
        first = self.on_chip and d == 0
        kind = self.rng.integers(0, 4)
        if kind == 0 or (first and (kind == 1 or self.rows == "engine" and kind == 2)):
            return ":"
        if kind == 1:
            return str(int(self.rng.integers(-n, n)))
        if first and self.rows == "engine":
            start = int(self.rng.choice([s for s in (0, 32, 64, 96) if s < n]))
            return f"{start}:{start + int(self.rng.integers(1, min(n - start, {0: 128, 64: 64}.get(start, 32)) + 1))}"
        start, stop = sorted(int(i) for i in self.rng.choice(n + 1, 2, replace=False))
        if self.rng.integers(4) == 0:
            return f"nl.ds({start}, {stop - start})"
        step = 1 if first else int(self.rng.integers(1, 4))
        begin = start - n if self.rng.integers(2) and start < n else start
        return f"{begin}:{stop}" + (f":{step}" if step > 1 else "")

    def index(self, shape):
        key = [self.item(d, n) for d, n in enumerate(shape)]
        if self.rng.integers(4) == 0:
            key = key[:int(self.rng.integers(1, len(key) + 1))] + ["..."]
        if self.rng.integers(5) == 0 and len(shape) < RANK_MAX:
            key.insert(int(self.rng.integers(1 if self.on_chip else 0, len(key) + 1)), "None")
        return ", ".join(key)

    def step(self, shape):
        """(text, f) of one method that can be applied to this shape, where f makes NumPy's view; None if nothing fits."""
        first = 1 if self.on_chip else 0
        free = list(range(first, len(shape)))
        kind = self.rng.integers(0, 12 if self.retypes else 11)
        d = int(self.rng.choice(free)) if free else 0
        n = shape[d]
        ones = [k for k in free if shape[k] == 1]
        halves = [int(h) for h in (2, 3, 4, 5) if n % h == 0]
        if kind <= 1:
            text = self.index(shape)
            return f"[{text}]", self.by_index(text)
        if kind == 2 and len(free) > 1:
            order = [*range(first), *(int(i) for i in self.rng.permutation(free))]
            return f".permute({order})", lambda a: a.transpose(order)
        if kind == 3 and len(shape) < RANK_MAX:
            at = int(self.rng.integers(first, len(shape) + 1))
            return f".expand_dim({at})", lambda a: np.expand_dims(a, at)
        if kind == 4 and ones and len(free) > 1:
            at = int(self.rng.choice(ones))
            return f".squeeze_dim({at})", lambda a: a.squeeze(at)
        if kind == 5 and ones:
            at, times = int(self.rng.choice(ones)), int(self.rng.integers(1, 4))
            wide = [times if k == at else s for k, s in enumerate(shape)]
            return f".broadcast({at}, {times})", lambda a: np.broadcast_to(a, wide)
        if kind == 6 and free and halves and len(shape) < RANK_MAX:
            half = int(self.rng.choice(halves))
            parts = [half, n // half]
            said = [parts, [-1, n // half], [half, -1]][self.rng.integers(3)]
            new = [*shape[:d], *parts, *shape[d + 1:]]
            return f".reshape_dim({d}, {said})", lambda a: without_copy(a, new)
        if kind == 7 and free:
            i = int(self.rng.integers(0, n))
            return f".select({d}, {i})", self.by_index(", ".join([":"] * d + [str(i)]))
        if kind == 8 and free:
            start, stop = sorted(int(i) for i in self.rng.choice(n + 1, 2, replace=False))
            step = int(self.rng.integers(1, 3))
            return f".slice({d}, {start}, {stop}, {step})", self.by_index(", ".join([":"] * d + [f"{start}:{stop}:{step}"]))
        if kind == 9 and len(free) > 1:
            a, b = sorted(int(i) for i in self.rng.choice(free, 2, replace=False))
            new = [*shape[:a], int(np.prod(shape[a:b + 1])), *shape[b + 1:]]
            if self.rng.integers(2):
                return f".flatten_dims({a}, {b})", lambda x: without_copy(x, new)
            return f".reshape({new})", lambda x: without_copy(x, new)
        if kind == 10 and free:
            return self.rearrange(shape, d, halves)
        if kind == 11:
            name = str(self.rng.choice(TYPES))
            method = str(self.rng.choice(["view", "reinterpret_cast"]))
            return f".{method}(nl.{name})", lambda a: self.retyped(a, np.dtype(name))
        return None

    def retyped(self, a, dtype):
        """The bytes as another type; ValueError if a place or a step is no whole number of its elements."""
        steps = [s for s, n in zip(a.strides[:-1], a.shape) if n > 1]
        if dtype.itemsize > a.itemsize and any(s % dtype.itemsize for s in [a.ctypes.data, self.row, *steps]):
            raise ValueError
        return a.view(dtype)

    def pattern(self, storage, view):
        """A pattern of the storage's elements from the view's first one on, whatever the view's own dimensions are."""
        item, at = view.itemsize, view.ctypes.data - storage.ctypes.data
        in_one = storage.nbytes // len(storage) if self.on_chip else storage.nbytes  # a partition, or all
        rows = [[in_one // item, int(self.rng.integers(1, len(storage) - at // in_one + 1))]] if self.on_chip else []
        offset = int(self.rng.integers(0, (in_one - at % in_one) // item))
        left, pairs = (in_one - at % in_one) // item - offset - 1, list(rows)
        for _ in range(int(self.rng.integers(1, 4))):
            stride, size = int(self.rng.integers(0, 7)), int(self.rng.integers(1, 4))
            size = min(size, left // stride + 1) if stride else size
            left -= stride * (size - 1)
            pairs.append([stride, size])
        sizes, strides = [n for _, n in pairs], [s * item for s, _ in pairs]

        def at_pattern(a):
            whole = np.frombuffer(storage, np.uint8)[at + offset * item:]
            return np.ndarray(sizes, a.dtype, whole, 0, strides)
        return f".ap({pairs}, offset={offset})" if offset or self.rng.integers(2) else f".ap({pairs})", at_pattern

    def by_index(self, text):
        key = eval(f"key[{text}]", {"key": np.s_, "nl": _Ds})  # our own text
        return lambda a: indexed(a, key, self.on_chip)

    def rearrange(self, shape, d, halves):
        """Names for all dimensions; one may be split, two may be merged, and those that stay on chip may change places."""
        names = [chr(ord("a") + k) for k in range(len(shape))]
        source, sizes, flat = list(names), {}, list(names)
        if halves and self.rng.integers(2) and len(shape) < RANK_MAX:
            source[d], sizes = (names[d], "z"), {"z": shape[d] // int(self.rng.choice(halves))}
            flat.insert(d + 1, "z")
        first = 1 if self.on_chip else 0
        flat = flat[:first] + [flat[int(i)] for i in self.rng.permutation(range(first, len(flat)))]
        target = list(flat)
        if len(flat) > first + 1 and self.rng.integers(3) == 0:
            at = int(self.rng.integers(first, len(flat) - 1))
            target[at:at + 2] = [(flat[at], flat[at + 1])]
        text = f".rearrange({tuple(source)}, {tuple(target)}" + (f", {sizes})" if sizes else ")")
        return text, lambda a: rearranged(a, source, target, sizes)

    def steps(self, storage, least=1, most=6):
        """Random steps that can follow each other: the view that NumPy makes of the storage, and [(text, f)]."""
        view, steps = storage, []
        self.row = storage.shape[-1] * storage.itemsize
        for _ in range(int(self.rng.integers(least, most))):
            step = self.pattern(storage, view) if self.patterns and self.rng.integers(6) == 0 else self.step(view.shape)
            if step:
                try:
                    view = step[1](view)
                except ValueError:  # the elements do not lie in an order that has this shape
                    continue
                steps.append(step)
        return view, steps


class _Ds:
    @staticmethod
    def ds(start, size):
        return slice(start, start + size)


def ap_of(rng, on_chip, rows=16, columns=40):
    """A random access pattern inside (rows, columns) elements: pairs, offset, and the indices of the elements that it names."""
    pairs, last = ([[columns, int(rng.integers(1, rows + 1))]] if on_chip else []), 0
    for _ in range(int(rng.integers(1, 4))):
        stride, size = int(rng.integers(0, 7)), int(rng.integers(1, 4))
        pairs.append([stride, size])
        last += stride * (size - 1)
    at = int(rng.integers(0, (columns if on_chip else rows * columns) - last))
    row = int(rng.integers(0, rows + 1 - pairs[0][1])) if on_chip else 0
    offset = row * columns + at
    index = np.full([1] * len(pairs), offset)
    for d, (stride, size) in enumerate(pairs):
        index = index + (np.arange(size) * stride).reshape([-1 if k == d else 1 for k in range(len(pairs))])
    return pairs, offset, index
