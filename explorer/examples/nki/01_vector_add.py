"""Vector addition: tiles of 128 partitions, loads and stores."""
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def vector_add(a, b):
    # Inputs and outputs are in HBM. The engines reach SBUF and PSUM only, so every kernel loads, computes and stores.
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)

    # SBUF has 128 partitions: the first dimension of a tile counts them. 256 rows are two tiles.
    for i in range(a.shape[0] // nl.tile_size.pmax):
        rows = nl.ds(i * nl.tile_size.pmax, nl.tile_size.pmax)
        x = nl.load(a[rows, :])
        y = nl.load(b[rows, :])
        # The destination is an argument: here the sum takes the place of x.
        nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)
        nl.store(out[rows, :], x)
    return out


# A call gives the shapes. In a terminal, `nki.simulate` also runs the kernel.
if __name__ == "__main__":
    a = np.random.rand(256, 512).astype(np.float32)
    b = np.random.rand(256, 512).astype(np.float32)
    assert np.array_equal(nki.simulate(vector_add)(a, b), a + b)
