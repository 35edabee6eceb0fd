"""Traces, compiles and runs kernels of the Python program that runs.

`_nkx` traces.  `_nkxc`, which loads MLIR, is imported when something is compiled or run for the first time.
"""
import functools
import hashlib
import inspect
import json
import linecache
import operator
import os
import re
import sys
import warnings

import _nkx
import ml_dtypes
import numpy as np

TRACED = (_nkx.Tensor, _nkx.TracedArray)  # a NumPy array that a kernel has filled is a TracedArray
TARGETS = ("trn1", "trn2", "trn3")


@functools.cache
def compiler():
    try:
        import _nkxc
    except ImportError as e:
        raise RuntimeError(
            f"compiling a kernel needs LLVM 22's shared libraries (Debian: libmlir-22 libllvm22): {e}") from e
    return _nkxc


def dtype(name):
    return np.dtype(getattr(ml_dtypes, name) if name.startswith(("bfloat", "float8")) else name)


_OWN = tuple(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), p, "")
             for p in ("nkx", "nkipy", "nkigen", "nkipy_kernelgen", "spike"))


_LIBRARIES = (os.path.join(os.path.dirname(os.__file__), ""), *_OWN)


def source_of(filename):
    """The text of a file of the program that runs; None for a file of a library or of ours, and for one that is not known."""
    path = os.path.abspath(filename)
    if path.startswith(_LIBRARIES) or "site-packages" in path or "dist-packages" in path:
        return None
    return "".join(linecache.getlines(filename)) or None


class DeviceWarning(UserWarning):
    """Says once what takes the place of a device."""


def warn(message, category=UserWarning):
    """A warning at the innermost line of the program that is not in our modules."""
    f, level = sys._getframe(1), 2
    while f and f.f_code.co_filename.startswith(_OWN):
        f, level = f.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


class TensorInfo:
    """Name, shape and dtype of an input or output.  `alias_of`: the input that an output writes in place, or -1."""

    def __init__(self, name, shape, dtype, alias_of=-1):
        self.name, self.shape, self.dtype, self.alias_of = name, tuple(shape), dtype, alias_of

    def __repr__(self):
        return f"{self.name}: {self.dtype}{list(self.shape)}"

    @classmethod
    def all(cls, dicts):
        return [cls(d["name"], d["shape"], dtype(d["dtype"]), d["alias_of"]) for d in dicts]


class Alias:
    def __init__(self, output_index, param_index, param_name, is_user_returned):
        self.output_index, self.param_index = output_index, param_index
        self.param_name, self.is_user_returned = param_name, is_user_returned

    def __repr__(self):
        return f"output {self.output_index} writes {self.param_name}"


_ATTRIBUTE = re.compile(r"(\w+)=(\{(?:[^{}]|\{[^{}]*\})*\}|\"(?:[^\"\\]|\\.)*\"|[^,\s]+)")


def _attributes(text):
    """{instruction: {name: value}} as the HLO's text has them; lists of integers as lists.  dimension is the only one of
    dimensions."""
    found = {}
    for line in text.splitlines():
        m = re.match(r"\s+(?:ROOT )?%?([\w.-]+) = .*? [\w-]+\(.*?\)(?:, (.*))?$", line)
        if m is None:
            continue
        found[m[1]] = values = {k: v for k, v in _ATTRIBUTE.findall(m[2] or "") if k not in ("metadata", "frontend_attributes")}
        for k, v in values.items():
            if re.fullmatch(r"\{[\d, ]*\}", v):
                values[k] = [int(n) for n in re.findall(r"\d+", v)]
            elif re.fullmatch(r"-?\d+", v):
                values[k] = int(v)
        if len(values.get("dimensions", ())) == 1:
            values["dimension"] = values["dimensions"][0]
    return found


class Operation:
    """One instruction of the HLO, with its op_name, attributes and source places."""

    def __init__(self, d, attributes):
        self.op_name, self.name, self.shape, self.dtype = d["opcode"], d["name"], tuple(d["shape"]), d["dtype"]
        self.operands, self.source = d["operands"], d["src"]
        self.attributes = attributes | ({"knob": d["knob"]} if d["knob"] else {})

    def __repr__(self):
        return f"{self.name} = {self.dtype}{list(self.shape)} {self.op_name}"


class Proto(bytes):
    """The bytes of a HloModuleProto."""

    def SerializeToString(self):
        return bytes(self)


class Module(str):
    """The text of an MLIR module."""


# ---- tracing -------------------------------------------------------------------------------------------------------


def bind(fn, args, kwargs):
    """Positional and keyword arguments of the call, with the defaults."""
    bound = inspect.signature(fn).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args, bound.kwargs


def in_tuples(value, of):
    """A tuple, named or not, with of(…) in place of each element; the tuple itself if nothing differs."""
    new = [of(v) for v in value]
    if all(map(operator.is_, new, value)):
        return value
    return value._make(new) if hasattr(value, "_make") else tuple(new)


def _arrays_in(value):
    if isinstance(value, tuple):
        return [a for v in value for a in _arrays_in(v)]
    return [value] if isinstance(value, np.ndarray) else []


def arrays_of(args, kwargs):
    """The arrays among a call's arguments and in tuples, in the order of the traced kernel's inputs."""
    return [a for value in (*args, *kwargs.values()) for a in _arrays_in(value)]


def stand_in(a):
    """An array of the same shape and dtype that needs no memory; in a tuple, too."""
    if isinstance(a, tuple):
        return in_tuples(a, stand_in)
    return np.broadcast_to(np.zeros((), a.dtype), a.shape) if isinstance(a, np.ndarray) else a


_custom_ops = {"seen": False, "meaning": False}


def meaning_of_custom_ops():
    """True if a traced CustomOp is to be replaced by its reference_fn instead of being called."""
    _custom_ops["seen"] = True
    return _custom_ops["meaning"]


def _trace(request, meaning=False):
    """The result of _nkx.trace_function, and whether the trace has custom ops."""
    _custom_ops.update(seen=False, meaning=meaning)
    try:
        return _nkx.trace_function(*request), _custom_ops["seen"]
    finally:
        _custom_ops["meaning"] = False


class Code:
    """A traced kernel: NKIPy's HLOModule."""

    def __init__(self, fn, name, args=None, kwargs=None, specs=None):
        if args is not None:
            args = tuple(map(stand_in, args))
            kwargs = {k: stand_in(v) for k, v in kwargs.items()}
        self._request = (fn, args, kwargs, specs, name)
        t, self._has_custom_ops = _trace(self._request)
        for text in t["warnings"]:
            warn(text)
        self._trace, self.name, self._program, self._simulators = t["trace"], t["name"], None, {}
        self.inputs, self.outputs = TensorInfo.all(t["inputs"]), TensorInfo.all(t["outputs"])
        self.aliases = [Alias(*a) for a in t["aliases"]]
        for a in self.aliases:
            self.inputs[a.param_index].name += ".must_alias_input"

    @functools.cached_property
    def operations(self):
        said = _attributes(self.text())
        return [Operation(d, said.get(d["name"], {})) for d in _nkx.trace_contents(self._trace)["instructions"]]

    @property
    def parameters(self):
        return self.inputs

    @property
    def auto_aliased_indices(self):
        """The outputs that the kernel did not return: they write its inputs."""
        return [a.output_index for a in self.aliases if not a.is_user_returned]

    def to_proto(self):
        return Proto(_nkx.trace_proto(self._trace))

    def text(self):
        return _nkx.trace_text(self._trace)

    __str__ = text

    def content_hash(self, compiler_args=""):
        return hashlib.sha256(self.to_proto() + compiler_args.encode()).hexdigest()[:12]

    def to_mlir(self, debug=False):
        """The kernel as linalg on tensors, with its knobs."""
        return self.stages("trace", debug=debug)[-1][1]

    def stages(self, stop_after=None, target="trn2", debug=False):
        """[(name, text), …]: the linalg, then the text after each pass."""
        again = _trace(self._request)[0]["trace"]  # the stages change the module
        return _from_linalg(run_stages(again, {"source": "# traced already", "target": target}, stop_after, debug))

    def load(self):
        """Compiles it for this processor, once."""
        if self._program is None:
            trace = _trace(self._request, meaning=True)[0]["trace"] if self._has_custom_ops else self._trace
            self._program = compiler().load(trace, None)["program"]
        return self._program

    def simulator(self, target="trn2"):
        """Compiles it for the simulated machine, once for each target."""
        if target not in self._simulators:
            again = _trace(self._request)[0]["trace"]  # the stages change the module
            try:
                self._simulators[target] = simulator(again, target)
            except compiler().CompileError as e:
                if not self._has_custom_ops:
                    raise
                self._simulators[target] = simulator(_trace(self._request, meaning=True)[0]["trace"], target)
                warn(f"the reference_fn of a custom op runs in place of its NISA text, which cannot be run: {e}")
        return self._simulators[target]

    def on_device(self, target="trn2"):
        """The loaded program, for run."""
        return self.load() if is_on_host() else self.simulator(target)

    def run(self, arrays, target="trn2"):
        """All outputs as new arrays, aliases included."""
        if not self.outputs:
            return []
        call = compiler().run if is_on_host() else compiler().simulate
        return run_program(self.on_device(target), self.inputs, self.outputs, arrays, call)


    def profile(self, arrays, target="trn2"):
        """Runs it on the simulated machine: the results of run, and a Profile."""
        if is_on_host():
            raise RuntimeError("NKX_DEVICE=linalg: this processor's machine code says nothing about the time of a device")
        texts = []

        def call(*run):
            texts.extend(compiler().profile(*run, TARGETS.index(target)))

        results = run_program(self.simulator(target), self.inputs, self.outputs, arrays, call)
        return results, Profile(*texts)


class Profile(dict):
    """Where the simulated time goes: the members of compiler/sim/report.h, such as ["total_us"], ["lanes"], ["advice"].
    str() is a report for people."""

    def __init__(self, members, text, trace):
        super().__init__(json.loads(members))
        self._text, self._trace = text, trace

    __str__ = lambda self: self._text

    def save_trace(self, path):
        """Writes the timeline as a file for ui.perfetto.dev."""
        with open(path, "w", encoding="utf-8") as f:
            f.write(self._trace)


def code_of(kernel, specs=None):
    """The Code of a kernel: from its input_specs, or from its last specialize."""
    if isinstance(kernel, Code):
        return kernel
    specs = specs if specs is not None else getattr(kernel, "input_specs", None)
    if specs is None and getattr(kernel, "_code", None) is not None:
        return kernel._code
    return Code(function_of(kernel), kernel.__name__, specs=specs)


def function_of(kernel):
    return kernel.__wrapped__ if isinstance(kernel, _nkx.Kernel) else kernel


def specialize(kernel, *args, **kwargs):
    """NKIPyKernel.specialize: traces now.  Arrays become inputs; all other arguments are constants of the kernel."""
    fn = function_of(kernel)
    kernel._code = Code(fn, kernel.__name__, *bind(fn, args, kwargs))
    return kernel._code


def code_of_call(kernel, args, kwargs):
    return Code(function_of(kernel), kernel.__name__, args, kwargs)


def to_mlir(kernel, specs=None, debug=False):
    """@trace's .to_mlir(): the kernel as linalg on tensors."""
    if _nkx.in_job():
        return Module("// the explorer shows the kernel's stages itself\n")
    return code_of(kernel, specs).to_mlir(debug)


# ---- running -------------------------------------------------------------------------------------------------------


def is_on_host():
    """Whether NKX_DEVICE asks for machine code of this processor in place of the simulated machine."""
    device = os.environ.get("NKX_DEVICE", "")
    if device not in ("", "sim", "linalg"):
        raise ValueError(f"NKX_DEVICE is {device!r}: use \"sim\", the simulated machine, or \"linalg\", this processor; \"neuron\" is for NEFFs")
    return device == "linalg"


def simulator(trace, target):
    """A trace's last stage, for compiler().simulate."""
    if target not in TARGETS:
        raise ValueError(f"target must be one of {', '.join(TARGETS)}, not {target!r}")
    errors = []

    def take(frame):
        d = json.loads(frame)["diagnostic"]
        if d["severity"] == "error":
            errors.append(_error_text(d))

    program = compiler().simulator(trace, json.dumps({"source": "# traced already", "target": target}), take)
    if program is None:
        raise compiler().CompileError("\n".join(errors + ["NKX_DEVICE=linalg runs it as machine code of this processor"]))
    return program


def _as_reals(a):
    """The compiler passes complex numbers as pairs of reals, in the last dimension."""
    return a.view(np.float32).reshape(*a.shape, 2) if a.dtype == np.complex64 else a


def run_program(program, inputs, outputs, arrays, call=None):
    if len(arrays) != len(inputs):
        raise ValueError(f"{len(arrays)} arrays were given for {len(inputs)} inputs: {inputs}")
    given = []
    for info, a in zip(inputs, arrays):
        a = np.asarray(a, info.dtype, order="C")
        if a.shape != info.shape:
            raise ValueError(f"{info.name} has shape {a.shape}; the kernel was compiled for {info.shape}")
        given.append(_as_reals(a))
    results = [np.empty(info.shape, info.dtype) for info in outputs]
    (call or compiler().run)(program, given, [_as_reals(r) for r in results])
    return results


def write_back(code, arrays, results):
    """Copies aliased results into the arrays that the kernel wrote, and returns what the kernel itself returned."""
    returned, written = [], {a.output_index: a for a in code.aliases}
    for i, r in enumerate(results):
        alias = written.get(i)
        if alias:
            np.copyto(arrays[alias.param_index], r, casting="unsafe")
            r = arrays[alias.param_index]
        if not alias or alias.is_user_returned:
            returned.append(r)
    return None if not returned else returned[0] if len(returned) == 1 else tuple(returned)


# ---- stages --------------------------------------------------------------------------------------------------------


@functools.cache
def _stages():
    return [s["name"] for s in json.loads(compiler().pipeline())]


def _first_pass():
    """The index of the first pass after the linalg that a kernel is lowered to."""
    return _stages().index("remove-redundant-zero-fill")


def _from_linalg(stages):
    """The last stage before the passes, and all stages after it."""
    before = [s for s in stages if s[2] < _first_pass()]
    return [(name, text) for name, text, _ in before[-1:] + stages[len(before) :]]


_GROUPS = {"canonicalize-linalg-for-nisa": "decompose-batch-matmul"}


def find_stage(stop_after):
    """The index of a stage: the number of a pass, its name, or "name:N"; "trace" and 0 are the stage before the passes."""
    first, names = _first_pass(), _stages()
    if stop_after is None:
        return len(names) - 1
    if isinstance(stop_after, int) and not isinstance(stop_after, bool):
        if not 0 <= stop_after <= len(names) - first:
            raise ValueError(f"stop_after={stop_after}: there are {len(names) - first} passes")
        return first - 1 + stop_after
    if not isinstance(stop_after, str):
        raise TypeError(f"stop_after must be a number, a pass name or None, not {type(stop_after).__name__}")
    name, _, nth = stop_after.removeprefix("py:").partition(":")
    if name == "trace" and not nth:
        return first - 1
    name = _GROUPS.get(name, name)
    found = [i for i in range(first, len(names)) if names[i] == name]
    n = int(nth) if nth.isdecimal() else 1 if not nth else 0
    if not 1 <= n <= len(found):
        raise ValueError(f"stop_after={stop_after!r}: the passes are {', '.join(names[first:])}")
    return found[n - 1]


class _Sources:
    """The files, places and sources that the frames of a job have reported so far."""

    def __init__(self):
        self.files, self.places, self.sources = [], [], []

    def add(self, frame):
        self.files += frame["files"]
        self.places += frame["places"]
        self.sources += frame["sources"]

    def first(self, number):
        """The first place of a source, as FILE:LINE:COLUMN."""
        file, line, col, *_ = self.places[self.sources[number]["places"][0]]
        return f"{self.files[file]}:{line}:{col}"


def _with_places(stage, sources):
    """The text with the Python place at the end of each line."""
    lines = stage["text"].split("\n")
    for i, m in enumerate(stage["lines"]):
        if "src" in m:
            lines[i] += f"  // {sources.first(m['src'])}"
    return "\n".join(lines)


def run_stages(trace, job, stop_after=None, debug=False):
    """[(name, text, index), …] of all stages; RuntimeError with the diagnostics when one refuses."""
    names, last = _stages(), find_stage(stop_after)
    job["options"] = {"stop_after": f"{names[last]}:{names[: last + 1].count(names[last])}"}
    found, errors, sources = [], [], _Sources()

    def take(frame):
        f = json.loads(frame)
        if f["frame"] == "sources":
            sources.add(f)
        elif f["frame"] == "stage":
            s = f["stage"]
            found.append((s["name"], Module(_with_places(s, sources) if debug else s["text"]), s["index"]))
        elif f["frame"] == "diagnostic" and f["diagnostic"]["severity"] == "error":
            errors.append(f["diagnostic"])

    compiler().stages(trace, json.dumps(job), take)
    if errors:
        raise compiler().CompileError("\n".join(map(_error_text, errors)))
    return found


def _error_text(d):
    r = d.get("range")
    at = f"{r['file']}:{r['line']}:{r['col']}: " if r else ""
    stage = f"{d['stage']}: " if d.get("stage") else ""
    return f"{at}{stage}{d['message']} [{d['code']}]" + (f"\n  hint: {d['hint']}" if d.get("hint") else "")


def pipeline(text, target="trn2", stop_after=None, dump_dir=None, print_ir_after_all=False, print_debuginfo=False,
             print_generic=False):
    """Takes the text of a module of linalg on tensors through the passes, to its instructions in one sequence: the form
    of a custom operation's code.  stop_after="engine-programs" goes on to the last stage."""
    if target not in TARGETS:
        raise ValueError(f"target must be one of {', '.join(TARGETS)}, not {target!r}")
    stop_after = "linalg-to-nisa" if stop_after is None else stop_after
    text, last = str(text), find_stage(stop_after)
    stages = [("input", Module(text))]
    if last >= _first_pass():
        stages += _from_linalg(run_stages(None, {"source": text, "language": "mlir", "target": target,
                                                 "filename": "module.mlir"}, stop_after, print_debuginfo))[1:]
    for n, (name, body) in enumerate(stages):
        if dump_dir is not None:
            os.makedirs(dump_dir, exist_ok=True)
            with open(os.path.join(dump_dir, f"{n:02}_{name}.mlir"), "w", encoding="utf-8") as f:
                f.write(body if body.endswith("\n") else body + "\n")
        if print_ir_after_all and n:
            print(f"// ----- {name} -----\n{body}", file=sys.stderr)
    body = stages[-1][1]
    return compiler().passes(body, [], TARGETS.index(target), True) if print_generic else str(body)


def run_passes(text, passes, target="trn2", print_generic=False):
    """Single passes on the text of a module: "canonicalize", "infer-layout", "one-shot-bufferize=allow-unknown-ops"."""
    return compiler().passes(str(text), [p.removeprefix("--").replace('"', "") for p in passes],
                             TARGETS.index(target), print_generic)
