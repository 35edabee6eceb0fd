"""Packed elements for mx_matmul.py: four numbers of the summed axis stand beside each other."""
import nki.isa as nisa
import nki.language as nl

P, PACK = 128, 4


def interleaved(src):
    """(512, n) in HBM to (128, n, 4) in SBUF: number k of the summed axis is element k // 128 of partition k % 128."""
    k, n = src.shape
    assert k == P * PACK, f"{k} rows are not {P * PACK}"
    rows = nl.ndarray((P, PACK, n), src.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=rows, src=src.reshape_dim(0, (PACK, P)).permute((1, 0, 2)))
    packed = nl.ndarray((P, n, PACK), src.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=packed, src=rows.permute((0, 2, 1)))
    return packed


def quantized(x, dtype):
    """(128, n, 4) to packed elements and their scales, (128, n) each; a scale stands for 8 partitions and 4 elements."""
    p, n, pack = x.shape
    packed, scale = nl.ndarray((p, n), dtype, buffer=nl.sbuf), nl.ndarray((p, n), nl.uint8, buffer=nl.sbuf)
    nisa.memset(dst=scale, value=0)
    nisa.quantize_mx(dst=packed, src=x.reshape((p, n * pack)), dst_scale=scale)
    return packed, scale
