"""The operations under the names of the table: recorded while a kernel is traced, NumPy's (or nkx.host's) otherwise."""
import functools

import _nkx
import numpy

from . import host


def _on_host(row):
    if hasattr(host, row["name"]):
        return getattr(host, row["name"])
    return functools.reduce(getattr, row["numpy"].split()[0].split("."), numpy)


def _operation(row):
    traced, plain = _nkx.operation(row["name"]), _on_host(row)

    def call(*args, **kwargs):
        return (traced if _nkx.is_tracing() else plain)(*args, **kwargs)

    call.__name__ = call.__qualname__ = row["name"]
    call.__doc__ = plain.__doc__
    return call


table = {row["name"]: _operation(row) for row in _nkx.operations() if "." not in row["name"]}
for _row in _nkx.operations():
    for _name in _row["numpy"].split():
        if _row["name"] in table and "." not in _name:
            table.setdefault(_name, table[_row["name"]])


def names(*kinds):
    """The operations of these kinds, for a module's namespace."""
    wanted = {row["name"] for row in _nkx.operations() if row["kind"] in kinds}
    return {n: f for n, f in table.items() if n in wanted}
