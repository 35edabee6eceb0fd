"""Choices that several kernels have."""
from enum import Enum

import nki.language as nl


class NormType(Enum):
    NO_NORM = 0
    RMS_NORM = 1
    LAYER_NORM = 2


class ActFnType(Enum):
    SiLU = 0
    GELU = 1
    Square = 2


class ExpertAffinityScaleMode(Enum):
    NO_SCALE = 0
    POST_SCALE = 1


_ACTIVATIONS = {ActFnType.SiLU: nl.silu, ActFnType.GELU: nl.gelu, ActFnType.Square: nl.square}


def activation_of(kind):
    return _ACTIVATIONS[kind]
