"""Views of tensors: indexing and the methods that make views, against NumPy on the same storage."""
import numpy as np
import pytest

import nkipy  # noqa: F401  (it adds nki where the vendor's package is not installed)
import nki
import nki.isa as nisa
import nki.language as nl
from support import compiler
from support.nki_kernels import HEAD

CHAINS = 1500
LOWERED = 60  # a result holds 64 kernels
SHAPES = [(8, 12), (4, 6, 10), (16, 2, 3, 4), (1, 7), (32, 64), (5, 1, 9)]


class Chain:
    """Applies the same random methods to an NKI tensor and to a NumPy view."""

    def __init__(self, rng, on_chip):
        self.rng, self.on_chip, self.steps = rng, on_chip, []

    def index(self, shape):
        first = 1 if self.on_chip else 0
        key = []
        for d, n in enumerate(shape):
            kind = self.rng.integers(0, 4)
            if kind == 0 or (d < first and kind == 1):
                key.append(slice(None))
            elif kind == 1:
                key.append(int(self.rng.integers(-n, n)))
            else:
                start, stop = sorted(int(i) for i in self.rng.choice(n + 1, 2, replace=False))
                step = 1 if d < first else int(self.rng.integers(1, 4))
                key.append(slice(start, stop, step) if self.rng.integers(2) else slice(start - n if start < n else start, stop, step))
        if self.rng.integers(4) == 0:
            key = key[:int(self.rng.integers(1, len(key) + 1))] + [Ellipsis]
        return tuple(key)

    def step(self, shape):
        """A method with its arguments, and the same of NumPy; None if nothing fits."""
        first = 1 if self.on_chip else 0
        kind = self.rng.integers(0, 8)
        free = list(range(first, len(shape)))
        if kind <= 1:
            key = self.index(shape)
            return lambda t: t[key], lambda a: self.keep_rank(a, key), f"[{key}]"
        if kind == 2 and len(free) > 1:
            order = [*range(first), *(int(i) for i in self.rng.permutation(free))]
            return lambda t: t.permute(order), lambda a: a.transpose(order), f".permute({order})"
        if kind == 3 and len(shape) < 7:
            d = int(self.rng.integers(first, len(shape) + 1))
            return lambda t: t.expand_dim(d), lambda a: np.expand_dims(a, d), f".expand_dim({d})"
        if kind == 4:
            ones = [d for d in free if shape[d] == 1]
            if ones and len(free) > 1:
                d = int(self.rng.choice(ones))
                return lambda t: t.squeeze_dim(d), lambda a: a.squeeze(d), f".squeeze_dim({d})"
        if kind == 5:
            ones = [d for d in free if shape[d] == 1]
            if ones:
                d, n = int(self.rng.choice(ones)), int(self.rng.integers(1, 4))
                wide = [n if k == d else s for k, s in enumerate(shape)]
                return lambda t: t.broadcast(d, n), lambda a: np.broadcast_to(a, wide), f".broadcast({d}, {n})"
        if kind == 6 and free and len(shape) < 7:
            d = int(self.rng.choice(free))
            halves = [2, shape[d] // 2]
            if shape[d] % 2 == 0:
                new = [*shape[:d], *halves, *shape[d + 1:]]
                return lambda t: t.reshape_dim(d, halves), lambda a: a.reshape(new), f".reshape_dim({d}, {halves})"
        if kind == 7 and free:
            d = int(self.rng.choice(free))
            n = shape[d]
            i = int(self.rng.integers(0, n))
            return lambda t: t.select(d, i), lambda a: self.keep_rank(a, (slice(None),) * d + (i,)), f".select({d}, {i})"
        return None

    def keep_rank(self, a, key):
        """NumPy's a[key], with the dimensions that NKI keeps: partitions, and at least two on chip, one in HBM."""
        key = list(key)
        if Ellipsis in key:
            at = key.index(Ellipsis)
            key[at:at + 1] = [slice(None)] * (a.ndim - len(key) + 1)
        key += [slice(None)] * (a.ndim - len(key))
        ints = [d for d, k in enumerate(key) if isinstance(k, int)]
        least = 2 if self.on_chip else 1
        drop = [d for d in ints if not (self.on_chip and d == 0)]
        drop = drop[:max(0, a.ndim - least)]
        full = [slice(k % a.shape[d], k % a.shape[d] + 1) if isinstance(k, int) else k for d, k in enumerate(key)]
        return np.squeeze(a[tuple(full)], tuple(drop)) if drop else a[tuple(full)]


def random_steps(chain, storage):
    """Random steps, and what NumPy makes of the storage with them."""
    want, applied = storage, []
    for _ in range(int(chain.rng.integers(1, 6))):
        step = chain.step(want.shape)
        if step:
            want = step[1](want)
            applied.append(step)
    return want, applied


def run(chain, shape):
    storage = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    want, applied = random_steps(chain, storage)

    @nki.jit
    def kernel(x):
        t = x
        if chain.on_chip:
            t = nl.ndarray(x.shape, x.dtype)
            nisa.dma_copy(t, x)
        for method, _, _ in applied:
            t = method(t)
        shapes.append(t.shape)
        out = nl.ndarray(t.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, t)
        return out

    shapes = []
    got = nki.simulate(kernel)(storage)
    what = "".join(text for _, _, text in applied)
    assert shapes == [want.shape], (shape, what, shapes, want.shape)
    assert (got == want).all(), (shape, what)


@pytest.mark.parametrize("on_chip", [True, False], ids=["SBUF", "HBM"])
def test_random_chains_of_views_are_numpys(on_chip, rng):
    for i in range(CHAINS):
        run(Chain(rng, on_chip), SHAPES[i % len(SHAPES)])


def test_views_are_lowered_to_access_patterns_that_read_the_same(rng):
    """Kernels that copy random views on chip: every stage computes what NumPy's evaluation of the calls does."""
    source = HEAD
    for i in range(LOWERED):
        shape = SHAPES[i % len(SHAPES)]
        while True:
            want, applied = random_steps(Chain(rng, True), np.zeros(shape, np.float32))
            if want.ndim <= 5:  # an instruction has at most four free dimensions
                break
        steps = "".join(text for _, _, text in applied)
        source += f"""
@nki.jit
def view{i}(x: nl.tensor[{", ".join(map(str, shape))}]):
    t = nl.load(x)
    v = t{steps}
    out = nl.ndarray(v.shape, x.dtype, buffer=nl.shared_hbm)
    u = nl.ndarray((v.shape[0], v.size // v.shape[0]), x.dtype)
    nisa.dma_copy(u, v)
    nisa.dma_copy(out, u)
    return out
"""
    result = compiler.compile(source, check=True)
    assert result["status"] == "ok", result["diagnostics"]
    assert len(result["kernels"]) == LOWERED
    for kernel in result["kernels"]:
        assert [s["check"]["status"] for s in kernel["stages"]] == ["skipped"] * 3 + ["pass"] * 3, kernel["stages"][0]["text"]


def ap_of(rng, on_chip):
    """A random access pattern inside (16, 40) elements, and the indices that it names."""
    if on_chip:
        n = int(rng.integers(1, 17))
        pairs, last = [[40, n]], 0
    else:
        pairs, last = [], 0
    for _ in range(int(rng.integers(1, 4))):
        stride, size = int(rng.integers(0, 7)), int(rng.integers(1, 4))
        pairs.append([stride, size])
        last += stride * (size - 1)
    room = (40 if on_chip else 640) - last
    at = int(rng.integers(0, room))
    row = int(rng.integers(0, 17 - pairs[0][1])) if on_chip else 0
    offset = row * 40 + at
    index = np.full([1] * len(pairs), offset)
    for d, (stride, size) in enumerate(pairs):
        index = index + (np.arange(size) * stride).reshape([-1 if k == d else 1 for k in range(len(pairs))])
    return pairs, offset, index


@pytest.mark.parametrize("on_chip", [True, False], ids=["SBUF", "HBM"])
def test_random_access_patterns_name_the_elements_of_the_storage(on_chip, rng):
    storage = np.arange(640, dtype=np.float32).reshape(16, 40)
    for _ in range(CHAINS // 5):
        pairs, offset, index = ap_of(rng, on_chip)

        @nki.jit
        def kernel(x):
            t = x
            if on_chip:
                t = nl.ndarray(x.shape, x.dtype)
                nisa.dma_copy(t, x)
            out = nl.ndarray(index.shape, x.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(out, t.ap(pairs, offset=offset))
            return out

        assert (nki.simulate(kernel)(storage) == storage.reshape(-1)[index]).all(), (pairs, offset)


def test_writing_through_one_view_shows_in_all():
    @nki.jit
    def kernel(x):
        t = nl.ndarray(x.shape, x.dtype)
        nisa.dma_copy(t, x)
        other = t.permute((0, 2, 1))
        nisa.memset(other[:, 1:3, ::2], 7.0)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, t)
        return out

    x = np.zeros((4, 6, 8), np.float32)
    want = x.copy()
    want.transpose(0, 2, 1)[:, 1:3, ::2] = 7
    assert (nki.simulate(kernel)(x) == want).all()


REFUSED = {
    "a partition that is permuted": (lambda t: t.permute((1, 0, 2)), "NkiView"),
    "a partition that is split": (lambda t: t.reshape_dim(0, (2, 4)), "NkiView"),
    "a partition that is merged": (lambda t: t.flatten_dims(0, 1), "NkiView"),
    "a partition that is repeated": (lambda t: t.broadcast(0, 2), "NkiView"),
    "None before the partitions": (lambda t: t[None], "NkiView"),
    "a reshape of other elements": (lambda t: t.reshape((8, 5)), "NkiView"),
    "a reshape against the order": (lambda t: t.permute((0, 2, 1)).reshape((8, 24)), "NkiView"),
    "a dimension that is not 1": (lambda t: t.squeeze_dim(1), "NkiView"),
    "an index too large": (lambda t: t[:, 6], "NkiBounds"),
    "an index too small": (lambda t: t[:, -7], "NkiBounds"),
    "a slice too long": (lambda t: t[:, 0:7], "NkiBounds"),
    "an empty slice": (lambda t: t[:, 3:3], "NkiBounds"),
    "a step of 0": (lambda t: t[:, 0:3:0], "NkiBounds"),
    "a step back": (lambda t: t[:, ::-1], "NkiBounds"),
    "too many indices": (lambda t: t[0, 0, 0, 0], "NkiBounds"),
    "two ellipses": (lambda t: t[..., ...], "NkiBounds"),
    "a pattern past the partition": (lambda t: t.ap([[24, 8], [1, 25]]), "NkiBounds"),
    "a pattern past the partitions": (lambda t: t.ap([[24, 8], [1, 4]], offset=24), "NkiBounds"),
    "another stride of partitions": (lambda t: t.ap([[23, 8], [1, 4]]), "NkiView"),
    "a negative stride": (lambda t: t.ap([[24, 8], [-1, 4]]), "NkiView"),
    "an assignment": (lambda t: t.__setitem__(0, t), "NkiTileAssignment"),
    "a truth value": (lambda t: bool(t), "NkiTensorTruth"),
    "a sum": (lambda t: t + t, "NkiTensorOperator"),
    "a product with a number": (lambda t: 2 * t, "NkiTensorOperator"),
    "a comparison": (lambda t: t < 2, "NkiTensorOperator"),
    "a loop over it": (lambda t: list(t), "NkiTensorOperator"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_view_cannot_be_is_refused(what):
    import _nkx

    use, name = REFUSED[what]

    @nki.jit
    def kernel(x):
        use(nl.ndarray((8, 6, 4), nl.float32))
        return x

    with pytest.raises(getattr(_nkx, name)):
        nki.simulate(kernel)(np.zeros((8, 6, 4), np.float32))


def test_a_tensor_of_another_kernel_is_refused():
    import _nkx
    kept = []

    @nki.jit
    def first(x):
        kept.append(nl.ndarray((8, 4), nl.float32))
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out, x)
        return out

    @nki.jit
    def second(x):
        nisa.memset(kept[0], 0.0)
        return x

    x = np.zeros((8, 4), np.float32)
    nki.simulate(first)(x)
    assert "another" in repr(kept[0])
    with pytest.raises(_nkx.NkiCall, match="another kernel"):
        nki.simulate(second)(x)
    with pytest.raises(_nkx.NkiCall, match="no NKI kernel"):
        kept[0].shape


def test_a_view_says_whether_numbers_select_its_rows():
    result = compiler.compile(HEAD + """
@nki.jit
def rows(x: nl.tensor[64, 32], i: nl.tensor[nl.int32, (16, 1)]):
    out = nl.ndarray((16, 32), x.dtype, buffer=nl.shared_hbm)
    numbers = nl.load(i)
    part = x.vector_select(0, numbers)
    assert part.is_indirect() and not x.is_indirect()
    y = nl.ndarray((16, 32), x.dtype)
    nisa.dma_copy(y, part)
    nisa.dma_copy(out, y)
    return out
""")
    assert result["status"] == "ok", result["diagnostics"]
