"""trace, and calls of the vendor's compiler on machines that have it."""
import dataclasses
import enum
import os
import shutil
import subprocess

from _nkx import trace
from nkx.package import code_of

__all__ = ["trace", "CompilationTarget", "CompilationConfig", "Compiler", "compile_to_neff", "lower_to_nki", "nkipy_compiler_args"]

nkipy_compiler_args = "--lnc 1 --internal-tensorizer-opt-level=2"


class CompilationTarget(enum.Enum):
    TRN1 = "trn1"
    TRN2 = "trn2"
    TRN3 = "trn3"
    DEFAULT = "default"


def _compile(trace_kernel, output_dir, target, pipeline, more):
    """Writes hlo_module.pb and hands it to neuronx-cc."""
    os.makedirs(output_dir, exist_ok=True)
    with open(os.path.join(output_dir, "hlo_module.pb"), "wb") as f:
        f.write(code_of(trace_kernel).to_proto())
    tool, name = shutil.which("neuronx-cc"), getattr(target, "value", target)
    if not tool:
        raise RuntimeError(f"neuronx-cc, the vendor's compiler, is not installed here; what it would compile is "
                           f"{f.name}")
    args = [tool, "compile", "--framework", "XLA", "hlo_module.pb", "--pipeline", pipeline, "SaveTemps",
            "--target", "trn2" if name == "default" else name, *more]
    done = subprocess.run(args, cwd=output_dir, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(args)} failed:\n{done.stdout}{done.stderr}")


def compile_to_neff(trace_kernel, output_dir=".", neff_name="kernel.neff", target=CompilationTarget.DEFAULT,
                    additional_compiler_args=nkipy_compiler_args, **options):
    """Writes hlo_module.pb, compiles it with neuronx-cc, and returns the path of the NEFF."""
    _compile(trace_kernel, output_dir, target, "compile", [f"--output={neff_name}", *additional_compiler_args.split()])
    return os.path.join(output_dir, neff_name)


def lower_to_nki(trace_kernel, output_dir=".", target=CompilationTarget.DEFAULT, additional_compiler_args="--lnc 1", **options):
    """The kernel as NKI, which neuronx-cc prints on its way and which output_dir/nki.py then holds."""
    _compile(trace_kernel, output_dir, target, "tensorize", ["--tensorizer-options=--print-nki", *additional_compiler_args.split()])
    with open(os.path.join(output_dir, "nki.py")) as f:
        return f.read()


@dataclasses.dataclass
class CompilationConfig:
    """What compile_to_neff is told."""

    target: CompilationTarget = CompilationTarget.DEFAULT
    additional_compiler_args: str = nkipy_compiler_args
    neff_name: str = "kernel.neff"


class Compiler:
    """compile_to_neff with one configuration."""

    def __init__(self, config=None):
        self.config = config or CompilationConfig()

    def compile(self, trace_kernel, output_dir="."):
        c = self.config
        return compile_to_neff(trace_kernel, output_dir, c.neff_name, c.target, c.additional_compiler_args)
