from nkigen.pass_manager import apply_complete_knob_pipeline, apply_passes, run_nkipy_opt_passes

__all__ = ["apply_complete_knob_pipeline", "apply_passes", "run_nkipy_opt_passes"]
