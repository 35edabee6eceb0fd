"""Names and calls of NKI in a kernel, checked against the tables that the tracer has: nki_names.TABLES, calls.def, and the
signatures of nki.language.

Only what is certain from the source is refused; shapes and types are checked again, with all that is known, when the kernel
is traced.  A name that is not compiled here yet is refused when the kernel reaches it, not when it only contains it.
"""
import ast
import difflib
import sys
import types

from nkx import nki_names, nki_source
from nkx.nki_values import Const, Instruction, Register, Tensor, memory

# Names that beta 1 does not have, with what it has.
_NEWER_LANGUAGE = {"fori_loop": "for i in nl.sequential_range(…)", "while_loop": "while", "dynamic_range": "nl.sequential_range"}
_NEWER_ISA = {
    "activate2": "nisa.activation", "core_barrier": "nl.all_reduce", "dma_compute": "nisa.dma_copy", "exponential": "nisa.activation",
    "nc_matmul_mx": "nisa.nc_matmul", "quantize_mx": None, "rand2": "nl.rand", "register_alloc": "an index tile",
    "register_load": "an index tile", "register_move": "an index tile", "register_store": "an index tile", "sendrecv": None,
    "tensor_scalar_cumulative": "nisa.tensor_tensor_scan", "nonzero_with_count": None, "topk": "nisa.max8"}
_WITH_DST_IN_BETA_1 = {"dma_copy", "select_reduce", "nc_stream_shuffle", "tensor_copy_dynamic_dst", "tensor_copy_predicated"}
# Keywords of earlier versions, with what replaces them.
_REMOVED_KEYWORDS = {
    "dst_rmw_op": "nisa.dma_compute adds to what dst holds", "unique_indices": "leave it out",
    "psumAccumulateFlag": "accumulate=True or False", "psum_accumulate_flag": "accumulate=True or False",
    "parallel_reduce": "leave it out", "asynchronous": "leave it out", "program_axes": "leave it out"}
_CHOICES = {"engine": "engine", "dge_mode": "dge_mode", "oob_mode": "oob_mode", "reduce_cmd": "reduce_cmd",
            "perf_mode": "matmul_perf_mode"}
_DEPRECATED = {
    "affine_range": "range", "sequential_range": "range", "static_range": "range",
    "dynamic_range": "nl.fori_loop", "tile_size.total_available_sbuf_size": "nl.tile_size.sbuf_fmax_bytes"}
_HBM_SPACES = {"hbm", "shared_hbm"}
_PARTITIONS = 128


class Site:
    """Where a name or call is: its File, the Values of its function, the kernel's generation, add() as in nki_subset."""

    def __init__(self, file, values, generation, add):
        self.file, self.values, self.generation, self.add = file, values, generation, add

    def place(self, node):
        return self.file.place(node)


def near(name, names):
    """"did you mean …?", or None"""
    found = difflib.get_close_matches(name, list(names), 1)
    return f"did you mean {found[0]}?" if found else None


# ---- names -----------------------------------------------------------------------------------------------------------


def check_name(api, node, site):
    """A name of NKI.  False if it cannot be used, so that its call needs no look."""
    place, add = site.place(node), site.add
    if site.generation > 1 and api.is_beta_1:
        new = nki_source.Api(str(api)[len("neuronxcc."):])
        removed = nki_names.TABLES.get(new.full_module, ((), {}))[1].get(api.name)
        memory = api.name.partition(".")[0]
        if new.full_module == "nki.compiler" and memory in ("sbuf", "psum"):
            removed = f"write nl.ndarray(…, buffer=nl.{memory}, address=(partition, byte))"
        add("nki-mixed-generations", place, f"{api} is beta 1, but the kernel is decorated with nki.jit",
            removed or f"import {new.full_module}, and write {new.short}")
        return False
    if site.generation == 1:
        return _check_in_beta_1(api, place, add)
    m = nki_source.module_of(api)
    first, _, rest = api.name.partition(".")
    if m is None or not first or first.startswith("__"):
        return True
    if first in vars(m) and not isinstance(vars(m)[first], nki_names.Unavailable):
        _check_deprecated(api, place, add)
        return _check_members(api, vars(m)[first], first, rest, place, add)
    unsupported, removed, modules = nki_names.TABLES.get(m.__name__, ((), {}, ()))
    if first in removed:
        add(nki_names.removed_code(m.__name__, first), place, f"{m.__name__}.{first} belongs to an earlier NKI", removed[first])
        return False
    if first in unsupported or first in modules:
        _check_deprecated(api, place, add)
        return True
    add("nki-unknown-api", place, f"{m.__name__} has no {first}", near(first, [*(n for n in vars(m) if n[0] != "_"), *unsupported]))
    return False


def _check_in_beta_1(api, place, add):
    old = (_NEWER_LANGUAGE if api.module == "language" else _NEWER_ISA if api.module == "isa" else {})
    if api.name in old:
        add("nki-mixed-generations", place, f"{api.short} belongs to newer NKI, but the kernel is beta 1",
            f"write {old[api.name]}" if old[api.name] else "write the kernel for nki, the newer package")
        return False
    if not api.is_beta_1:
        add("nki-mixed-generations", place, f"{api} belongs to newer NKI, but the kernel is beta 1",
            f"import neuronxcc.{api.full_module}")
        return False
    return True


def _check_members(api, o, path, rest, place, add):
    """The part of a name after a class or an object of a module: nisa.engine.vector."""
    for part in rest.split(".") if rest else ():
        if isinstance(o, type):
            names, o = vars(o), vars(o).get(part)
        elif type(o).__module__.startswith("nki.") and not isinstance(o, types.FunctionType):
            names, o = vars(type(o)), vars(type(o)).get(part)
        else:
            return True
        if o is None and not part.startswith("__"):
            add("nki-unknown-api", place, f"{api.full_module}.{path} has no {part}", near(part, [n for n in names if n[0] != "_"]))
            return False
        path += "." + part
    return True


def _check_deprecated(api, place, add):
    if api.module == "language" and api.name in _DEPRECATED:
        add("nki-deprecated", place, f"later versions of NKI drop nl.{api.name}", f"write {_DEPRECATED[api.name]}", "warning")


# ---- calls -----------------------------------------------------------------------------------------------------------


def check_call(api, node, is_used, site):
    """A call of a function of NKI.  is_used: the call is an operand, or its value is bound to a name."""
    _check_integers(node, site)
    if site.generation == 1:
        if api.module == "isa" and api.name not in _WITH_DST_IN_BETA_1:
            for k in node.keywords:
                if k.arg == "dst":
                    site.add("nki-mixed-generations", site.place(k), f"{api.short} has no dst in beta 1: it returns the tile",
                             f"write tile = {api.short}(…)")
        return
    if api.module == "language" and api.name == "program_id":
        axis = site.values.argument(node, "axis", 0)
        if axis is not None and isinstance(site.values.constant(axis), int) and site.values.constant(axis) != 0:
            site.add("nki-grid", site.place(axis), f"a launch has one axis, so program_id({site.values.constant(axis)}) has no value",
                     "write nl.program_id(0)")
    sig = nki_source.signature_of(api)
    if sig is None:
        return
    given = bind(sig, node, site)
    if given is None:
        return
    if not _check_missing(api, sig, node, given, is_used, site):
        return
    if api.module == "isa":
        for p in sig.params:
            if p.name in given:
                _check_operand(p, given[p.name], site)
    elif api.module == "language":
        _check_maker(api, given, site)


def bind(sig, node, site):
    """{parameter: expression} of a call; None if stars hide it, or after a refusal."""
    add, is_isa = site.add, sig.name.startswith("nisa.")
    if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        return None
    given, ok = {}, True
    if len(node.args) > len(sig.params) and not sig.has_rest:
        add("nki-call", site.place(node.args[len(sig.params)]),
            f"{sig.name} has {len(sig.params)} parameters, but {len(node.args)} arguments are given", str(sig))
        ok = False
    for p, a in zip(sig.params, node.args):
        given[p.name] = a
    for k in node.keywords:
        if sig.find(k.arg):
            if k.arg in given:
                add("nki-call", site.place(k), f'{sig.name}: "{k.arg}" is given twice', str(sig))
                ok = False
            given[k.arg] = k.value
        elif not sig.has_keywords and not (is_isa and k.arg == "name"):
            _refuse_keyword(sig, k, is_isa, site)
            ok = False
    return given if ok else None


def _refuse_keyword(sig, k, is_isa, site):
    of_nki = sig.name.startswith(("nisa.", "nl."))
    if of_nki and k.arg == "mask":
        site.add("nki-mask-removed", site.place(k), f"{sig.name} has no mask: that is beta 1",
                 "slice the operands to the part that is wanted")
    elif is_isa and k.arg == "dtype":
        site.add("nki-removed-api", site.place(k), f"{sig.name} has no dtype: that is beta 1", "the result has the type of dst")
    elif of_nki and k.arg in _REMOVED_KEYWORDS:
        site.add("nki-removed-api", site.place(k), f"{sig.name} has no {k.arg} any more", _REMOVED_KEYWORDS[k.arg])
    else:
        hint = near(k.arg, [p.name for p in sig.params])
        site.add("nki-call", site.place(k), f'{sig.name} has no parameter "{k.arg}"', f"{hint} {sig}" if hint else str(sig))


def _check_missing(api, sig, node, given, is_used, site):
    missing = [p.name for p in sig.params if not p.is_optional and p.name not in given]
    if not missing:
        return True
    if is_used and api.module == "isa" and sig.find("dst") and not any(k.arg == "dst" for k in node.keywords):
        sources = [ast.unparse(a) for a in (*node.args, *node.keywords)]
        like = next((ast.unparse(a) for a in (*node.args, *(k.value for k in node.keywords)) if isinstance(a, ast.Name)), "x")
        site.add("nki-mixed-generations", site.place(node), f"{sig.name} returns no tensor: that is beta 1",
                 f"make the tensor, t = nl.ndarray({like}.shape, {like}.dtype, buffer=nl.sbuf), and write "
                 f"{sig.name}({', '.join(['t' if node.args else 'dst=t', *sources])})")
    else:
        site.add("nki-call", site.place(node), f'{sig.name}: "{missing[0]}" is missing', str(sig))
    return False


def _check_integers(node, site):
    for a in (*node.args, *(k.value for k in node.keywords)):
        n = a.operand if isinstance(a, ast.UnaryOp) and isinstance(a.op, ast.USub) else a
        if isinstance(n, ast.Constant) and type(n.value) is int and n.value >= 1 << 63:
            site.add("nki-argument", site.place(a), "an integer argument needs more than 64 bits", "use a float, or a smaller number")


def _memory_remedy(p, space):
    """As compiler/nki/rules_basic.c has it."""
    if p.kind == "dst":
        return "make it with nl.ndarray(…, buffer=nl.psum)" if p.memories == ["psum"] else "write to a tile in SBUF, and copy that"
    return "copy it to SBUF first" if space == "psum" or space in _HBM_SPACES else "copy it first, with nisa.tensor_copy or nisa.dma_copy"


def _check_operand(p, node, site):
    v = site.values.of(node)
    if p.kind in ("dst", "src", "number") and isinstance(v, Tensor) and v.space and p.memories and v.space not in p.memories:
        may = [m for m in p.memories if m != "shared_hbm"]
        site.add("nki-memory", site.place(node), f"{p.name} is in {v.space}, but it must be in {' or '.join(may)}",
                 _memory_remedy(p, v.space))
    elif p.kind in ("dst", "src") and isinstance(v, Const) and not (p.is_optional and v.value is None):
        if p.memories:
            site.add("nki-call", site.place(node), f"{p.name} must be a tensor, not {type(v.value).__name__}")
        else:
            site.add("nki-operand", site.place(node), f"{p.name} must be a register, not {type(v.value).__name__}",
                     "make one with nisa.register_alloc")
    elif p.kind in ("dst", "src") and isinstance(v, Instruction):
        site.add("nki-mixed-generations", site.place(node), f"{p.name} is the result of a call of nki.isa, which is no tensor",
                 "pass the tensor that was its dst")
    elif p.name in _CHOICES and isinstance(v, Const) and type(v.value) is int:
        names = _choices(_CHOICES[p.name])
        site.add("nki-removed-api", site.place(node), f"{p.name}={v.value}: numbers for choices belong to an earlier NKI",
                 f"use nisa.{_CHOICES[p.name]}.{', '.join(names)}")


def _choices(name):
    cls = getattr(sys.modules.get("nki.isa"), name, None)
    return [n for n in getattr(cls, "__members__", ())]


def _check_maker(api, given, site):
    """nl.ndarray, zeros, ones, full: what they say literally."""
    place, values = site.place, site.values
    if "shape" not in given or "dtype" not in given and api.name not in ("ndarray", "zeros", "ones", "full"):
        return
    buffer, shape = given.get("buffer"), values.constant(given["shape"])
    if isinstance(buffer, ast.Constant) and isinstance(buffer.value, str):
        if memory(Const(buffer.value)):
            site.add("nki-removed-api", place(buffer), f"{buffer.value!r}: strings for memories belong to an earlier NKI",
                     f"write nl.{buffer.value}")
        else:
            site.add("nki-memory", place(buffer), f"{buffer.value!r} is not a memory", "use nl.sbuf, nl.psum, nl.hbm or nl.shared_hbm")
            return
    space = "sbuf" if buffer is None else memory(values.of(buffer))
    if space not in ("sbuf", "psum") or not isinstance(shape, (tuple, list)) or not shape or not all(type(n) is int for n in shape):
        return
    if shape[0] > _PARTITIONS:
        site.add("nki-size-limit", place(given["shape"]), f"a tensor in {space} has {shape[0]} partitions, but there are {_PARTITIONS}",
                 "split the first dimension into tiles of nl.tile_size.pmax")
    elif len(shape) < 2:
        site.add("nki-size-limit", place(given["shape"]), f"a tensor in {space} has 2 to 8 dimensions, not 1",
                 "the first dimension counts partitions; add one")


# ---- other calls -----------------------------------------------------------------------------------------------------


def check_builtin(name, node, site):
    """A call of one of Python's functions with a register."""
    if name in ("int", "float", "bool", "range", "round", "abs"):
        for a in node.args:
            if isinstance(site.values.of(a), Register):
                site.add("nki-register-in-host-code", site.place(a),
                         f"{name}() needs a number that is known at compile time, and a register is known on the device only",
                         "use nl.fori_loop for a loop, and .ap(scalar_offset=…) for an index")
