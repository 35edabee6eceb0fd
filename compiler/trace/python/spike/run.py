"""spike-run: runs a NEFF, shows its outputs, and measures it.

    spike-run MODEL.neff [--inputs FILE.npz] [--outputs FILE.npz] [--core N] [--warmup N] [--iterations N] [--save-trace FILE]

`python -m spike` is the same.  Inputs that no file gives are drawn with --seed.
"""
import argparse
import sys

import numpy as np

from nkx import npz

from . import SpikeModel, runtime


def _options(argv):
    p = argparse.ArgumentParser(prog="spike-run", description="Runs a NEFF: a simulation package on the simulated machine, one of the "
                                                              "vendor's compiler on a Neuron device.")
    p.add_argument("neff", metavar="MODEL.neff")
    p.add_argument("--inputs", metavar="FILE.npz", help="the inputs by name")
    p.add_argument("--outputs", metavar="FILE.npz", help="write the outputs there")
    p.add_argument("--seed", type=int, default=42, help="of inputs that are drawn")
    p.add_argument("--core", type=int, default=0)
    p.add_argument("--warmup", type=int, default=2, help="executions before those that are measured")
    p.add_argument("--iterations", type=int, default=10, help="executions that are measured; 0: none")
    p.add_argument("--save-trace", metavar="FILE", help="the device's profile, or the simulated timeline for ui.perfetto.dev")
    return p.parse_args(argv)


def _draw(info, rng):
    if info.dtype.kind in "iub":
        return rng.integers(0, 2, info.shape).astype(info.dtype)
    return rng.uniform(-1, 1, info.shape).astype(np.float32).astype(info.dtype)


def _inputs(model, options):
    given = npz.load(options.inputs) if options.inputs else {}
    rng = np.random.default_rng(options.seed)
    arrays = {}
    for name, info in model.input_tensors_info.items():
        plain = name.removesuffix(".must_alias_input")
        a = given[plain] if plain in given else given[name] if name in given else _draw(info, rng)
        arrays[plain] = a.view(info.dtype) if a.dtype.kind == "V" else a
    return arrays


def main(argv=None):
    options = _options(argv)
    try:
        model = SpikeModel.load_from_neff(options.neff, core_id=options.core)
        inputs = _inputs(model, options)
        if options.save_trace:
            results = model.code.save_trace(model._arrays(inputs, None), options.save_trace)
        else:
            results = model.code.run(model._arrays(inputs, None))
        times = model.benchmark(inputs, None, options.warmup, options.iterations) if options.iterations else None
    except (OSError, RuntimeError, ValueError) as e:
        print(f"spike-run: {e}", file=sys.stderr)
        return 1
    where = f"on {runtime()['library']}, version {runtime()['version']}" if model.code.is_on_device else "on the simulated machine, no device"
    print(f"{model.name} {where}")
    for info, r in zip(model.code.outputs, results):
        x = r.astype(np.float64)
        print(f"  {info.name}  {info.dtype}{list(info.shape)}" + (f"  min {x.min():.6g}  max {x.max():.6g}  mean {x.mean():.6g}" if x.size else ""))
    if times:
        print(f"  {times.iterations} executions: mean {times.mean_ms:.4f} ms, least {times.min_ms:.4f}, most {times.max_ms:.4f}" +
              ("" if model.code.is_on_device else "; of this processor: they say nothing about a device"))
    if options.outputs:
        npz.save(options.outputs, {i.name: r for i, r in zip(model.code.outputs, results)})
    return 0
