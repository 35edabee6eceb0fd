"""spike: loads NEFFs and runs them.  nkx/neuron.py says what runs which."""
from nkx.device import BenchmarkResult
from nkx.neuron import configure, reset, runtime

from .model import SpikeModel, SpikeTensor

__all__ = ["BenchmarkResult", "SpikeModel", "SpikeTensor", "configure", "reset", "runtime"]
