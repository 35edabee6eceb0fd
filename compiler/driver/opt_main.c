/* opt_main: `nkx opt --PASS[=OPTIONS]… [--print-nisa] [--remarks[=FILE]] [IN.mlir]`: runs single passes on IR text.
 *
 * A pass is one of ours or any that MLIR registers; a pass that runs on functions is nested for the user.
 */
#include "driver/opt.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "driver/main.h"
#include "driver/stage.h"
#include "ir/internal.h"
#include "nisa/parse.h"
#include "nisa/print.h"
#include "passes/pass.h"

enum { INPUT_MAX = 64 << 20, OUTPUT_MAX = 256 << 20 };

static const char usage[] =
    "usage: nkx opt --PASS[=OPTIONS]... [--print-nisa] [--remarks[=FILE]] [IN.mlir]\n"
    "  Reads MLIR text (from standard input without a file or with -), runs the passes in order, and prints the\n"
    "  result.  A pass is one of ours or one of MLIR's.  OPTIONS are those of a pass pipeline:\n"
    "    --one-shot-bufferize='allow-unknown-ops'\n"
    "  --print-nisa prints NISA operations in their readable form.  Input whose first line is\n"
    "  \"" NISA_TEXT_MARKER "\" is read in that form.\n"
    "  --remarks prints what our passes decided to standard error, or writes it to FILE as a JSON array of\n"
    "  {\"pass\", \"text\", \"operation\", \"range\"?}\n";

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

/* Returns the pipeline text for "canonicalize=a b", nested in functions if the pass does not run on modules; NULL if
 * MLIR has no such pass. */
static const char *pipeline_for(struct ir *ir, struct arena *a, const char *arg) {
  const char *name = arg, *eq = strchr(name, '=');
  const char *pass = eq ? arena_printf(a, "%.*s{%s}", (int)(eq - name), name, eq + 1) : name;
  const char *on_module = arena_printf(a, "builtin.module(%s)", pass);
  const char *on_functions = arena_printf(a, "builtin.module(func.func(%s))", pass);
  if (!mlirPassManagerIsNull(ir_pass_manager(ir, on_module)))
    return on_module;
  return mlirPassManagerIsNull(ir_pass_manager(ir, on_functions)) ? NULL : on_functions;
}

static void print_place(const struct src_loc *p) {
  if (p)
    fprintf(stderr, "%s:%d:%d: ", p->range.file, p->range.line, p->range.col);
}

static void print_diags(const struct diags *ds) {
  for (int i = 0; i < ds->n; i++) {
    const struct diag *d = &ds->v[i];
    print_place(d->loc);
    diag_print(stderr, d);
  }
}

static void print_remarks(const struct remarks *rs) {
  for (const struct remark *r = rs->first; r; r = r->next) {
    print_place(r->locs.n ? r->locs.v[0] : NULL);
    fprintf(stderr, "remark: %s: %s [%s]\n", r->name, r->text, r->pass);
  }
}

static enum status write_remarks(const struct remarks *rs, const char *path, struct error *err) {
  struct buf b;
  buf_init(&b, OUTPUT_MAX);
  buf_putc(&b, '[');
  for (const struct remark *r = rs->first; r; r = r->next) {
    json_put_comma(&b);
    buf_putc(&b, '{');
    json_put_field_str(&b, "pass", r->pass);
    json_put_field_str(&b, "text", r->text);
    json_put_field_str(&b, "operation", r->name);
    remark_put_reasons(&b, r);
    if (r->locs.n) {
      json_put_key(&b, "range");
      buf_putc(&b, '{');
      stage_put_range(&b, &r->locs.v[0]->range);
      buf_putc(&b, '}');
    }
    buf_putc(&b, '}');
  }
  buf_puts(&b, "]\n");
  FILE *f = fopen(path, "we");
  bool ok = f && fwrite(buf_text(&b), 1, b.len, f) == b.len;
  if (f)
    ok &= fclose(f) == 0;
  enum status st = ok ? ST_OK : fail(err, ST_IO, "%.160s: %m", path);
  buf_clear(&b);
  return st;
}

static void put(MlirStringRef s, void *user) {
  fwrite(s.data, 1, s.length, user);
}

enum status opt_run_pass(struct ir *ir, MlirOperation module, const char *arg, enum target target, struct arena *a,
                         struct diags *ds, struct remarks *remarks, struct error *err) {
  const char *eq = strchr(arg, '=');
  const char *name = eq ? arena_strndup(a, arg, (size_t)(eq - arg)) : arg;
  struct pass_run run = {.ir = ir, .module = module, .target = target, .arena = a, .ds = ds, .remarks = remarks};

  run.def = pass_find(name);
  run.options = eq ? eq + 1 : "";
  const char *pipeline = run.def ? NULL : pipeline_for(ir, a, arg);
  if (!run.def && !pipeline)
    return fail(err, ST_DENIED, "%.80s: there is no such pass, or its options are wrong", arg);
  enum status st = run.def ? run.def->run(&run) : ir_run_pipeline(ir, module, pipeline, a, ds);
  if (!st && !mlirOperationVerify(module)) {
    diag_add(ds, DS_ERROR, DG_PASS_FAILED, NULL, "the IR does not verify after %s", name);
    st = ST_INPUT;
  }
  return st;
}

static enum status parse(struct ir *ir, const struct buf *text, const char *path, struct arena *a, struct diags *ds,
                         MlirModule *out) {
  return nisa_is_text(buf_text(text), text->len) ? nisa_parse(ir, buf_text(text), text->len, path, a, ds, out)
                                                 : ir_parse(ir, buf_text(text), text->len, path, a, ds, out);
}

static enum status print(struct ir *ir, MlirOperation module, bool is_nisa, struct arena *a, struct error *err) {
  struct buf text;
  const int *lines;

  if (!is_nisa) {
    mlirOperationPrint(module, put, stdout);
    putchar('\n');
    return ST_OK;
  }
  buf_init(&text, OUTPUT_MAX);
  enum status st = nisa_print(ir, module, 0, &text, a, &lines, err);
  if (!st)
    printf("%s\n%s", NISA_TEXT_MARKER, buf_text(&text));
  buf_clear(&text);
  return st;
}

struct request {
  int n;
  char **passes;
  const char *path;
  bool print_nisa, has_remarks;
  const char *remarks_path; /* NULL: standard error */
};

static enum status run(struct ir *ir, const struct request *rq, struct arena *a, struct diags *ds, struct error *err) {
  struct remarks remarks = {0};
  struct buf text;
  MlirModule m;

  buf_init(&text, INPUT_MAX);
  enum status st = read_input(rq->path, &text, err);
  if (!st)
    st = parse(ir, &text, rq->path, a, ds, &m);
  buf_clear(&text);
  if (st)
    return st;
  for (int i = 0; !st && i < rq->n; i++)
    st = opt_run_pass(ir, mlirModuleGetOperation(m), rq->passes[i] + 2, TARGET_TRN2, a, ds, &remarks, err);
  if (rq->remarks_path)
    st = st ? st : write_remarks(&remarks, rq->remarks_path, err);
  else if (rq->has_remarks)
    print_remarks(&remarks);
  if (!st)
    st = print(ir, mlirModuleGetOperation(m), rq->print_nisa, a, err);
  mlirModuleDestroy(m);
  return st;
}

int opt_main(int argc, char **argv) {
  struct request rq = {.passes = argv, .path = "-"};

  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--help"))
      return fputs(usage, stdout), EXIT_DONE;
    if (!strcmp(argv[i], "--print-nisa"))
      rq.print_nisa = true;
    else if (!strcmp(argv[i], "--remarks"))
      rq.has_remarks = true;
    else if (!strncmp(argv[i], "--remarks=", 10))
      rq.remarks_path = argv[i] + 10;
    else if (!strncmp(argv[i], "--", 2) && argv[i][2])
      argv[rq.n++] = argv[i];
    else
      rq.path = argv[i];
  }
  struct ir ir;
  struct error err = {0};
  struct arena a;
  struct diags ds;
  arena_init(&a);
  diags_init(&ds, &a);
  enum status st = ir_init(&ir, &err);
  if (!st)
    st = run(&ir, &rq, &a, &ds, &err);
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
