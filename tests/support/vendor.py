"""A server beside a stand-in for the vendor's compiler."""
import sys

from support.paths import ROOT
from support.runners import begin, follow
from support.server import Server

STAND_IN = ROOT / "tests/neuron/neuronx_cc.py"


class Vendor:
    """A server with a stand-in for neuronx-cc, whose behaviour is the content of a file."""

    def __init__(self, directory, **env):
        self.dir, self.tmp = directory, directory / "tmp"
        self.tmp.mkdir()
        program = directory / "neuronx-cc"
        program.write_text(f"#!/bin/sh\n[ \"$1\" = --version ] && {{ echo 'stand-in 1.0'; exit; }}\n. {directory}/before\n"
                           f"exec {sys.executable} -I -S {STAND_IN} $(cat {directory}/behaviour) /dev/null \"$@\"\n")
        program.chmod(0o755)
        self.behave("works")
        self.server = Server("--neuronx-cc", str(program), "--neuronx-cc-s", "2", "--client-runs", "0", data=directory / "data",
                             env={"TMPDIR": str(self.tmp), **env})

    def behave(self, how, before=""):
        (self.dir / "behaviour").write_text(how)
        (self.dir / "before").write_text(before)

    def compiled(self, **fields):
        return follow(self.server, begin(self.server, **{"run": "compile", **fields}))[-1]
