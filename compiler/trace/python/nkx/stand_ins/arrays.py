"""Arrays of torch and of JAX in a job, where neither is installed: a file calls its kernel with them, and they have the shapes.

    a = torch.rand((128, 512), dtype=torch.bfloat16).to(device=xm.xla_device())
    b = jax.random.normal(jax.random.PRNGKey(0), (128, 512))

They are arrays of NumPy with a seed that does not change.  Only what makes arrays is here; what computes with them is missing."""
import ml_dtypes
import numpy as np

_TYPES = {"float": "float32", "half": "float16", "double": "float64", "long": "int64", "int": "int32", "short": "int16"}


def _dtype(d, default=None):
    """The NumPy dtype of a dtype of torch or JAX, which is a stand-in with that name; default if it is no dtype."""
    name = vars(d).get("_nkx_name", "") if hasattr(d, "__dict__") and not isinstance(d, type) else d
    if not isinstance(name, str):
        return default if d is None else np.dtype(d)
    name = name.rpartition(".")[2]
    try:
        return np.dtype(getattr(ml_dtypes, name, _TYPES.get(name, name)))
    except TypeError:
        return default


class Tensor(np.ndarray):
    """A tensor of torch."""

    def to(self, *args, dtype=None, **kwargs):
        found = [d for d in map(_dtype, (dtype, *(a for a in args if a is not None))) if d is not None]
        return self.astype(found[0]) if found else self

    def _same(self, *args, **kwargs):
        return self

    cpu = cuda = detach = contiguous = clone = requires_grad_ = _same

    def numpy(self):
        return np.asarray(self)

    def float(self):
        return self.astype(np.float32)

    def half(self):
        return self.astype(np.float16)

    def bfloat16(self):
        return self.astype(ml_dtypes.bfloat16)

    def transpose(self, a, b):
        return self.swapaxes(a, b)

    def t(self):
        return self.swapaxes(0, 1)

    def permute(self, *dims):
        return np.transpose(np.asarray(self), dims[0] if isinstance(dims[0], (tuple, list)) else dims).view(Tensor)

    def unsqueeze(self, axis):
        return np.expand_dims(self, axis)


def _rng():
    return np.random.default_rng(0)


def _torch(make, default=np.float32):
    """torch.f(2, 3, dtype=…), torch.f((2, 3)), torch.f(size=(2, 3))"""
    def f(*sizes, size=None, dtype=None, device=None, requires_grad=False, generator=None, **kwargs):
        shape = size if size is not None else sizes[0] if sizes and isinstance(sizes[0], (tuple, list)) else sizes
        return np.asarray(make(tuple(shape))).astype(_dtype(dtype, np.dtype(default))).view(Tensor)
    return f


def _torch_like(make):
    def f(x, dtype=None, **kwargs):
        return np.asarray(make(x.shape)).astype(_dtype(dtype, x.dtype)).view(Tensor)
    return f


def _torch_full(size, fill_value, dtype=None, **kwargs):
    return np.full(size, fill_value, _dtype(dtype, np.dtype(np.float32))).view(Tensor)


def _torch_randint(low, high=None, size=None, dtype=None, **kwargs):
    low, high, size = (0, low, high) if size is None else (low, high, size)
    return _rng().integers(low, high, size).astype(_dtype(dtype, np.dtype(np.int64))).view(Tensor)


def _torch_arange(*ends, dtype=None, device=None, **kwargs):
    return np.arange(*ends, dtype=_dtype(dtype)).view(Tensor)


def _torch_tensor(data, dtype=None, device=None, **kwargs):
    a = np.asarray(data)
    return a.astype(_dtype(dtype, a.dtype if isinstance(data, np.ndarray) or a.dtype.kind != "f" else np.dtype(np.float32))).view(Tensor)


def _jax(make):
    """jnp.f((2, 3), dtype)"""
    def f(shape, dtype=None):
        return np.asarray(make((shape,) if isinstance(shape, int) else tuple(shape))).astype(_dtype(dtype, np.dtype(np.float32)))
    return f


def _jax_random(make):
    """jax.random.f(key, (2, 3), dtype)"""
    def f(key, shape=(), dtype=None, **kwargs):
        return _jax(make)(shape, dtype)
    return f


def _jax_full(shape, fill_value, dtype=None):
    return np.full(shape, fill_value, _dtype(dtype, np.dtype(np.float32)))


def _jax_array(data, dtype=None):
    a = np.asarray(data)
    return a.astype(_dtype(dtype, np.dtype(np.float32) if a.dtype == np.float64 else a.dtype))


def _jax_randint(key, shape, minval, maxval, dtype=None):
    return _rng().integers(minval, maxval, shape).astype(_dtype(dtype, np.dtype(np.int32)))


def _jax_arange(*ends, dtype=None):
    a = np.arange(*ends, dtype=_dtype(dtype))
    return a.astype(np.int32) if dtype is None and a.dtype == np.int64 else a


FUNCTIONS = {
    "torch.zeros": _torch(np.zeros), "torch.ones": _torch(np.ones), "torch.empty": _torch(np.zeros),
    "torch.rand": _torch(lambda s: _rng().random(s)), "torch.randn": _torch(lambda s: _rng().standard_normal(s)),
    "torch.zeros_like": _torch_like(np.zeros), "torch.ones_like": _torch_like(np.ones), "torch.empty_like": _torch_like(np.zeros),
    "torch.rand_like": _torch_like(lambda s: _rng().random(s)), "torch.randn_like": _torch_like(lambda s: _rng().standard_normal(s)),
    "torch.full": _torch_full, "torch.randint": _torch_randint, "torch.arange": _torch_arange, "torch.tensor": _torch_tensor,
    "torch.from_numpy": _torch_tensor, "torch.manual_seed": lambda seed: None, "torch.device": lambda name, index=None: str(name),
    "torch_xla.core.xla_model.xla_device": lambda *args, **kwargs: "xla", "torch_xla.device": lambda *args, **kwargs: "xla",
    "jax.numpy.zeros": _jax(np.zeros), "jax.numpy.ones": _jax(np.ones), "jax.numpy.empty": _jax(np.zeros),
    "jax.numpy.full": _jax_full, "jax.numpy.arange": _jax_arange, "jax.numpy.array": _jax_array, "jax.numpy.asarray": _jax_array,
    "jax.random.PRNGKey": lambda seed: np.array([0, seed], np.uint32), "jax.random.key": lambda seed: np.array([0, seed], np.uint32),
    "jax.random.split": lambda key, num=2: [key] * num, "jax.random.uniform": _jax_random(lambda s: _rng().random(s)),
    "jax.random.normal": _jax_random(lambda s: _rng().standard_normal(s)), "jax.random.randint": _jax_randint,
}
