"""Runs the texts of nki-ast and nki-trace as kernels, for the checks of these stages.

The functions of nki-ast are those of the source: they are executed in place of the kernel's, with its other names.  A line that
nki-ast showed wrongly would compute something else.  Classes stay those of the source, because values of them exist already.
nki-trace is a function that calls NKI: it is executed with the names of NKI alone.
"""
import ast
import inspect

import _nkx
import numpy as np
from nkx import nki_ast, nki_grid, nki_names

BETA_1 = 1
_LEFT_OUT = "# … "  # compiler/nki/print.c


def _refuse(why):
    nki_names.refuse(_nkx.NkiUnsupported, why)


def _executed(tree, names, stage):
    exec(compile(ast.fix_missing_locations(tree), f"<{stage}>", "exec"), names)


def _of_source(kernel, text):
    function = nki_ast._function(kernel)
    names = dict(nki_ast._names(function))
    tree = ast.parse(text)
    tree.body = [n for n in tree.body if isinstance(n, ast.FunctionDef)]
    if not any(n.name == function.__name__ for n in tree.body):
        _refuse("the source of the kernel is not known")
    _executed(tree, names, "nki-ast")
    return nki_ast._function(names[function.__name__])


def _of_calls(generation, text):
    if _LEFT_OUT in text:
        _refuse("rounds of loops are left out of its text; nki-reroll has all of them")
    tree = ast.parse(text)
    [function] = tree.body
    for a in function.args.args:
        a.annotation = None
    if generation == BETA_1:
        import neuronxcc.nki as nki
        from neuronxcc.nki import isa, language
    else:
        import nki
        from nki import isa, language
    names = {"np": np, "nki": nki, "nl": language, "nisa": isa}
    _executed(tree, names, "nki-trace")
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
    launch = nki_grid.of(grid, generation)
    if not is_source and grid is not None:
        _refuse("its text has one instance of a launch")
    try:
        function = _of_source(kernel, text) if is_source else _of_calls(generation, text)
        bound = inspect.signature(function).bind(*(args if is_source else arrays), **(kwargs if is_source else {}))
    except (SyntaxError, NameError, TypeError, ValueError) as e:
        _refuse(f"its text is not a kernel by itself: {e}")
    bound.apply_defaults()
    try:
        return _run(function, generation, dict(bound.arguments), target, launch)
    except (NameError, AttributeError, TypeError, SyntaxError, RuntimeError, ValueError) as e:
        _refuse(f"its text cannot be run by itself: {e}")
