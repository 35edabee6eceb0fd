"""What the suite cannot ask of the product yet, in one place.  A feature that is there: delete its line, and the
kernels that need it are compiled and checked like the others.  Tests print both tables.
"""

# feature of the front end -> what is missing
MISSING = {
    "topk": "tensor_apis.topk",
    "collectives": "nkipy.distributed.collectives",
}

# not written yet: kernels whose body is NISA text (custom_op: SiLU alone and after a product, a second call, two
# results), as that text belongs to the form that custom_op will take; wrapped NKI kernels; conv2d and conv3d

# "kernel/variant" -> part of what the product says: refused, though it need not be
REFUSED = {}
