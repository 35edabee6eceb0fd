"""Runs a module on this processor."""
from nkx import package

from .mlir_utils import extract_and_clean_func_from_module

__all__ = ["LLVMModule", "extract_and_clean_func_from_module"]


class LLVMModule:
    """A function of an MLIR module as machine code: called with arrays.  func_name: None for the first that is not
    private."""

    def __init__(self, module, func_name=None):
        text = str(module) if func_name is None else extract_and_clean_func_from_module(module, func_name)
        loaded = package.compiler().load(str(text), None)
        self.name, self._program = loaded["name"], loaded["program"]
        self.inputs = package.TensorInfo.all(loaded["inputs"])
        self.outputs = package.TensorInfo.all(loaded["outputs"])

    def __call__(self, *arrays):
        """One array, or a tuple of several."""
        results = package.run_program(self._program, self.inputs, self.outputs, arrays)
        return results[0] if len(results) == 1 else tuple(results)

    run = __call__
