"""Runs a module of linalg on tensors on this processor."""
from nkx import package

__all__ = ["LLVMModule"]


class LLVMModule:
    """The function of an MLIR module (the first that is not private) as machine code: called with arrays."""

    def __init__(self, module):
        loaded = package.compiler().load(str(module), None)
        self.name, self._program = loaded["name"], loaded["program"]
        self.inputs = package.TensorInfo.all(loaded["inputs"])
        self.outputs = package.TensorInfo.all(loaded["outputs"])

    def __call__(self, *arrays):
        """One array, or a tuple of several."""
        results = package.run_program(self._program, self.inputs, self.outputs, arrays)
        return results[0] if len(results) == 1 else tuple(results)

    run = __call__
