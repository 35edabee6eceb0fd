"""knob-driven-fusion keeps what a module computes: chains with tails, different operations inside, three values."""
import re

import pytest

from support import values

PASS = "knob-driven-fusion"



def nest(name, op, init, rows, tile, cols, ctile, sub):
    """A value computed tile by tile; a last tile of its own where the size is not a multiple."""
    t = f"tensor<{rows}x{cols}xf32>"
    out, at = "", init

    def block(lines, i, j, h, w, dest, result, indent):
        p = " " * indent
        s = f"tensor<{h}x{w}xf32>"
        k = f"{name}{len(lines)}"
        lines.append(f"""{p}%a{k} = tensor.extract_slice %a[{i}, {j}] [{h}, {w}] [1, 1] : {t} to {s}
{p}%b{k} = tensor.extract_slice %b[{i}, {j}] [{h}, {w}] [1, 1] : {t} to {s}
{p}%o{k} = tensor.extract_slice {dest}[{i}, {j}] [{h}, {w}] [1, 1] : {t} to {s}
{p}%r{k} = {op} ins(%a{k}, %b{k} : {s}, {s}) outs(%o{k} : {s}) -> {s}
{p}{result} = tensor.insert_slice %r{k} into {dest}[{i}, {j}] [{h}, {w}] [1, 1] : {s} into {t}""")

    lines = []
    main = rows - rows % tile
    for part, (lo, hi, h) in enumerate([(0, main, tile), (main, rows, rows % tile)]):
        if lo == hi:
            continue
        v = f"%{name}p{part}"
        k = f"{name}{part}"
        cmain = cols - cols % ctile
        if part == 0:
            lines.append(f"""  %lo{k} = arith.constant {lo} : index
  %hi{k} = arith.constant {hi} : index
  %st{k} = arith.constant {h} : index
  %cz{k} = arith.constant 0 : index
  %ce{k} = arith.constant {cmain} : index
  %cs{k} = arith.constant {ctile} : index
  {v} = scf.for %i{k} = %lo{k} to %hi{k} step %st{k} iter_args(%t{k} = {at}) -> ({t}) {{
    %in{k} = scf.for %j{k} = %cz{k} to %ce{k} step %cs{k} iter_args(%u{k} = %t{k}) -> ({t}) {{""")
            block(lines, f"%i{k}", f"%j{k}", h, ctile, f"%u{k}", f"%w{k}", 6)
            lines.append(f"      scf.yield %w{k} : {t}\n    }}")
            last = f"%in{k}"
            if cols % ctile:
                block(lines, f"%i{k}", str(cmain), h, cols % ctile, last, f"%l{k}", 4)
                last = f"%l{k}"
            lines.append(f"    scf.yield {last} : {t}\n  }}")
        else:
            block(lines, str(lo), "0", h, cols, at, v, 2)
        at = v
    lines.append(sub.replace("$", at))
    return "\n".join(lines), at


def module(ops, rows, tile, cols, ctile, between=""):
    t = f"tensor<{rows}x{cols}xf32>"
    text, results = f"func.func @f(%a: {t}, %b: {t}) -> ({', '.join([t] * len(ops))}) {{\n", []
    for k, op in enumerate(ops):
        lines, v = nest(f"n{k}_", op, f"%e{k}", rows, tile, cols, ctile,
                        f'  "nkipy.layout"($) {{mem_space = 4 : i32}} : ({t}) -> ()')
        text += f"  %e{k} = tensor.empty() : {t}\n" + lines + "\n" + between
        results.append(v)
    names, types = ", ".join(results), ", ".join([t] * len(ops))
    return text + f'  "nkipy.fuse_op"({names}) : ({types}) -> ()\n  return {names} : {types}\n}}\n'


@pytest.mark.parametrize("rows,tile,cols,ctile", [(16, 4, 12, 6), (16, 16, 12, 12), (18, 4, 13, 6), (17, 8, 8, 8), (130, 128, 517, 256)])
@pytest.mark.parametrize("ops", [("linalg.add", "linalg.add"), ("linalg.add", "linalg.mul", "linalg.sub")])
def test_fused_sibling_loops_keep_their_values(rng, rows, tile, cols, ctile, ops):
    text = module(ops, rows, tile, cols, ctile)
    after = values.check(text, PASS, rng)
    assert text.count("scf.for") == 2 * len(ops) and after.count("scf.for") == 2
    assert "fuse_op" not in after and after.count("nkipy.layout") == len(ops)


def test_what_the_second_loop_reads_moves_before_the_first(rng):
    """The second nest reads exp(a), which is computed after the first nest."""
    text = module(("linalg.add", "linalg.mul"), 16, 4, 12, 6)
    t = "tensor<16x12xf32>"
    head, tail = text.split("  %e1 = tensor.empty()")
    tail = tail.replace("tensor.extract_slice %b[", "tensor.extract_slice %x[")
    text = f"{head}  %ee = tensor.empty() : {t}\n  %x = linalg.exp ins(%b : {t}) outs(%ee : {t}) -> {t}\n  %e1 = tensor.empty(){tail}"
    after = values.check(text, PASS, rng)
    assert after.count("scf.for") == 2


SHAPES = [(16, 4, 12, 6), (18, 4, 13, 6), (17, 8, 8, 8), (16, 16, 12, 12), (130, 128, 517, 256)]


def producer_and_consumer(rows, tile, cols, ctile, reads, returned="%n1_p"):
    """The second nest reads the first one's value where it would read %b: `reads` says which part."""
    text = module(("linalg.add", "linalg.mul"), rows, tile, cols, ctile)
    first = re.findall(r'fuse_op"\((%\w+), (%\w+)\)', text)[0][0]
    head, tail = text.split("  %e1 = tensor.empty()")
    return f"{head}  %e1 = tensor.empty()" + re.sub(r"tensor\.extract_slice %b\[([^]]*)\]", rf"tensor.extract_slice {first}[{reads}]", tail)


@pytest.mark.parametrize("rows, tile, cols, ctile", SHAPES)
def test_a_loop_is_fused_with_one_that_reads_its_tiles(rng, rows, tile, cols, ctile):
    text = producer_and_consumer(rows, tile, cols, ctile, r"\1")
    after = values.check(text, PASS, rng)
    assert after.count("scf.for") == 2 and "fuse_op" not in after


@pytest.mark.parametrize("rows, tile, cols, ctile", [(16, 4, 12, 6), (16, 16, 12, 12), (16, 8, 13, 13)])
def test_a_value_that_only_the_fused_loops_read_is_as_large_as_a_tile(rng, rows, tile, cols, ctile):
    text = producer_and_consumer(rows, tile, cols, ctile, r"\1")
    first, second = re.findall(r'fuse_op"\((%\w+), (%\w+)\)', text)[0]
    t = f"tensor<{rows}x{cols}xf32>"
    text = text.replace(f"return {first}, {second} : {t}, {t}", f"return {second} : {t}").replace(f"-> ({t}, {t}) {{\n", f"-> {t} {{\n", 1)
    after = values.check(text, PASS, rng)
    assert not re.search(rf"scf\.for .*{t}, {t}", after) and after.count("nkipy.layout") == 1


def test_a_loop_that_reads_other_tiles_than_are_computed_is_refused_with_the_dimension():
    text = producer_and_consumer(16, 4, 12, 12, "0, 0")
    with pytest.raises(values.Refused, match="it reads more of dimension 0 of the value"):
        values.opt(text, PASS)


def test_loops_are_fused_in_any_order_of_the_knob(rng):
    text = module(("linalg.add", "linalg.sub"), 16, 4, 12, 6)
    text = text.replace('"nkipy.fuse_op"(%n0_p0, %n1_p0)', '"nkipy.fuse_op"(%n1_p0, %n0_p0)')
    assert values.check(text, PASS, rng).count("scf.for") == 2
