from nki.typing import immutable, mutable, mutable_tensor, tensor  # noqa: F401
