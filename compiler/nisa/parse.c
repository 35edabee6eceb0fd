/* parse: see the header.  parse_op.c rewrites single operations; this file handles everything else. */
#include "nisa/parse.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <string.h>

#include "base/array.h"
#include "nisa/other.h"
#include "nisa/parse_op.h"
#include "nisa/print.h"
#include "nisa/print_op.h"
#include "nisa/tokens.h"

/* The generic form is longer by a constant factor: it has the names of maps, and repeats every type. */
enum { TEXT_MAX = 64 << 20, GENERIC_MAX = 512 << 20 };

/* ---- places ----------------------------------------------------------------------------------------------------- */

/* The offsets at which lines begin. */
struct line_table {
  size_t *start;
  int n;
};

static struct line_table find_lines(struct arena *a, const char *text, size_t len) {
  int n = 1;
  for (size_t k = 0; k < len; k++)
    n += text[k] == '\n';
  struct line_table t = {arena_new_array(a, size_t, (size_t)n), 1};
  for (size_t k = 0; k < len; k++)
    if (text[k] == '\n')
      t.start[t.n++] = k + 1;
  return t;
}

/* Columns count code points. */
static void place_of(struct line_table t, const char *text, size_t at, int *line, int *col) {
  int low = 0, high = t.n;
  while (high - low > 1) {
    int mid = low + (high - low) / 2;
    if (t.start[mid] <= at)
      low = mid;
    else
      high = mid;
  }
  *line = low + 1;
  *col = 1;
  for (size_t k = t.start[low]; k < at; k++)
    *col += ((unsigned char)text[k] & 0xc0) != 0x80;
}

static enum status report(struct nisa_source *s, size_t at, enum diag_code code, const char *text) {
  struct src_loc *loc = arena_new(s->arena, struct src_loc);

  loc->range.file = s->name;
  place_of(find_lines(s->arena, s->text, s->len), s->text, at < s->len ? at : s->len, &loc->range.line,
           &loc->range.col);
  loc->range.end_line = loc->range.line;
  loc->range.end_col = loc->range.col + 1;
  diag_add(s->ds, DS_ERROR, code, loc, "%s", text);
  return code == DG_NESTING_TOO_DEEP ? ST_LIMIT : ST_INPUT;
}

enum status nisa_source_fail(struct nisa_source *s, size_t at, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *text = arena_vprintf(s->arena, fmt, ap);
  va_end(ap);
  return report(s, at, DG_IR_INVALID, text);
}

enum status nisa_source_too_deep(struct nisa_source *s, size_t at) {
  return report(s, at, DG_NESTING_TOO_DEEP,
                arena_printf(s->arena, "the brackets are nested more than %d levels deep", IR_NEST_MAX));
}

/* ---- the new text ----------------------------------------------------------------------------------------------- */

static void add_piece(struct nisa_source *s, size_t in, bool is_copy) {
  assert(!s->pieces.n || s->pieces.v[s->pieces.n - 1].out <= s->out.len);
  array_push(s->arena, &s->pieces, (struct nisa_piece){s->out.len, in, is_copy});
}

void nisa_source_put(struct nisa_source *s, size_t in, const char *fmt, ...) {
  va_list ap;

  add_piece(s, in, false);
  va_start(ap, fmt);
  buf_puts(&s->out, arena_vprintf(s->arena, fmt, ap));
  va_end(ap);
}

static void copy_bytes(struct nisa_source *s, size_t from, size_t to) {
  assert(from <= to && to <= s->len);
  if (from == to)
    return;
  add_piece(s, from, true);
  buf_append(&s->out, s->text + from, to - from);
}

/* Returns the end of the string that begins at k. */
static size_t skip_string(const char *text, size_t k, size_t end) {
  for (k++; k < end && text[k] != '"' && text[k] != '\n'; k++)
    k += text[k] == '\\';
  return k < end ? k + 1 : end;
}

static bool is_word_byte(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

void nisa_source_copy(struct nisa_source *s, size_t from, size_t to) {
  for (size_t k = from; k < to;) {
    if (s->text[k] == '"') {
      k = skip_string(s->text, k, to);
      continue;
    }
    size_t n;
    if (s->text[k] == 'i' && nisa_other_index(s->text, s->text + k, s->text + s->len, &n)) {
      copy_bytes(s, from, k);
      nisa_source_put(s, k, "i32");
      from = k += n;
      continue;
    }
    n = s->text[k] == '#' ? nisa_text_keyword_attr(s->text + k, s->text + to) : 0;
    size_t word = k + n, end = word;
    while (n && end < to && is_word_byte(s->text[end]))
      end++;
    if (end == word) {
      k++;
      continue;
    }
    copy_bytes(s, from, word);
    nisa_source_put(s, word, "\"");
    copy_bytes(s, word, end);
    nisa_source_put(s, end, "\"");
    from = k = end;
  }
  copy_bytes(s, from, to);
}

/* ---- finding operations ----------------------------------------------------------------------------------------- */

/* True if the name at k begins a token: the character before it does not belong to the same token. */
static bool begins_name(const struct nisa_source *s, size_t k) {
  return s->len - k > 5 && !memcmp(s->text + k, "nisa.", 5) &&
         (k == 0 || (!is_word_byte(s->text[k - 1]) && !strchr("#!@%^.$-", s->text[k - 1])));
}

static bool is_text(const char *s, size_t len, const char *text) {
  return strlen(text) == len && !memcmp(s, text, len);
}

static const struct nisa_op_def *def_named(const char *name, size_t len) {
  for (int k = 0; k < NISA_KIND_COUNT; k++) {
    const struct nisa_op_def *d = nisa_op_def((enum nisa_kind)k);
    if (is_text(name, len, d->full_name))
      return d;
  }
  return NULL;
}

/* Rewrites an operation or the head of a stream with this name; false if there is none. */
static bool known_operation(struct nisa_source *s, const char *name, size_t len, size_t start, enum status *st) {
  const struct nisa_op_def *def = def_named(name, len);
  if (def) {
    *st = nisa_parse_op(s, def, start);
    return true;
  }
  for (int k = NISA_SYNC_WAIT; k <= NISA_SYNC_ROTATE; k++)
    if (is_text(name, len, nisa_sync_name((enum nisa_sync)k))) {
      *st = nisa_parse_sync(s, (enum nisa_sync)k, start);
      return true;
    }
  if (is_text(name, len, "nisa.core")) {
    if (nisa_peek(s) == '=') /* the attribute, in MLIR's own form */
      return false;
    *st = nisa_parse_core(s, start);
    return true;
  }
  const bool is_queue = is_text(name, len, "nisa.queue");
  if (!is_queue && !is_text(name, len, "nisa.program"))
    return false;
  *st = nisa_parse_stream(s, is_queue, start);
  return true;
}

/* Reads an operation at s->at, if there is one: any other word that begins with nisa. is the name of an attribute. */
static enum status operation(struct nisa_source *s, size_t *copied) {
  size_t start = s->at, end = start + 5;
  enum status st = ST_OK;

  while (end < s->len && is_word_byte(s->text[end]))
    end++;
  s->at = end;
  nisa_source_copy(s, *copied, start);
  *copied = start;
  if (known_operation(s, s->text + start, end - start, start, &st))
    *copied = s->at;
  else if (end < s->len && s->text[end] == '(')
    return nisa_source_fail(s, start, "there is no operation %.*s", end - start < 60 ? (int)(end - start) : 60,
                            s->text + start);
  return st;
}

static enum status rewrite(struct nisa_source *s) {
  size_t copied = 0;

  while (s->at < s->len) {
    const char c = s->text[s->at];
    if (c == '"') {
      s->at = skip_string(s->text, s->at, s->len);
    } else if (c == '/' && s->at + 1 < s->len && s->text[s->at + 1] == '/') {
      const char *eol = memchr(s->text + s->at, '\n', s->len - s->at);
      size_t end = eol ? (size_t)(eol - s->text) : s->len;
      nisa_source_copy(s, copied, s->at);
      copy_bytes(s, s->at, end); /* quotes have no meaning in a comment */
      copied = s->at = end;
    } else if (c == 'n' && begins_name(s, s->at)) {
      enum status st = operation(s, &copied);
      if (st)
        return st;
    } else if (c == '}' && nisa_end_stream(s, &copied)) {
      continue;
    } else {
      s->depth += c == '{' ? 1 : c == '}' ? -1 : 0;
      s->at++;
    }
  }
  nisa_source_copy(s, copied, s->len);
  return ST_OK;
}

/* ---- back to places of the given text --------------------------------------------------------------------------- */

struct mapping {
  const struct nisa_source *s;
  MlirContext ctx;
  struct line_table out, in;
};

/* Maps a place in the new text to the place in the given text.  Columns in the new text count bytes. */
static void map_place(const struct mapping *m, int *line, int *col) {
  const struct nisa_source *s = m->s;
  if (*line < 1 || *line > m->out.n || !s->pieces.n)
    return;
  size_t at = m->out.start[*line - 1] + (size_t)(*col > 0 ? *col - 1 : 0);
  int low = 0, high = s->pieces.n;
  while (high - low > 1) {
    int mid = low + (high - low) / 2;
    if (s->pieces.v[mid].out <= at)
      low = mid;
    else
      high = mid;
  }
  const struct nisa_piece *p = &s->pieces.v[low];
  size_t in = p->in + (p->is_copy ? at - p->out : 0);
  place_of(m->in, s->text, in < s->len ? in : s->len, line, col);
}

static void map_diags(const struct mapping *m, int first) {
  struct diags *ds = m->s->ds;
  for (int k = first; k < ds->n; k++) {
    if (!ds->v[k].loc)
      continue;
    struct src_loc *loc = arena_dup(m->s->arena, ds->v[k].loc, sizeof *loc);
    map_place(m, &loc->range.line, &loc->range.col);
    map_place(m, &loc->range.end_line, &loc->range.end_col);
    ds->v[k].loc = loc;
  }
}

static MlirLocation map_location(const struct mapping *m, MlirLocation loc) {
  if (!mlirLocationIsAFileLineColRange(loc))
    return loc;
  int line = mlirLocationFileLineColRangeGetStartLine(loc), col = mlirLocationFileLineColRangeGetStartColumn(loc);
  if (!line) /* the error is at the module that MLIR adds around bare functions */
    return loc;
  map_place(m, &line, &col);
  return mlirLocationFileLineColGet(m->ctx, mlirStringRefCreateFromCString(m->s->name), (unsigned)line, (unsigned)col);
}

static MlirWalkResult map_op(MlirOperation op, void *user) {
  mlirOperationSetLocation(op, map_location(user, mlirOperationGetLocation(op)));
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
    for (MlirBlock b = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r)); !mlirBlockIsNull(b);
         b = mlirBlockGetNextInRegion(b))
      for (intptr_t k = 0; k < mlirBlockGetNumArguments(b); k++) {
        MlirValue v = mlirBlockGetArgument(b, k);
        mlirBlockArgumentSetLocation(v, map_location(user, mlirValueGetLocation(v)));
      }
  return MlirWalkResultAdvance;
}

/* ---- whether operands fit their maps ---------------------------------------------------------------------------- */

struct fit {
  struct nisa_source *s;
  enum status st;
};

static MlirWalkResult check_op(MlirOperation op, void *user) {
  struct fit *f = user;
  struct nisa_instr in;
  const char *why;

  if (!nisa_op_of(op) || nisa_read(op, &in, &why))
    return MlirWalkResultAdvance;
  MlirLocation at = mlirOperationGetLocation(op);
  struct src_loc *loc = arena_new(f->s->arena, struct src_loc);
  loc->range.file = f->s->name;
  if (mlirLocationIsAFileLineColRange(at)) {
    loc->range.line = loc->range.end_line = mlirLocationFileLineColRangeGetStartLine(at);
    loc->range.col = mlirLocationFileLineColRangeGetStartColumn(at);
    loc->range.end_col = loc->range.col + 1;
  }
  diag_add(f->s->ds, DS_ERROR, DG_IR_INVALID, loc, "%s: %s", nisa_op_of(op)->full_name, why);
  f->st = ST_INPUT;
  return MlirWalkResultAdvance;
}

/* ---- all of it -------------------------------------------------------------------------------------------------- */

static enum status parse_generic(struct ir *ir, struct nisa_source *s, MlirModule *out) {
  const int first = s->ds->n;
  enum status st = ir_parse(ir, buf_text(&s->out), s->out.len, s->name, s->arena, s->ds, out);
  struct mapping m = {s, ir->ctx, find_lines(s->arena, buf_text(&s->out), s->out.len),
                      find_lines(s->arena, s->text, s->len)};
  map_diags(&m, first);
  if (st)
    return st;
  struct fit f = {s, ST_OK};
  mlirOperationWalk(mlirModuleGetOperation(*out), map_op, &m, MlirWalkPreOrder);
  mlirOperationWalk(mlirModuleGetOperation(*out), check_op, &f, MlirWalkPreOrder);
  if (f.st)
    mlirModuleDestroy(*out);
  return f.st;
}

bool nisa_is_text(const char *text, size_t len) {
  size_t n = strlen(NISA_TEXT_MARKER);
  return len >= n && !memcmp(text, NISA_TEXT_MARKER, n) && (len == n || text[n] == '\n' || text[n] == '\r');
}

enum status nisa_parse(struct ir *ir, const char *text, size_t len, const char *name, struct arena *a, struct diags *ds,
                       MlirModule *out) {
  struct nisa_source s = {.name = name, .text = text, .len = len, .arena = a, .ds = ds};

  if (len > TEXT_MAX) {
    diag_add(ds, DS_ERROR, DG_IR_INVALID, NULL, "the text is larger than %d MiB", TEXT_MAX >> 20);
    return ST_LIMIT;
  }
  buf_init(&s.out, GENERIC_MAX);
  enum status st = rewrite(&s);
  if (!st && (st = buf_status(&s.out)) != ST_OK)
    diag_add(ds, DS_ERROR, DG_IR_INVALID, NULL, "the text is too long in MLIR's generic form");
  if (!st)
    st = parse_generic(ir, &s, out);
  buf_clear(&s.out);
  return st;
}
