"""nkigen builds MLIR with the objects of this module while it traces.  Here a trace is HLO first, so it has none."""


def __getattr__(name):
    raise AttributeError(f"nkigen.builder.{name} is not available here: a trace is HLO first; kernel.to_mlir() gives its linalg")
