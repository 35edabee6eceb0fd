"""What the suites share.  tests/ is on the import path (pytest.ini), so every test says `from support import …`.

    paths                        where the tree and the built product are
    server, processes, audit     a server as a child of the test, what its processes are, what is left of it
    clients, h2load, nginx, slow_proxy, postgres, page      its clients, and what runs beside it
    compiler, reference, source_map, ancestors              compile a source, run it with NumPy, follow its maps
    oracles/                     run a stage with none of our code: XLA, LLVM's tools, an evaluator of NISA
    values, on_chip              what a pass does to a module's numbers and to its buffers
    operations/                  the table of NumPy operations; kernels/, hostile/: kernels good and bad
    golden, figures, counts      golden files, figures of long sets
"""
