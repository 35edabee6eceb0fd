"""nki-trace shows the calls as they were written, nki-canonicalize what they consist of, and each of its lines says of which."""
import pytest

from support import compiler

BETA_1 = """import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt

@nki.jit
def k(a: nt.tensor[100, 512], w: nt.tensor[256, 512]):
    out = nl.ndarray((100, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    i_p, i_f = nl.arange(128)[:, None], nl.arange(512)[None, :]
    x = nl.load(a[i_p, i_f], mask=(i_p < 100))
    y = x / 3.0
    acc = nl.zeros((nl.par_dim(128), 512), nl.float32, buffer=nl.psum)
    for i in nl.affine_range(2):
        l = nl.load(w[i * 128:(i + 1) * 128, :])
        acc += nisa.nc_matmul(l[:, 0:128], l)
    y[i_p, i_f] = nl.add(y, acc, mask=(i_p < 100))
    nl.store(out[i_p, i_f], y, mask=(i_p < 100) & (i_f >= 16))
    nl.store(out[i_p, i_f], y, mask=(i_p >= 128))
    return out
"""
NEW = """import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def k(a: nl.tensor[nl.float32, (128, 512)]):
    out = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
    x = nl.load(a)
    y = nl.ndarray((128, 128, 4), nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=y, src=x.reshape((128, 4, 128)).permute((0, 2, 1)))
    e = nl.softmax(y.flatten_dims(1, 2)[:, nl.ds(0, 512)], axis=-1)
    nl.device_print("e", e)
    nl.store(out, e)
    return out
"""


def stages_of(source, *arguments):
    result = compiler.compile(source, "--stop-after", "nki-canonicalize", *arguments)
    assert result["status"] == "ok", result["diagnostics"]
    return [compiler.stage(result["kernels"][0], name) for name in ("nki-trace", "nki-canonicalize")]


def lines_of(stage):
    return [line.strip() for line in stage["text"].splitlines()]


def of_op(stage):
    """The texts of a stage's lines by the numbers of their operations."""
    return {line["op"]: text.strip() for line, text in zip(stage["lines"], stage["text"].splitlines()) if "op" in line}


def sources_of(trace, canonical):
    """(line, the lines that it comes from)"""
    old, new = of_op(trace), of_op(canonical)
    return [(new[int(op)], [old[k] for k in found]) for op, found in canonical["from"].items()]


def test_beta_1_is_shown_with_its_index_tiles_masks_and_operators():
    trace, _ = stages_of(BETA_1)
    assert lines_of(trace) == [
        "def k(a: float32[100, 512], w: float32[256, 512]):",
        "out = nl.ndarray((100, 512), dtype=nl.float32, buffer=nl.shared_hbm)",
        "x = nl.load(a[nl.arange(128)[:, None], nl.arange(512)[None, :]], mask=(nl.arange(128)[:, None] < 100))",
        "y = x / 3.0",
        "acc = nl.zeros((nl.par_dim(128), 512), nl.float32, buffer=nl.psum)",
        "l = nl.load(w[0:128, :])",
        "psum = nisa.nc_matmul(l[:, 0:128], l)",
        "acc += psum",
        "l_1 = nl.load(w[128:256, :])",
        "psum = nisa.nc_matmul(l_1[:, 0:128], l_1)",
        "acc += psum",
        "sbuf = nl.add(y, acc, mask=(nl.arange(128)[:, None] < 100))",
        "y[nl.arange(128)[:, None], nl.arange(512)[None, :]] = sbuf",
        "nl.store(out[nl.arange(128)[:, None], nl.arange(512)[None, :]], y, mask=(nl.arange(128)[:, None] < 100) & "
        "(nl.arange(512)[None, :] >= 16))",
        "nl.store(out[nl.arange(128)[:, None], nl.arange(512)[None, :]], y, mask=(nl.arange(128)[:, None] >= 128))",
        "return out"]


def test_only_calls_of_nki_isa_remain_and_each_says_which_call_it_was():
    trace, canonical = stages_of(BETA_1)
    assert all(line.startswith("nisa.") or " = nl.ndarray(" in line for line in lines_of(canonical)[1:-1])
    assert not any(word in canonical["text"] for word in ("mask=", "arange", "+=", "nl.load", "nl.store"))
    found = dict(sources_of(trace, canonical))
    assert found["nisa.dma_copy(dst=x[0:100, :], src=a)"] == [lines_of(trace)[2]]
    assert found["nisa.tensor_scalar(dst=y[0:100, :], data=x[0:100, :], op0=nl.multiply, operand0=0.333333333)"] == ["y = x / 3.0"]
    assert found["nisa.nc_matmul(dst=acc, stationary=l[:, 0:128], moving=l)"] == ["psum = nisa.nc_matmul(l[:, 0:128], l)", "acc += psum"]
    assert found["nisa.dma_copy(dst=out[:, 16:512], src=y[0:100, 16:512])"][0].startswith("nl.store(")
    lost = set(of_op(trace).values()) - {line for _, lines in sources_of(trace, canonical) for line in lines}
    assert sorted(line.split("(")[0] for line in lost) == ["def k", "nl.store", "return out"], "a call became nothing, and no other is lost"


def test_remarks_say_what_calls_masks_and_views_became():
    texts = {(r["rule"], r["text"]) for _, canonical in (stages_of(BETA_1), stages_of(NEW)) for r in canonical["remarks"]}
    assert {("resolve-mask", "the mask leaves [0:100, :] of 128x512"), ("resolve-mask", "the mask leaves [0:100, 16:512] of 128x512"),
            ("write-out-call", "the mask leaves nothing: there is no instruction"),
            ("write-out-call", "nisa.nc_matmul writes to what it is assigned to: nc_matmul"),
            ("write-out-call", "nl.softmax is 4 calls: tensor_reduce, activation_reduce, reciprocal, tensor_scalar"),
            ("write-out-call", "nl.device_print does nothing on the device"),
            ("resolve-view", "x.reshape((128, 4, 128)).permute((0, 2, 1)) is x.ap([[512, 128], [1, 128], [128, 4]])")} <= texts


def test_newer_kernels_are_shown_with_their_views_and_functions():
    trace, canonical = stages_of(NEW)
    assert lines_of(trace)[2:] == [
        "x = nl.load(a)", "y = nl.ndarray((128, 128, 4), nl.float32, buffer=nl.sbuf)",
        "nisa.tensor_copy(dst=y, src=x.reshape((128, 4, 128)).permute((0, 2, 1)))",
        "e_3 = nl.softmax(y.flatten_dims(1, 2)[:, 0:512], axis=-1)", "nl.device_print('e', e_3)", "nl.store(out, e_3)", "return out"]
    assert "nisa.tensor_copy(dst=y, src=x.ap([[512, 128], [1, 128], [128, 4]]))" in lines_of(canonical)


@pytest.mark.parametrize("source", [BETA_1, NEW])
def test_each_line_has_the_place_of_its_call(source):
    rows = source.splitlines()
    for stage in stages_of(source):
        for line, text in zip(stage["lines"], stage["text"].splitlines()):
            if "nl.load" in text or "dma_copy(dst=x" in text:
                [place] = line["src"]
                assert rows[place["line"] - 1][place["col"] - 1:place["end_col"] - 1].startswith("nl.load(a") or "w[" in rows[place["line"] - 1]
