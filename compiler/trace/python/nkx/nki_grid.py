"""Launches of NKI kernels: kernel[grid](…), and what a running kernel knows of its grid.

NKI 0.3 and later take one number, on how many cores the kernel runs.  Beta 1 takes a tuple of
numbers; nl.spmd_dim and nl.nc spread an axis over the two cores.
"""
import _nkx
from nkx import nki_names

BETA_1 = 1
CORES_MAX = 2
AXES_MAX = 4


def _refuse(message, hint=None):
    nki_names.refuse(_nkx.NkiGrid, message, hint)


class Axis:
    """An axis of a grid that is spread over cores: index i is on core i // step % cores."""

    def __init__(self, size, cores, step=1):
        self.size, self.cores, self.step = size, cores, step

    def __mul__(self, other):
        return spmd_dim(self, other)

    def __rmul__(self, other):
        return spmd_dim(other, self)


def nc(cores):
    """nl.nc: an axis of physical cores."""
    return Axis(_size(cores), _size(cores))


def spmd_dim(*dims):
    """nl.spmd_dim: an axis with the product of these sizes, the last of which counts fastest.  So spmd_dim(nc(2), n) gives
    each core n instances in a row, and spmd_dim(n, nc(2)) gives them to the cores by turns."""
    size = cores = step = 1
    for d in reversed(dims):
        if isinstance(d, Axis) and d.cores > 1:
            if cores > 1:
                _refuse("an axis is spread over cores twice")
            cores, step = d.cores, size * d.step
        size *= _size(d)
    return Axis(size, cores, step)


def _size(d):
    if isinstance(d, Axis):
        return d.size
    try:
        size = d.__index__()
    except AttributeError:
        _refuse(f"a grid has the entry {d!r}, which is not a number")
    if size < 1:
        _refuse(f"a grid has the size {size}")
    return size


class Scheduled:
    """What kernel.with_schedule launches the kernel with: its grid or None, and pairs of names of calls."""

    def __init__(self, grid, schedule):
        self.grid, self.schedule = grid, schedule

    def __repr__(self):
        return f"{self.grid!r} and a schedule"


def _edges(schedule):
    """((name, name of a call that it waits for), …) of [(name, name or [name, …]), …]"""
    edges = []
    for entry in schedule if isinstance(schedule, (tuple, list)) else [schedule]:
        after, before = entry if isinstance(entry, (tuple, list)) and len(entry) == 2 else (None, None)
        names = before if isinstance(before, (tuple, list)) else [before]
        if not all(isinstance(name, str) for name in (after, *names)):
            nki_names.refuse(_nkx.NkiCall, f"the schedule has the entry {entry!r}",
                             "write [(after, before), (after, [before, …]), …] with the names of calls of nki.isa")
        edges += [(after, name) for name in names]
    return tuple(edges)


def scheduled(kernel, schedule):
    """kernel.with_schedule(schedule)"""
    if kernel.generation == BETA_1:
        nki_names.refuse(_nkx.NkiMixedGenerations, "with_schedule belongs to newer NKI, but the kernel is beta 1",
                         "write the calls in the order that you want")
    grid, known = (kernel.grid.grid, kernel.grid.schedule) if isinstance(kernel.grid, Scheduled) else (kernel.grid, ())
    return kernel[Scheduled(grid, known + _edges(schedule))]


def relaunched(grid, other):
    """The grid of kernel[grid][other]: a schedule stays."""
    return Scheduled(other, grid.schedule) if isinstance(grid, Scheduled) and not isinstance(other, Scheduled) else other


def of(grid, generation):
    """(sizes of the axes, number of cores, the axis that is spread over them, its step, the schedule) of kernel[grid]; grid None: a
    call without one."""
    if isinstance(grid, Scheduled):
        return *of(grid.grid, generation)[:4], grid.schedule
    if grid is None or grid == ():
        return (), 1, 0, 1, ()
    dims = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
    sizes = tuple(map(_size, dims))
    spread = [i for i, d in enumerate(dims) if isinstance(d, Axis) and d.cores > 1]
    if len(spread) > 1:
        _refuse(f"the grid {sizes} spreads two axes over cores", "one axis is enough: a launch has two cores")
    axis, cores, step = (spread[0], dims[spread[0]].cores, dims[spread[0]].step) if spread else (0, 1, 1)
    if generation != BETA_1:
        if len(sizes) != 1:
            _refuse(f"the grid {sizes} has {len(sizes)} axes, but a launch takes one number",
                    "loop over the other axes inside of the kernel")
        axis, cores, step = 0, sizes[0], 1
    if cores > CORES_MAX:
        _refuse(f"the grid {sizes} asks for {cores} cores, but a launch has at most {CORES_MAX}",
                "loop inside of the kernel")
    if len(sizes) > AXES_MAX:
        _refuse(f"the grid {sizes} has more than {AXES_MAX} axes")
    return sizes, cores, axis, step, ()


def _axis(axis, n):
    a = axis.__index__()
    if not 0 <= a < max(n, 1):
        _refuse(f"the launch has no axis {a}: its grid has {n or 'no'} axes", "kernel[n](…) launches with one axis, 0")
    return a


def program_id(axis=0):
    """nl.program_id: the running instance's number on an axis of the grid."""
    ids, _ = _nkx.nki_program()
    a = _axis(axis, len(ids))
    return ids[a] if ids else 0


def num_programs(axes=0):
    """nl.num_programs: the size of an axis of the grid, or of several."""
    _, sizes = _nkx.nki_program()
    if isinstance(axes, (tuple, list)):
        return tuple(map(num_programs, axes))
    a = _axis(axes, len(sizes))
    return sizes[a] if sizes else 1


def program_ndim():
    """nl.program_ndim: the number of the grid's axes."""
    return len(_nkx.nki_program()[1])
