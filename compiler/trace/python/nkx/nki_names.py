"""What a module of NKI says about names that it does not have.

Such a name may be imported: a file is not refused for an import that its kernel does not need.  Its use is refused, with
the reason.
"""
import difflib
import functools
import sys

import _nkx
from nkx import missing, nki_unknown

# For each module: the names that are not compiled here yet, {name of an earlier NKI: what replaces it}, and its submodules.
TABLES = {}
_SHORT = {"language": "nl.", "isa": "nisa.", "nki": "nki."}
_MASKS = {"arange", "mgrid", "par_dim"}


class NamedType(str):
    """A type of elements that NumPy does not have.  It equals its name."""

    def nki_text(self):
        """As kernels write it (nki_written.py)."""
        return f"nl.{self}"

    @property
    def name(self):
        return str(self)

    @property
    def kind(self):
        return "f" if self == "tfloat32" else "V"

    @property
    def itemsize(self):
        return {"tfloat32": 4, "float4_e2m1fn_x4": 2, "float8_e8m0fnu": 1}.get(self, 4)


@functools.cache
def named_type(name):
    return NamedType(name)


def removed_code(module, name):
    """The code of the refusal of a name of an earlier NKI."""
    if module == "nki.language":
        return "nki-mask-removed" if name in _MASKS else "nki-mixed-generations"
    return "nki-removed-api"


_REMOVED_CLASSES = {"nki-mask-removed": _nkx.NkiMaskRemoved, "nki-mixed-generations": _nkx.NkiMixedGenerations,
                    "nki-removed-api": _nkx.NkiRemovedApi}


def refuse(cls, message, hint=None, about=None, argument=None):
    """about: the argument that is refused, or the memory of it; argument: the name of its parameter (nki_blame.py)."""
    e = cls(message)
    if hint:
        e.hint = hint
    e.about, e.argument = about, argument
    raise e


def refuse_listed(name):
    """Refuses the use of a name of compiler/nki/refused.def."""
    why, instead = next((why, instead) for n, _, _, why, instead in _nkx.nki_refused() if n == name)
    refuse(_nkx.NkiUnsupported, f"{name} is not compiled here: {why}", instead)


class Unavailable:
    """A name that cannot be used, with the exception of its use."""

    def __init__(self, name, cls, message, hint, goes_on=False):
        self.__name__, self._refusal, self._goes_on = name, (cls, message, hint), goes_on

    def __repr__(self):
        return self._refusal[1]

    def _refuse(self):
        """For an argument of a call, which is refused as a whole (trace/nki/arguments.c)."""
        refuse(*self._refusal)

    def __call__(self, *args, **kwargs):
        try:
            self._refuse()
        except Exception as e:  # noqa: BLE001: it is raised again where a refusal ends the kernel
            if not self._goes_on:
                raise
            return nki_unknown.reported(e)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self()

    def __getitem__(self, key):
        return self()


def _refused(module):
    """{name: (why, what to do)} of the names of this module that compiler/nki/refused.def lists."""
    beta_1, prefix = module.startswith("neuronxcc."), _SHORT.get(module.rpartition(".")[2], "?")
    return {name[len(prefix):]: (why, instead) for name, newer, beta1, why, instead in _nkx.nki_refused()
            if name.startswith(prefix) and (beta1 if beta_1 else newer)}


def attribute_of(module, removed=None, modules=()):
    """The __getattr__ of a module.  removed: names of earlier versions, with what replaces them; modules: its submodules, which the
    import system then imports."""
    removed, unsupported = removed or {}, _refused(module)
    TABLES[module] = unsupported, removed, modules
    goes_on = module.startswith("neuronxcc.") or module in ("nki", "nki.isa", "nki.language")

    def __getattr__(name):
        if name.startswith("__") or name in modules or missing.is_guarded_here():
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        full = f"{module}.{name}"
        if name in removed:
            return Unavailable(name, _REMOVED_CLASSES[removed_code(module, name)], f"{full} belongs to an earlier NKI", removed[name], goes_on)
        if name in unsupported:
            why, instead = unsupported[name]
            return Unavailable(name, _nkx.NkiUnsupported, f"{full} is not compiled here: {why}", instead, goes_on)
        near = difflib.get_close_matches(name, [*vars(sys.modules[module]), *unsupported], 1)
        return Unavailable(name, _nkx.NkiUnknownApi, f"{module} has no {name}", f"did you mean {near[0]}?" if near else None,
                           goes_on)

    return __getattr__
