"""one-shot-bufferize keeps what a module computes where an argument has many readers (reads.c), and where one of them is a writer."""
import re

import pytest

from support import values


def module(rng, dims, kind, readers, write=None, nested=False):
    """Sums slices of %x, in order; after `write` of them, something is inserted into %x, of which later ones read."""
    rows, cols = dims
    t, part = f"tensor<{rows}x{cols}x{kind}>", f"tensor<1x{cols}x{kind}>"
    lines, acc, x = [], "%start", "%x"
    for k in range(readers):
        row = int(rng.integers(0, rows))
        if k == write:
            lines.append(f"%w = tensor.insert_slice {acc} into %x[{row}, 0] [1, {cols}] [1, 1] : {part} into {t}")
            x = "%w"
        source = x if k % 3 else "%x"  # some read what was there before
        whole = nested and k % 2
        if whole:
            lines.append(f"%n{k} = tensor.extract_slice {source}[0, 0] [{rows}, {cols}] [1, 1] : {t} to {t}")
        lines += [
            f"%s{k} = tensor.extract_slice {f'%n{k}' if whole else source}[{row}, 0] [1, {cols}] [1, 1] : {t} to {part}",
            f"%e{k} = tensor.empty() : {part}",
            f"%r{k} = linalg.add ins({acc}, %s{k} : {part}, {part}) outs(%e{k} : {part}) -> {part}",
        ]
        acc = f"%r{k}"
    body = "\n  ".join(lines)
    return f"""
func.func @f(%x: {t}, %start: {part}) -> {part} {{
  {body}
  return {acc} : {part}
}}"""


SHAPES = [(130, 517), (1, 1), (7, 1), (1, 33), (128, 128)]


@pytest.mark.parametrize("kind", ["f32", "bf16", "i8", "i32"])
@pytest.mark.parametrize("dims", SHAPES)
def test_an_argument_with_many_readers_keeps_its_values_and_is_not_copied(rng, dims, kind):
    text = module(rng, dims, kind, 20, nested=True)
    after = values.check(text, "one-shot-bufferize", rng)
    assert "memref.copy" not in after and "memref.cast %arg0" not in after and "bufferization." not in after
    assert len(re.findall(r"memref.subview %arg0\[", after)) == 20


@pytest.mark.parametrize("kind", ["f32", "i32"])
@pytest.mark.parametrize("dims", SHAPES[:3])
@pytest.mark.parametrize("write", [0, 9, 19])
def test_an_argument_that_is_written_too_keeps_its_values(rng, dims, kind, write):
    values.check(module(rng, dims, kind, 20, write), "one-shot-bufferize", rng)


@pytest.mark.parametrize("readers", [11, 12, 13])
def test_few_and_many_readers_give_the_same_text_but_for_their_number(rng, readers):
    after = values.check(module(rng, (16, 24), "f32", readers), "one-shot-bufferize", rng)
    assert len(re.findall(r"memref.subview %arg0\[\d+, 0\] \[1, 24\] \[1, 1\] : "
                          r"memref<16x24xf32, strided<\[\?, \?\], offset: \?>>", after)) == readers
