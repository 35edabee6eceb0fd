from nkipy.core.ops import all_gather, all_reduce, all_to_all, reduce_scatter

__all__ = ["all_gather", "all_reduce", "reduce_scatter", "all_to_all"]
