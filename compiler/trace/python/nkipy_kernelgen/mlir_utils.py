from nkigen.mlir_utils import extract_and_clean_func_from_module

__all__ = ["extract_and_clean_func_from_module"]
