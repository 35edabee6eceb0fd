"""The 8 largest of each row, with their places"""
from nkigen import trace
from nkipy.core.tensor_apis import topk as best


@trace(input_specs=[((1024, 2048), "f32")])
def topk(x):
    return best(x, 8, axis=-1)
