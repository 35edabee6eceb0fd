"""Each element type that an operand of a call takes: what is read is converted to float32, what is written is rounded from it.

The forms of nki_forms.py have models of their own for the usual types.  Here each type that no form has is tried; where the compiler
takes it, the call must give the same as with float32 numbers of the same values, rounded to the type if it is that of the result.
"""
import collections
import dataclasses

import numpy as np
import pytest

from nki_kernels.test_forms import FORMS
from support import compiler
from support.nki_forms import HEAD, TARGETS, TYPES, Kernel, Out, Tile, f32, random, stored

AT_ONCE = 40


def type_of(v):
    return v.kind or v.array.dtype.name if isinstance(v, Tile) else v.dtype


def with_type(v, name):
    """The operand with elements of this type, and with the same values as float32."""
    if isinstance(v, Tile):
        array = random("element types", name, v.array.shape)
        return Tile(array, v.form), Tile(f32(array), v.form)
    before = None if v.before is None else stored(f32(v.before), name)
    return (dataclasses.replace(v, dtype=name, before=before, bits=None),
            dataclasses.replace(v, dtype="float32", before=None if before is None else f32(before), bits=None))


def untried(target):
    """[(call, operand, type, form, the same in float32)] of the types that no form has."""
    forms = [f for some in FORMS.values() for f in some if target in f.targets]
    tried, first = collections.defaultdict(set), {}
    for f in forms:
        for p, v in f.arguments.items():
            if isinstance(v, (Tile, Out)):
                tried[f.call, p].add(type_of(v))
                if not f.after and type_of(v) == "float32":
                    first.setdefault((f.call, p), f)
    out = []
    for (call, p), form in first.items():
        for name in TYPES:
            if name not in tried[call, p]:
                new, plain = with_type(form.arguments[p], name)
                out.append((call, p, name, *(dataclasses.replace(form, arguments={**form.arguments, p: v}) for v in (new, plain))))
    return out


def taken(cases, target):
    """Those that the compiler takes."""
    out = []
    for k in range(0, len(cases), AT_ONCE):
        some, source = cases[k:k + AT_ONCE], HEAD
        for n, c in enumerate(some):
            source += Kernel([c[3]]).source.removeprefix(HEAD).replace("def forms(", f"def forms{n}(")
        result = compiler.compile(source, "--stop-after", "nki-to-nisa", "--target", target)
        refused = {d.get("kernel") for d in result["diagnostics"] if d["severity"] == "error"}
        names = [k["name"] for i, k in enumerate(result["kernels"]) if i not in refused]
        out += [c for n, c in enumerate(some) if f"forms{n}" in names]
    return out


def results(cases, which, target, wrong):
    """What each form writes, on the simulated machine: [{operand: array}]"""
    kernel = Kernel([c[which] for c in cases])
    got, problems = kernel.simulate(target)
    out = [{} for _ in cases]
    for name, _ in kernel.outputs if got is not None else ():
        parameter = name.removesuffix("_r").rstrip("0123456789")
        out[int(name.removesuffix("_r")[len(parameter):])][parameter] = got[name]
    for problem in problems:  # that of an output, by its number
        number = problem.partition(":")[0].removesuffix("_r").lstrip("abcdefghijklmnopqrstuvwxyz_")
        c = cases[int(number)] if number.isdigit() else cases[0]
        wrong.append(f"{c[0]}: {c[1]} is {c[2] if which == 3 else 'float32'}: {problem}")
    return out


def differs(got, plain, operand, name):
    """The operand in which they differ, or None."""
    for p, want in plain.items() if got else ():
        want = stored(f32(want), name) if p == operand else want
        if not np.array_equal(f32(got[p]), f32(want), equal_nan=True):
            return p
    return None


@pytest.mark.parametrize("target", TARGETS)
def test_each_type_that_an_operand_takes_has_a_value(target):
    cases, wrong = taken(untried(target), target), []
    assert len(cases) > 200
    for k in range(0, len(cases), AT_ONCE):
        some = cases[k:k + AT_ONCE]
        with np.errstate(all="ignore"):
            for c, got, plain in zip(some, *(results(some, n, target, wrong) for n in (3, 4)), strict=True):
                p = differs(got, plain, c[1], c[2])
                wrong += [f"{c[0]}: {c[1]} is {c[2]}: {p} differs"] if p else []
    assert not wrong, "\n".join(wrong)
