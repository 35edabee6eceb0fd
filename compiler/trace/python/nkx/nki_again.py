"""Runs the texts of nki-ast and nki-trace as kernels, for the checks of these stages.

The functions of nki-ast are those of the source: they are executed in place of the kernel's, with its other names.  A line that
nki-ast showed wrongly would compute something else.  Classes stay those of the source, because values of them exist already.
nki-trace is a function that calls NKI: it is executed with the names of NKI alone.

A text that shows less than the kernel says why it is not run (nki-unsupported).  Any other error is the text's own: the check of
its stage fails.
"""
import ast
import inspect
import re
import types

import _nkx
import numpy as np
from nkx import nki_ast, nki_grid, nki_names, rounds

BETA_1 = 1
# What texts of calls show that Python cannot run: a pattern, and the reason.  compiler/nki/print.c and nki_written.py write it.
_LEFT_OUT = [(re.compile(pattern, re.MULTILINE), why) for pattern, why in (
    (r"^ *# … ", "rounds of loops are left out of its text; nki-reroll has all of them"),
    (r"^  # core \d", "its text has the calls of two cores, which run side by side"),
    (r"^ *while True:$", "its text has calls that compute the condition of a loop on the device, and no name for the loop"),
    (r"<\w+ array of the shape ", "its text does not have the elements of a constant"),
    ("…", "its text leaves out a part of a call"))]


def _refuse(why):
    nki_names.refuse(_nkx.NkiUnsupported, why)


def _executed(tree, text, names, stage):
    rounds.change(tree, text)  # tests of `while` and `if` may be registers
    exec(compile(ast.fix_missing_locations(tree), f"<{stage}>", "exec"), names)


def _reached(function):
    """{name: the functions of that name} of those that a function uses, directly or indirectly, and of itself."""
    found, queue, seen = {}, [function], set()
    for f in queue:
        if f in seen:
            continue
        seen.add(f)
        found.setdefault(f.__name__, []).append(f)
        codes = [f.__code__]
        for code in codes:  # those of nested functions and comprehensions, too
            codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        names = nki_ast._names(f)
        used = (names.get(n) for code in codes for n in (*code.co_names, *code.co_freevars))
        queue += [g for g in map(nki_ast._function, used) if g is not None]
    return found


def _of_source(kernel, text):
    """The kernel, made of the text.  Each function gets the names of its own module; where two have one name, both stay."""
    function = nki_ast._function(kernel)
    found = {name: same[0] for name, same in _reached(function).items() if len(same) == 1 or name == function.__name__}
    tree = ast.parse(text)
    defined = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in found]
    if not any(n.name == function.__name__ for n in defined):
        _refuse("the source of the kernel is not known")
    made, spaces = {}, []
    for n in defined:
        spaces.append(dict(nki_ast._names(found[n.name])))
        _executed(ast.Module([n], []), text, spaces[-1], "nki-ast")
        made[found[n.name]] = spaces[-1][n.name]
    for names in spaces:
        names.update({name: made[f] for name, o in names.items() if (f := nki_ast._function(o)) in made})
    return nki_ast._function(made[function])


def _is_shared(statement):
    call = getattr(statement, "value", None)
    return isinstance(call, ast.Call) and any(k.arg == "buffer" and ast.unparse(k.value) == "nl.shared_hbm" for k in call.keywords)


def _share(function):
    """Instances of a launch share the tensors in shared_hbm, which each of them makes: only the first one's are made."""
    made, body = set(), []
    for s in function.body:
        said = ast.unparse(s) if _is_shared(s) else None
        if said is None or said not in made:
            body.append(s)
        made.add(said)
    function.body = body


def _of_calls(generation, text, is_launched):
    for pattern, why in _LEFT_OUT:
        if pattern.search(text):
            _refuse(why)
    tree = ast.parse(text)
    [function] = tree.body
    for a in function.args.args:
        a.annotation = None
    if is_launched:
        _share(function)
    if generation == BETA_1:
        import neuronxcc.nki as nki
        from neuronxcc.nki import isa, language
    else:
        import nki
        from nki import isa, language
    names = {"np": np, "nki": nki, "nl": language, "nisa": isa}
    _executed(tree, text, names, "nki-trace")
    return names[function.name]


def _run(function, generation, arguments, target, launch):
    if generation == BETA_1:
        from nkx import nki_beta1_kernel
        function = nki_beta1_kernel.entry(function)
    return _nkx.nki_run(function, arguments, target, launch)


def evaluate(kernel, generation, is_source, text, args, kwargs, arrays, target, grid):
    """The outputs of the kernel, from the text of nki-ast or of nki-trace.

    args, kwargs: of the kernel's call; arrays: those among them, in the order of its parameters; grid: of its launch, or None.
    """
    function = _of_source(kernel, text) if is_source else _of_calls(generation, text, grid is not None)
    bound = inspect.signature(function).bind(*(args if is_source else arrays), **(kwargs if is_source else {}))
    bound.apply_defaults()
    launch = nki_grid.of(grid if is_source else None, generation)  # calls are those of all instances
    return _run(function, generation, dict(bound.arguments), target, launch)
