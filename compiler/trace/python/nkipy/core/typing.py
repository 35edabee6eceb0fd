"""Names for annotations: `x: nt.tensor[nt.mutable, np.float32, (128, 512)]`.

Where nothing else says which shapes a kernel is compiled for (arrays, input_specs, the request's inputs), annotations with
a shape do; mutable and immutable are documentation.
"""


def _is_dims(o):
    return isinstance(o, (tuple, list)) and all(hasattr(n, "__index__") for n in o)


class _Annotation:
    def __init__(self, name, shape=None, dtype="float32"):
        self.name, self.shape, self.dtype = name, shape, dtype

    def __getitem__(self, items):
        items = (items,) if not isinstance(items, tuple) or _is_dims(items) else items
        shape, dtype = self.shape, self.dtype
        for item in items:
            if _is_dims(item):
                shape = tuple(map(int, item))
            elif hasattr(item, "__index__") and not isinstance(item, type):  # tensor[512]
                shape = (int(item),)
            elif not isinstance(item, _Annotation) and item is not Ellipsis:
                dtype = item
        return _Annotation(self.name, shape, dtype)

    __iter__ = None  # [0], [1], … would never end

    def __or__(self, other):
        return self

    __ror__ = __or__

    def __call__(self, *items):
        return self[items]

    def __repr__(self):
        return self.name if self.shape is None else f"{self.name}[{self.dtype}, {self.shape}]"


tensor = _Annotation("tensor")
mutable_tensor = _Annotation("mutable_tensor")
mutable = _Annotation("mutable")
immutable = _Annotation("immutable")

__all__ = ["tensor", "mutable_tensor", "mutable", "immutable"]
