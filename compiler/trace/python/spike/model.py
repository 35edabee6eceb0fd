"""Models and tensors: those of nkipy.runtime, each on a core."""
from nkx.device import DeviceKernel, DeviceTensor


class SpikeTensor(DeviceTensor):
    """An array for a core: an input or output of a SpikeModel on that core.  It is kept by the host, and copied to the device when a
    model runs."""

    def __init__(self, data, name=None, core_id=0):
        super().__init__(data, name)
        self.core_id = core_id

    @classmethod
    def from_numpy(cls, array, name=None, core_id=0):
        return cls(DeviceTensor.from_numpy(array)._data, name, core_id)

    @classmethod
    def from_torch(cls, tensor, name=None, core_id=0):
        return cls(DeviceTensor.from_torch(tensor)._data, name, core_id)

    @classmethod
    def allocate_uninitialized(cls, shape, dtype, name=None, core_id=0):
        return cls(DeviceTensor.allocate_uninitialized(shape, dtype)._data, name, core_id)

    def __repr__(self):
        return f"SpikeTensor({self.name}: {self.dtype}{list(self.shape)} on core {self.core_id})"


class SpikeModel(DeviceKernel):
    """A NEFF on a core: `SpikeModel.load_from_neff("k.neff", core_id=1)`, then called with tensors by name."""

    def __init__(self, code, name=None, target="trn2", core_id=0):
        super().__init__(code, name, target)
        self.core_id = core_id

    @classmethod
    def load_from_neff(cls, neff_path, name=None, core_id=0, cc_enabled=False, rank_id=0, world_size=1, **kwargs):
        model = super().load_from_neff(neff_path, name, core_id, cc_enabled, rank_id, world_size, **kwargs)
        model.core_id = core_id
        return model

    def _arrays(self, inputs, outputs):
        for name, t in {**(inputs or {}), **(outputs or {})}.items():
            if getattr(t, "core_id", self.core_id) != self.core_id:
                raise ValueError(f"{name} is on core {t.core_id}, the model {self.name} on core {self.core_id}")
        return super()._arrays(inputs, outputs)

    def __call__(self, inputs=None, outputs=None, save_trace=False, ntff_name=None):
        results = super().__call__(inputs, outputs, save_trace, ntff_name)
        return results and [SpikeTensor(r._data, r.name, self.core_id) for r in results]
