from nkigen.llvm import LLVMModule, extract_and_clean_func_from_module

__all__ = ["LLVMModule", "extract_and_clean_func_from_module"]
