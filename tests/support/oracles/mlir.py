"""MLIR and LLVM as libraries, by their C interfaces: what mlir-opt-22, mlir-translate-22 and llc-22 do, in this process.

To start those programs takes longer than the work that the tests have for them.  The shared object with MLIR's C interface
is built by `make unit-bin`; none of our code is in it.

    text = mlir.normalize(text)               # parsed, verified and printed
    mlir.object_file(text, pipeline, path)    # lowered by the passes, compiled for this machine
"""
import ctypes
import functools

from support.paths import BUILD

Pointer = ctypes.c_void_p


class Ref(ctypes.Structure):
    """MlirStringRef."""

    _fields_ = [("data", Pointer), ("length", ctypes.c_size_t)]

    def text(self):
        return ctypes.string_at(self.data, self.length).decode() if self.length else ""


Print = ctypes.CFUNCTYPE(None, Ref, Pointer)
Handler = ctypes.CFUNCTYPE(ctypes.c_int8, Pointer, Pointer)

MLIR_FUNCTIONS = {  # name: (result, arguments); objects of MLIR are structs of one pointer
    "mlirDialectRegistryCreate": (Pointer, []),
    "mlirRegisterAllDialects": (None, [Pointer]),
    "mlirRegisterAllPasses": (None, []),
    "mlirRegisterAllLLVMTranslations": (None, [Pointer]),
    "mlirContextCreateWithRegistry": (Pointer, [Pointer, ctypes.c_bool]),
    "mlirContextAttachDiagnosticHandler": (ctypes.c_uint64, [Pointer, Handler, Pointer, Pointer]),
    "mlirDiagnosticPrint": (None, [Pointer, Print, Pointer]),
    "mlirLoadIRDLDialects": (ctypes.c_int8, [Pointer]),
    "mlirModuleCreateParse": (Pointer, [Pointer, Ref]),
    "mlirModuleGetOperation": (Pointer, [Pointer]),
    "mlirModuleDestroy": (None, [Pointer]),
    "mlirOperationPrint": (None, [Pointer, Print, Pointer]),
    "mlirPassManagerCreate": (Pointer, [Pointer]),
    "mlirPassManagerGetAsOpPassManager": (Pointer, [Pointer]),
    "mlirPassManagerRunOnOp": (ctypes.c_int8, [Pointer, Pointer]),
    "mlirPassManagerDestroy": (None, [Pointer]),
    "mlirParsePassPipeline": (ctypes.c_int8, [Pointer, Ref, Print, Pointer]),
    "mlirTranslateModuleToLLVMIR": (Pointer, [Pointer, Pointer]),
    "LLVMContextCreate": (Pointer, []),
    "LLVMContextDispose": (None, [Pointer]),
    "LLVMDisposeModule": (None, [Pointer]),
    "LLVMGetDefaultTargetTriple": (Pointer, []),
    "LLVMGetTargetFromTriple": (ctypes.c_int, [Pointer, ctypes.POINTER(Pointer), ctypes.POINTER(ctypes.c_char_p)]),
    "LLVMCreateTargetMachine": (Pointer, [Pointer, Pointer, ctypes.c_char_p, ctypes.c_char_p] + [ctypes.c_int] * 3),
    "LLVMCreateTargetDataLayout": (Pointer, [Pointer]),
    "LLVMSetModuleDataLayout": (None, [Pointer, Pointer]),
    "LLVMSetTarget": (None, [Pointer, Pointer]),
    "LLVMTargetMachineEmitToFile":
        (ctypes.c_int, [Pointer, Pointer, ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)]),
}
OPTIMIZE, POSITION_INDEPENDENT, DEFAULT_CODE_MODEL, OBJECT_FILE = 2, 2, 0, 1  # of LLVM's enumerations


@functools.cache
def _library():
    lib = ctypes.CDLL(f"{BUILD}/test/libmlir-c.so")
    for name, (result, arguments) in MLIR_FUNCTIONS.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


class Session:
    """A context with all dialects of MLIR and ours, and this machine as a target.  One for the process."""

    def __init__(self):
        self.lib = lib = _library()
        registry = lib.mlirDialectRegistryCreate()
        lib.mlirRegisterAllDialects(registry)
        lib.mlirRegisterAllPasses()
        self.context = lib.mlirContextCreateWithRegistry(registry, False)
        lib.mlirRegisterAllLLVMTranslations(self.context)
        self.errors = []
        self.handler = Handler(self._diagnostic)
        lib.mlirContextAttachDiagnosticHandler(self.context, self.handler, None, None)
        dialects = self.parse((BUILD / "dialects.irdl").read_text())
        assert lib.mlirLoadIRDLDialects(dialects), self.errors

        for part in ("TargetInfo", "Target", "TargetMC", "AsmPrinter"):
            getattr(lib, f"LLVMInitialize{self._target()}{part}")()
        self.triple = lib.LLVMGetDefaultTargetTriple()
        target, error = Pointer(), ctypes.c_char_p()
        assert not lib.LLVMGetTargetFromTriple(self.triple, ctypes.byref(target), ctypes.byref(error)), error.value
        self.machine = lib.LLVMCreateTargetMachine(target, self.triple, b"", b"", OPTIMIZE, POSITION_INDEPENDENT, DEFAULT_CODE_MODEL)
        self.layout = lib.LLVMCreateTargetDataLayout(self.machine)

    @staticmethod
    def _target():
        import platform

        return {"x86_64": "X86", "aarch64": "AArch64"}[platform.machine()]

    def _diagnostic(self, diagnostic, _):
        self.errors.append(self._printed(self.lib.mlirDiagnosticPrint, diagnostic))
        return 1  # handled

    @staticmethod
    def _printed(function, thing):
        parts = []
        function(thing, Print(lambda part, _: parts.append(part.text())), None)
        return "".join(parts)

    def parse(self, text):
        """A module that the caller destroys."""
        self.errors.clear()
        data = text.encode()
        module = self.lib.mlirModuleCreateParse(self.context, Ref(ctypes.cast(ctypes.c_char_p(data), Pointer), len(data)))
        assert module, f"MLIR refuses: {self.errors[:5]}\n{text[:3000]}"
        return module

    def run_passes(self, module, pipeline):
        data, messages = f"builtin.module({pipeline})".encode(), []
        manager = self.lib.mlirPassManagerCreate(self.context)
        try:
            parsed = self.lib.mlirParsePassPipeline(
                self.lib.mlirPassManagerGetAsOpPassManager(manager), Ref(ctypes.cast(ctypes.c_char_p(data), Pointer), len(data)),
                Print(lambda part, _: messages.append(part.text())), None)
            assert parsed, "".join(messages)
            done = self.lib.mlirPassManagerRunOnOp(manager, self.lib.mlirModuleGetOperation(module))
            assert done, f"a pass of MLIR fails: {self.errors[:5]}"
        finally:
            self.lib.mlirPassManagerDestroy(manager)

    def compile(self, module, path):
        """An object file of a module in the LLVM dialect."""
        lib = self.lib
        context = lib.LLVMContextCreate()
        code = lib.mlirTranslateModuleToLLVMIR(lib.mlirModuleGetOperation(module), context)
        assert code, self.errors[:5]
        lib.LLVMSetTarget(code, self.triple)
        lib.LLVMSetModuleDataLayout(code, self.layout)
        error = ctypes.c_char_p()
        failed = lib.LLVMTargetMachineEmitToFile(self.machine, code, path.encode(), OBJECT_FILE, ctypes.byref(error))
        assert not failed, error.value
        lib.LLVMDisposeModule(code)
        lib.LLVMContextDispose(context)


@functools.cache
def _session():
    return Session()


@functools.lru_cache(64)  # a text is looked at several times before it runs
def normalize(text):
    """Parses and verifies the text with our dialects loaded; returns what MLIR prints."""
    s = _session()
    module = s.parse(text)
    try:
        return s._printed(s.lib.mlirOperationPrint, s.lib.mlirModuleGetOperation(module))
    finally:
        s.lib.mlirModuleDestroy(module)


def object_file(text, pipeline, path):
    """Lowers the text to the LLVM dialect with the pipeline's passes, and compiles it."""
    s = _session()
    module = s.parse(text)
    try:
        s.run_passes(module, pipeline)
        s.compile(module, path)
    finally:
        s.lib.mlirModuleDestroy(module)
