"""Graphs, as dense matrices"""
import numpy as np
from nkigen import trace

NODES, WIDTH = 256, 64
ADJACENCY, FEATURES = ((NODES, NODES), "f32"), ((NODES, WIDTH), "f32")


@trace(input_specs=[ADJACENCY, FEATURES, ((WIDTH, WIDTH), "f32")])
def convolution(adjacency, x, w):
    degree = np.sum(adjacency, axis=1, keepdims=True) + 1.0
    return np.maximum((adjacency @ x + x) / degree @ w, 0.0)


@trace(input_specs=[ADJACENCY])
def normalised(adjacency):
    scale = 1.0 / np.sqrt(np.sum(adjacency, axis=1) + 1.0)
    return adjacency * scale[:, None] * scale[None, :]


@trace(input_specs=[ADJACENCY, ((NODES, 1), "f32")])
def page_rank(transition, rank):
    for _ in range(4):
        rank = 0.85 * (transition @ rank) + 0.15 / NODES
    return rank


@trace(input_specs=[ADJACENCY, FEATURES, ((WIDTH,), "f32"), ((WIDTH,), "f32")])
def attention_on_edges(adjacency, x, left, right):
    score = np.sum(x * left, axis=1)[:, None] + np.sum(x * right, axis=1)[None, :]
    score = np.where(adjacency > 0.0, np.maximum(score, 0.2 * score), -1e9)
    e = np.exp(score - np.max(score, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True) @ x


@trace(input_specs=[((64, 64), "f32")])
def shortest_paths_step(distance):
    return np.minimum(distance, np.min(distance[:, :, None] + distance[None, :, :], axis=1))


@trace(input_specs=[ADJACENCY])
def triangles(adjacency):
    return np.sum(adjacency @ adjacency * adjacency, axis=1) * 0.5
