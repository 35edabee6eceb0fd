"""Registers of NKI's devices, and loops and branches that depend on them.

A register is a number that is known on the device only.  The body of a loop on the device, and both branches of an `if` on a
register, run once while the kernel is recorded; rounds.py lets `while` and `if` ask here.
"""
import builtins
import linecache
import sys
import types

import _nkx
from nkx import nki_names, rounds

_ALU = {"add": "add", "sub": "subtract", "mul": "multiply", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
        "lshift": "left_shift", "rshift": "right_shift"}
_COMPARE = {"eq": "equal", "ne": "not_equal", "gt": "greater", "ge": "greater_equal", "lt": "less", "le": "less_equal"}
_NO_DIVISION = {"truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "divmod": "divmod"}
_LAST_BIT = 31
_KEEP = "keep the value in a register, with nisa.register_move, or in SBUF"


def _in_host_code(what):
    nki_names.refuse(_nkx.NkiRegisterInHostCode,
                     f"{what} needs a number that is known at compile time, and a register is known on the device only",
                     "use nl.fori_loop or nl.while_loop for a loop, and .ap(scalar_offset=…) or nl.ds for an index")


class Register:
    """A register: nki.isa.register_alloc makes one, and operators make more."""
    __slots__ = ("nki_register",)

    def __init__(self, tensor):
        self.nki_register = tensor  # what it is in the record

    @property
    def name(self):
        return self.nki_register.name

    def __repr__(self):
        return f"register {self.name}"

    def __bool__(self):
        nki_names.refuse(_nkx.NkiRegisterInHostCode, "the truth of a register is known on the device only",
                         "write `if register:` or `while register:` without break, continue and return; join comparisons with & and |, "
                         "as in (a < b) & (b < c)")

    def __index__(self):
        _in_host_code("this place")

    def __int__(self):
        _in_host_code("int()")

    def __float__(self):
        _in_host_code("float()")

    def __iter__(self):
        nki_names.refuse(_nkx.NkiRegisterInHostCode, "a register is no sequence", "write for i in nl.dynamic_range(register)")

    def __neg__(self):
        return _compute("subtract", 0, self)

    def __pos__(self):
        return self

    __hash__ = object.__hash__


def _compute(op, x, y):
    for v in (x, y):
        if not isinstance(v, (Register, int, float)):
            nki_names.refuse(_nkx.NkiOperand, f"a register is computed with another register or a number, not {type(v).__name__}",
                             "load an element of a tensor with nisa.register_load")
    if op.endswith("shift") and not (type(y) is int and 0 <= y <= _LAST_BIT):
        nki_names.refuse(_nkx.NkiOperand, f"a register is shifted by {y!r}", f"shift by a number from 0 to {_LAST_BIT}")
    return Register(_nkx.nki_register_alu(op, x, y))


def _operator(op, is_reflected=False):
    def f(self, other):
        return _compute(op, other, self) if is_reflected else _compute(op, self, other)

    return f


def _refuse_division(symbol):
    def f(self, *others):
        nki_names.refuse(_nkx.NkiOperator, f"registers have no {symbol}", "shift, or compute in SBUF and load the result")

    return f


for _name, _op in _ALU.items():
    setattr(Register, f"__{_name}__", _operator(_op))
    setattr(Register, f"__r{_name}__", _operator(_op, True))
for _name, _op in _COMPARE.items():
    setattr(Register, f"__{_name}__", _operator(_op))
for _name, _symbol in _NO_DIVISION.items():
    setattr(Register, f"__{_name}__", _refuse_division(_symbol))
    setattr(Register, f"__r{_name}__", _refuse_division(_symbol))


class Moving:
    """nl.ds(start, size) whose start is a register."""

    def __init__(self, start, size):
        self.nki_start, self.nki_size = start, size


def alloc(move, load, x=None):
    r = Register(_nkx.nki_register())
    if isinstance(x, _nkx.NkiTensor):
        load(dst=r, src=x)
    elif x is not None:
        move(dst=r, src=x)
    return r


# ---- loops -----------------------------------------------------------------------------------------------------------


class DynamicRange:
    """for i in nl.dynamic_range(…): the body runs once, with a register."""
    nkx_runs_once = True

    def __init__(self, lower, upper, step):
        self.bounds = lower, upper, step

    def __iter__(self):
        return _Rounds(Register(_nkx.nki_device_for(*self.bounds)))


class _Rounds:
    def __init__(self, register):
        self.register, self.depth = register, _nkx.nki_device_depth()

    def __iter__(self):
        return self

    def __next__(self):
        if self.register is None:
            _end(self.depth)
            raise StopIteration
        register, self.register = self.register, None
        return register


def _end(depth):
    """Ends the loop or branch of this depth, which must be the innermost one."""
    if _nkx.nki_device_depth() != depth:
        nki_names.refuse(_nkx.NkiDeviceLoop, "a loop on the device was left in its middle",
                         "a loop on the device has no break and no return: let the condition of nl.while_loop end it")
    _nkx.nki_device_end()


def fori_loop(lower, upper, body, step=1):
    rounds = iter(DynamicRange(lower, upper, step))
    _returns_nothing(body(next(rounds)))
    _end(rounds.depth)


def _returns_nothing(value):
    if value is not None and not isinstance(value, _nkx.NkiInstruction):
        nki_names.refuse(_nkx.NkiDeviceLoop, "the body of nl.fori_loop returns a value, which no round receives",
                         "keep what a loop carries in SBUF, in HBM or in a register")


def while_loop(init, body):
    """body(register) returns the next one; the loop runs while it is not 0."""
    register = Register(_nkx.nki_register())
    _isa().register_move(dst=register, src=init)
    _nkx.nki_device_while(_nkx.nki_mark(), register)
    depth = _nkx.nki_device_depth()
    after = body(register)
    if not isinstance(after, (Register, int)):
        nki_names.refuse(_nkx.NkiDeviceLoop, "the body of nl.while_loop returns no register",
                         "return the condition of the next round: a register, which is 0 at the end")
    if after is not register:
        _isa().register_move(dst=register, src=after)
    _end(depth)


def _isa():
    return sys.modules["nki.isa"]


# ---- what rounds.py makes of while and if ------------------------------------------------------------------------------

_running = []  # (frame, place, depth) of each `while` on the device that runs
_asked = []  # (frame, place, mark) of each `while` whose condition is being computed


def _codes(code):
    yield code
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from _codes(c)


def rewritten(fn):
    """A function of an ordinary Python whose `while` and `if` ask here.  fn itself if its file names no registers, or if they ask
    already, as in files that the explorer loads."""
    code = getattr(fn, "__code__", None)
    text = "".join(linecache.getlines(code.co_filename)) if code else ""
    if not rounds.may_have_registers(text) or any(n.startswith("nkx.") for c in _codes(code) for n in c.co_names):
        return fn
    module = rounds.compiled(text, code.co_filename)
    for c in _codes(module) if module else ():
        if (c.co_name, c.co_firstlineno, c.co_freevars) == (code.co_name, code.co_firstlineno, code.co_freevars):
            new = types.FunctionType(c, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
            new.__kwdefaults__, new.__qualname__ = fn.__kwdefaults__, fn.__qualname__
            new.__module__, new.__doc__, new.__annotations__ = fn.__module__, fn.__doc__, fn.__annotations__
            new.__dict__.update(fn.__dict__)
            return new
    return fn


def before(place):
    """Whether the test of a `while` is to be computed: not after the one round of a loop on the device."""
    if not _nkx.nki_is_recording():
        _running.clear()
        _asked.clear()
        return True
    frame = sys._getframe(1)
    if _running and _running[-1][:2] == (frame, place):
        _end(_running.pop()[2])
        return False
    _asked.append((frame, place, _nkx.nki_mark()))
    return True


def test(place, value, names):
    """The test of a `while`; names: those that its body would carry from round to round."""
    frame, mark = sys._getframe(1), None
    while _asked and mark is None:
        at, where, n = _asked.pop()
        mark = n if (at, where) == (frame, place) else None
    if not isinstance(value, Register):
        return value
    if names and not _nkx.nki_device_known():
        nki_names.refuse(_nkx.NkiDeviceLoop, f"{names[0]} would be carried from round to round, but the body of a loop on the device "
                         "is recorded once", _KEEP)
    _nkx.nki_device_while(mark, value)
    _running.append((frame, place, _nkx.nki_device_depth()))
    return True


def branches(value, names):
    """What `if` iterates over; names: those that a branch binds and something after it, or in the other one, reads."""
    return _branches(value, names) if isinstance(value, Register) else (value,)


def _check_decided(names, values):
    """What was made in a branch is found where it is used."""
    for name in names:
        v = values.get(name)
        t = v.nki_register if isinstance(v, Register) else v
        if name in values and not (isinstance(t, _nkx.NkiTensor) and _nkx.nki_is_local(t)):
            nki_names.refuse(_nkx.NkiDeviceLoop, f"which value {name} has after this branch is known on the device only", _KEEP)


def _branches(register, names):
    frame = sys._getframe(1)
    _nkx.nki_device_if(register)
    depth = _nkx.nki_device_depth()
    yield True
    if _nkx.nki_device_depth() == depth:
        _nkx.nki_device_else()
        yield False
    _end(depth)
    if names and not _nkx.nki_device_known():
        _check_decided(names, frame.f_locals)


for _function in (before, test, branches):
    setattr(builtins, f"nkx.{_function.__name__}", _function)
