from nkx.device import is_neuron_compatible

__all__ = ["is_neuron_compatible"]
