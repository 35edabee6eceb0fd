"""Forms of calls of nki.isa: which call, with which operands, of which types, in which memories and views, on which engine;
and what NumPy says of it.  Many forms are parts of one kernel, so that a program of each runs on the simulated machine.

The models of nki_form_cases.py are written after the vendor's documentation, without a look at ours: what is read becomes
float32, is computed in float32, and is rounded to the type of the destination.
"""
import dataclasses
import hashlib
import json
import pathlib
import tempfile

import ml_dtypes
import numpy as np

from support import warm

TARGETS = ("trn1", "trn2", "trn3")
LATER = ("trn2", "trn3")
HEAD = "import numpy as np\nimport nki\nimport nki.isa as nisa\nimport nki.language as nl\n"

FLOATS = ("float32", "bfloat16", "float16", "float8_e4m3", "float8_e5m2")
INTS = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
TYPES = FLOATS + INTS


def dtype(name):
    return np.dtype(getattr(ml_dtypes, name)) if name == "bfloat16" or name.startswith("float8") else np.dtype(name)


def f32(x):
    return np.asarray(x).astype(np.float32)


def stored(x, name):
    """A number of float32 as an element: rounded to nearest even; integers saturate, and NaN is 0."""
    t = dtype(name)
    if t.kind in "iu":
        limits = np.iinfo(t)
        return np.clip(np.rint(np.nan_to_num(np.asarray(x, np.float64), nan=0.0, posinf=2.0**40, neginf=-2.0**40)), limits.min, limits.max).astype(t)
    return np.asarray(x).astype(np.float32).astype(t)


def random(label, name, shape, low=-3.0, high=3.0):
    """Numbers of this type that depend on the label only."""
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(label.encode()).digest()[:4], "little"))
    t = dtype(name)
    if t.kind in "iu":
        return rng.integers(0 if t.kind == "u" else -20, 20, shape).astype(t)
    return rng.uniform(low, high, shape).astype(np.float32).astype(t)


def pairs(n):
    """n as a product of two numbers above 1, if there is one."""
    a = next((k for k in range(2, n) if n % k == 0), 1)
    return a, n // a


@dataclasses.dataclass
class Tile:
    """An operand that is read: an array, how it lies in which memory, and its type there, if the array has the bits of it."""
    array: np.ndarray
    form: str = "sbuf"
    kind: str = None

    def memory(self):
        return {"psum": "psum", "psum stride": "psum", "hbm": "hbm"}.get(self.form, "sbuf")

    def seen(self):
        """The array that the call sees."""
        return np.broadcast_to(self.array[:, :1], self.array.shape) if self.form == "broadcast" else self.array

    def write(self, kernel, name):
        x, source = self.array, kernel.input(self.array)
        if self.form == "hbm":
            return [f"{name} = {source}"]
        if self.form == "broadcast":
            return [f"{name} = nl.load({source}[:, 0:1]).broadcast(1, {x.shape[1]})"]
        if self.form == "sbuf" and not self.kind:
            return [f"{name} = nl.load({source})"]
        lines, view, reshaped = _view(name, x.shape, self.kind or x.dtype.name, self.form)
        if self.form.startswith("psum"):
            return [*lines, f"{name} = {view}", f"nisa.tensor_copy({name}, nl.load({source}))"]
        return [*lines, f"{name} = {view}", f"nisa.dma_copy({name}, {source}{reshaped})"]


@dataclasses.dataclass
class Out:
    """An operand that is written, or, with `before`, changed.  bits: the type of the result that has its bits, if another."""
    shape: tuple
    dtype: str
    form: str = "sbuf"
    before: np.ndarray = None
    error: float = 0.0
    bits: str = None

    memory = Tile.memory

    def write(self, kernel, name):
        if self.form == "hbm":
            kernel.outputs.append((name, self))
            lines = [f"{name} = nl.ndarray({self.shape}, nl.{self.dtype}, buffer=nl.shared_hbm)"]
            return lines + ([f"nisa.dma_copy({name}, {kernel.input(self.before)})"] if self.before is not None else [])
        lines, view, reshaped = _view(name, self.shape, self.dtype, self.form)
        lines.append(f"{name} = {view}")
        if self.before is not None and self.form.startswith("psum"):
            lines.append(f"nisa.tensor_copy({name}, nl.load({kernel.input(self.before)}))")
        elif self.before is not None:
            lines.append(f"nisa.dma_copy({name}, {kernel.input(self.before)}{reshaped})")
        return lines

    def read(self, kernel, name):
        """Lines that store the result."""
        if self.form == "hbm":
            return []
        result = f"{name}_r"
        kernel.outputs.append((result, self))
        lines = [f"{result} = nl.ndarray({self.shape}, nl.{self.bits or self.dtype}, buffer=nl.shared_hbm)"]
        if self.form.startswith("psum"):
            return [*lines, f"{name}_s = nl.ndarray({self.shape}, nl.{self.dtype})", f"nisa.tensor_copy({name}_s, {name})",
                    f"nisa.dma_copy({result}, {name}_s)"]
        return [*lines, f"nisa.dma_copy({result}{_reshaped(self.shape, self.form)}, {name})"]


def _reshaped(shape, form):
    return f".reshape(({shape[0]}, {pairs(shape[1])[0]}, {pairs(shape[1])[1]}))" if form == "swapped" else ""


def _view(name, shape, kind, form):
    """Lines that make a tensor, the view of it with this shape, and how an array of HBM is reshaped to be copied to it."""
    memory = ", buffer=nl.psum" if form.startswith("psum") else ""
    p, *free = shape

    def tensor(*dims):
        return [f"{name}_t = nl.ndarray(({', '.join(map(str, dims))}), nl.{kind}{memory})"]

    if form in ("sbuf", "psum"):
        return tensor(*shape), f"{name}_t", ""
    if form == "part":  # partitions 32 and the following ones
        return tensor(64 if p <= 32 else 128, *free), f"{name}_t[32:{32 + p}]", ""
    if form == "offset":
        return tensor(p, *free[:-1], free[-1] + 4), f"{name}_t[{':, ' * len(free)}4:]", ""
    if form in ("stride", "psum stride"):
        return tensor(p, *free[:-1], 2 * free[-1]), f"{name}_t[{':, ' * len(free)}0:{2 * free[-1]}:2]", ""
    assert form == "swapped" and len(shape) == 2, form
    a, b = pairs(shape[1])
    return tensor(p, b, a), f"{name}_t.permute((0, 2, 1))", _reshaped(shape, form)


@dataclasses.dataclass
class Form:
    """A call with its arguments: Tile, Out, a list of Tiles, or the text of anything else.  want: what each Out becomes.
    after: calls that are made before it, which leave a state."""
    call: str
    arguments: dict
    want: dict
    targets: tuple = TARGETS
    after: tuple = ()

    def label(self):
        return f"{self.call}({', '.join(f'{k}={self._short(v)}' for k, v in self.arguments.items())})"

    @staticmethod
    def _short(v):
        if isinstance(v, list):
            return ", ".join(map(Form._short, v))
        if isinstance(v, Tile):
            return f"{v.array.dtype.name} {v.array.shape} {v.form}"
        return f"{v.dtype} {v.shape} {v.form}" if isinstance(v, Out) else v

    def write(self, kernel, number):
        names, lines = {}, []
        for parameter, v in self.arguments.items():
            if isinstance(v, list):
                names[parameter] = f"[{', '.join(f'{parameter}{k}_{number}' for k in range(len(v)))}]"
                lines += [line for k, x in enumerate(v) for line in x.write(kernel, f"{parameter}{k}_{number}")]
                continue
            names[parameter] = f"{parameter}{number}" if isinstance(v, (Tile, Out)) else v
            if isinstance(v, (Tile, Out)):
                lines += v.write(kernel, names[parameter])
        shown = ", ".join(f"{k}={v}" for k, v in names.items())
        lines.append(f"nisa.{self.call}({shown})  # {number}")
        for parameter, v in self.arguments.items():
            if isinstance(v, Out):
                lines += v.read(kernel, names[parameter])
        return lines


class Kernel:
    """Forms in one kernel."""

    def __init__(self, forms):
        self.forms, self.inputs, self.outputs, self._known = [x for f in forms for x in (*f.after, f)], {}, [], {}
        self.want, lines = [], []
        for number, form in enumerate(self.forms):
            first = len(self.outputs)
            lines += form.write(self, number)
            keys = {f"{p}{number}": p for p in form.want}
            for name, out in self.outputs[first:]:
                self.want.append((name, form, form.want[keys[name.removesuffix("_r")]], out.error))
        parameters = ", ".join(f"{n}: nl.tensor[nl.{a.dtype.name}, {a.shape}]" for n, a in self.inputs.items())
        body = "".join(f"    {line}\n" for line in lines)
        self.source = f"{HEAD}\n\n@nki.jit\ndef forms({parameters}):\n{body}    return {', '.join(n for n, _ in self.outputs)}\n"

    def input(self, array):
        key = (array.dtype.name, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = f"i{len(self.inputs)}"
            self.inputs[self._known[key]] = array
        return self._known[key]

    def run(self, target):
        """Simulates it: what is wrong, as text for each form; [] if nothing is."""
        got, problems = self.simulate(target)
        return problems if got is None else self.wrong(got) + problems

    def simulate(self, target):
        """(results by their names, or None if it is refused; what the machine and our evaluation do not agree about, or why)"""
        with tempfile.TemporaryDirectory() as directory:
            directory = pathlib.Path(directory)
            (directory / "forms.py").write_text(self.source)
            np.savez(directory / "in.npz", **self.inputs)
            done = warm.run("run", directory / "forms.py", "--inputs", directory / "in.npz", "--target", target, "--save-outputs", directory / "out.npz",
                            "--json", directory / "result.json")
            result = json.loads((directory / "result.json").read_text())
            if any(d["severity"] == "error" and d["code"] != "check-failed" for d in result["diagnostics"]) or not (directory / "out.npz").exists():
                return None, [self._refused(d) for d in result["diagnostics"]] or [done.stderr.decode()[:1000]]
            with np.load(directory / "out.npz") as outputs:
                got = {name: outputs[name].view(dtype(out.bits or out.dtype)) for name, out in self.outputs}
        [kernel] = result["kernels"]
        other = [f"{o['name']}: the machine and our evaluation of the calls differ by {o['max_abs_err']}" for o in kernel["simulation"]["outputs"] if not o["pass"]]
        return got, other

    def _refused(self, d):
        line = self.source.splitlines()[d["range"]["line"] - 1] if d.get("range") else ""
        number = line.rpartition("# ")[2]
        return f"{self.forms[int(number)].label() if number.isdigit() else line.strip()}: {d['code']}: {d['message'][:300]}"

    def wrong(self, got):
        """The forms whose results differ, with both values at the first place."""
        found = []
        for name, form, want, error in self.want:
            x, y = np.asarray(got[name]), np.asarray(want)
            if x.shape != y.shape or x.dtype != y.dtype:
                found.append(f"{form.label()}: {x.dtype} {x.shape} instead of {y.dtype} {y.shape}")
                continue
            x, y = x.astype(np.float64), y.astype(np.float64)
            with np.errstate(invalid="ignore"):
                differs = ~(np.isclose(x, y, rtol=error, atol=error * max(1.0, float(np.nanmax(np.abs(np.where(np.isfinite(y), y, 0))))), equal_nan=True))
            if differs.any():
                at = tuple(int(i) for i in np.argwhere(differs)[0])
                found.append(f"{form.label()}: {x[at]} instead of {y[at]} at {at}, {int(differs.sum())} of {x.size}")
        return found
