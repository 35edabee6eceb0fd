"""Modules that are not installed: a file that imports them compiles unless its computation uses them, and a use names them."""
import subprocess
import sys

import pytest

from support.oracles import xla
from support.paths import BUILD

trace_source = xla._nkx.trace_source
KERNEL = "def kernel(x):\n    return x + 1\n"

UNUSED = {
    "a module": "import einops\n" + KERNEL,
    "several": "import torch, triton, tensorflow as tf\n" + KERNEL,
    "a submodule": "import flax.linen as nn, torch.nn.functional as F\n" + KERNEL,
    "from a module": "from transformers import AutoModel, AutoTokenizer as T\n" + KERNEL,
    "from a submodule": "from flax.linen import Dense\nfrom torch.utils.data import DataLoader\n" + KERNEL,
    "star": "from einops import *\n" + KERNEL,
    "an attribute": "import torch\nfloat32, relu = torch.float32, torch.nn.functional.relu\n" + KERNEL,
    "a default": "import torch\ndef kernel(x, dtype=torch.float32):\n    return x + 1\n",
    "annotations": "import torch\nfrom typing import Optional, Callable\n"
                   "def kernel(x: torch.Tensor, f: Optional[torch.nn.Module] = None, g: Callable[[torch.Tensor], 'torch.Tensor'] = None) -> torch.Tensor | None:\n    return x + 1\n",
    "unions and subscripts": "from jaxtyping import Float\nimport torch\nT = None | torch.Tensor | int\nA = Float[torch.Tensor, 'b c'] | list[torch.Tensor]\n" + KERNEL,
    "a base class": "import torch\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n" + KERNEL,
    "base classes and options": "import torch, flax\nfrom abc import ABC\nclass Net(torch.nn.Module, flax.Thing, ABC, frozen=True): pass\n" + KERNEL,
    "a dataclass": "import torch\nfrom dataclasses import dataclass\n@dataclass\nclass C:\n    device: torch.device\n    t: torch.dtype = torch.float32\n" + KERNEL,
    "isinstance": "import torch\ndef kernel(x):\n    return x + 1 if not isinstance(x, torch.Tensor) and not isinstance(x, (torch.Size, str)) else x.cuda()\n",
    "issubclass": "import torch\ndef kernel(x):\n    return x + (2 if issubclass(type(x), torch.Tensor) else 1)\n",
    "a decorator of another function": "import triton\nimport triton.language as tl\n@triton.jit\ndef other(p, n: tl.constexpr): tl.store(p, n)\n" + KERNEL,
    "a decorator with options": "import flax\n@flax.register('name', level=2)\n@flax.linen.compact\ndef other(x): return x\n" + KERNEL,
    "a decorator of a method": "import torch\nclass A:\n    @torch.anything\n    def f(self): pass\n" + KERNEL,
    "a decorator that changes no value": "import numba, torch\n@numba.njit\ndef double(x): return x * 2\n@torch.no_grad()\ndef kernel(x):\n    return double(x) + 1\n",
    "typeguards of the kernel": "from beartype import beartype\nfrom functools import partial\nimport torch\n@partial(torch.compile, dynamic=False)\n@beartype\n" + KERNEL,
    "an attribute that is set": "import torch\ntorch.backends.cudnn.benchmark = True\ntorch.opts['x'] = 1\n" + KERNEL,
    "an import in a function": "def other():\n    import torch\n    return torch.ones(3)\n" + KERNEL,
    "an import in the kernel": "def kernel(x):\n    import einops\n    from torch import nn\n    return x + 1\n",
    "import_module": "import importlib\nt = importlib.import_module('torch.nn')\nu = __import__('einops')\n" + KERNEL,
    "try": "try:\n    import torch\nexcept ImportError:\n    torch = None\ndef kernel(x):\n    return x + 1 if torch is None else torch.relu(x)\n",
    "try with a submodule": "try:\n    from torch.nn import functional as F\n    HAS = True\nexcept ModuleNotFoundError as e:\n    HAS, name = False, e.name\ndef kernel(x):\n    return x + (5 if HAS or name != 'torch' else 1)\n",
    "try with any exception": "try:\n    import torch\nexcept:\n    torch = None\nassert torch is None\n" + KERNEL,
    "try with a tuple": "MISSING = (ImportError, OSError)\ntry:\n    import torch.distributed as dist\nexcept MISSING:\n    dist = None\ntry:\n    import einops\nexcept (AttributeError, ImportError):\n    einops = None\nassert dist is einops is None\n" + KERNEL,
    "try with another exception": "try:\n    import torch\nexcept KeyError:\n    torch = None\nassert torch\n" + KERNEL,
    "try around a block": "try:\n    if True:\n        with open('/dev/null') as f:\n            import torch\nexcept Exception:\n    torch = None\nassert torch is None\n" + KERNEL,
    "the handler and else": "try:\n    pass\nexcept ImportError:\n    pass\nelse:\n    import torch\nfinally:\n    import einops\n" + KERNEL,
    "try around a function's caller": "def load(name):\n    import importlib\n    return importlib.import_module(name)\ntry:\n    torch = load('torch')\nexcept ImportError:\n    torch = None\nassert torch is None\n" + KERNEL,
    "try around a definition": "try:\n    def load():\n        import torch\n        return torch\nexcept ImportError:\n    pass\nassert load()\n" + KERNEL,
    "suppress": "import contextlib\nfrom contextlib import suppress\ntorch = einops = None\nwith suppress(ImportError):\n    import torch\nwith contextlib.suppress(KeyError, Exception):\n    import einops\nassert torch is einops is None\n" + KERNEL,
    "suppress another exception": "import contextlib\nwith contextlib.suppress(KeyError):\n    import torch\nassert torch\n" + KERNEL,
    "find_spec": "import importlib.util\nassert importlib.util.find_spec('torch') is None and importlib.util.find_spec('flax') is None\n" + KERNEL,
    "both ways": "import torch.distributed as dist\nimport importlib.util, sys\ntry:\n    import torch\nexcept ImportError:\n    torch = None\nassert torch is None and importlib.util.find_spec('torch') is None and 'torch' not in sys.modules\n"
                 "def kernel(x):\n    return x + dist.get_world_size()\n",
    "the rank": "import torch\nimport torch.distributed as dist\nassert torch.distributed.get_rank() == 0\ndef kernel(x):\n    return x + dist.get_world_size()\n",
    "nki": "import nki.isa, neuronxcc.nki.isa as nisa, nki.language as nl\nfrom neuronxcc.nki.language import load, store\nfrom nki import isa\nfrom nkipy.core.something import helper\n" + KERNEL,
    "nki in try": "try:\n    from nki.language import par_dim\nexcept ImportError:\n    par_dim = None\ntry:\n    import neuronxcc.starfish\nexcept ImportError:\n    nki = None\nassert par_dim is nki is None\n" + KERNEL,
    "repr and identity": "import torch\nassert 'torch.float32' in repr(torch.float32) and torch and torch.x != torch.y and torch.x != None\nkinds = {torch.float32: 4}\n" + KERNEL,
    "another library's probe": "import torch, copy, inspect\ncopy.deepcopy({'t': torch.float32})\ninspect.isfunction(torch.relu), inspect.getmembers(object)\n" + KERNEL,
}


@pytest.mark.parametrize("name", UNUSED)
def test_an_import_that_the_computation_does_not_use_refuses_nothing(name):
    result = trace_source(UNUSED[name], inputs=[("x", (3,), "f32")])
    assert result["diagnostics"] == [], result["diagnostics"]
    (kernel,) = result["kernels"]
    assert kernel["name"] == "kernel" and [i["opcode"] for i in kernel["instructions"] if i["opcode"] == "add"]


assert len(UNUSED) >= 40

USED = {  # the statement of a kernel, and the name in the message
    "torch.relu(x)": "torch.relu",
    "x + torch.pi": "torch.pi",
    "torch.pi * x": "torch.pi",
    "x @ torch.w.t": "torch.w.t",
    "np.add(x, torch.w)": "torch.w",
    "np.matmul(torch.w, x)": "torch.w",
    "np.concatenate([x, torch.w])": "torch.w",
    "np.ones(3) + torch.w": "torch.w",
    "x[torch.i]": "torch.i",
    "x.astype(torch.float32)": "torch.float32",
    "x.reshape(torch.shape)": "torch.shape",
    "x if torch.cuda.ok else x": "torch.cuda.ok",
    "x * len(torch.Size)": "torch.Size",
    "sum(torch.items)": "torch.items",
    "x * float(torch.pi)": "torch.pi",
    "x if torch.n > 2 else x": "torch.n",
    "x if torch.mode == 'a' else x": "torch.mode",
    "-torch.pi * x": "torch.pi",
    "Net()(x)": "torch.nn.Module",
    "decorated(x)": "torch.jit.ignore(decorated)",
    "torch.__version__ + 'x'": "torch.__version__",
    "torch.w": "torch.w",
    "torch.w | x": "torch.w",
}


@pytest.mark.parametrize("expression", USED)
def test_a_use_fails_at_its_place_and_names_the_module_and_its_import(expression):
    source = ("import numpy as np\n\nimport torch\nclass Net(torch.nn.Module): pass\n@torch.jit.ignore\ndef decorated(x): return x\n"
              f"def kernel(x):\n    return {expression}\n")
    (d,) = trace_source(source, inputs=[("x", (3,), "f32")])["diagnostics"]
    assert d["code"] == "python-import" and d["src"][0][:2] == ("kernel.py", 8), d
    assert d["message"] == f'{USED[expression]} cannot be used: the module "torch", imported at kernel.py:3, is not available here'
    assert "numpy" in d["hint"]


def test_a_use_in_another_file_names_that_file():
    files = [("lib.py", "from helper import f\ndef g(x):\n    return f(x)\n")]
    (d,) = trace_source("import lib\ndef kernel(x):\n    return lib.g(x)\n", files=files, inputs=[("x", (3,), "f32")])["diagnostics"]
    assert d["message"] == 'helper.f cannot be used: the module "helper", imported at lib.py:1, is not available here'
    assert [s[:2] for s in d["src"]] == [("lib.py", 3), ("kernel.py", 3)] and "a file beside this one" in d["hint"]


@pytest.mark.parametrize("line, message", [
    ("import os.nothing", 'the module "os.nothing" is not available here'),
    ("import pkg.nothing", 'the module "pkg.nothing" is not available here'),
    ("import numpy.nothing", 'the module "numpy.nothing" is not available here'),
    ("from numpy import nothing", None),
    ("try:\n    import torch\nexcept ImportError:\n    raise", 'the module "torch" is not available here'),
])
def test_a_module_that_lacks_in_a_package_that_is_here_is_refused_at_once(line, message):
    result = trace_source(line + "\n" + KERNEL, files=[("pkg/__init__.py", "")], inputs=[("x", (3,), "f32")])
    (d,) = result["diagnostics"]
    assert d["code"] == "python-import" and (message is None or d["message"] == message)


def test_other_code_than_the_users_sees_no_stand_ins():
    source = "import pickle\ntry:\n    pickle.loads(b'ctorch\\nTensor\\n.')\nexcept ModuleNotFoundError as e:\n    print(e.name)\n"
    assert trace_source(source + KERNEL, inputs=[("x", (3,), "f32")])["output"] == "torch\n"
    source = "import runpy\nrunpy.run_module('nowhere')\n"
    assert trace_source(source)["diagnostics"][0]["code"] == "python-import"


@pytest.mark.parametrize("program, out", [
    ("import nkipy, torch.distributed as dist\nprint(dist.get_world_size(), torch.distributed.get_rank())", "1 0\n"),
    ("import nkipy\ntry:\n    import torch\nexcept ImportError:\n    print('without')", "without\n"),
    ("import nkipy, importlib.util\nprint(importlib.util.find_spec('torch'))", "None\n"),
    ("import nkipy\ntry:\n    import einops\n    print('here')\nexcept KeyError:\n    pass", None),
])
def test_an_ordinary_python_has_a_stand_in_for_torch_alone(tmp_path, program, out):
    (tmp_path / "program.py").write_text(program.replace("as dist", "as dist, torch"))
    done = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, text=True, timeout=60,
                          env={"PYTHONPATH": str(BUILD / "python")})
    assert done.stdout == out if out else "No module named 'einops'" in done.stderr, done.stderr
