"""What random numbers promise whatever generator makes them: they are determined by the seed, a state that was read continues
where it was, and they are spread evenly.  nki_form_state.py compares them with the generator that ours is."""
import numpy as np
import pytest

from support.nki_kernels import HEAD
from support.runs import simulated

LANES, N = 128, 512


def drawn(body, target="trn2", shape=(LANES, N), dtype="uint32", **inputs):
    parameters = ", ".join(f"{k}: nl.tensor[nl.{v.dtype.name}, {v.shape}]" for k, v in inputs.items())
    lines = [f"out = nl.ndarray({shape}, nl.{dtype}, buffer=nl.shared_hbm)", *body.strip("\n").split("\n"), "return out"]
    outputs, _ = simulated(HEAD + f"\n@nki.jit\ndef kernel({parameters}):\n" + "".join(f"    {x}\n" for x in lines), inputs, "--target", target)
    return outputs["out"]


SEEDED = f"""
x = nl.ndarray(({LANES}, {N}), nl.uint32)
nisa.set_rng_seed(nl.load(s), engine=nisa.engine.{{engine}})
nisa.rng(x, engine=nisa.engine.{{engine}})
nl.store(out, x)
"""


def of_seed(seed, engine="vector"):
    return drawn(SEEDED.format(engine=engine), s=np.array([[seed]], np.uint32))


@pytest.mark.parametrize("engine", ["vector", "gpsimd"])
def test_a_seed_determines_the_numbers_and_another_gives_others(engine):
    first = of_seed(1, engine)
    np.testing.assert_array_equal(first, of_seed(1, engine))
    assert (first != of_seed(2, engine)).mean() > 0.999


@pytest.mark.parametrize("engine", ["vector", "gpsimd"])
def test_numbers_are_spread_evenly_and_do_not_depend_on_each_other(engine):
    """Each bound is above five standard deviations of what even numbers do."""
    x = of_seed(20, engine)
    n = x.size
    u = x / 2.0**32
    assert abs(u.mean() - 0.5) < 5 * np.sqrt(1 / 12 / n)
    assert abs(u.var() - 1 / 12) < 5 * np.sqrt(1 / 180 / n)
    for bit in range(32):
        assert abs((x >> bit & 1).mean() - 0.5) < 5 * 0.5 / np.sqrt(n), bit
    for part in (x & 0xff, x >> 24):
        counts = np.bincount(part.ravel(), minlength=256)
        chi = ((counts - n / 256) ** 2 / (n / 256)).sum()
        assert abs(chi - 255) < 5 * np.sqrt(2 * 255)
    z = (u - 0.5) * np.sqrt(12)
    neighbours = {"elements": (z[:, 1:], z[:, :-1]), "elements of one generator": (z[:, 4:], z[:, :-4]), "lanes": (z[1:], z[:-1])}
    for name, (a, b) in neighbours.items():
        assert abs((a * b).mean()) < 5 / np.sqrt(a.size), name
    assert np.unique(x).size > n - 20  # of 2^32: two in n^2 / 2^33 = 0.5 pairs are equal


@pytest.mark.parametrize("engine, words, target", [("gpsimd", 6, "trn2"), ("vector", 24, "trn3")])
def test_a_state_that_was_read_goes_on_where_it_was(engine, words, target):
    on = f"engine=nisa.engine.{engine}"
    body = f"""
state, other = nl.ndarray(({LANES}, {words}), nl.uint32), nl.ndarray(({LANES}, 9), nl.uint32)
x, y = (nl.ndarray(({LANES}, {N // 2}), nl.uint32) for _ in range(2))
nisa.set_rng_seed(nl.load(s), {on})
nisa.rng(other, {on})
nisa.rand_get_state(state, {on})
nisa.rng(x, {on})
nisa.set_rng_seed(nl.load(s), {on})
nisa.rng(other, {on})
nisa.rand_set_state(state, {on})
nisa.rng(y, {on})
nl.store(out[:, 0:{N // 2}], x)
nl.store(out[:, {N // 2}:], y)
"""
    got = drawn(body, target, s=np.array([[77]], np.uint32))
    np.testing.assert_array_equal(got[:, :N // 2], got[:, N // 2:])


def test_the_engines_have_generators_of_their_own():
    """What one engine draws does not change the numbers of the other."""
    body = f"""
x, y = nl.ndarray(({LANES}, {N}), nl.uint32), nl.ndarray(({LANES}, 5), nl.uint32)
nisa.set_rng_seed(nl.load(s), engine=nisa.engine.vector)
nisa.set_rng_seed(nl.load(s), engine=nisa.engine.gpsimd)
nisa.rng(y, engine=nisa.engine.gpsimd)
nisa.rng(x, engine=nisa.engine.vector)
nl.store(out, x)
"""
    np.testing.assert_array_equal(drawn(body, s=np.array([[1]], np.uint32)), of_seed(1))


@pytest.mark.parametrize("low, high", [(0.0, 1.0), (-3.0, 5.0), (7.0, 7.0)])
def test_rand2_is_between_its_bounds_and_even(low, high):
    body = f"x = nl.ndarray(({LANES}, {N}), nl.float32)\nnisa.rand2(x, {low}, {high})\nnl.store(out, x)"
    x = drawn(body, "trn3", dtype="float32", s=np.zeros((1, 1), np.uint32)).astype(np.float64)
    assert x.min() >= low and x.max() <= high
    assert abs(x.mean() - (low + high) / 2) <= 5 * (high - low) * np.sqrt(1 / 12 / x.size)
    if high > low:
        counts, _ = np.histogram(x, 64, (low, high))
        assert abs(((counts - x.size / 64) ** 2 / (x.size / 64)).sum() - 63) < 5 * np.sqrt(2 * 63)


@pytest.mark.parametrize("prob", [0.1, 0.5, 0.9])
def test_dropout_drops_the_share_that_it_is_given(prob):
    body = f"x = nl.ndarray(({LANES}, {N}), nl.float32)\nnisa.memset(x, 2.5)\nnisa.dropout(x, x, {prob})\nnl.store(out, x)"
    x = drawn(body, dtype="float32", s=np.zeros((1, 1), np.uint32))
    assert set(np.unique(x)) == {0, 2.5}
    assert abs((x == 0).mean() - prob) < 5 * np.sqrt(prob * (1 - prob) / x.size)
