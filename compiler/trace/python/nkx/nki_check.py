"""Walks the functions of a kernel and finds what is wrong with them: the rules of nki_subset and nki_calls at each node, and
what needs the surroundings: operators and truth values of tensors, device loops, scopes of beta 1, unknown names.

What only happens under a condition is not refused for an unknown name; and under a condition on types or on what a module
has, nothing is refused that depends on what a value is.
"""
import ast
import builtins
import difflib

import _nkx
from nkx import nki_calls, nki_device, nki_source, nki_subset
from nkx.nki_values import Loop, Register, Tensor, Values, bindings

_SYMBOLS = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.Pow: "power", ast.Mod: "mod",
            ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor", ast.LShift: "left_shift",
            ast.RShift: "right_shift", ast.Eq: "equal", ast.NotEq: "not_equal", ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater",
            ast.GtE: "greater_equal", ast.USub: "negative", ast.Invert: "invert"}
_TYPE_TESTS = {"isinstance", "issubclass", "hasattr", "getattr", "callable", "type"}
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _writes_parameter(node, function):
    """True if the node is a call that may write one of the function's parameters, which is then a result."""
    if not isinstance(node, ast.Call):
        return False
    names = {a.arg for a in function.args.args}
    for target in [*node.args[:1], *(k.value for k in node.keywords if k.arg == "dst")]:
        while isinstance(target, (ast.Subscript, ast.Attribute, ast.Call)):
            target = target.func if isinstance(target, ast.Call) else target.value
        if isinstance(target, ast.Name) and target.id in names:
            return True
    return False


class Function:
    """A function to walk.  role: "kernel", "inner" (defined inside of a kernel) or "helper"."""

    def __init__(self, node, file, names, role, generation, params=None, outer=None, is_certain=False):
        self.node, self.file, self.names, self.role, self.generation = node, file, names, role, generation
        self.values = Values(file, names, bindings(node), params or {}, outer)
        self.inner = {}  # by the identity of their trees: the functions inside
        self.calls = set()  # names of functions of the module that it calls, whatever its conditions are
        self.is_certain = is_certain or role == "kernel"  # it is called, whatever the kernel's conditions are

    @property
    def is_strict(self):
        return self.role != "helper"


def _changes_its_target(node):
    """True for t += x, and for t = nl.loop_reduce(x, …), which go on with the tile that t is."""
    if isinstance(node, ast.AugAssign):
        return True
    call = node.value if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    return isinstance(call, ast.Call) and getattr(call.func, "attr", getattr(call.func, "id", None)) == "loop_reduce"


def _source(node):
    text = ast.unparse(node)
    return text if len(text) <= 30 else "…"


def _tests_types(node):
    """Whether a condition asks for types, or for what a module has."""
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and n.id in _TYPE_TESTS:
            return True
        if isinstance(n, ast.Compare) and any(isinstance(op, (ast.Is, ast.IsNot)) for op in n.ops):
            return True
    return False


class Walk:
    def __init__(self, function, add):
        self.f, self.file, self.values, self._add = function, function.file, function.values, add
        self.site = nki_calls.Site(function.file, function.values, function.generation, add)
        self.loops = []  # of the statements around: a Loop, or None
        self.device_names = set()
        self.conditions = int(not function.is_certain)
        self.may_have_left = False  # an if before the statement may have ended the function or the round
        self.doubts = self.no_reorder = 0
        self.branch = None  # the number of loops around the innermost branch on a register around the statement
        self.tensor_names = {}
        self.is_cut = False  # a syntax error ends the function early

    def add(self, code, place, message, hint=None, severity="error"):
        self._add(code, place, message, hint, severity)

    def run(self):
        node = self.f.node
        if self.f.is_strict:
            nki_subset.check_signature(node, self.file, self.f.generation, self.f.role == "kernel", self._add)
        for stmt in node.body if isinstance(node.body, list) else [node.body]:
            self.visit(stmt)
        if self.f.generation == 1 and not isinstance(node, ast.Lambda):
            self._check_scopes()
        elif self.f.role == "kernel" and not self.is_cut and not any(isinstance(n, ast.Return) and n.value is not None or _writes_parameter(n, node)
                                                 for n in ast.walk(node)):
            self.add("nki-output", self.file.header(node), "the kernel returns nothing",
                     "return the tensors in shared_hbm that it writes")

    # ---- the walk ----

    def visit(self, node, is_used=True):
        if self.f.is_strict:
            place = lambda code, at, *rest: self._add(code, at or self.file.place(node), *rest)
            nki_subset.check_node(node, self.file, self.f.generation, place)
        method = getattr(self, "_" + type(node).__name__.lower(), None)
        if method:
            method(node)
        elif isinstance(node, ast.Call):
            self._check_call(node, is_used)
        elif isinstance(node, _NESTED):
            self._nested(node)
        elif isinstance(node, _COMPREHENSIONS):
            self._comprehension(node)
        else:
            self.children(node)

    def children(self, node):
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, (ast.expr_context, ast.operator, ast.cmpop, ast.unaryop, ast.boolop)):
                self.visit(child)

    def visit_all(self, nodes):
        for n in nodes:
            self.visit(n)

    def _under(self, test, *blocks):
        """Blocks that run only under a condition."""
        doubts = _tests_types(test) if test is not None else False
        self.conditions += 1
        self.doubts += doubts
        for b in blocks:
            names = dict(self.tensor_names)  # what a block names is not there if another block runs
            self.visit_all(b)
            self.tensor_names = names
        self.conditions -= 1
        self.doubts -= doubts

    # ---- statements ----

    def _expr(self, node):
        self.visit(node.value, is_used=False)

    def _if(self, node):
        self._check_truth(node.test)
        self.visit(node.test)
        is_device = self._is_register(node.test)
        outer = self.branch
        self.branch = len(self.loops) if is_device else outer
        self._under(node.test, node.body, node.orelse)
        self.branch = outer
        self.may_have_left |= any(isinstance(n, (ast.Return, ast.Raise, ast.Break, ast.Continue)) for n in ast.walk(node))
        if is_device and isinstance(self.f.node, ast.FunctionDef):
            for name, at in nki_device.undecided(self.f.node, node):
                if not isinstance(self.values.known.get(name), Tensor):  # found when the kernel runs, unless it is made inside
                    self._refuse("nki-device-loop", at, f"which value {name} has after this branch is known on the device only",
                                 "keep the value in a register, with nisa.register_move, or in SBUF")

    def _is_register(self, node):
        return isinstance(self.values.of(node), Register) and self.f.generation > 1

    def _check_carried(self, body, given=()):
        for name, at in nki_device.carried(body, given):
            self._refuse("nki-device-loop", at, f"{name} would be carried from round to round, but the body of a loop on the device "
                         "is recorded once", "keep the value in a register, with nisa.register_move, or in SBUF")

    def _ifexp(self, node):
        self._check_truth(node.test)
        self.visit(node.test)
        self._under(node.test, [node.body], [node.orelse])

    def _while(self, node):
        self._check_truth(node.test)
        self.visit(node.test)
        is_device = self._is_register(node.test)
        self.loops.append(Loop("device") if is_device else None)
        self._under(node.test, node.body)
        self.loops.pop()
        if is_device:
            self._check_carried(node.body)
        self.visit_all(node.orelse)

    def _for(self, node):
        loop = self.values.of(node.iter)
        if isinstance(loop, Tensor):
            self._refuse("nki-tensor-operator", node.iter, "a tensor is no sequence", "iterate over a range, and index the tensor")
        self.visit(node.iter)
        self.visit(node.target)
        is_device = isinstance(loop, Loop) and loop.kind == "dynamic" and self.f.generation > 1
        if is_device and self.no_reorder:
            self._refuse("nki-device-loop", node.iter, "a loop on the device cannot be in nl.no_reorder()", "move the loop out")
        names = {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)} if is_device else set()
        names -= self.device_names
        self.device_names |= names
        self.loops.append(loop if is_device else None)
        rounds = loop.rounds if isinstance(loop, Loop) else None
        if rounds:
            self.visit_all(node.body)
        else:
            self._under(None, node.body)
        self.loops.pop()
        self.device_names -= names
        if is_device:
            self._check_carried(node.body, {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)})
        self.visit_all(node.orelse)

    def _try(self, node):
        self.doubts += 1
        self._under(None, node.body, node.handlers, node.orelse)
        self.doubts -= 1
        self.visit_all(node.finalbody)

    _trystar = _try

    def _with(self, node):
        ordered = 0
        for item in node.items:
            api = self.values.api(item.context_expr.func) if isinstance(item.context_expr, ast.Call) else None
            if api and str(api).endswith("language.no_reorder"):
                ordered += 1
                if item.optional_vars is not None and self.f.is_strict:
                    self.add("nki-unsupported-statement", self.file.place(item.optional_vars), "nl.no_reorder() gives no value",
                             "leave out as")
            elif self.f.is_strict and self.f.generation > 1:
                self.add("nki-unsupported-statement", self.file.place(item.context_expr),
                         "inside of a kernel, with has only nl.no_reorder()", "write the statements without with")
            self.visit(item.context_expr)
        self.no_reorder += ordered
        self.visit_all(node.body)
        self.no_reorder -= ordered

    def _leave(self, node, word, is_whole):
        inside = any(self.loops) if is_whole else bool(self.loops) and self.loops[-1] is not None
        if self.branch is not None and not inside and (is_whole or self.branch == len(self.loops)):
            self.add("nki-device-loop", self.file.place(node), f"{word} is not possible in a branch on a register",
                     "both branches are recorded: use nl.while_loop, whose condition ends the loop")
        elif inside and self.f.is_strict:
            self.add("nki-device-loop", self.file.place(node), f"{word} is not possible in a loop on the device",
                     "the number of rounds is fixed when the loop begins; compute it before")

    def _break(self, node):
        self._leave(node, "break", False)

    def _continue(self, node):
        self._leave(node, "continue", False)

    def _return(self, node):
        self._leave(node, "return", True)
        if node.value is None:
            return
        self.visit(node.value)
        if self.f.role == "kernel" and self.f.generation > 1:
            for n in node.value.elts if isinstance(node.value, (ast.Tuple, ast.List)) else [node.value]:
                v = self.values.of(n)
                if isinstance(v, Tensor) and v.space in ("sbuf", "psum", "hbm"):
                    self.add("nki-output", self.file.place(n), f"{_source(n)} is in {v.space}, but results are in shared_hbm",
                             "return what nl.ndarray(…, buffer=nl.shared_hbm) made")

    def _assign(self, node):
        self.visit(node.value)
        self.visit_all(node.targets)
        for t in node.targets:
            self._check_target(t)

    def _annassign(self, node):
        if node.value is not None:
            self.visit(node.value)
        self.visit(node.target)
        self._check_target(node.target)
        base = node.annotation.value if isinstance(node.annotation, ast.Subscript) else node.annotation
        api = self.values.api(base)
        if api and self.f.is_strict and self.f.generation > 1:
            self.add("nki-deprecated", self.file.place(node.annotation), "an annotation of a tensor has no effect here",
                     "leave it out, or assert the shape", "warning")

    def _augassign(self, node):
        self.visit(node.value)
        t = node.target
        v = self.values.of(t) if isinstance(t, ast.Name) else self.values.of(t.value) if isinstance(t, ast.Subscript) else None
        if isinstance(v, Tensor) and self.f.generation > 1:
            op = _SYMBOLS.get(type(node.op), "add")
            x, y = _source(t), _source(node.value)
            if isinstance(node.value, ast.Call) and (api := self.values.api(node.value.func)) and api.name == "nc_matmul":
                hint = f"nisa.nc_matmul(dst={x}, …) adds to what earlier products wrote"
            else:
                hint = f"write nisa.tensor_tensor(dst={x}, data1={x}, data2={y}, op=nl.{op})"
            self._refuse("nki-tile-assignment" if isinstance(t, ast.Subscript) else "nki-tensor-operator", node,
                         "an augmented assignment to a tensor is beta 1", hint)
        self._check_written(t)
        if isinstance(t, (ast.Subscript, ast.Attribute)):
            self.visit(t)

    def _check_target(self, t):
        if isinstance(t, (ast.Tuple, ast.List)):
            for e in t.elts:
                self._check_target(e)
        elif isinstance(t, ast.Subscript) and isinstance(self.values.of(t.value), Tensor) and self.f.generation > 1:
            self._refuse("nki-tile-assignment", t, "a part of a tensor cannot be assigned to",
                         f"write nisa.tensor_copy(dst={_source(t)}, src=…), or nl.store for HBM")
        self._check_written(t)

    def _check_written(self, t):
        if isinstance(t, ast.Name) and t.id in self.device_names:
            self._refuse("nki-device-loop", t, f"{t.id} counts the rounds of a loop on the device, and cannot be assigned to",
                         "bind the value to another name")

    # ---- expressions ----

    def _refuse(self, code, node, message, hint=None):
        if not self.doubts:
            self.add(code, self.file.place(node), message, hint)

    def _is_tensor(self, node):
        return isinstance(self.values.of(node), Tensor)

    def _check_truth(self, test):
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test = test.operand
        if self._is_tensor(test):
            self._refuse("nki-tensor-truth", test, f"a tensor has no truth value: the data of {_source(test)} is not known at compile time",
                         "compare sizes or other Python values; use nl.where for data")
        elif isinstance(self.values.of(test), Register):
            self.add("nki-deprecated", self.file.place(test), "later versions of NKI have no register in if and while",
                     "use nl.while_loop", "warning")

    def _boolop(self, node):
        for v in node.values:
            self._check_truth(v)
        self.visit(node.values[0])
        self._under(node.values[0], node.values[1:])

    def _unaryop(self, node):
        if isinstance(node.op, ast.Not):
            self._check_truth(node.operand)
        elif self._is_tensor(node.operand) and self.f.generation > 1:
            self._operator(node, node.op, [node.operand])
        self.visit(node.operand)

    def _binop(self, node):
        parts = [node.left, node.right]
        if any(map(self._is_tensor, parts)) and self.f.generation > 1:
            self._operator(node, node.op, parts)
        self.visit_all(parts)

    def _compare(self, node):
        parts = [node.left, *node.comparators]
        for op, x, y in zip(node.ops, parts, parts[1:]):
            if self.f.generation > 1 and not isinstance(op, (ast.Is, ast.IsNot)) and (self._is_tensor(x) or self._is_tensor(y)):
                self._operator(node, op, [x, y])
                break
        self.visit_all(parts)

    def _operator(self, node, op, operands):
        if isinstance(op, ast.MatMult):
            hint = "use nisa.nc_matmul(dst, stationary, moving)"
        elif type(op) in _SYMBOLS and type(op) is not ast.Mod:
            name = _SYMBOLS[type(op)]
            hint = f"write nl.{name}({', '.join(map(_source, operands))})"
            if len(operands) == 2:
                hint += f", or nisa.tensor_tensor or nisa.tensor_scalar with nl.{name}"
        else:
            hint = "use the functions of nl and the calls of nki.isa"
        self._refuse("nki-tensor-operator", node, "tensors of NKI have no operators", hint)

    def _assert(self, node):
        self._check_truth(node.test)
        self.children(node)

    def _name(self, node):
        if not isinstance(node.ctx, ast.Load) or self.values.lookup(node.id)[0]:
            return
        api = self.values.api(node)
        if api and api.name:
            if not self.doubts:
                nki_calls.check_name(api, node, self.site)
        elif node.id not in self.f.names and not hasattr(builtins, node.id) and not self.conditions and not self.doubts and not (
                self.may_have_left and self.f.role == "helper"):
            names = [*self.values.bound, *(n for n in self.f.names if not n.startswith("__")), *dir(builtins)]
            near = difflib.get_close_matches(node.id, names, 1)
            self.add("nki-name", self.file.place(node), f"{node.id} is not defined", f"did you mean {near[0]}?" if near else None)

    def _attribute(self, node):
        api = self.values.api(node)
        if api:
            if not self.doubts:
                nki_calls.check_name(api, node, self.site)
            return
        if self._is_tensor(node.value) and self.f.generation > 1 and not hasattr(_nkx.NkiTensor, node.attr):
            near = difflib.get_close_matches(node.attr, [n for n in dir(_nkx.NkiTensor) if n[0] != "_"], 1)
            self._refuse("nki-name", node, f"a tensor has no {node.attr}", f"did you mean {near[0]}?" if near else None)
        self.visit(node.value)

    def _subscript(self, node):
        v = self.values.of(node.value)
        if isinstance(v, Tensor) and v.shape is not None:
            self._check_index(node, v)
        self.visit(node.value)
        self.visit(node.slice)

    def _check_index(self, node, t):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        values = [self.values.constant(p) for p in parts]
        plain = [isinstance(p, ast.Slice) or type(v) is int for p, v in zip(parts, values)]
        if not all(plain):
            return
        if len(parts) > len(t.shape):
            self._refuse("nki-bounds", node, f"there are {len(parts)} indices for {len(t.shape)} dimensions",
                         "give one for each dimension, or ... for those that stay whole")
            return
        for d, (p, v) in enumerate(zip(parts, values)):
            if type(v) is int and not -t.shape[d] <= v < t.shape[d]:
                self._refuse("nki-bounds", p, f"the index {v} is not inside dimension {d}, which has the size {t.shape[d]}",
                             f"write an index from 0 to {t.shape[d] - 1}")
            elif isinstance(p, ast.Slice):
                self._check_slice(p, d, t.shape[d])

    def _check_slice(self, node, d, size):
        start, stop, step = (self.values.constant(p) if p else default
                             for p, default in ((node.lower, 0), (node.upper, size), (node.step, 1)))
        if type(step) is int and step < 1:
            self._refuse("nki-bounds", node.step, f"the step {step} of a slice is not positive", "write a step of 1 or more")
        elif type(start) is int and type(stop) is int and self.f.generation > 1:
            start, stop = (v + size if v < 0 else v for v in (start, stop))
            if not 0 <= start < stop <= size:
                self._refuse("nki-bounds", node, f"the slice {start}:{stop} is not inside dimension {d}, which has the size {size}",
                             f"0 <= start < stop <= {size}; min(stop, x.shape[{d}]) ends a last part")

    def _nested(self, node):
        if not isinstance(node, ast.Lambda):
            if self.f.is_strict and self.f.generation > 1:
                nki_subset.check_decorators(node, self.file, self._is_kernel_decorator, self._add)
            self.visit_all(node.decorator_list)
        self.visit_all([*node.args.defaults, *filter(None, node.args.kw_defaults)])
        role = "inner" if self.f.is_strict else "helper"
        inner = Function(node, self.file, self.f.names, role, self.f.generation, {}, self.values)
        self.f.inner[id(node)] = inner
        walk = Walk(inner, self._add)
        walk.conditions, walk.doubts = self.conditions + 1, self.doubts
        walk.run()

    def _is_kernel_decorator(self, node):
        api = self.values.api(node.func if isinstance(node, ast.Call) else node)
        return bool(api) and not api.module and api.name in ("jit", "trace")

    def _comprehension(self, node):
        """Its targets are names of a scope of its own."""
        function = ast.Lambda(args=ast.arguments([], [], None, [], [], None, []), body=ast.Constant(None))
        inner = Function(function, self.file, self.f.names, self.f.role, self.f.generation, {}, self.values)
        for g in node.generators:
            for n in ast.walk(g.target):
                if isinstance(n, ast.Name):
                    inner.values.bound[n.id] = inner.values.known[n.id] = None
        walk = Walk(inner, self._add)
        walk.conditions, walk.doubts = self.conditions + 1, self.doubts
        walk.function = function  # the tree is kept, because values are known by the identity of nodes
        for g in node.generators:
            walk.visit(g.iter)
            walk.visit_all(g.ifs)
        walk.visit_all([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])

    # ---- calls ----

    def _check_call(self, node, is_used):
        api = self.values.api(node.func)
        arguments = [*node.args, *(k.value for k in node.keywords)]
        if api and api.name:
            if not self.doubts:
                if nki_calls.check_name(api, node.func, self.site):
                    nki_calls.check_call(api, node, is_used, self.site)
                self._check_name_of_tensor(api, node)
                if self.f.generation == 1 and self.loops and api.name in ("ndarray", "zeros", "ones", "full"):
                    self._check_shared(node)
            if api.name in ("fori_loop", "while_loop") and self.no_reorder:
                self._refuse("nki-device-loop", node, "a loop on the device cannot be in nl.no_reorder()", "move the loop out")
        else:
            if isinstance(node.func, ast.Name):
                if not self.values.lookup(node.func.id)[0] and node.func.id not in self.f.names:
                    nki_calls.check_builtin(node.func.id, node, self.site)
                self._check_own(node)
            self.visit(node.func)
        self.visit_all(arguments)

    def _check_own(self, node):
        """A call of a function of the user's module with its name."""
        f = None if self.values.lookup(node.func.id)[0] else self.f.names.get(node.func.id)
        if f is not None and not self.conditions and not self.doubts and not self.may_have_left:
            self.f.calls.add(node.func.id)
        if type(f) is type(_source) and "__wrapped__" not in vars(f) and not self.doubts and not self.conditions:
            sig = nki_source.of_function(node.func.id, f)
            given = nki_calls.bind(sig, node, self.site) if sig else None
            missing = [p.name for p in sig.params if not p.is_optional and p.name not in given] if given is not None else []
            if missing:
                self.add("nki-call", self.file.place(node), f'{node.func.id}: "{missing[0]}" is missing', str(sig))

    def _check_name_of_tensor(self, api, node):
        if api.module != "language" or api.name not in ("ndarray", "zeros", "ones", "full"):
            return
        for k in node.keywords:
            if k.arg == "name" and isinstance(k.value, ast.Constant) and isinstance(k.value.value, str) and k.value.value:
                if k.value.value in self.tensor_names:
                    self.add("nki-name-in-use", self.file.place(k.value), f"another tensor is called {k.value.value!r}",
                             f"line {self.tensor_names[k.value.value]} has it; choose another name")
                self.tensor_names.setdefault(k.value.value, node.lineno)

    def _check_shared(self, node):
        buffer = self.values.argument(node, "buffer", None)
        if buffer is not None and self.values.constant(buffer) == "shared_hbm":
            self.add("nki-output", self.file.place(buffer), "a tensor in shared_hbm is made inside of a loop",
                     "make it before the loop, at the kernel's top level")

    # ---- scopes of beta 1 ----

    def _check_scopes(self):
        """A tensor that is made inside of a for, an if or an else is used after it."""
        bound, used, rest = {}, [], [(s, ()) for s in reversed(self.f.node.body)]
        while rest:
            node, at = rest.pop()
            if isinstance(node, (*_NESTED, *_COMPREHENSIONS, ast.ClassDef)):
                continue
            if isinstance(node, (ast.For, ast.While, ast.If)):
                inner = at + ((id(node), "body", isinstance(node, ast.For)),)
                other = at + ((id(node), "else", False),)
                head = [node.target, node.iter] if isinstance(node, ast.For) else [node.test]
                rest += [(s, other) for s in reversed(node.orelse)] + [(s, inner) for s in reversed(node.body)]
                rest += [(h, at) for h in reversed(head)]
                continue
            if isinstance(node, ast.Name):
                (used.append((node, at)) if isinstance(node.ctx, ast.Load) else bound.setdefault(node.id, []).append((node, at)))
            if _changes_its_target(node):
                target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
                if isinstance(target, ast.Name):
                    used.append((target, at))
                    rest.append((node.value, at))
                    continue
            rest += [(c, at) for c in reversed(list(ast.iter_child_nodes(node)))]
        params = {a.arg for a in self.f.node.args.args}
        for node, at in used:
            places = [b for _, b in bound.get(node.id, ())]
            if places and node.id not in params and isinstance(self.values.known.get(node.id), Tensor) and not any(
                    at[:len(b)] == b for b in places):
                self.add("nki-scope", self.file.place(node), f"{node.id} is made inside of a loop or branch, and used after it",
                         f"make {node.id} before it, and write {node.id}[…] = … inside")
        for name, sites in bound.items():
            for node, at in sites:
                outer = [b for _, b in sites if len(b) < len(at) and at[:len(b)] == b and any(x[2] for x in at[len(b):])]
                if outer and isinstance(self.values.known.get(name), Tensor):
                    self.add("nki-scope", self.file.place(node), f"{name} becomes a new tensor in each round",
                             f"write {name}[…] = … to change the tensor that was made before the loop", "warning")
