"""Neuron Kernel Explorer: the tracer's Python names."""
from _nkx import Kernel, Tensor, TraceError, fori_loop, fuse, knob, operations, trace, trace_source

__all__ = ["Kernel", "Tensor", "TraceError", "fori_loop", "fuse", "knob", "operations", "trace", "trace_source"]


def load_ipython_extension(shell):
    """`%load_ext nkx` in a notebook: the cell magic `%%nkx`."""
    from nkx.notebook import cell_magic
    shell.register_magic_function(cell_magic, "cell", "nkx")
