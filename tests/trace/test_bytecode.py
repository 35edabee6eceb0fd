"""The build compiles its Python packages: the worker, which writes nothing, would otherwise compile them at each start."""
import importlib.util
import pathlib

import pytest

from support.paths import BUILD


@pytest.mark.parametrize("package", ["nkx", "nkipy", "nkigen", "nkipy_kernelgen", "spike"])
def test_every_module_of_a_package_is_compiled(package):
    modules = [*(BUILD / "python" / package).rglob("*.py")]
    assert modules
    for module in modules:
        header = pathlib.Path(importlib.util.cache_from_source(str(module))).read_bytes()[:16]
        flags, modified, size = (int.from_bytes(header[i:i + 4], "little") for i in (4, 8, 12))
        assert header[:4] == importlib.util.MAGIC_NUMBER and flags == 0
        assert (modified, size) == (int(module.stat().st_mtime), module.stat().st_size), module
