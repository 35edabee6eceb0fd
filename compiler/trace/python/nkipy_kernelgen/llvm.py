from nkigen.llvm import LLVMModule

__all__ = ["LLVMModule"]
