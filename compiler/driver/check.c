/* check: runs one stage's module on given inputs, with the interpreter or with MLIR's execution engine.
 *
 * Each buffer is a copy in the layout that the argument's type asks for, because a stage may write its inputs.  Results
 * may alias arguments or one another and may be strided, so they are copied before anything is freed.  Machine code
 * takes and returns descriptors, by MLIR's C interface.
 *
 * The check reads nothing from disk and starts no thread, so it works in a forked child of a process that has run a
 * check.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/log.h"
#include "driver/check_internal.h"
#include "driver/native.h"
#include "hlo/literal.h"
#include "interp/interp.h"
#include "ir/query.h"

/* Level 0 takes the shortest time from IR to result; the other levels make the compiled loops and calls hardly
 * faster. */
enum { OPT_LEVEL = 0 };

struct check_program {
  struct arena arena; /* the interpreter's program */
  MlirOperation module;
  const struct interp_program *interp; /* NULL: the engine runs it */
  struct interp_products *products;    /* for the interpreter, or NULL */
  const struct interp_native *native;  /* for the interpreter, or NULL */
  struct time_limit limit;             /* for the interpreter */
  MlirExecutionEngine engine;
  MlirType type; /* of the function, before lowering */
  bool has_tensors, is_machine_code;
  char *name;
};

struct run {
  struct arena *arena;  /* the results' */
  struct arena scratch; /* freed after the run */
  struct diags *ds;
  MlirType type; /* of the program */
  int n_in, n_out;
  const struct trace_array *in;
  struct interp_buffer *buffers; /* the inputs */
  struct trace_array *out;
  struct interp_watch *watch; /* or NULL */
};

/* ---- the function ------------------------------------------------------------------------------------------------ */

static bool has_shape(MlirType t, const struct hlo_shape *s) {
  if (!mlirTypeIsAShaped(t) || mlirShapedTypeGetRank(t) != s->rank)
    return false;
  for (int k = 0; k < s->rank; k++)
    if (mlirShapedTypeGetDimSize(t, k) != s->dims[k])
      return false;
  return true;
}

static enum status check_signature(const struct run *r) {
  if (mlirFunctionTypeGetNumInputs(r->type) != r->n_in || mlirFunctionTypeGetNumResults(r->type) != r->n_out)
    return check_refuse(r->ds, "it has another number of inputs or outputs than the kernel");
  for (int k = 0; k < r->n_in; k++)
    if (!has_shape(mlirFunctionTypeGetInput(r->type, k), &r->in[k].shape))
      return check_refuse(r->ds, "an input has another shape than in the kernel");
  for (int k = 0; k < r->n_out; k++)
    if (!has_shape(mlirFunctionTypeGetResult(r->type, k), &r->out[k].shape))
      return check_refuse(r->ds, "an output has another shape than in the kernel");
  return ST_OK;
}

struct calls {
  const struct ir *ir; /* NULL: native code counts as outside, too */
  MlirStringRef outside;
};

static MlirWalkResult note_call(MlirOperation op, void *user) {
  struct calls *calls = user;
  if (!ir_is(op, "func.call"))
    return MlirWalkResultAdvance;
  MlirAttribute callee = mlirOperationGetAttributeByName(op, ir_str("callee"));
  MlirOperation module = op, f;
  while (!mlirOperationIsNull(mlirOperationGetParentOperation(module)))
    module = mlirOperationGetParentOperation(module);
  MlirStringRef name = mlirFlatSymbolRefAttrGetValue(callee);
  f = ir_find_symbol(module, "func.func", name);
  if (calls->ir && ir_has_native(calls->ir, name))
    return MlirWalkResultAdvance;
  if (!mlirOperationIsNull(f) && (!mlirBlockIsNull(mlirRegionGetFirstBlock(mlirOperationGetRegion(f, 0))) ||
                                  !mlirAttributeIsNull(check_collective_of(f)) ||
                                  !mlirAttributeIsNull(mlirOperationGetAttributeByName(f, ir_str(INTERP_TOPK)))))
    return MlirWalkResultAdvance;
  calls->outside = name;
  return MlirWalkResultInterrupt;
}

/* Refuses calls of code for the hardware, such as the code of a custom op, which this processor cannot run.  ir: the
 * interpreter can run its native code; NULL: machine code cannot. */
static enum status check_calls(const struct ir *ir, MlirOperation module, struct arena *a, struct diags *ds) {
  struct calls calls = {.ir = ir};
  mlirOperationWalk(module, note_call, &calls, MlirWalkPreOrder);
  return calls.outside.data ? check_refuse(ds, arena_printf(a, "it calls %.*s, which is given for the hardware only",
                                                            (int)calls.outside.length, calls.outside.data))
                            : ST_OK;
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

static void row_major(const struct hlo_shape *s, int64_t *strides) {
  int64_t step = 1;
  for (int k = s->rank - 1; k >= 0; k--) {
    strides[k] = step;
    step *= s->dims[k];
  }
}

/* Reads the offset and the strides of a memref type; those that the type leaves open are row-major. */
static bool layout_of(MlirType t, const struct hlo_shape *s, int64_t *offset, int64_t *strides) {
  int64_t stated[HLO_RANK_MAX];

  *offset = 0;
  row_major(s, strides);
  if (!mlirTypeIsAMemRef(t))
    return true;
  if (mlirLogicalResultIsFailure(mlirMemRefTypeGetStridesAndOffset(t, stated, offset)))
    return false;
  if (mlirShapedTypeIsDynamicStrideOrOffset(*offset))
    *offset = 0;
  for (int k = 0; k < s->rank; k++)
    if (!mlirShapedTypeIsDynamicStrideOrOffset(stated[k]))
      strides[k] = stated[k];
  for (int k = 0; k < s->rank; k++)
    if (strides[k] < 0)
      return false;
  return *offset >= 0;
}

/* Returns the type in which a buffer with this element type stores values of type t: the pass that narrows 64 bits
 * also narrows the kernel's inputs and outputs. */
static enum dtype stored_dtype(MlirType element, enum dtype t) {
  const bool is_half =
      mlirTypeIsAInteger(element) ? 8 * dtype_size(t) > mlirIntegerTypeGetWidth(element) : mlirTypeIsAF32(element);
  return is_half ? dtype_narrow(t) : t;
}

/* Returns a copy of x in the layout of the type, or x itself if it has that layout and is not written; data NULL if the
 * layout is not strided. */
static struct interp_buffer make_argument(struct arena *a, MlirType type, const struct trace_array *x,
                                          bool is_written) {
  const enum dtype stored = stored_dtype(mlirShapedTypeGetElementType(type), x->shape.dtype);
  const int rank = x->shape.rank;
  const bool is_same_type = stored == x->shape.dtype;
  struct trace_array narrowed;
  struct interp_buffer out = {.data = NULL};
  if (!is_same_type) {
    narrowed = check_convert_array(a, x, stored);
    x = &narrowed;
  }
  const size_t size = dtype_size(x->shape.dtype);
  int64_t offset, packed[HLO_RANK_MAX], last = 0;

  if (!layout_of(type, &x->shape, &offset, out.strides))
    return out;
  for (int k = 0; k < rank; k++) {
    out.dims[k] = x->shape.dims[k];
    last += (x->shape.dims[k] - 1) * out.strides[k];
  }
  row_major(&x->shape, packed);
  bool empty = hlo_shape_elements(&x->shape) == 0;
  if (!is_written && !empty && !offset && !memcmp(packed, out.strides, (size_t)rank * sizeof *packed)) {
    out.data = x->data;
    out.is_fixed = is_same_type;
    return out;
  }
  char *data = arena_alloc(a, empty ? 1 : (size_t)(offset + last + 1) * size);
  out.data = data + offset * (int64_t)size;
  if (!empty)
    interp_copy(size, rank, x->shape.dims, out.data, out.strides, x->data, packed);
  return out;
}

/* Copies a result into x->data, which is allocated in a. */
static void take_result(struct arena *a, const char *data, const int64_t *strides, struct trace_array *x) {
  const size_t size = dtype_size(x->shape.dtype), n = (size_t)hlo_shape_elements(&x->shape);
  int64_t packed[HLO_RANK_MAX];

  row_major(&x->shape, packed);
  x->data = arena_alloc(a, n * size);
  if (n)
    interp_copy(size, x->shape.rank, x->shape.dims, x->data, packed, data, strides);
}

/* Sets the type in which output k is returned. */
static void set_result_type(struct run *r, int k) {
  const MlirType t = mlirShapedTypeGetElementType(mlirFunctionTypeGetResult(r->type, k));
  r->out[k].shape.dtype = stored_dtype(t, r->out[k].shape.dtype);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* Returns MLIR's descriptor of a buffer: allocated and aligned pointer, offset, sizes and strides without gaps. */
static int64_t *make_descriptor(struct arena *a, const struct interp_buffer *b, int rank) {
  int64_t *d = arena_new_array(a, int64_t, 3 + 2 * (size_t)rank);
  memcpy(&d[0], &b->data, sizeof b->data);
  memcpy(&d[1], &b->data, sizeof b->data);
  d[2] = 0;
  memcpy(d + 3, b->dims, (size_t)rank * sizeof *d);
  memcpy(d + 3 + rank, b->strides, (size_t)rank * sizeof *d);
  return d;
}

static enum status run_engine(struct run *r, MlirExecutionEngine engine, const char *name) {
  void **pointers = arena_new_array(&r->scratch, void *, (size_t)r->n_in + 1);
  void **args = arena_new_array(&r->scratch, void *, (size_t)r->n_in + 1);
  size_t words = 0;
  int n = 0;
  for (int k = 0; k < r->n_out; k++)
    words += 3 + 2 * (size_t)r->out[k].shape.rank;
  int64_t *results = arena_new_array(&r->scratch, int64_t, words);
  if (r->n_out)
    pointers[n++] = results;
  for (int k = 0; k < r->n_in; k++)
    pointers[n++] = make_descriptor(&r->scratch, &r->buffers[k], r->in[k].shape.rank);
  for (int k = 0; k < n; k++)
    args[k] = &pointers[k];

  struct check_heap heap;
  check_heap_begin(&heap);
  bool ok = mlirLogicalResultIsSuccess(mlirExecutionEngineInvokePacked(engine, ir_str(name), args));
  const int64_t *d = results;
  for (int k = 0; ok && k < r->n_out; k++) {
    const int rank = r->out[k].shape.rank;
    const char *aligned;
    set_result_type(r, k);
    memcpy(&aligned, &d[1], sizeof aligned);
    take_result(r->arena, aligned + d[2] * (int64_t)dtype_size(r->out[k].shape.dtype), d + 3 + rank, &r->out[k]);
    d += 3 + 2 * rank;
  }
  check_heap_end(&heap);
  return ok ? ST_OK : check_refuse(r->ds, "the compiled code could not be linked");
}

static void take_interpreted(void *user, int k, const struct interp_buffer *result) {
  struct run *r = user;
  set_result_type(r, k);
  take_result(r->arena, result->data, result->strides, &r->out[k]);
}

static enum status run_interp(struct run *r, const struct check_program *p) {
  struct error err = {0};
  const struct interp_options options = {
      .products = p->products, .watch = r->watch, .native = p->native, .limit = p->limit};
  enum status st = interp_run(p->interp, &options, r->buffers, take_interpreted, r, &err);
  if (st)
    diag_add(r->ds, DS_ERROR,
             st == ST_TIMEOUT ? DG_TIME_LIMIT
             : st == ST_LIMIT ? DG_MEMORY_LIMIT
                              : DG_CHECK_FAILED,
             NULL, "%s", err.text);
  return st;
}

/* p: NULL for machine code, which may write every argument. */
static enum status make_arguments(struct run *r, const struct interp_program *p) {
  r->buffers = arena_new_array(&r->scratch, struct interp_buffer, (size_t)r->n_in);
  for (int k = 0; k < r->n_in; k++) {
    r->buffers[k] =
        make_argument(&r->scratch, mlirFunctionTypeGetInput(r->type, k), &r->in[k], !p || interp_may_write(p, k));
    if (!r->buffers[k].data)
      return check_refuse(r->ds, "an input has a layout that is not strided");
  }
  return ST_OK;
}

/* MLIR's engine asks LLVM for a listener that reports all compiled code to `perf`.  The listener makes a file below
 * /tmp for each process, and the C API cannot turn it off.  This function replaces LLVM's, so it must be visible. */
void *check_perf_listener(void) __asm__("_ZN4llvm16JITEventListener26createPerfJITEventListenerEv")
    __attribute__((visibility("default")));
void *check_perf_listener(void) {
  return NULL; /* no listener */
}

static enum status prepare(const struct ir *ir, struct check_program *p, struct arena *a, struct diags *ds) {
  MlirOperation function = ir_find_symbol(p->module, "func.func", ir_str(p->name));
  if (mlirOperationIsNull(function))
    return check_refuse(ds, "the kernel's function is gone");
  p->type = mlirTypeAttrGetValue(mlirOperationGetAttributeByName(function, ir_str("function_type")));
  enum status st = check_calls(ir, p->module, a, ds);
  if (!st)
    p->has_tensors = check_clean(p->module, function, a);
  return st;
}

enum status check_open(struct ir *ir, MlirModule module, const char *name, struct arena *a, struct diags *ds,
                       struct check_program **out) {
  struct check_program *p = calloc(1, sizeof *p);
  struct ir_capture capture;

  if (!p)
    arena_oom(sizeof *p);
  arena_init(&p->arena);
  p->name = strdup(name);
  if (!p->name)
    arena_oom(strlen(name));
  p->module = mlirOperationClone(mlirModuleGetOperation(module));
  ir_capture_begin(ir, &capture, ds, DG_INTERNAL, a);
  enum status st = prepare(ir, p, a, ds);
  ir_capture_end(ir, &capture);
  if (st)
    check_unload(p);
  else
    *out = p;
  return st;
}

static enum status make_engine(struct ir *ir, struct check_program *p, struct arena *a, struct diags *ds) {
  MlirOperation function = ir_find_symbol(p->module, "func.func", ir_str(p->name));
  enum status st = check_lower(ir, p->module, function, a, ds);
  if (st)
    return st;
  p->engine = mlirExecutionEngineCreate(mlirModuleFromOperation(p->module), OPT_LEVEL, 0, NULL, false, false);
  if (mlirExecutionEngineIsNull(p->engine))
    return check_refuse(ds, "it does not translate to LLVM IR");
  check_register_runtime(p->engine);
  check_register_products(p->engine);
  return ST_OK;
}

void check_use_products(struct check_program *p, struct interp_products *products) {
  p->products = products;
}

void check_limit_time(struct check_program *p, struct time_limit limit) {
  p->limit = limit;
}

void check_set_machine_code(struct check_program *p) {
  p->is_machine_code = true;
}

enum status check_link(struct ir *ir, struct check_program *p, struct arena *a, struct diags *ds) {
  struct ir_capture capture;
  const char *unknown = "machine code was asked for";

  ir_capture_begin(ir, &capture, ds, DG_INTERNAL, a);
  enum status st = ST_OK;
  if (!p->is_machine_code)
    st = native_runner(ir, ds, &p->native);
  if (!st && !p->is_machine_code)
    p->interp = interp_read(p->module, p->name, &p->arena, &unknown);
  if (!st && !p->interp && p->has_tensors)
    st = check_bufferize(ir, p->module, a, ds);
  if (!st && !p->interp && p->has_tensors && !p->is_machine_code)
    p->interp = interp_read(p->module, p->name, &p->arena, &unknown);
  if (!st && !p->interp) {
    log_debug("check_machine_code", "reason=%s", unknown);
    st = check_calls(NULL, p->module, a, ds);
    if (!st)
      st = make_engine(ir, p, a, ds);
  }
  ir_capture_end(ir, &capture);
  return st;
}

enum status check_load(struct ir *ir, MlirModule module, const char *name, struct arena *a, struct diags *ds,
                       struct check_program **out) {
  struct check_program *p = NULL;
  enum status st = check_open(ir, module, name, a, ds, &p);
  if (!st)
    st = check_link(ir, p, a, ds);
  if (st)
    check_unload(p);
  else
    *out = p;
  return st;
}

static void add_to_digest(MlirStringRef text, void *ctx) {
  EVP_DigestUpdate(ctx, text.data, text.length);
}

void check_digest(const struct check_program *p, unsigned char out[CHECK_DIGEST]) {
  EVP_MD_CTX *ctx = EVP_MD_CTX_new();

  if (!ctx || !EVP_DigestInit_ex(ctx, EVP_sha256(), NULL))
    arena_oom(CHECK_DIGEST);
  assert(!p->interp && mlirExecutionEngineIsNull(p->engine));
  MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate(); /* without locations, and with values numbered in order */
  mlirOpPrintingFlagsAssumeVerified(flags);
  mlirOperationPrintWithFlags(p->module, flags, add_to_digest, ctx);
  mlirOpPrintingFlagsDestroy(flags);
  EVP_DigestFinal_ex(ctx, out, NULL);
  EVP_MD_CTX_free(ctx);
}

static enum status run_program(const struct check_program *p, struct run *r) {
  assert(p->interp || !mlirExecutionEngineIsNull(p->engine));
  r->type = p->type;
  arena_init(&r->scratch);
  enum status st = check_signature(r);
  if (!st)
    st = make_arguments(r, p->interp);
  if (!st)
    st = p->interp ? run_interp(r, p) : run_engine(r, p->engine, p->name);
  arena_clear(&r->scratch);
  return st;
}

enum status check_run(const struct check_program *p, int n_in, const struct trace_array *in, int n_out,
                      struct trace_array *out, struct arena *a, struct diags *ds) {
  struct run r = {.arena = a, .ds = ds, .n_in = n_in, .n_out = n_out, .in = in, .out = out};
  return run_program(p, &r);
}

enum status check_run_watched(const struct check_program *p, int n_in, const struct trace_array *in, int n_out,
                              struct trace_array *out, struct interp_watch *watch, struct arena *a, struct diags *ds) {
  struct run r = {.arena = a, .ds = ds, .n_in = n_in, .n_out = n_out, .in = in, .out = out, .watch = watch};
  if (p->interp)
    return run_program(p, &r);
  diag_add(ds, DS_ERROR, DG_INTERNAL, NULL, "the stage has an operation that only machine code can run");
  return ST_INPUT;
}

MlirOperation check_module(const struct check_program *p) {
  return p->module;
}

void check_unload(struct check_program *p) {
  if (!p)
    return;
  if (!mlirExecutionEngineIsNull(p->engine))
    mlirExecutionEngineDestroy(p->engine);
  mlirModuleDestroy(mlirModuleFromOperation(p->module));
  arena_clear(&p->arena);
  free(p->name);
  free(p);
}

enum status check_execute(struct ir *ir, MlirModule module, const char *name, int n_in, const struct trace_array *in,
                          int n_out, struct trace_array *out, struct arena *a, struct diags *ds) {
  struct check_program *p;
  enum status st = check_load(ir, module, name, a, ds, &p);

  if (st)
    return st;
  st = check_run(p, n_in, in, n_out, out, a, ds);
  check_unload(p);
  return st;
}
