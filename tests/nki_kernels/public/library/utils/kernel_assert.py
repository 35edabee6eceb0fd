"""Assertions of kernels."""


def kernel_assert(condition, message):
    """Stops the compile where an argument does not fit."""
    assert condition, f"[kernel] {message}"
