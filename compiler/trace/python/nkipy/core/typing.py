"""Names for annotations.  They say nothing to the tracer: `x: nt.tensor[nt.mutable, "float32", (128, 512)]` is documentation."""


class _Annotation:
    def __init__(self, name):
        self.name = name

    def __getitem__(self, item):
        return self

    def __or__(self, other):
        return self

    __ror__ = __or__

    def __call__(self, *args, **kwargs):
        return self

    def __repr__(self):
        return self.name


tensor = _Annotation("tensor")
mutable_tensor = _Annotation("mutable_tensor")
mutable = _Annotation("mutable")
immutable = _Annotation("immutable")

__all__ = ["tensor", "mutable_tensor", "mutable", "immutable"]
