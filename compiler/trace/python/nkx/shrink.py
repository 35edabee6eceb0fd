"""Proposes smaller forms of a program: the reducer behind `nkx shrink` and options.shrink.

propose(request, start) has no state and runs nothing of the program.  All changes of a program have an order: a rule, and a number in
it.  It returns some of them from `start` on, each with the request that it makes and the place from which to go on if the
change is kept.  Whoever asks compiles them in turn, keeps the first whose fault is the same, and asks again with it; when a
round over all rules keeps nothing, the program is as small as these rules make it.  A change always makes the program smaller
in the order of `_size`, so every search ends.
"""
import ast
import builtins
import copy
import json

BATCH = 12                  # proposals of an answer
BATCH_BYTES = 512 << 10     # and their texts together
TRIES = 4000                # changes of an answer that are looked at
RULE = 1_000_000            # a place is a rule's number times this, and a number in the rule
NARROW = {"float32", "f32"}
DTYPES = {"bool": "float32", **{n: "float32" for n in (
    "float16 bfloat16 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 float8_e4m3 float8_e5m2 float8_e4m3fn").split()},
    **{n: "f32" for n in "bf16 f16 f64 i8 i16 i32 i64 u8 u16 u32 u64 i1 f8E4M3FN f8E5M2".split()}}
_NAMES = frozenset(dir(builtins)) | {"__name__", "__file__", "__doc__"}


class Program:
    """A request with the trees of its files, the source first."""

    def __init__(self, request):
        self.request = request
        self.trees = [ast.parse(t) for t in [request["source"], *(f["source"] for f in request.get("files", []))]]

    def copy(self):
        return Program(copy.deepcopy(self.request))

    def finish(self):
        """The request with the trees' texts; None if one cannot be written."""
        try:
            texts = [ast.unparse(ast.fix_missing_locations(t)) + "\n" for t in self.trees]
        except (ValueError, RecursionError):
            return None
        self.request["source"] = texts[0]
        for f, text in zip(self.request.get("files", []), texts[1:]):
            f["source"] = text
        return self.request

    def node(self, where):
        """The node at (file, number in ast.walk)."""
        return list(ast.walk(self.trees[where[0]]))[where[1]]


def _nodes(program, kind):
    for f, tree in enumerate(program.trees):
        for i, n in enumerate(ast.walk(tree)):
            if isinstance(n, kind):
                yield (f, i), n


def _options(request):
    """What the request says beside the program and can do without."""
    o = request.get("options", {})
    return len(o.get("by_hand", [])) + ("pipeline" in o) + ("unroll" in o) + ("instance" in o)


def _size(program):
    nodes = dtypes = bits = 0
    for tree in program.trees:
        for n in ast.walk(tree):
            nodes += not isinstance(n, ast.expr_context)
            name = n.attr if isinstance(n, ast.Attribute) else n.value if isinstance(n, ast.Constant) else None
            dtypes += isinstance(name, str) and name in DTYPES
            bits += name.bit_length() if type(name) is int else 0
    for i in program.request.get("inputs", []):
        dtypes += i.get("dtype", "float32") != "float32"
        bits += sum(d.bit_length() for d in i["shape"])
    return nodes + len(program.trees) + _options(program.request), dtypes, bits


def _bound(node):
    """The names that something in a node binds."""
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load):
            yield n.id
        elif isinstance(n, (ast.FunctionDef, ast.ClassDef)):
            yield n.name
        elif isinstance(n, ast.arg):
            yield n.arg
        elif isinstance(n, ast.alias):
            yield (n.asname or n.name).split(".")[0]
        elif isinstance(n, ast.ExceptHandler) and n.name:
            yield n.name


def _missing(program):
    """The names that are read somewhere and bound nowhere, with the file and the function."""
    found = set()
    for f, tree in enumerate(program.trees):
        if any(isinstance(n, ast.alias) and n.name == "*" for n in ast.walk(tree)):
            continue
        module = _NAMES.union(*(_bound(s) if not isinstance(s, ast.FunctionDef) else [s.name] for s in tree.body))
        for s in tree.body:
            known = module.union(_bound(s))
            found.update((f, n.id) for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id not in known)
    return found


# ---- rules: each yields (what, change); change(copy) alters the copy, and returns False if it cannot --------------------

def options(program):
    """Changes of the pipeline and other options go."""
    o = program.request.get("options", {})
    for k in range(len(o.get("by_hand", []))):
        yield f"without the pipeline's change {o['by_hand'][k]!r}", lambda c, k=k: c.request["options"]["by_hand"].pop(k)
    for name in ("pipeline", "unroll", "instance"):
        if name in o:
            yield f"without the option {name}", lambda c, name=name: c.request["options"].pop(name)


def files(program):
    """A file goes, or what it has moves to the file that imports it."""
    for k, f in enumerate(program.request.get("files", [])):
        def drop(c, k=k):
            del c.request["files"][k], c.trees[k + 1]
        yield f"without the file {f['name']}", drop
    for where, n in _nodes(program, ast.ImportFrom):
        for k, f in enumerate(program.request.get("files", [])):
            if where[0] != k + 1 and n.module == f["name"].removesuffix(".py").replace("/", ".") and not n.level:
                def move(c, where=where, k=k):
                    node, body = c.node(where), c.trees[k + 1].body
                    home = c.trees[where[0]].body
                    if node not in home or any(a.asname or a.name == "*" for a in node.names):
                        return False
                    home[home.index(node):home.index(node) + 1] = body
                    del c.request["files"][k], c.trees[k + 1]
                yield f"with the text of {f['name']}", move


def _lists(program):
    for where, n in _nodes(program, (ast.mod, ast.stmt, ast.ExceptHandler)):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(n, field, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield where, field, block, isinstance(n, ast.mod) or field != "body"


def statements(program):
    """Statements go: halves of a block, quarters, ..., one after the other from the end."""
    for where, field, block, may_be_empty in _lists(program):
        size = len(block)
        while size:
            for end in range(len(block), 0, -size):
                start = max(0, end - size)
                if all(isinstance(s, ast.Pass) for s in block):
                    continue

                def cut(c, where=where, field=field, start=start, end=end, may_be_empty=may_be_empty):
                    left = getattr(c.node(where), field)
                    left[start:end] = [] if may_be_empty or end - start < len(left) else [ast.Pass()]
                n = end - start
                yield f"without {n} statement{'s' if n > 1 else ''} at line {getattr(block[start], 'lineno', 0)}", cut
            size //= 2


def _middles(n):
    """0 to n - 1, halving."""
    parts = [(0, n)]
    while parts:
        a, b = parts.pop(0)
        if a < b:
            m = (a + b) // 2
            yield m
            parts += [(a, m), (m + 1, b)]


def returns(program):
    """A function returns what one of its statements computes."""
    for where, f in _nodes(program, ast.FunctionDef):
        for i in _middles(len(f.body)):
            s = f.body[i]
            to = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else getattr(s, "target", None)
            if not isinstance(to, ast.Name) or isinstance(s, ast.For):
                continue

            def cut(c, where=where, i=i, name=to.id):
                c.node(where).body[i + 1:] = [ast.Return(ast.Name(name, ast.Load()))]
            yield f"returns {to.id} of line {getattr(s, 'lineno', 0)}", cut


def blocks(program):
    """A loop or branch becomes its body."""
    for where, field, block, _ in _lists(program):
        for i, s in enumerate(block):
            bodies = [b for b in (getattr(s, "body", None), getattr(s, "orelse", None)) if isinstance(b, list) and b]
            if isinstance(s, (ast.FunctionDef, ast.ClassDef)):
                continue
            for k in range(len(bodies)):
                def open_up(c, where=where, field=field, i=i, k=k):
                    home = getattr(c.node(where), field)
                    old = home[i]
                    inner = [b for b in (old.body, getattr(old, "orelse", None)) if b][k]
                    first = [ast.Assign([old.target], ast.Constant(0))] if isinstance(old, ast.For) else []
                    home[i:i + 1] = first + inner
                yield f"with the body of line {getattr(s, 'lineno', 0)} alone", open_up


def single_uses(program):
    """A name that is read once, or that names a name, is replaced by what it is."""
    for where, f in _nodes(program, ast.FunctionDef):
        names = [n for n in ast.walk(f) if isinstance(n, ast.Name)]
        stored = [n.id for n in names if not isinstance(n.ctx, ast.Load)]
        loaded = [n.id for n in names if isinstance(n.ctx, ast.Load)]
        for i, s in enumerate(f.body):
            if not isinstance(s, ast.Assign) or len(s.targets) != 1 or not isinstance(s.targets[0], ast.Name):
                continue
            name = s.targets[0].id
            if stored.count(name) != 1 or (loaded.count(name) != 1 and not isinstance(s.value, (ast.Name, ast.Constant))):
                continue

            def write_in(c, where=where, i=i, name=name):
                function = c.node(where)
                value = function.body.pop(i).value
                _Replace(lambda n: copy.deepcopy(value) if isinstance(n, ast.Name) and n.id == name else None).visit(function)
            yield f"with {name} written in", write_in


class _Replace(ast.NodeTransformer):
    """Replaces the nodes for which `new` has another."""

    def __init__(self, new):
        self.new = new

    def visit(self, node):
        other = self.new(node)
        return self.generic_visit(node) if other is None else other


def _operands(e):
    """The expressions of which one could take the place of e, the larger ones first."""
    if isinstance(e, ast.BinOp):
        return [e.left, e.right]
    if isinstance(e, ast.UnaryOp):
        return [e.operand]
    if isinstance(e, ast.Call):
        method = [e.func.value] if isinstance(e.func, ast.Attribute) else []
        return [*e.args, *method, *(k.value for k in e.keywords if not isinstance(k.value, ast.Constant))]
    if isinstance(e, ast.Compare):
        return [e.left, *e.comparators]
    if isinstance(e, ast.BoolOp):
        return e.values
    if isinstance(e, ast.IfExp):
        return [e.body, e.orelse]
    if isinstance(e, (ast.Subscript, ast.Attribute)):
        return [e.value]
    return e.elts if isinstance(e, (ast.Tuple, ast.List)) else []


def expressions(program):
    """An expression becomes an operand of it, a parameter of the function, or 1; an argument with a name goes."""
    for top, f in _nodes(program, ast.FunctionDef):
        inside = {id(n) for s in f.body for n in ast.walk(s)}
        parameters = [a.arg for a in f.args.args]
        for i, e in enumerate(ast.walk(program.trees[top[0]])):
            if id(e) not in inside or not isinstance(e, ast.expr) or not isinstance(getattr(e, "ctx", ast.Load()), ast.Load):
                continue
            where, text = (top[0], i), f"line {getattr(e, 'lineno', 0)}"
            for k, _ in enumerate(_operands(e)):
                yield f"with operand {k + 1} of an expression of {text}", lambda c, w=where, k=k: _put(c, w, lambda n: _operands(n)[k])
            if isinstance(e, (ast.BinOp, ast.Call, ast.Subscript)):
                for p in parameters[:4]:
                    yield f"with {p} for an expression of {text}", lambda c, w=where, p=p: _put(c, w, lambda n: ast.Name(p, ast.Load()))
                yield f"with 1 for an expression of {text}", lambda c, w=where: _put(c, w, lambda n: ast.Constant(1))
            for k in range(len(e.keywords) if isinstance(e, ast.Call) else 0):
                yield f"without an argument of {text}", lambda c, w=where, k=k: c.node(w).keywords.pop(k)


def _put(c, where, new):
    old = c.node(where)
    fresh = new(old)
    c.trees[where[0]] = _Replace(lambda n: fresh if n is old else None).visit(c.trees[where[0]])


def names(program):
    """Imported names, decorators, annotations and defaults go."""
    for where, n in _nodes(program, (ast.Import, ast.ImportFrom)):
        for k in range(len(n.names) if len(n.names) > 1 else 0):
            yield f"without the import of {n.names[k].name}", lambda c, w=where, k=k: c.node(w).names.pop(k)
    for where, n in _nodes(program, ast.FunctionDef):
        for k in range(len(n.decorator_list)):
            yield f"without a decorator of {n.name}", lambda c, w=where, k=k: c.node(w).decorator_list.pop(k)
        if n.returns or any(a.annotation for a in n.args.args):
            def plain(c, where=where):
                f = c.node(where)
                f.returns = None
                for a in f.args.args:
                    a.annotation = None
            yield f"without annotations of {n.name}", plain


def _specs(function):
    """The list input_specs of a decorator, or None."""
    for d in function.decorator_list:
        for k in d.keywords if isinstance(d, ast.Call) else []:
            if k.arg == "input_specs" and isinstance(k.value, ast.List):
                return k.value.elts
    return None


def parameters(program):
    """Parameters that nothing reads go, with their shapes and arguments."""
    for where, f in _nodes(program, ast.FunctionDef):
        read = {n.id for s in f.body for n in ast.walk(s) if isinstance(n, ast.Name)}
        for i, a in enumerate(f.args.args):
            if a.arg in read:
                continue

            def drop(c, where=where, i=i):
                function = c.node(where)
                count, name = len(function.args.args), function.args.args.pop(i).arg
                specs, defaults = _specs(function), function.args.defaults
                if specs and len(specs) == count:
                    specs.pop(i)
                if i >= count - len(defaults):
                    defaults.pop(i - (count - len(defaults)))
                _without_input(c.request, name, i)
                for tree in c.trees:
                    for n in ast.walk(tree):
                        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == function.name:
                            n.args[i:i + 1] = []
                            n.keywords = [k for k in n.keywords if k.arg != name]
            yield f"without the parameter {a.arg} of {f.name}", drop


def _without_input(request, name, i):
    inputs = request.get("inputs", [])
    if any("name" in x for x in inputs):
        request["inputs"] = [x for x in inputs if x.get("name") != name]
    elif inputs:
        inputs[i:i + 1] = []


def sizes(program):
    """A whole number becomes a smaller one everywhere.  Small arrays make what follows quick to compile."""
    found = {n.value for _, n in _nodes(program, ast.Constant) if type(n.value) is int}
    for i in program.request.get("inputs", []):
        found.update(i["shape"])
    for v in sorted((v for v in found if v > 1), reverse=True):
        for w in _smaller(v):
            def everywhere(c, v=v, w=w):
                for _, n in _nodes(c, ast.Constant):
                    n.value = w if type(n.value) is int and n.value == v else n.value
                for x in c.request.get("inputs", []):
                    x["shape"] = [w if d == v else d for d in x["shape"]]
            yield f"with {w} for {v}", everywhere


def shapes(program):
    """A whole number becomes a smaller one at one place."""
    for where, n in _nodes(program, ast.Constant):
        for w in _smaller(n.value) if type(n.value) is int else []:
            yield f"with {w} for {n.value} in line {n.lineno}", lambda c, where=where, w=w: setattr(c.node(where), "value", w)


def _smaller(v):
    return sorted({w for w in (1, 2, 128, v // 2) if 0 < w < v})


def dtypes(program):
    """float32 for other types: everywhere at once, then at each place."""
    def name_of(n):
        return n.attr if isinstance(n, ast.Attribute) else n.value

    def set_to(n, new):
        setattr(n, "attr" if isinstance(n, ast.Attribute) else "value", new)

    places = [(w, n) for w, n in _nodes(program, (ast.Attribute, ast.Constant)) if isinstance(name_of(n), str) and name_of(n) in DTYPES]
    for old in dict.fromkeys([name_of(n) for _, n in places] + [i.get("dtype", "float32") for i in program.request.get("inputs", [])]):
        def everywhere(c, old=old):
            for _, n in _nodes(c, (ast.Attribute, ast.Constant)):
                if name_of(n) == old:
                    set_to(n, DTYPES[old])
            for x in c.request.get("inputs", []):
                if x.get("dtype") == old:
                    x["dtype"] = "float32"
        if old in DTYPES:
            yield f"with float32 for {old}", everywhere
    for where, n in places:
        yield f"with float32 in line {n.lineno}", lambda c, where=where: set_to(c.node(where), DTYPES[name_of(c.node(where))])


RULES = (options, files, returns, sizes, statements, blocks, parameters, expressions, single_uses, names, shapes, dtypes)


# ---- a text that is not Python --------------------------------------------------------------------------------------------

def _lines(request, start):
    """Lines go: halves, quarters, ..., one after the other from the end."""
    lines = request["source"].splitlines(keepends=True)
    number, size = 0, (len(lines) + 1) // 2
    while size:
        for end in range(len(lines), 0, -size):
            if number >= start:
                kept = lines[:max(0, end - size)] + lines[end:]
                yield number, f"without {size} line{'s' if size > 1 else ''}", {**request, "source": "".join(kept)}
            number += 1
        size //= 2


# ---- the answer -----------------------------------------------------------------------------------------------------------

def _changes(request, start):
    """(place, what, the changed request) from a place on; a request is None if the change is none or makes nothing smaller."""
    try:
        if request.get("language", "nkipy") != "nkipy":
            raise SyntaxError
        program = Program(request)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # MemoryError: the parser's stack is full
        yield from _lines(request, start)
        return
    size, missing = _size(program), _missing(program)
    for r in range(start // RULE, len(RULES)):
        for number, (what, change) in enumerate(RULES[r](program)):
            if number < (start % RULE if r == start // RULE else 0):
                continue
            c = program.copy()
            is_fit = change(c) is not False and _size(c) < size and not _missing(c) - missing
            yield r * RULE + number, what, c.finish() if is_fit else None


def _after(place):
    """Where to go on when the change at a place is kept: what it stood for is gone, so that the next has its number."""
    return place - place % RULE if place // RULE == RULES.index(returns) else place


def propose(request, start):
    """request: JSON of a job.  Returns JSON: {"candidates": [{"what", "request", "then"}], "next"?}; no "next": these are the last."""
    asked = json.loads(request)
    asked.get("options", {}).pop("shrink", None)
    found, bytes_left, looked = [], BATCH_BYTES, 0
    for place, what, new in _changes(asked, start):
        looked += 1
        if len(found) == BATCH or bytes_left < 0 or looked > TRIES:
            return json.dumps({"candidates": found, "next": place})
        if new is None or new == asked:
            continue
        made = {k: v for k, v in new.items() if v != asked.get(k)}
        found.append({"what": what, "request": made, "then": _after(place)})
        bytes_left -= len(json.dumps(made))
    return json.dumps({"candidates": found})
