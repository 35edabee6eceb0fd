"""The analysis of an NKI kernel before it is traced: the stage nki-ast, and all violations that the source shows.

    nki_source.py   texts, places, names and signatures of NKI
    nki_values.py   what is known about expressions: constants, tensors, loops
    nki_subset.py   the Python that a kernel may contain
    nki_calls.py    names and calls of NKI
    nki_check.py    the walk over the functions of a kernel
    nki_text.py     the text of the stage

Nothing here runs code of the user: the syntax trees are read, and the globals of modules that were imported are looked up.
"""
import ast
import functools
import sys
import types

from nkx import nki_check, nki_source, nki_subset, nki_text
from nkx.nki_values import RANGES, Tensor

_FUNCTIONS_MOST = 200  # functions and classes that a kernel reaches
_OF_BETA_2 = {*RANGES, "ndarray", "ds", "program_id", "num_programs", "program_ndim", "no_reorder", "device_print", "tile_size",
              "shared_constant", "shared_identity_matrix", "par_dim"}


class Findings:
    """Violations: (severity, code, message, hint, place), each once."""

    def __init__(self):
        self.list, self._known, self._deprecated = [], set(), set()

    def add(self, code, place, message, hint=None, severity="error"):
        key = code, place
        is_again = code == "nki-deprecated" and message in self._deprecated  # one warning for each name is enough
        if key not in self._known and not is_again:
            self._known.add(key)
            self.list.append((severity, code, message, hint, place))
        if code == "nki-deprecated":
            self._deprecated.add(message)


def _function(o):
    """The Python function that an object of a module is or wraps; None if it is none.  No attribute of the user's is read."""
    for _ in range(10):
        if type(o) is types.FunctionType:
            wrapped = vars(o).get("__wrapped__")
            if wrapped is None:
                return o
            o = wrapped
        elif isinstance(o, (staticmethod, classmethod)):
            o = o.__func__
        elif type(o) is functools.partial:
            o = o.func
        elif type(o).__module__ == "nkx" and type(o).__name__ == "Kernel":
            o = o.func
        else:
            return None
    return None


def _names(function):
    """The names that a function can use without binding them: those of its module, and of the functions around it."""
    cells = dict.fromkeys(function.__code__.co_freevars)
    for name, cell in zip(cells, function.__closure__ or ()):
        try:
            cells[name] = cell.cell_contents
        except ValueError:  # not bound yet
            pass
    return {**function.__globals__, **cells} if cells else function.__globals__


class Program:
    def __init__(self, texts):
        self.texts, self.classes = texts, None

    def file(self, name):
        text = self.texts.get(name)
        return nki_source.file(name, text) if text is not None else None

    def tree_of(self, function):
        """(File, syntax tree) of a function; (None, None) if it is not the user's, or a lambda."""
        code = function.__code__
        f = self.file(code.co_filename)
        node = f.source.functions.get((code.co_firstlineno, code.co_name)) if f else None
        return (f, node) if node is not None else (None, None)

    def tree_of_class(self, cls):
        if self.classes is None:
            files = [self.file(name) for name in self.texts if self.texts[name].find("class ") >= 0]
            self.classes = {}
            for f in files:
                for node in ast.walk(f.source.tree):
                    if isinstance(node, ast.ClassDef):
                        self.classes.setdefault(node.name, (f, node))
        return self.classes.get(cls.__name__, (None, None))

    def is_of_user(self, cls):
        return self.tree_of_class(cls)[1] is not None

    def used(self, function):
        """The functions and classes of the user that a function names."""
        for n in ast.walk(function.node):
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and not function.values.lookup(n.id)[0]:
                o = function.names.get(n.id)
            elif isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name):
                m = function.names.get(n.value.id)
                o = vars(m).get(n.attr) if type(m) is types.ModuleType else None
            else:
                continue
            if type(o) in (type, types.FunctionType) or _function(o) is not None or isinstance(o, type):
                yield o


def _generation_text(function, generation):
    if generation == 1:
        return "NKI beta 1, of neuronxcc.nki"
    for n in ast.walk(function.node):
        api = function.values.api(n.func) if isinstance(n, ast.Call) else None
        if api and api.module == "language" and api.name and api.name.partition(".")[0] not in _OF_BETA_2:
            return f"NKI GA, because it calls nl.{api.name}"
    return "NKI beta 2 or GA"


def _walk(function, add, is_cut=False):
    walk = nki_check.Walk(function, add)
    walk.is_cut = is_cut
    walk.run()


def _reach(program, kernel, add):
    """The blocks of the text after the kernel's: what it calls, directly or indirectly."""
    blocks, seen, queue = [], {id(kernel.node)}, [kernel]
    while queue and len(blocks) < _FUNCTIONS_MOST:
        user = queue.pop(0)
        for o in program.used(user):
            if isinstance(o, type):
                f, node = program.tree_of_class(o)
            else:
                f, node = program.tree_of(_function(o))
            if node is None or id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(o, type):
                names = vars(sys.modules[o.__module__]) if o.__module__ in sys.modules else user.names
                if user.is_strict:
                    nki_subset.check_class(node, f, program.classes, add)
                functions = [nki_check.Function(s, f, names, "helper", kernel.generation) for s in node.body
                             if isinstance(s, ast.FunctionDef)]
                title = f"class {node.name}, used by {user.node.name}: compile time"
            else:
                is_certain = any(user.names.get(n) is o for n in user.calls)
                functions = [nki_check.Function(node, f, _names(_function(o)), "helper", kernel.generation, is_certain=is_certain)]
                title = f"{node.name}, called by {user.node.name}: inlined"
            for function in functions:
                _walk(function, add)
            blocks.append(nki_text.Block(title, node, f, functions))
            queue += functions
    return blocks


def _first(finding):
    return finding[4] or ("", 0, 0, 0, 0)


def analyse(fn, generation, texts, params, is_cut=False):
    """is_cut: a syntax error ends the kernel early.  texts: {file name, as in code objects: text}; params: {name: (dtype, shape)} of the tensors among the arguments.
    ([(line, name of its kind, place), …], [(severity, code, message, hint, place), …])"""
    function = _function(fn)
    program = Program(texts)
    try:
        file, node = program.tree_of(function) if function else (None, None)
        if node is None:
            return [("# the source of this kernel is not known", None, None)], []
        known = {name: Tensor(tuple(shape), "shared_hbm", dtype) for name, (dtype, shape) in params.items()}
        found = Findings()
        kernel = nki_check.Function(node, file, _names(function), "kernel", generation, known)
        _walk(kernel, found.add, is_cut)
        title = f"kernel {node.name}: {_generation_text(kernel, generation)}"
        blocks = [nki_text.Block(title, node, file, [kernel])] + _reach(program, kernel, found.add)
        return nki_text.lines(blocks), sorted(found.list, key=_first)
    except RecursionError:
        return [("# the kernel is nested too deeply to be analysed", None, None)], []
