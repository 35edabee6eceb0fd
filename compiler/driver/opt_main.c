/* opt_main: `nkx opt --PASS[=OPTIONS]… [IN.mlir]`: single passes on IR text.
 *
 * A pass is any that MLIR registers; passes that want to run on functions are nested in the module for the user.
 */
#include "driver/main.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "ir/internal.h"
#include "passes/pass.h"

enum { INPUT_MAX = 64 << 20 };

static const char usage[] =
    "usage: nkx opt --PASS[=OPTIONS]... [IN.mlir]\n"
    "  Reads MLIR text (standard input without a file, or for -), runs the passes in order,\n"
    "  prints the result.  OPTIONS as in a pass pipeline: --one-shot-bufferize='allow-unknown-ops'\n";

static enum status read_input(const char *path, struct buf *out, struct error *err) {
  FILE *f = strcmp(path, "-") ? fopen(path, "re") : stdin;
  if (!f)
    return fail(err, ST_IO, "%.160s: %m", path);
  char chunk[64 << 10];
  size_t n;
  while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
    if (buf_append(out, chunk, n))
      break;
  bool is_bad = ferror(f);
  if (f != stdin)
    fclose(f);
  if (is_bad)
    return fail(err, ST_IO, "%.160s: %m", path);
  return buf_status(out) ? fail(err, buf_status(out), "%.160s is larger than %d MiB", path, INPUT_MAX >> 20) : ST_OK;
}

/* "--canonicalize=a b" as pipeline text, nested in functions if it does not run on modules. */
static const char *pipeline_for(struct ir *ir, struct arena *a, const char *arg) {
  const char *name = arg + 2, *eq = strchr(name, '=');
  const char *pass = eq ? arena_printf(a, "%.*s{%s}", (int)(eq - name), name, eq + 1) : name;
  const char *on_module = arena_printf(a, "builtin.module(%s)", pass);
  const char *on_functions = arena_printf(a, "builtin.module(func.func(%s))", pass);
  if (!mlirPassManagerIsNull(ir_pass_manager(ir, on_module)))
    return on_module;
  return mlirPassManagerIsNull(ir_pass_manager(ir, on_functions)) ? NULL : on_functions;
}

static void print_diags(const struct diags *ds) {
  for (int i = 0; i < ds->n; i++) {
    const struct diag *d = &ds->v[i];
    if (d->loc)
      fprintf(stderr, "%s:%d:%d: ", d->loc->range.file, d->loc->range.line, d->loc->range.col);
    fprintf(stderr, "%s: %s [%s]\n", diag_severity_name(d->severity), d->message, diag_code_name(d->code));
  }
}

static void put(MlirStringRef s, void *user) {
  fwrite(s.data, 1, s.length, user);
}

/* One "--name=options": ours by that name, otherwise MLIR's. */
static enum status run_pass(struct ir *ir, MlirOperation module, const char *arg, struct arena *a, struct diags *ds,
                            struct error *err) {
  const char *eq = strchr(arg, '=');
  const char *name = eq ? arena_strndup(a, arg + 2, (size_t)(eq - arg) - 2) : arg + 2;
  struct pass_run run = {.ir = ir, .module = module, .target = TARGET_TRN2, .arena = a, .ds = ds};

  run.def = pass_find(name);
  run.options = eq ? eq + 1 : "";
  if (run.def) {
    enum status st = run.def->run(&run);
    if (!st && !mlirOperationVerify(module)) {
      diag_add(ds, DS_ERROR, DG_PASS_FAILED, NULL, "the IR does not verify after %s", name);
      st = ST_INPUT;
    }
    return st;
  }
  const char *pipeline = pipeline_for(ir, a, arg);
  return pipeline ? ir_run_pipeline(ir, module, pipeline, a, ds)
                  : fail(err, ST_DENIED, "%.80s: there is no such pass, or its options are wrong", arg);
}

static enum status run(struct ir *ir, int n, char **passes, const char *path, struct arena *a, struct diags *ds,
                       struct error *err) {
  struct buf text;
  MlirModule m;

  buf_init(&text, INPUT_MAX);
  enum status st = read_input(path, &text, err);
  if (!st)
    st = ir_parse(ir, buf_text(&text), text.len, path, a, ds, &m);
  buf_clear(&text);
  if (st)
    return st;
  for (int i = 0; !st && i < n; i++)
    st = run_pass(ir, mlirModuleGetOperation(m), passes[i], a, ds, err);
  if (!st) {
    mlirOperationPrint(mlirModuleGetOperation(m), put, stdout);
    putchar('\n');
  }
  mlirModuleDestroy(m);
  return st;
}

int opt_main(int argc, char **argv) {
  const char *path = "-";
  int n = 0;

  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--help"))
      return fputs(usage, stdout), EXIT_DONE;
    if (!strncmp(argv[i], "--", 2) && argv[i][2])
      argv[n++] = argv[i];
    else
      path = argv[i];
  }
  struct ir ir;
  struct error err = {0};
  struct arena a;
  struct diags ds;
  arena_init(&a);
  diags_init(&ds, &a);
  enum status st = ir_init(&ir, &err);
  if (!st)
    st = run(&ir, n, argv, path, &a, &ds, &err);
  print_diags(&ds);
  if (err.text[0])
    fprintf(stderr, "nkx opt: %s\n", err.text);
  arena_clear(&a);
  return st == ST_OK      ? EXIT_DONE
         : st == ST_INPUT ? EXIT_REFUSED
         : st == ST_LIMIT ? EXIT_LIMIT
         : st == ST_BUG   ? EXIT_FAULT
                          : EXIT_USAGE;
}
