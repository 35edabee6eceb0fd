"""nki.typing: shapes in annotations, nt.tensor[128, 512]."""
from nkipy.core.typing import immutable, mutable, mutable_tensor, tensor  # noqa: F401
