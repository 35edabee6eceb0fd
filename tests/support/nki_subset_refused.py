"""Python that kernels of NKI may not contain: (what, statements of a kernel, or definitions, @@ and statements, the codes).

« and » are around the range of each error.  In definitions, $ is the number of the case.  Definitions without @@ are a
kernel of their own.  A code after which there is ! is a warning.
"""

STATEMENT, SIGNATURE, CLASS, FORMAT = (f"nki-unsupported-{s}" for s in ("statement", "signature", "class", "format"))
KERNEL = "@nki.jit\ndef kernel$({}):\n    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)\n    nl.store(out, nl.load(a))\n    return out"
A = "a: nl.tensor[128, 512]"

STATEMENTS = [
    ("import", "«import os»", STATEMENT),
    ("from import", "«from os import path»", STATEMENT),
    ("try", "«try»:\n    pass\nexcept ValueError:\n    pass", STATEMENT),
    ("try finally", "«try»:\n    pass\nfinally:\n    pass", STATEMENT),
    ("except*", "«try»:\n    pass\nexcept* ValueError:\n    pass", STATEMENT),
    ("raise", "if n > 5:\n    «raise ValueError('rows')»", STATEMENT),
    ("match", "«match n»:\n    case 4:\n        pass", STATEMENT),
    ("del", "m = 1\n«del m»", STATEMENT),
    ("global", "«global P»", STATEMENT),
    ("nonlocal", "m = 1\ndef f():\n    «nonlocal m»\n    m = 2\nf()", STATEMENT),
    ("a class inside", "«class A»:\n    pass", STATEMENT),
    ("async def", "«async def f()»:\n    pass", STATEMENT),
    ("yield inside of a function inside", "def f():\n    «yield 1»", STATEMENT),
    ("yield from", "def f():\n    «yield from (1, 2)»", STATEMENT),
    ("walrus", "if («m := 3») > 2:\n    pass", STATEMENT),
    ("for else", "for i in range(2):\n    pass\n«else»:\n    pass", STATEMENT),
    ("while else", "m = 0\nwhile m < 1:\n    m += 1\n«else»:\n    pass", STATEMENT),
    ("with", "with «open('/dev/null')»:\n    pass", STATEMENT),
    ("a set", "m = «{1, 2}»", STATEMENT),
    ("a set comprehension", "m = «{i for i in range(2)}»", STATEMENT),
    ("a dict with numbers as keys", "m = {«1»: 2}", STATEMENT),
    ("a dict with tuples as values and a number as key", "m = {'a': (1,), «2.5»: 3}", STATEMENT),
    ("import inside of a loop", "for i in range(1):\n    «import os»", STATEMENT),
    ("raise inside of a function inside", "def f():\n    «raise ValueError»", STATEMENT),
    ("two at once", "«import os»\n«del n»", STATEMENT, STATEMENT),
]

SIGNATURES = [
    ("*args of a kernel", KERNEL.format(A + ", «*rest»"), SIGNATURE),
    ("a keyword-only parameter", KERNEL.format(A + ", *, «flag»=True"), SIGNATURE),
    ("two keyword-only parameters", KERNEL.format(A + ", *, «flag»=True, «other»=1"), SIGNATURE, SIGNATURE),
    ("position-only", KERNEL.format("«a: nl.tensor[128, 512]», /"), SIGNATURE),
    ("**kwargs", KERNEL.format(A + ", «**more»"), SIGNATURE + "!"),
    ("*args of a function inside", "def f(«*v»):\n    return v", SIGNATURE),
    ("keyword-only of a function inside", "def f(v, *, «w»=1):\n    return v", SIGNATURE),
    ("a star in a call", "v = (1, 2)\nm = max(«*v»)", SIGNATURE),
    ("two stars in a call", "d = {'dtype': nl.float32}\nm = dict(«**d»)", SIGNATURE),
    ("a star in a target", "p, «*q» = (1, 2, 3)", SIGNATURE),
]

CLASSES = [
    ("a base from elsewhere", "class A$(«threading.Thread»):\n    pass\n@@\nassert A$ is not None", CLASS),
    ("a metaclass", "class A$(«metaclass=abc.ABCMeta»):\n    pass\n@@\nassert A$ is not None", CLASS),
    ("an expression in the body", "class A$:\n    «print('body')»\n@@\nassert A$ is not None", CLASS),
    ("a decorator of a class", "def mark(c):\n    return c\n@«mark»\nclass A$:\n    pass\n@@\nassert A$ is not None", CLASS),
    ("a decorator of a method", "class A$:\n    @«contextlib.contextmanager»\n    def f(self):\n        yield\n@@\nassert A$ is not None", CLASS),
    ("a decorator of a function inside", "@«functools.lru_cache»\ndef f():\n    return 1\nassert f() == 1", CLASS),
    ("an attribute that the class does not have", "class A$:\n    v = 1\n@@\nm = «A$().w»", "nki-name"),
    ("a list that is a base", "class A$(«dict»):\n    pass\n@@\nassert A$ is not None", CLASS),
]

TEXTS = [
    ("a format", "m = «f'{n:3d}'»", FORMAT),
    ("a format with precision", "m = «f'{n:.2f} rows'»", FORMAT),
    ("a format inside of print", "print(«f'{n:>8}'»)", FORMAT),
]

TENSORS = [
    ("+", "y = «x + x»", "nki-tensor-operator"),
    ("- with a number", "y = «x - 1.0»", "nki-tensor-operator"),
    ("a number *", "y = «2.0 * x»", "nki-tensor-operator"),
    ("/", "y = «x / x»", "nki-tensor-operator"),
    ("**", "y = «x ** 2»", "nki-tensor-operator"),
    ("%", "y = «x % 2»", "nki-tensor-operator"),
    ("@", "y = «x @ x»", "nki-tensor-operator"),
    ("&", "y = «x & x»", "nki-tensor-operator"),
    ("unary -", "y = «-x»", "nki-tensor-operator"),
    ("~", "y = «~x»", "nki-tensor-operator"),
    ("==", "y = «x == x»", "nki-tensor-operator"),
    ("<", "y = «x < 1.0»", "nki-tensor-operator"),
    ("an operator in an argument", "nisa.tensor_copy(x, «x + x»)", "nki-tensor-operator"),
    ("an operator on a view", "y = «x[:, 0:4] + x[:, 4:8]»", "nki-tensor-operator"),
    ("an operator on a result of nl", "y = «nl.exp(x) * 2.0»", "nki-tensor-operator"),
    ("+= of a tensor", "«x += x»", "nki-tensor-operator"),
    ("+= of a product", "p = nl.ndarray((128, 512), nl.float32, buffer=nl.psum)\n«p += nisa.nc_matmul(p, x[:, 0:128], x)»", "nki-tensor-operator"),
    ("*= with a number", "«x *= 2.0»", "nki-tensor-operator"),
    ("an assignment to a part", "«x[0:64]» = x", "nki-tile-assignment"),
    ("an assignment to all", "«x[...]» = x", "nki-tile-assignment"),
    ("an assignment of a number", "«x[:, 0]» = 0.0", "nki-tile-assignment"),
    ("+= of a part", "«x[:, 0:4] += 1.0»", "nki-tile-assignment"),
    ("an assignment among targets", "m, «x[0]» = 1, x", "nki-tile-assignment"),
    ("if", "if «x»:\n    pass", "nki-tensor-truth"),
    ("if not", "if not «x»:\n    pass", "nki-tensor-truth"),
    ("while", "while «x»:\n    break", "nki-tensor-truth"),
    ("and", "m = n and («x» or 1)", "nki-tensor-truth"),
    ("a conditional expression", "m = 1 if «x» else 2", "nki-tensor-truth"),
    ("assert", "assert «x»", "nki-tensor-truth"),
    ("if on a comparison", "if «x > 0.0»:\n    pass", "nki-tensor-operator"),
    ("a loop over a tensor", "for row in «x»:\n    pass", "nki-tensor-operator"),
    ("an attribute that tensors do not have", "y = «x.reshap»((128, 512))", "nki-name"),
    ("another one", "m = «x.shap»", "nki-name"),
    ("an index beyond the size", "y = x[:, «512»]", "nki-bounds"),
    ("a negative index beyond the size", "y = x[:, «-513»]", "nki-bounds"),
    ("an index of the partitions beyond the size", "y = x[«128»]", "nki-bounds"),
    ("too many indices", "y = «x[0, 0, 0]»", "nki-bounds"),
    ("a step of 0", "y = x[:, 0:8:«0»]", "nki-bounds"),
    ("a negative step", "y = x[:, 8:0:«-1»]", "nki-bounds"),
    ("a view in another shape", "y = «x.reshape((64, 1024))»", "nki-view"),
    ("partitions permuted", "y = «x.permute((1, 0))»", "nki-view"),
]

CALLS = [
    ("an annotation as a shape", "nl.ndarray(«nl.tensor», nl.float32)", "nki-call"),
    ("a misspelt name of nl", "y = «nl.lod»(a)", "nki-unknown-api"),
    ("a misspelt name of nisa", "«nisa.dma_cpy»(x, a)", "nki-unknown-api"),
    ("a misspelt memory", "y = nl.ndarray((128, 4), nl.float32, buffer=«nl.sbuff»)", "nki-unknown-api"),
    ("a misspelt type", "y = nl.ndarray((128, 4), «nl.floot32»)", "nki-unknown-api"),
    ("a misspelt engine", "nisa.memset(x, 0.0, engine=«nisa.engine.vectr»)", "nki-unknown-api"),
    ("a misspelt size", "m = «nl.tile_size.pmx»", "nki-unknown-api"),
    ("a misspelt keyword", "nisa.memset(dst=x, «valu=0.0»)", "nki-call"),
    ("a misspelt keyword of nl", "y = nl.load(a, «dtipe=nl.float32»)", "nki-call"),
    ("a missing argument", "«nisa.memset(x)»", "nki-call"),
    ("a missing argument of nl", "y = «nl.ndarray((128, 4))»", "nki-call"),
    ("too many arguments", "nisa.reciprocal(x, x, «x»)", "nki-call"),
    ("an argument twice", "nisa.memset(x, 0.0, «value=1.0»)", "nki-call"),
    ("a number that is no tensor", "nisa.memset(«1.0», 0.0)", "nki-call"),
    ("a keyword that a helper does not have", "def f$(v, width=1):\n    return v\n@@\nm = f$(1, «widht=2»)", "nki-call"),
    ("too many arguments of a helper", "def f$(v):\n    return v\n@@\nm = f$(1, «2»)", "nki-call"),
    ("a missing argument of a helper", "def f$(v, w):\n    return v\n@@\nm = «f$(1)»", "nki-call"),
    ("a name that does not exist", "y = nl.load(«aa»)", "nki-name"),
    ("a function that does not exist", "y = «laod»(a)", "nki-name"),
    ("two names that do not exist", "m = «one_name» + «two_name»", "nki-name", "nki-name"),
    ("a list method that does not exist", "m = «[1].push»(2)", "nki-name"),
    ("a mask", "nisa.tensor_copy(x, x, «mask=None»)", "nki-mask-removed"),
    ("a mask of a load", "y = nl.load(a, «mask=None»)", "nki-mask-removed"),
    ("arange", "i = «nl.arange»(128)", "nki-mask-removed"),
    ("mgrid", "i = «nl.mgrid»[0:128, 0:512]", "nki-mask-removed"),
    ("par_dim", "t = nl.ndarray((4, «nl.par_dim»(128), 512), nl.float32)", "nki-mask-removed"),
    ("dtype= of a call", "nisa.tensor_copy(x, x, «dtype=nl.float32»)", "nki-removed-api"),
    ("dst_rmw_op", "nisa.dma_copy(dst=x, src=a, «dst_rmw_op=nl.add»)", "nki-removed-api"),
    ("baremetal", "m = «nki.baremetal(1)»", "nki-removed-api"),
    ("benchmark", "m = «nki.benchmark(1)»", "nki-removed-api"),
    ("simulate_kernel", "«nki.simulate_kernel(1)»", "nki-removed-api"),
    ("tensor_copy_dynamic_src", "«nisa.tensor_copy_dynamic_src»(x, x)", "nki-removed-api"),
    ("a text for a memory", "y = nl.ndarray((128, 4), nl.float32, buffer=«'sbuf'»)", "nki-removed-api"),
    ("a number for an engine", "nisa.memset(x, 0.0, engine=«2»)", "nki-removed-api"),
    ("static_cast", "y = «nl.static_cast»(x, nl.float32)", "nki-mixed-generations"),
    ("loop_reduce", "y = «nl.loop_reduce»(x)", "nki-mixed-generations"),
    ("a result of nki.isa", "y = «nisa.activation(op=nl.exp, data=x)»", "nki-mixed-generations"),
    ("a result by position", "y = «nisa.tensor_tensor(x, x, nl.add)»", "nki-mixed-generations"),
    ("a result as an operand", "nl.store(out, «nisa.activation(nl.exp, x)»)", "nki-mixed-generations"),
    ("neuronxcc in a newer kernel", "y = «old.load»(a)", "nki-mixed-generations"),
    ("an integer of more than 64 bits", "nisa.iota(x, [[1, 512]], offset=«99999999999999999999»)", "nki-argument"),
    ("a memory that a call cannot write", "nisa.memset(«out», 0.0)", "nki-memory"),
    ("a memory that a call cannot read", "nisa.tensor_copy(x, «a»)", "nki-memory"),
    ("a text that is no memory", "y = nl.ndarray((128, 4), nl.float32, buffer=«'cache'»)", "nki-memory"),
    ("too many partitions", "y = nl.ndarray(«(129, 4)», nl.float32)", "nki-size-limit"),
    ("too many partitions by arithmetic", "y = nl.zeros(«(2 * P, 4)», nl.float32)", "nki-size-limit"),
    ("too few dimensions", "y = nl.ndarray(«(128,)», nl.float32)", "nki-size-limit"),
    ("a type that does not exist", "y = nl.ndarray((128, 4), «'float7'»)", "nki-dtype"),
    ("an axis of the launch", "m = nl.program_id(«1»)", "nki-grid"),
    ("two tensors with one name", "t = nl.ndarray((128, 4), nl.float32, name='t')\nu = nl.ndarray((128, 4), nl.float32, name=«'t'»)", "nki-name-in-use"),
    ("an assertion", "assert «n == 5», 'rows'", "nki-assert"),
    ("a division by zero", "m = «1 // (n - 4)»", "nki-host-error"),
    ("an operator where a function is needed", "nisa.activation(x, «nl.add», x)", "nki-operator"),
    ("a function where an operator is needed", "nisa.tensor_tensor(x, x, x, «nl.exp»)", "nki-operator"),
    ("logical_not as an operator", "nisa.tensor_tensor(x, x, x, «nl.logical_not»)", "nki-operator"),
    ("partition counts that differ", "nisa.tensor_copy(x, «x[0:64]»)", "nki-shape-mismatch"),
    ("a start partition", "nisa.memset(«x[1:3]», 0.0)", "nki-address"),
    ("a bias that is no column", "nisa.activation(x, nl.exp, x, bias=«x»)", "nki-operand"),
    ("a result that is not in shared_hbm", "return «x»", "nki-output"),
    ("one of two results", "return out, «x»", "nki-output"),
]

# (as KLR's test_list, test_dict and test_enum): the exception is Python's, and its range the expression
BEYOND = [
    ("an element beyond a list", "v = [1, 2]\nm = «v[2]»", "python-exception"),
    ("an element before a tuple", "m = «(1, 2)[-3]»", "python-exception"),
    ("a key that a dict does not have", "d = {'a': 1}\nm = «d['b']»", "python-exception"),
    ("a member that an Enum does not have", "class E$(enum.Enum):\n    a = 1\n@@\nm = «E$.z»", "nki-name"),
]

DEVICE = [
    ("break in a loop on the device", "for i in nl.dynamic_range(4):\n    «break»", "nki-device-loop"),
    ("continue", "for i in nl.dynamic_range(4):\n    «continue»", "nki-device-loop"),
    ("return", "for i in nl.dynamic_range(4):\n    «return out»", "nki-device-loop"),
    ("the loop register is written", "for i in nl.dynamic_range(4):\n    «i» = 3", "nki-device-loop"),
    ("a loop in no_reorder", "with nl.no_reorder():\n    for i in «nl.dynamic_range(4)»:\n        pass", "nki-device-loop"),
]

WARNINGS = [
    ("affine_range", "for i in «nl.affine_range»(2):\n    pass", "nki-deprecated!"),
    ("static_range, once", "for i in «nl.static_range»(2):\n    for j in nl.static_range(2):\n        pass", "nki-deprecated!"),
    ("is with a number", "m = 4\nassert «n is m» or True", "nki-deprecated!"),
    ("is not with a text", "k = 'a'\nassert «n is not k»", "nki-deprecated!"),
    ("total_available_sbuf_size", "m = «nl.tile_size.total_available_sbuf_size»", "nki-deprecated!"),
    ("an annotation without effect", "y: «nl.tensor[128, 512]» = x", "nki-deprecated!"),
]

SEVERAL = [
    ("five mistakes", "«import os»\n«x += x»\nnisa.memset(x, «valu=1.0»)\nnisa.tensor_copy(x, «x[0:64]»)\n«x[0]» = x",
     STATEMENT, "nki-tensor-operator", "nki-call", "nki-shape-mismatch", "nki-tile-assignment"),
    ("mistakes of calls, all found when it runs", "nisa.tensor_copy(x, «x[0:64]»)\nnisa.memset(«x[1:3]», 0.0)\nnisa.activation(x, «nl.add», x)",
     "nki-shape-mismatch", "nki-address", "nki-operator"),
    ("a mistake in a loop is said once", "for i in range(5):\n    nisa.tensor_copy(x, «x[0:64]»)", "nki-shape-mismatch"),
]

REFUSED = [*STATEMENTS, *SIGNATURES, *CLASSES, *TEXTS, *TENSORS, *CALLS, *BEYOND, *WARNINGS, *SEVERAL]
