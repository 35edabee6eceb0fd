/* lines: see the header. */
#include "ir/lines.h"

#include <assert.h>
#include <string.h>

#include "ir/internal.h"

/* ---- reading the text ------------------------------------------------------------------------------------------- */

struct reader {
  const struct ir_printed *p;
  int *depth;  /* the nesting of each operation; 0 for the first */
  int *parent; /* index; -1 */
  int *end;    /* index after its last descendant */
  int *lines;
  int next; /* the first operation that has no line yet */
};

/* The start of a line: the indentation and the operation's name. */
struct head {
  int depth;
  bool is_quoted;
  const char *name;
  size_t len;
};

static void find_nesting(struct reader *r, struct arena *a) {
  const struct ir_printed *p = r->p;
  int *open = arena_new_array(a, int, (size_t)p->n), n_open = 0;

  for (int k = 0; k < p->n; k++) {
    MlirOperation up = mlirOperationGetParentOperation(p->ops[k]);
    while (n_open && (k == 0 || p->ops[open[n_open - 1]].ptr != up.ptr))
      r->end[open[--n_open]] = k;
    r->depth[k] = n_open;
    r->parent[k] = n_open ? open[n_open - 1] : -1;
    open[n_open++] = k;
  }
  while (n_open)
    r->end[open[--n_open]] = p->n;
}

static bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '$';
}

/* Returns false if the line does not begin with an operation, but with a block's label, an alias, or the end of a
 * region. */
static bool read_head(const char *s, const char *eol, struct head *h) {
  const char *at = s;

  while (at < eol && *at == ' ')
    at++;
  h->depth = (int)(at - s) / 2;
  if (at < eol && *at == '%') {
    const char *equals = memmem(at, (size_t)(eol - at), " = ", 3);
    if (!equals)
      return false;
    at = equals + 3;
  }
  h->is_quoted = at < eol && *at == '"';
  at += h->is_quoted;
  h->name = at;
  while (at < eol && is_name_char(*at))
    at++;
  h->len = (size_t)(at - h->name);
  return h->len && (!h->is_quoted || (at < eol && *at == '"'));
}

/* True if h has op's name.  Inside some operations the printer omits the dialect. */
static bool is_called(MlirOperation op, const struct head *h) {
  MlirStringRef n = mlirIdentifierStr(mlirOperationGetName(op));
  if (n.length < h->len || memcmp(n.data + n.length - h->len, h->name, h->len))
    return false;
  if (n.length == h->len)
    return true;
  const char *dot = memchr(n.data, '.', n.length);
  return !h->is_quoted && dot && dot + 1 == n.data + n.length - h->len;
}

/* Skips the next operation, which was not printed; false if printers never leave out such an operation. */
static bool skip(struct reader *r) {
  const int k = r->next, up = r->parent[k];
  if (up < 0)
    return false;
  if (mlirOperationIsNull(mlirOperationGetNextInBlock(r->p->ops[k])))
    r->next = r->end[k];
  else if (k == up + 1)
    r->next = r->end[up];
  else
    return false;
  return true;
}

/* Assigns the line to the next operation that it can belong to; false if there is none. */
static bool place(struct reader *r, const struct head *h, int line) {
  for (; r->next < r->p->n;) {
    if (r->depth[r->next] == h->depth && is_called(r->p->ops[r->next], h)) {
      r->lines[r->next++] = line;
      return true;
    }
    if (!skip(r))
      return false;
  }
  return false;
}

bool ir_lines_read(const struct ir_printed *p, struct arena *a, int *lines) {
  const char *s = p->text, *const end = p->text + p->len;
  const size_t n = (size_t)p->n;
  struct reader r = {.p = p,
                     .depth = arena_new_array(a, int, n),
                     .parent = arena_new_array(a, int, n),
                     .end = arena_new_array(a, int, n),
                     .lines = lines};

  assert(p->n > 0);
  memset(lines, 0, n * sizeof *lines);
  find_nesting(&r, a);
  for (int line = 1; s < end; line++) {
    const char *eol = memchr(s, '\n', (size_t)(end - s));
    struct head h;
    if (!eol)
      eol = end;
    if (eol - s >= 3 && !memcmp(s, "{-#", 3)) /* resources, at the end of the text */
      break;
    if (read_head(s, eol, &h) && !place(&r, &h, line))
      return false;
    s = eol + 1;
  }
  while (r.next < p->n)
    if (!skip(&r))
      return false;
  return true;
}

/* ---- asking MLIR ------------------------------------------------------------------------------------------------ */

/* The pass gives every operation that it prints the location /dev/null:line:column.  Operations that it does not
 * print keep their location, so all are set to unknown first; afterwards all are restored. */
enum status ir_lines_ask(struct ir *ir, const struct ir_printed *p, struct arena *a, int *lines, struct error *err) {
  MlirPassManager pm = ir_pass_manager(
      ir, p->has_local_scope ? "builtin.module(snapshot-op-locations{filename=/dev/null print-local-scope})"
                             : "builtin.module(snapshot-op-locations{filename=/dev/null})");
  MlirLocation *kept = arena_new_array(a, MlirLocation, (size_t)p->n);

  if (mlirPassManagerIsNull(pm))
    return fail(err, ST_BUG, "snapshot-op-locations is missing");
  for (int k = 0; k < p->n; k++) {
    kept[k] = mlirOperationGetLocation(p->ops[k]);
    mlirOperationSetLocation(p->ops[k], mlirLocationUnknownGet(ir->ctx));
  }
  bool ok = mlirLogicalResultIsSuccess(mlirPassManagerRunOnOp(pm, p->ops[0]));
  for (int k = 0; k < p->n; k++) {
    MlirLocation loc = mlirOperationGetLocation(p->ops[k]);
    lines[k] = mlirLocationIsAFileLineColRange(loc) ? mlirLocationFileLineColRangeGetStartLine(loc) : 0;
    mlirOperationSetLocation(p->ops[k], kept[k]);
  }
  return ok ? ST_OK : fail(err, ST_BUG, "snapshot-op-locations failed; is /dev/null there?");
}

enum status ir_lines(struct ir *ir, const struct ir_printed *p, struct arena *a, const int **out, struct error *err) {
  int *lines = arena_new_array(a, int, (size_t)p->n);
  enum status st = ir_lines_read(p, a, lines) ? ST_OK : ir_lines_ask(ir, p, a, lines, err);
  *out = lines;
  return st;
}
