"""The library functions that the worker replaces (explorer/worker/overrides.c, compiler/driver/check.c): each still works, and
what it replaces still does what makes it necessary."""
import os
import subprocess
import sys

from support.paths import NKX, ROOT
from support.prober import run_inside
from support.server import codes

VENV_PYTHON = ROOT / os.environ.get("VENV", "build/venv") / "bin/python3"
LLVM = "/usr/lib/llvm-22/lib/libLLVM-22.so"
LISTENER = "_ZN4llvm16JITEventListener26createPerfJITEventListenerEv"
# libquadmath registers the modifier Q; without it glibc prints the text as it is
FORMAT_Q = ("import ctypes\nimport numpy.linalg\nb = ctypes.create_string_buffer(64)\n"
            "ctypes.CDLL(None).snprintf(b, 64, b'%Qf', ctypes.c_double(1), ctypes.c_double(1))\n")


def test_libquadmath_gets_no_printf_format_in_a_worker(probed):
    assert run_inside(probed, FORMAT_Q + "said = b.value.decode()") == "%Qf"


def test_libquadmath_would_register_a_printf_format():
    """If this fails, NumPy does not bring libquadmath any more, and register_printf_type need not be replaced."""
    r = subprocess.run([VENV_PYTHON, "-c", FORMAT_Q + "print(b.value.decode())"], capture_output=True, text=True, check=True)
    assert r.stdout.strip() != "%Qf"


def test_a_failed_cpp_allocation_is_reported_as_a_memory_limit(probed):
    new = "import ctypes\nnew = ctypes.CDLL(None)._Znwm\nnew.argtypes = [ctypes.c_size_t]\nnew(1 << 46)\n"
    assert codes(probed.compile(new, inputs=[])) == ["memory-limit"]


def test_a_failed_cpp_allocation_would_be_a_crash():
    code = "import ctypes\nnew = ctypes.CDLL('libstdc++.so.6')._Znwm\nnew.argtypes = [ctypes.c_size_t]\nnew(1 << 46)\n"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode < 0


def files_below(place):
    return [p for p in place.rglob("*") if p.is_file()]


def test_a_check_leaves_no_file_for_perf(tmp_path):
    env = {**os.environ, "JITDUMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    subprocess.run([NKX, "compile", ROOT / "explorer/examples/03_softmax.py", "--check"], env=env, check=True,
                   capture_output=True)
    assert files_below(tmp_path) == []


def test_llvms_listener_would_leave_a_file_for_perf(tmp_path):
    """If this fails, LLVM's listener has changed, and check_perf_listener may not be needed, or no longer enough."""
    code = f"import ctypes\nctypes.CDLL({LLVM!r}).{LISTENER}()\n"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "JITDUMPDIR": str(tmp_path), "HOME": str(tmp_path)}, check=True)
    assert files_below(tmp_path) != []
