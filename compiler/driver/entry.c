#include "driver/entry.h"

#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/utf8.h"
#include "hlo/complex.h"
#include "hlo/literal.h"
#include "hlo/read.h"
#include "ir/query.h"
#include "neff/package.h"
#include "nisa/nisa.h"
#include "nisa/parse.h"
#include "nisa/streams.h"

/* ---- HLO --------------------------------------------------------------------------------------------------------- */

/* Complex numbers are passed as pairs of reals, which is their form in memory. */
static void fill_kernel(struct arena *a, struct hlo_module *m, struct trace_kernel *k) {
  const struct hlo_instr *root = m->entry->root;
  const bool is_tuple = root && root->shape.dtype == DT_TUPLE;
  k->name = m->name;
  k->module = m;
  k->n_inputs = m->entry->n_params;
  k->n_outputs = m->n_outputs;
  k->inputs = arena_new_array(a, struct trace_tensor, (size_t)k->n_inputs);
  k->outputs = arena_new_array(a, struct trace_tensor, (size_t)k->n_outputs);
  for (int i = 0; i < k->n_inputs; i++)
    k->inputs[i] =
        (struct trace_tensor){m->entry->params[i]->name, hlo_complex_shape(a, &m->entry->params[i]->shape), -1, false};
  for (int i = 0; i < k->n_outputs; i++)
    k->outputs[i] = (struct trace_tensor){
        m->output_names[i], hlo_complex_shape(a, is_tuple ? &root->shape.elems[i] : &root->shape), -1, false};
  for (int i = 0; i < m->n_aliases; i++)
    k->outputs[m->aliases[i].output_index].alias_of = m->aliases[i].param_index;
}

enum status entry_read_hlo(struct arena *a, const struct job *job, struct diags *ds, struct trace_kernel **out) {
  struct hlo_module *m = job->is_binary ? hlo_read_proto(a, job->source, job->source_len, ds)
                                        : hlo_read_text(a, job->source, job->source_len, job->filename, ds);
  if (!m)
    return ST_INPUT;
  struct trace_kernel *k = arena_new(a, struct trace_kernel);
  fill_kernel(a, m, k);
  *out = k;
  return ST_OK;
}

/* ---- MLIR -------------------------------------------------------------------------------------------------------- */

static enum dtype dtype_of(MlirType t) {
  static const enum dtype ints[] = {DT_I8, DT_I16, DT_I32, DT_I64}, unsigneds[] = {DT_U8, DT_U16, DT_U32, DT_U64};
  if (mlirTypeIsAInteger(t)) {
    const unsigned width = mlirIntegerTypeGetWidth(t);
    for (int k = 0; k < 4; k++)
      if (width == 8u << k)
        return mlirIntegerTypeIsUnsigned(t) ? unsigneds[k] : ints[k];
    return width == 1 ? DT_BOOL : DT_NONE;
  }
  return mlirTypeIsAF32(t)            ? DT_F32
         : mlirTypeIsAF16(t)          ? DT_F16
         : mlirTypeIsABF16(t)         ? DT_BF16
         : mlirTypeIsAF64(t)          ? DT_F64
         : mlirTypeIsAFloat8E4M3(t)   ? DT_F8E4M3
         : mlirTypeIsAFloat8E4M3FN(t) ? DT_F8E4M3FN
         : mlirTypeIsAFloat8E5M2(t)   ? DT_F8E5M2
                                      : DT_NONE;
}

/* Reads the type of a tensor, or of memory, of known size; false for any other type. */
static bool read_tensor(struct arena *a, MlirType t, bool is_nisa, const char *name, struct trace_tensor *out) {
  int64_t dims[HLO_RANK_MAX];
  if (!(is_nisa ? mlirTypeIsAMemRef(t) : mlirTypeIsARankedTensor(t)) || mlirShapedTypeGetRank(t) > HLO_RANK_MAX ||
      !mlirShapedTypeHasStaticShape(t))
    return false;
  const int rank = (int)mlirShapedTypeGetRank(t);
  for (int k = 0; k < rank; k++)
    dims[k] = mlirShapedTypeGetDimSize(t, k);
  *out =
      (struct trace_tensor){name, hlo_shape_array(a, dtype_of(mlirShapedTypeGetElementType(t)), rank, dims), -1, false};
  return out->shape.dtype != DT_NONE && hlo_shape_elements(&out->shape) >= 0;
}

static const char *symbol(struct arena *a, MlirOperation op, const char *attribute) {
  MlirAttribute v = mlirOperationGetAttributeByName(op, ir_str(attribute));
  if (mlirAttributeIsNull(v) || !mlirAttributeIsAString(v))
    return "";
  MlirStringRef s = mlirStringAttrGetValue(v);
  return arena_strndup(a, s.data, s.length);
}

static bool is_entry(struct arena *a, MlirOperation op, const char *wanted) {
  if (!ir_is(op, "func.func") || mlirRegionIsNull(mlirOperationGetRegion(op, 0)) ||
      mlirBlockIsNull(mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0))))
    return false;
  return wanted ? !strcmp(symbol(a, op, "sym_name"), wanted) : strcmp(symbol(a, op, "sym_visibility"), "private") != 0;
}

static enum status fill_from_function(struct arena *a, MlirOperation f, const struct job *job, bool is_nisa,
                                      struct diags *ds, struct trace_kernel *k) {
  MlirType t = mlirTypeAttrGetValue(mlirOperationGetAttributeByName(f, ir_str("function_type")));
  bool ok = true;
  k->name = symbol(a, f, "sym_name");
  k->n_inputs = (int)mlirFunctionTypeGetNumInputs(t);
  k->n_outputs = (int)mlirFunctionTypeGetNumResults(t);
  k->inputs = arena_new_array(a, struct trace_tensor, (size_t)k->n_inputs);
  k->outputs = arena_new_array(a, struct trace_tensor, (size_t)k->n_outputs);
  for (int i = 0; ok && i < k->n_inputs; i++)
    ok = read_tensor(a, mlirFunctionTypeGetInput(t, i), is_nisa, arena_printf(a, "arg%d", i), &k->inputs[i]);
  for (int i = 0; ok && i < k->n_outputs; i++)
    ok = read_tensor(a, mlirFunctionTypeGetResult(t, i), is_nisa, arena_printf(a, "output%d", i), &k->outputs[i]);
  if (ok)
    return ST_OK;
  diag_add(ds, DS_ERROR, DG_IR_INVALID, NULL,
           "function %s of %s takes or returns something that is not %s of known size and type", k->name, job->filename,
           is_nisa ? "memory" : "a tensor");
  return ST_INPUT;
}

struct text_lines {
  const char *filename, *parsed_as;
  const char **starts; /* of each line, and the end of the last one at [n_lines] */
  unsigned n_lines;
};

static struct text_lines split(struct arena *a, const struct job *job) {
  struct text_lines t = {.filename = job->filename, .n_lines = 1};
  const char *end = job->source + job->source_len;

  for (const char *p = job->source; (p = memchr(p, '\n', (size_t)(end - p))); p++)
    t.n_lines++;
  t.starts = arena_new_array(a, const char *, t.n_lines + 1);
  t.starts[0] = job->source;
  t.n_lines = 1;
  for (const char *p = job->source; (p = memchr(p, '\n', (size_t)(end - p))); p++)
    t.starts[t.n_lines++] = p + 1;
  t.starts[t.n_lines] = end + 1; /* after the last line's newline, which may be missing */
  return t;
}

/* A parser records the place where an operation's name begins, in a file called parsed_as.  This function widens the
 * place to the operation's whole first line, in the job's file. */
static MlirWalkResult widen_place(MlirOperation op, void *user) {
  const struct text_lines *t = user;
  MlirLocation loc = mlirOperationGetLocation(op);
  if (!mlirLocationIsAFileLineColRange(loc))
    return MlirWalkResultAdvance;
  const unsigned line = (unsigned)mlirLocationFileLineColRangeGetStartLine(loc);
  MlirIdentifier file = mlirLocationFileLineColRangeGetFilename(loc);
  if (!line || line > t->n_lines || !mlirStringRefEqual(mlirIdentifierStr(file), ir_str(t->parsed_as)))
    return MlirWalkResultAdvance;
  const char *start = t->starts[line - 1], *from = start, *to = t->starts[line] - 1;
  while (from < to && (*from == ' ' || *from == '\t'))
    from++;
  while (to > from && strchr(" \t\r{", to[-1]))
    to--;
  mlirOperationSetLocation(op, mlirLocationFileLineColRangeGet(mlirOperationGetContext(op), ir_str(t->filename), line,
                                                               (unsigned)utf8_count(start, (size_t)(from - start)) + 1,
                                                               line,
                                                               (unsigned)utf8_count(start, (size_t)(to - start)) + 1));
  return MlirWalkResultAdvance;
}

/* Reads the signature of the job's function, and widens the places of the operations.  ST_INPUT with diagnostics. */
static enum status read_kernel(struct arena *a, const struct job *job, MlirModule m, bool is_nisa, struct diags *ds,
                               struct trace_kernel **out) {
  struct text_lines lines = split(a, job);
  lines.parsed_as = is_nisa ? job->filename : "-";
  mlirOperationWalk(mlirModuleGetOperation(m), widen_place, &lines, MlirWalkPreOrder);
  MlirOperation f = mlirBlockGetFirstOperation(mlirModuleGetBody(m));
  while (!mlirOperationIsNull(f) && !is_entry(a, f, job->kernel))
    f = mlirOperationGetNextInBlock(f);
  struct trace_kernel *k = *out = arena_new(a, struct trace_kernel);
  if (!mlirOperationIsNull(f))
    return fill_from_function(a, f, job, is_nisa, ds, k);
  diag_add(ds, DS_ERROR, DG_NO_KERNEL, NULL, "the module has no function%s%s with a body", job->kernel ? " " : "",
           job->kernel ? job->kernel : "")
      ->hint = is_nisa ? "define a func.func on memory in shared_hbm that is not private"
                       : "define a func.func on tensors that is not private";
  return ST_INPUT;
}

/* The column in code points of one in bytes. */
static int column_of(const struct job *job, int line, int col) {
  const char *p = job->source, *end = p + job->source_len;
  for (int k = 1; k < line && p < end; k++) {
    const char *nl = memchr(p, '\n', (size_t)(end - p));
    p = nl ? nl + 1 : end;
  }
  int points = 1, k = 1;
  for (; k < col && p < end; k++, p++)
    points += !utf8_is_continuation(*p);
  return k < col ? points + (col - k) : points;
}

/* MLIR counts columns in bytes; users see code points.  Of the diagnostics from `first` on. */
static void count_points(struct diags *ds, int first, const struct job *job, struct arena *a) {
  for (int i = first; i < ds->n; i++) {
    const struct src_loc *loc = ds->v[i].loc;
    if (!loc || !loc->range.file || strcmp(loc->range.file, job->filename) != 0)
      continue;
    struct src_loc *own = arena_dup(a, loc, sizeof *loc);
    own->range.col = column_of(job, loc->range.line, loc->range.col);
    own->range.end_col = column_of(job, loc->range.end_line, loc->range.end_col);
    ds->v[i].loc = own;
  }
}

enum status entry_read_mlir(struct ir *ir, struct arena *a, const struct job *job, struct diags *ds,
                            struct trace_kernel **out, MlirModule *module) {
  MlirModule m;
  const int first = ds->n;
  enum status st = ir_parse(ir, job->source, job->source_len, job->filename, a, ds, &m);
  if (st) {
    count_points(ds, first, job, a);
    return st;
  }
  st = read_kernel(a, job, m, false, ds, out);
  if (st) {
    mlirModuleDestroy(m);
    return st;
  }
  entry_spell_elementwise(ir, a, m);
  *module = m;
  return ST_OK;
}

/* ---- NISA -------------------------------------------------------------------------------------------------------- */

bool entry_is_nisa(const char *source, size_t len) {
  static const char memory[] = "#nisa.mem<";
  if (nisa_is_text(source, len))
    return true;
  for (const char *p = source, *end = source + len; p < end; p++) {
    if (*p == '"') {
      for (p++; p < end && *p != '"' && *p != '\n'; p++)
        p += *p == '\\';
    } else if (*p == '/' && end - p > 1 && p[1] == '/') {
      const char *nl = memchr(p, '\n', (size_t)(end - p));
      p = nl ? nl : end - 1;
    } else if (*p == '#' && (size_t)(end - p) >= sizeof memory && !memcmp(p, memory, sizeof memory - 1)) {
      return true;
    }
  }
  return false;
}

static bool is_placed(MlirOperation op, void *user) {
  (void)user;
  return ir_is(op, "nisa.alloc") && !mlirAttributeIsNull(ir_attr(op, "offset"));
}

static const char *stage_of(struct arena *a, MlirOperation module, const char *name) {
  MlirOperation f = ir_find_symbol(module, "func.func", ir_str(name));
  return nisa_has_streams(f)                   ? "engine-programs"
         : ir_collect(a, f, is_placed, NULL).n ? "allocate-memory"
                                               : "linalg-to-nisa";
}

static bool is_same_shape(const struct trace_tensor *t, const struct neff_io *io) {
  bool same = t->shape.rank == io->rank && dtype_size(t->shape.dtype) == dtype_size(io->dtype);
  for (int d = 0; same && d < io->rank; d++)
    same = t->shape.dims[d] == io->dims[d];
  return same;
}

/* MLIR has one type for integers with and without a sign; the package knows which it is. */
static bool name_tensors(struct arena *a, int n, struct trace_tensor *v, const struct neff_io *io) {
  for (int k = 0; k < n; k++) {
    if (!is_same_shape(&v[k], &io[k]))
      return false;
    v[k] = (struct trace_tensor){arena_strdup(a, io[k].name), hlo_shape_array(a, io[k].dtype, io[k].rank, io[k].dims),
                                 io[k].alias_of, false};
  }
  return true;
}

static enum status name_from_package(struct arena *a, const struct job *job, struct trace_kernel *k, struct diags *ds) {
  const struct neff_opened *x = job->package;
  if (x->n_inputs == k->n_inputs && x->n_outputs == k->n_outputs &&
      name_tensors(a, k->n_inputs, k->inputs, x->inputs) && name_tensors(a, k->n_outputs, k->outputs, x->outputs))
    return ST_OK;
  diag_add(ds, DS_ERROR, DG_IR_INVALID, NULL,
           "the inputs and outputs that neff.json lists are not those of the package's program");
  return ST_INPUT;
}

enum status entry_read_nisa(struct ir *ir, struct arena *a, const struct job *job, struct diags *ds,
                            struct trace_kernel **out, MlirModule *module, const char **stage) {
  enum target given;
  MlirModule m;
  enum status st = nisa_parse(ir, job->source, job->source_len, job->filename, a, ds, &m);
  if (st)
    return st;
  st = read_kernel(a, job, m, true, ds, out);
  MlirOperation op = mlirModuleGetOperation(m);
  if (!st && job->package)
    st = name_from_package(a, job, *out, ds);
  if (!st)
    st = nisa_verify(op, job->target, a, ds);
  if (st) {
    mlirModuleDestroy(m);
    return st;
  }
  if (nisa_module_target(op, &given) && given != job->target)
    diag_add(ds, DS_WARNING, DG_IR_INVALID, NULL, "the text is for %s; it is verified and run for %s",
             target_name(given), target_name(job->target));
  ir_set_attr(op, "nisa.target", nisa_target_attr(ir->ctx, job->target));
  *stage = stage_of(a, op, (*out)->name);
  *module = m;
  return ST_OK;
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static uint64_t next_random(uint64_t *state) {
  *state += 0x9e3779b97f4a7c15u;
  uint64_t z = *state;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

enum status entry_make_inputs(struct arena *a, const struct trace_kernel *k, uint64_t seed, struct trace_array *in) {
  uint64_t state = seed;
  size_t total = 0;
  for (int i = 0; i < k->n_inputs + k->n_outputs; i++) {
    const struct hlo_shape *s = i < k->n_inputs ? &k->inputs[i].shape : &k->outputs[i - k->n_inputs].shape;
    size_t bytes;
    if (__builtin_mul_overflow((size_t)hlo_shape_elements(s), dtype_size(s->dtype), &bytes) ||
        __builtin_add_overflow(total, bytes, &total) || total > ENTRY_INPUTS_MAX)
      return ST_LIMIT;
  }
  for (int i = 0; i < k->n_inputs; i++) {
    const struct hlo_shape *s = &k->inputs[i].shape;
    const size_t n = (size_t)hlo_shape_elements(s), size = dtype_size(s->dtype);
    char *data = arena_alloc(a, n * size + 1);
    for (size_t at = 0; at < n; at++) {
      const uint64_t r = next_random(&state);
      const double v = dtype_is_float(s->dtype) ? (double)(r >> 11) * 0x1p-52 - 1
                       : s->dtype == DT_BOOL    ? (double)(r >> 63)
                                                : (double)(r >> 61);
      hlo_literal_store(s->dtype, v, data + at * size);
    }
    in[i] = (struct trace_array){.shape = *s, .data = data};
  }
  return ST_OK;
}

/* ---- languages --------------------------------------------------------------------------------------------------- */

static bool ends_with(const char *s, const char *suffix) {
  const size_t n = strlen(s), k = strlen(suffix);
  return n >= k && !strcmp(s + n - k, suffix);
}

enum language entry_guess_language(const char *filename, const char *source, size_t len) {
  static const char start[] = "HloModule";
  if (ends_with(filename, ".mlir"))
    return LANG_MLIR;
  if (ends_with(filename, ".hlo") || ends_with(filename, ".pb"))
    return LANG_HLO;
  return !ends_with(filename, ".py") && len > sizeof start && !memcmp(source, start, sizeof start - 1) ? LANG_HLO
                                                                                                       : LANG_NKIPY;
}
