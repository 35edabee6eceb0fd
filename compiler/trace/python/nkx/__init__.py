"""Neuron Kernel Explorer: the tracer's Python names."""
from _nkx import Kernel, Tensor, TraceError, fori_loop, fuse, knob, operations, trace, trace_source

__all__ = ["Kernel", "Tensor", "TraceError", "fori_loop", "fuse", "knob", "operations", "trace", "trace_source"]
