"""Views of tensors: indexing and the methods that make views, against NumPy on the same storage."""
import os
import re

import _nkx
import numpy as np
import pytest

import nkipy  # noqa: F401  (it adds nki where the vendor's package is not installed)
import nki
import nki.isa as nisa
import nki.language as nl
from support import compiler, nki_checks
from support.nki_kernels import HEAD
from support.random_views import Chain, ap_of
from support.runs import simulated

CHAINS = 1500
PATTERNS = 1500 if os.environ.get("NKX_NKI") == "all" else 150  # one in each kernel
AT_ONCE = 10  # in one kernel
LOWERED = 60  # a result holds 64 kernels
SHAPES = [(8, 12), (4, 6, 10), (16, 2, 3, 4), (1, 7), (32, 64), (5, 1, 9)]


def run(rng, on_chip, shape, n):
    """n chains of one tensor in one kernel."""
    storage = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    chains = [Chain(rng, on_chip, patterns=True).steps(storage) for _ in range(n)]
    texts = ["".join(text for text, _ in steps) for _, steps in chains]
    views = [eval(f"lambda t: t{text}", {"nl": nl}) for text in texts]  # our own text

    @nki.jit
    def kernel(x):
        t = x
        if on_chip:
            t = nl.ndarray(x.shape, x.dtype)
            nisa.dma_copy(t, x)
        same = x if not on_chip else nl.load(x)
        outs = []
        for view in views:
            v = view(t)
            shapes.append(v.shape)
            assert same.ap(v.get_pattern(), offset=v.offset, dtype=v.dtype).strides == v.strides
            out = nl.ndarray(v.shape, v.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(out, v)
            outs.append(out)
        return tuple(outs)

    shapes = []
    got = nki.simulate(kernel)(storage)
    assert shapes == [want.shape for want, _ in chains], (shape, texts)
    for out, (want, _), text in zip(got, chains, texts, strict=True):
        assert out.dtype == want.dtype and (out == want).all(), (shape, text)


@pytest.mark.parametrize("on_chip", [True, False], ids=["SBUF", "HBM"])
def test_random_chains_of_views_are_numpys(on_chip, rng):
    for i in range(CHAINS // AT_ONCE):
        run(rng, on_chip, SHAPES[i % len(SHAPES)], AT_ONCE)


@pytest.mark.parametrize("on_chip", [True, False], ids=["SBUF", "HBM"])
def test_random_chains_have_every_method_that_makes_a_view(on_chip, rng):
    """But those that select rows by numbers on the device (support/random_nki_calls.py)."""
    storage = np.zeros((16, 2, 3, 4), np.float32)
    text = "".join(step for _ in range(500) for step, _ in Chain(rng, on_chip, patterns=True).steps(storage)[1])
    methods = {n for n, f in vars(_nkx.NkiTensor).items() if callable(f) and not n.startswith("__")}
    drawn = set(re.findall(r"\.(\w+)\(", text)) - {"ds"}
    assert methods - drawn == {"vector_select", "indirect", "is_indirect", "is_contiguous", "get_pattern"} and "[" in text


def test_views_are_lowered_to_access_patterns_that_read_the_same(rng):
    """Kernels that copy random views on chip: every stage computes what NumPy's evaluation of the calls does."""
    source = HEAD
    for i in range(LOWERED):
        shape = SHAPES[i % len(SHAPES)]
        while True:
            want, applied = Chain(rng, True).steps(np.zeros(shape, np.float32))
            if want.ndim <= 5:  # an instruction has at most four free dimensions
                break
        steps = "".join(text for text, _ in applied)
        source += f"""
@nki.jit
def view{i}(x: nl.tensor[{", ".join(map(str, shape))}]):
    t = nl.load(x)
    v = t{steps}
    out = nl.ndarray(v.shape, v.dtype, buffer=nl.shared_hbm)
    u = nl.ndarray((v.shape[0], v.size // v.shape[0]), v.dtype)
    nisa.dma_copy(u, v)
    nisa.dma_copy(out, u)
    return out
"""
    result = compiler.compile(source, check=True)
    assert result["status"] == "ok", result["diagnostics"]
    assert len(result["kernels"]) == LOWERED
    for kernel in result["kernels"]:
        assert nki_checks.all_pass(kernel), kernel["stages"][0]["text"]


@pytest.mark.parametrize("src, dst", [((1, 3, 2), (1, 2, 3)), ((64, 3, 2), (64, 2, 3)), ((64, 4, 15), (64, 6, 10)), ((2, 6, 5, 7), (2, 10, 21))])
@pytest.mark.parametrize("buffers", [("sbuf", "sbuf"), ("sbuf", "shared_hbm"), ("shared_hbm", "sbuf"), ("shared_hbm", "shared_hbm")])
def test_a_transfer_between_shapes_without_common_parts_keeps_the_order(src, dst, buffers, rng):
    """Twice in a loop, once between parts of larger tensors, so that accesses move and have gaps."""
    source = HEAD + f"""
@nki.jit
def kernel(x: nl.tensor[2, {", ".join(map(str, src))}]):
    out = nl.ndarray((2, {", ".join(map(str, dst))}), x.dtype, buffer=nl.shared_hbm)
    for i in range(2):
        t = nl.ndarray({(*src[:1], 2, *src[1:])}, x.dtype, buffer=nl.{buffers[0].removeprefix("shared_")})
        u = nl.ndarray({dst}, x.dtype, buffer=nl.{buffers[1].removeprefix("shared_")})
        nisa.dma_copy(dst=t[:, i], src=x[i])
        nisa.dma_copy(dst=u, src=t[:, i])
        nisa.dma_copy(dst=out[i], src=u)
    return out
"""
    result = compiler.compile(source, check=True)
    assert result["status"] == "ok", result["diagnostics"]
    assert nki_checks.all_pass(result["kernels"][0])
    x = rng.uniform(-1, 1, (2, *src)).astype(np.float32)
    for arguments in ([], ["--unroll"]):
        assert (simulated(source, {"x": x}, *arguments)[0]["out"] == x.reshape(2, *dst)).all()


@pytest.mark.parametrize("on_chip", [True, False], ids=["SBUF", "HBM"])
def test_random_access_patterns_name_the_elements_of_the_storage(on_chip, rng):
    storage = np.arange(640, dtype=np.float32).reshape(16, 40)
    for _ in range(PATTERNS):
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
    "names of a partition that is split": (lambda t: t.rearrange((("p", "q"), "a", "b"), ("p", "q", "a", "b"), {"p": 2}), "NkiView"),
    "names that move the partition": (lambda t: t.rearrange(("p", "a", "b"), ("a", "p", "b")), "NkiView"),
    "names that are merged against the order": (lambda t: t.rearrange(("p", "a", "b"), ("p", ("b", "a"))), "NkiView"),
    "names that differ": (lambda t: t.rearrange(("p", "a", "b"), ("p", "a", "c")), "NkiView"),
    "a name that is missing": (lambda t: t.rearrange(("p", "a", "b"), ("p", "a")), "NkiView"),
    "a name twice": (lambda t: t.rearrange(("p", "a", "a"), ("p", "a", "a")), "NkiView"),
    "names for other dimensions": (lambda t: t.rearrange(("p", "a"), ("p", "a")), "NkiView"),
    "other elements in no whole number": (lambda t: t.view("int8")[:, :, 0:3].view("int16"), "NkiView"),
    "other elements with gaps": (lambda t: t[:, :, ::2].reinterpret_cast("int16"), "NkiView"),
    "other elements that begin between": (lambda t: t.view("int16")[:, :, 1:3].view("int32"), "NkiView"),
    "other elements of steps between": (lambda t: t.view("int8").ap([[96, 8], [6, 3], [1, 4]]).view("int32"), "NkiView"),
    "no type": (lambda t: t.view("int33"), "NkiDtype"),
    "two sizes that are not known": (lambda t: t.rearrange(("p", ("a", "c"), "b"), ("p", "a", "c", "b")), "NkiView"),
    "a size that does not divide": (lambda t: t.rearrange(("p", ("a", "c"), "b"), ("p", "a", "c", "b"), {"a": 4}), "NkiView"),
    "a size of 0": (lambda t: t.rearrange(("p", ("a", "c"), "b"), ("p", "a", "c", "b"), {"a": 0}), "NkiView"),
    "a size of no name": (lambda t: t.rearrange(("p", "a", "b"), ("p", "b", "a"), {"z": 2}), "NkiView"),
    "a dimension without a name": (lambda t: t.rearrange(("p", "a", "b", ()), ("p", "a", "b")), "NkiView"),
    "names that are no strings": (lambda t: t.rearrange(("p", 1, 2), ("p", 2, 1)), "NkiView"),
    "names in one string": (lambda t: t.rearrange("p a b", "p b a"), "NkiView"),
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
    use, name = REFUSED[what]

    @nki.jit
    def kernel(x):
        use(nl.ndarray((8, 6, 4), nl.float32))
        return x

    with pytest.raises(getattr(_nkx, name)):
        nki.simulate(kernel)(np.zeros((8, 6, 4), np.float32))


def test_a_tensor_of_another_kernel_is_refused():
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
