from nkigen.execution import LLVMModule, verify_against_numpy

__all__ = ["LLVMModule", "verify_against_numpy"]
