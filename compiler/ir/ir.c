/* ir: provides the MLIR context of a process, upstream passes, parsing, and MLIR's diagnostics.
 *
 * All upstream passes are registered, because `nkx opt` and stages name passes by text.  A handler turns MLIR's
 * errors into diagnostics of the innermost ir_capture; if there is none, they go to the log.
 */
#include "ir/ir.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/Diagnostics.h"
#include "mlir-c/Dialect/IRDL.h"
#include "mlir-c/RegisterEverything.h"

#include "base/buf.h"
#include "base/log.h"
#include "ir/internal.h"

const char ir_dialects_irdl[] =
#include "dialects.inc"
    ;

enum { DIAG_TEXT_MAX = 4 << 10 };

/* ---- diagnostics ------------------------------------------------------------------------------------------------ */

static void append(MlirStringRef s, void *user) {
  buf_append(user, s.data, s.length);
}

static void message_text(MlirDiagnostic d, struct buf *out) {
  mlirDiagnosticPrint(d, append, out);
}

static MlirLogicalResult handle(MlirDiagnostic d, void *user) {
  struct ir *ir = user;
  struct ir_capture *c = ir->capture;
  MlirDiagnosticSeverity severity = mlirDiagnosticGetSeverity(d);
  struct buf text;

  buf_init(&text, DIAG_TEXT_MAX);
  message_text(d, &text);
  if (!c) {
    log_warn("mlir", "%.500s", buf_text(&text));
  } else if (severity == MlirDiagnosticError || severity == MlirDiagnosticWarning) {
    bool is_error = severity == MlirDiagnosticError;
    c->errors += is_error;
    diag_add(c->ds, is_error ? DS_ERROR : DS_WARNING, c->code, ir_first_place(c->arena, mlirDiagnosticGetLocation(d)),
             "%s", buf_text(&text));
  }
  buf_clear(&text);
  return mlirLogicalResultSuccess();
}

void ir_capture_begin(struct ir *ir, struct ir_capture *c, struct diags *ds, enum diag_code code, struct arena *a) {
  *c = (struct ir_capture){.ds = ds, .code = code, .arena = a, .outer = ir->capture};
  ir->capture = c;
}

void ir_capture_end(struct ir *ir, struct ir_capture *c) {
  assert(ir->capture == c); /* captures end in the reverse order of their start */
  ir->capture = c->outer;
}

/* ---- context ---------------------------------------------------------------------------------------------------- */

/* The dialects with operations that our passes create.  The parser loads the others when a module names them,
 * because every loaded dialect slows down printing and each pass that queries all dialects. */
static const char *const loaded[] = {"affine", "arith",  "bufferization", "func",   "linalg",
                                     "math",   "memref", "scf",           "tensor", "transform"};

static unsigned contexts_made;

unsigned ir_contexts_made(void) {
  return contexts_made;
}

enum status ir_init(struct ir *ir, struct error *err) {
  *ir = (struct ir){.passes = NULL};
  contexts_made++;
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  mlirRegisterAllDialects(registry);
  mlirRegisterAllPasses();
  ir->ctx = mlirContextCreateWithRegistry(registry, /*threadingEnabled=*/false);
  mlirDialectRegistryDestroy(registry);
  mlirContextAttachDiagnosticHandler(ir->ctx, handle, ir, NULL);
  for (size_t i = 0; i < sizeof loaded / sizeof *loaded; i++)
    if (mlirDialectIsNull(mlirContextGetOrLoadDialect(ir->ctx, ir_str(loaded[i]))))
      return fail(err, ST_BUG, "there is no dialect %s", loaded[i]);
  mlirRegisterAllLLVMTranslations(ir->ctx);

  MlirModule dialects = mlirModuleCreateParse(ir->ctx, ir_str(ir_dialects_irdl));
  if (mlirModuleIsNull(dialects))
    return fail(err, ST_BUG, "dialects.irdl does not parse");
  bool ok = mlirLogicalResultIsSuccess(mlirLoadIRDLDialects(dialects));
  mlirModuleDestroy(dialects);
  return ok ? ST_OK : fail(err, ST_BUG, "dialects.irdl does not load");
}

void ir_clear(struct ir *ir) {
  while (ir->passes) {
    struct ir_passes *p = ir->passes;
    ir->passes = p->next;
    mlirPassManagerDestroy(p->manager);
    free(p->text);
    free(p);
  }
  if (!mlirContextIsNull(ir->ctx))
    mlirContextDestroy(ir->ctx);
  *ir = (struct ir){.passes = NULL};
}

int ir_which(MlirOperation op, int n, const char *const *names) {
  MlirStringRef s = mlirIdentifierStr(mlirOperationGetName(op));
  for (int k = 0; k < n; k++)
    if (!strncmp(names[k], s.data, s.length) && !names[k][s.length])
      return k;
  return -1;
}

/* ---- passes ----------------------------------------------------------------------------------------------------- */

static void log_text(MlirStringRef s, void *user) {
  (void)user;
  log_error("pass_pipeline", "%.*s", (int)s.length, s.data);
}

MlirPassManager ir_pass_manager(struct ir *ir, const char *pipeline) {
  for (struct ir_passes *p = ir->passes; p; p = p->next)
    if (!strcmp(p->text, pipeline))
      return p->manager;

  MlirPassManager pm = mlirPassManagerCreate(ir->ctx);
  if (mlirLogicalResultIsFailure(
          mlirParsePassPipeline(mlirPassManagerGetAsOpPassManager(pm), ir_str(pipeline), log_text, NULL))) {
    mlirPassManagerDestroy(pm);
    return (MlirPassManager){NULL};
  }
  mlirPassManagerEnableVerifier(pm, false);
  struct ir_passes *p = malloc(sizeof *p);
  char *text = strdup(pipeline);
  if (!p || !text)
    arena_oom(sizeof *p);
  *p = (struct ir_passes){.text = text, .manager = pm, .next = ir->passes};
  ir->passes = p;
  return pm;
}

enum status ir_run_pipeline(struct ir *ir, MlirOperation op, const char *pipeline, struct arena *a, struct diags *ds) {
  MlirPassManager pm = ir_pass_manager(ir, pipeline);
  if (mlirPassManagerIsNull(pm)) {
    diag_add(ds, DS_ERROR, DG_INTERNAL, NULL, "the pass pipeline %s is not known", pipeline);
    return ST_BUG;
  }
  struct ir_capture c;
  ir_capture_begin(ir, &c, ds, DG_PASS_FAILED, a);
  bool ok = mlirLogicalResultIsSuccess(mlirPassManagerRunOnOp(pm, op));
  ir_capture_end(ir, &c);
  if (!ok && !c.errors)
    diag_add(ds, DS_ERROR, DG_PASS_FAILED, NULL, "the pass %s failed without a message", pipeline);
  return ok ? ST_OK : ST_INPUT;
}

/* ---- parsing ---------------------------------------------------------------------------------------------------- */

enum { LONG_FORM_MORE = 64 }; /* the most bytes that the generic form adds to the shortest annotation */

/* Describes input that would crash MLIR's parser. */
struct dangers {
  int nesting; /* deepest nesting of brackets: the parser recurses, and 1,600 regions overflow a stack of 8 MiB */
  size_t index_array; /* the start of a dense array of index, or of an aliased type; 0: there is none */
};

/* Skips white space and comments.  MLIR reads a NUL within the text as a space. */
static size_t skip_space(const char *text, size_t len, size_t at) {
  for (; at < len; at++) {
    if (at + 1 < len && text[at] == '/' && text[at + 1] == '/')
      while (at + 1 < len && text[at + 1] != '\n')
        at++;
    else if (text[at] && !isspace((unsigned char)text[at]))
      break;
  }
  return at;
}

static bool has_word(const char *text, size_t len, size_t at, const char *word) {
  size_t n = strlen(word);
  return len - at >= n && !memcmp(text + at, word, n);
}

/* True if "array<index" or "array<!alias" begins at `at`, and is not part of a dialect's type such as
 * "!llvm.array<…". */
static bool is_index_array(const char *text, size_t len, size_t at) {
  static const char word[] = "array";
  const char before = at ? text[at - 1] : 0;
  if (!has_word(text, len, at, word) || (before && (isalnum((unsigned char)before) || strchr("._$", before))))
    return false;
  at = skip_space(text, len, at + sizeof word - 1);
  if (at == len || text[at] != '<')
    return false;
  at = skip_space(text, len, at + 1);
  return at < len && (text[at] == '!' || has_word(text, len, at, "index"));
}

/* Finds dangerous input outside strings and comments. */
static struct dangers find_dangers(const char *text, size_t len) {
  struct dangers d = {0};
  int depth = 0;
  for (size_t i = 0; i < len; i++) {
    switch (text[i]) {
    case '"':
      for (i++; i < len && text[i] != '"' && text[i] != '\n'; i++)
        i += text[i] == '\\';
      break;
    case '/':
      if (i + 1 < len && text[i + 1] == '/')
        while (i + 1 < len && text[i + 1] != '\n')
          i++;
      break;
    case '-':
      i += i + 1 < len && text[i + 1] == '>';
      break;
    case 'a':
      if (!d.index_array && is_index_array(text, len, i))
        d.index_array = i;
      break;
    case '(':
    case '[':
    case '{':
    case '<':
      depth++;
      if (depth > d.nesting)
        d.nesting = depth;
      break;
    case ')':
    case ']':
    case '}':
    case '>':
      depth -= depth > 0;
      break;
    default:
      break;
    }
  }
  return d;
}

/* Returns the place of byte `at`.  Columns count bytes, as in MLIR. */
static const struct src_loc *place_at(struct arena *a, const char *name, const char *text, size_t at) {
  struct src_loc *loc = arena_new(a, struct src_loc);
  *loc = (struct src_loc){.range = {.file = name, .line = 1, .col = 1}};
  struct src_range *r = &loc->range;
  for (size_t i = 0; i < at; i++) {
    r->line += text[i] == '\n';
    r->col = text[i] == '\n' ? 1 : r->col + 1;
  }
  r->end_line = r->line;
  r->end_col = r->col + 1;
  return loc;
}

/* Replaces the file name "-" in diagnostics: mlirModuleCreateParse is the only parser that adds the module around
 * bare functions, and it names its input "-". */
static void name_file(struct diags *ds, int first, const char *name, struct arena *a) {
  for (int i = first; i < ds->n; i++) {
    const struct src_loc *loc = ds->v[i].loc;
    if (!loc || strcmp(loc->range.file, "-"))
      continue;
    struct src_loc *named = arena_dup(a, loc, sizeof *loc);
    named->range.file = name;
    ds->v[i].loc = named;
  }
}

static bool has_too_many_dims(MlirValue v) {
  MlirType t = mlirValueGetType(v);
  return mlirTypeIsAShaped(t) && mlirShapedTypeHasRank(t) &&
         mlirShapedTypeGetRank(t) > (mlirTypeIsAMemRef(t) ? IR_MEMREF_RANK_MAX : IR_RANK_MAX);
}

/* Sets *user to an operation with a result or a block argument that has too many dimensions. */
static MlirWalkResult find_too_many_dims(MlirOperation op, void *user) {
  bool found = false;

  for (intptr_t k = 0; k < mlirOperationGetNumResults(op); k++)
    found |= has_too_many_dims(mlirOperationGetResult(op, k));
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
    for (MlirBlock b = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r)); !mlirBlockIsNull(b);
         b = mlirBlockGetNextInRegion(b))
      for (intptr_t k = 0; k < mlirBlockGetNumArguments(b); k++)
        found |= has_too_many_dims(mlirBlockGetArgument(b, k));
  if (!found)
    return MlirWalkResultAdvance;
  *(MlirOperation *)user = op;
  return MlirWalkResultInterrupt;
}

static enum status check_dims(MlirModule m, struct arena *a, struct diags *ds) {
  MlirOperation op = {NULL};

  mlirOperationWalk(mlirModuleGetOperation(m), find_too_many_dims, &op, MlirWalkPreOrder);
  if (mlirOperationIsNull(op))
    return ST_OK;
  diag_add(ds, DS_ERROR, DG_IR_INVALID, ir_first_place(a, mlirOperationGetLocation(op)),
           "a value has more than %d dimensions", IR_RANK_MAX);
  return ST_INPUT;
}

enum status ir_parse(struct ir *ir, const char *text, size_t len, const char *name, struct arena *a, struct diags *ds,
                     MlirModule *out) {
  const struct dangers d = find_dangers(text, len);
  if (d.nesting > IR_NEST_MAX) {
    diag_add(ds, DS_ERROR, DG_NESTING_TOO_DEEP, NULL, "the IR is nested %d levels deep; the limit is %d", d.nesting,
             IR_NEST_MAX);
    return ST_LIMIT;
  }
  if (d.index_array) {
    diag_add(ds, DS_ERROR, DG_IR_INVALID, place_at(a, name, text, d.index_array),
             "a dense array must have elements of a builtin integer or float type");
    return ST_INPUT;
  }
  struct ir_capture c;
  struct buf plain; /* ends with a NUL, which the parser needs */
  size_t wrong = 0;
  int first = ds->n;
  buf_init(&plain, 2 * len + LONG_FORM_MORE);
  enum status rewritten = ir_long_form(text, len, &plain, &wrong);
  if (rewritten) {
    buf_clear(&plain);
    diag_add(ds, DS_ERROR, rewritten == ST_INPUT ? DG_IR_INVALID : DG_SOURCE_TOO_LARGE, place_at(a, name, text, wrong),
             "an annotation is written nkipy.layout(%%value : type) {attributes}");
    return rewritten;
  }
  ir_capture_begin(ir, &c, ds, DG_IR_INVALID, a);
  MlirModule m = mlirModuleCreateParse(ir->ctx, mlirStringRefCreate(buf_text(&plain), plain.len));
  ir_capture_end(ir, &c);
  buf_clear(&plain);
  enum status st = mlirModuleIsNull(m) ? ST_INPUT : check_dims(m, a, ds);
  name_file(ds, first, name, a);
  if (mlirModuleIsNull(m) && !c.errors)
    diag_add(ds, DS_ERROR, DG_IR_INVALID, NULL, "the text is not a module");
  if (!st)
    *out = m;
  else if (!mlirModuleIsNull(m))
    mlirModuleDestroy(m);
  return st;
}
