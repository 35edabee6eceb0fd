"""nkx doc on the command line: what a call of NKI or an instruction does."""
import subprocess

import pytest

from support.paths import NKX, WORKER


def doc(*arguments, program=NKX):
    done = subprocess.run([program, "doc", *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_a_call_is_shown_with_signature_operands_engines_limits_cost_and_an_example():
    status, out, err = doc("nc_matmul")
    assert (status, err) == (0, "") and out.startswith("nisa.nc_matmul(dst, stationary, moving, is_stationary_onezero=None,")
    rows = [line.split(maxsplit=1) for line in out.splitlines()]
    labels = [r[0] for r in rows if r]
    assert [x for x in labels if x in ("operands", "engines", "limits", "becomes", "cost", "example")] == \
        ["operands", "engines", "limits", "becomes", "cost", "example"]
    assert "written; psum" in out and "M at most 128 columns of stationary" in out and "  engines   tensor\n" in out
    assert "nisa.nc_matmul(dst=dst, stationary=stationary, moving=moving)" in out


@pytest.mark.parametrize("name", ["load", "nl.load", "nki.language.load"])
def test_a_function_of_nki_language_has_several_names(name):
    status, out, _ = doc(name)
    assert status == 0 and out.startswith("nl.load(src, dtype=None)\n") and "nisa.dma_copy" in out


def test_a_name_of_both_shows_the_call_and_then_the_instruction():
    status, out, _ = doc("nisa.tensor_copy")
    assert status == 0 and out.index("nisa.tensor_copy(dst, src") < out.index("\nnisa.tensor_copy\n")
    assert "sum over k" in doc("nisa.matmul")[1] and "nl.matmul" in doc("matmul")[1]


@pytest.mark.parametrize("wrong, right", [("nc_matmull", "nisa.nc_matmul"), ("tensor_tenser", "nisa.tensor_tensor"), ("nl.softmux", "nl.softmax"),
                                          ("transpose2d", "nl.load_transpose2d"), ("dmacopy", "nisa.dma_copy")])
def test_a_misspelt_name_gets_suggestions(wrong, right):
    status, out, err = doc(wrong)
    assert (status, out) == (1, "") and f"nothing is called {wrong}" in err and "did you mean" in err and right in err


def test_a_name_that_is_like_none_gets_the_way_to_the_list():
    assert doc("xyzzy" * 30)[2].endswith("`nkx doc --list` prints all names.\n")
    names = doc("--list")[1].split()
    assert len(names) == len(set(names)) + len([n for n in names if names.count(n) > 1]) // 2
    assert {"nisa.nc_matmul", "nl.load", "nl.exp", "nisa.matmul", "nl.tile_size.pmax"} <= set(names)


@pytest.mark.parametrize("arguments", [(), ("a", "b"), ("--all",)])
def test_wrong_usage_is_said(arguments):
    status, out, err = doc(*arguments)
    assert (status, out) == (2, "") and err.startswith("usage: nkx doc NAME")


def test_both_programs_have_the_command():
    assert doc("--help")[1] == doc("--help", program=WORKER)[1] != ""
