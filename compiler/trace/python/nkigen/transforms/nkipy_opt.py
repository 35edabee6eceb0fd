"""From linalg on tensors towards NISA: text in, text out."""
from nkx import package
from nkx.package import pipeline as apply_complete_knob_pipeline
from nkx.package import run_passes as run_nkipy_opt_passes

__all__ = ["apply_complete_knob_pipeline", "apply_passes", "run_nkipy_opt_passes"]


def apply_passes(module, passes, target="trn2", print_generic=False):
    return package.Module(run_nkipy_opt_passes(module, [passes] if isinstance(passes, str) else passes, target,
                                               print_generic))
