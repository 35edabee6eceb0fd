"""Transposes: by a view, by the Tensor engine, by DMA."""
import ml_dtypes
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def transposes(image, matrix):
    # Within a partition a transpose costs nothing: a view reads the elements in another order.
    swapped = nl.ndarray((image.shape[0], image.shape[2], image.shape[1]), image.dtype, buffer=nl.shared_hbm)
    t = nl.load(image)
    u = nl.ndarray(swapped.shape, t.dtype)
    nisa.tensor_copy(dst=u, src=t.permute((0, 2, 1)))
    nl.store(swapped, u)

    # Between partitions data has to move. The Tensor engine multiplies by the identity matrix; the result is in PSUM.
    by_tensor = nl.ndarray((matrix.shape[1], matrix.shape[0]), matrix.dtype, buffer=nl.shared_hbm)
    m = nl.load(matrix)
    p = nl.ndarray(by_tensor.shape, m.dtype, buffer=nl.psum)
    nisa.nc_transpose(dst=p, data=m)
    s = nl.ndarray(by_tensor.shape, m.dtype)
    nisa.tensor_copy(dst=s, src=p)
    nl.store(by_tensor, s)

    # DMA transposes on its way from HBM: no engine works, but it is slower than a copy.
    by_dma = nl.ndarray(by_tensor.shape, matrix.dtype, buffer=nl.shared_hbm)
    nl.store(by_dma, nl.load_transpose2d(matrix))
    return swapped, by_tensor, by_dma


if __name__ == "__main__":
    image = np.random.rand(64, 16, 24).astype(np.float32)
    matrix = np.random.rand(128, 64).astype(ml_dtypes.bfloat16)
    swapped, by_tensor, by_dma = nki.simulate(transposes)(image, matrix)
    assert np.array_equal(swapped, image.transpose(0, 2, 1))
    assert np.array_equal(by_tensor, matrix.T) and np.array_equal(by_dma, matrix.T)
