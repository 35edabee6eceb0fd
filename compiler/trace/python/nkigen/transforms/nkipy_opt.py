"""From linalg on tensors towards NISA: text in, text out."""
import sys

from nkx import package
from nkx.package import pipeline as apply_complete_knob_pipeline

__all__ = ["apply_complete_knob_pipeline", "apply_passes", "run_nkipy_opt_passes"]

# Passes of nkigen that have nothing left to do here.  A gather is a loop of plain operations from the start, and
# linalg-to-nisa itself calls custom operations and drops what NISA does not have.
_DONE_ELSEWHERE = ("inline-nkipy-reference", "resolve-custom-ops", "prepare-for-nki")


def _is_work(spec):
    return spec.removeprefix("--").removeprefix("py:").partition("=")[0] not in _DONE_ELSEWHERE


def run_nkipy_opt_passes(mlir_text, passes, print_ir_after_all=False, target="trn2", print_stderr=True, print_debuginfo=False,
                         print_generic=False):
    """Single passes on the text of a module: "canonicalize", "infer-layout", "one-shot-bufferize=allow-unknown-ops".

    print_ir_after_all: writes the text after each pass to stderr.  print_stderr and print_debuginfo change nothing: our
    passes print nothing themselves, and the text of a module has no places.
    """
    if isinstance(print_ir_after_all, str):  # a target, third
        print_ir_after_all, target = False, print_ir_after_all
    if target not in package.TARGETS:
        raise ValueError(f"target must be one of {', '.join(package.TARGETS)}, not {target!r}")
    wanted = [p.removeprefix("py:") for p in passes if _is_work(p)]
    if not print_ir_after_all:
        return package.run_passes(mlir_text, wanted, target, print_generic)
    text = str(mlir_text)
    for n, one in enumerate(wanted, 1):
        text = package.run_passes(text, [one], target, print_generic and n == len(wanted))
        print(f"// ----- {one} -----\n{text}", file=sys.stderr)
    return text


def apply_passes(module, passes, target="trn2", print_generic=False):
    return package.Module(run_nkipy_opt_passes(module, [passes] if isinstance(passes, str) else passes, target=target,
                                               print_generic=print_generic))
