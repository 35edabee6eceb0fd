/* precheck: refuses a hostile source before CPython parses it.
 *
 * CPython's parser and compiler recurse on nested brackets and blocks.  Beyond their own limits they raise a
 * MemoryError or RecursionError without a place.  This scan over the text finds the place where the nesting exceeds
 * TRACE_NEST_MAX.  It recognises brackets, indentation, strings and comments, but no other syntax.
 */
#include <string.h>

#include "base/utf8.h"
#include "trace/program.h"

struct scan {
  const char *p, *end;
  int line, brackets;
  const char *line_start;
};

/* Returns the line of the first byte that is a NUL or not valid UTF-8; 0 if there is none. */
static int bad_byte(const char *source, size_t len, bool *is_nul) {
  int line = 1;
  const char *p = source, *end = p + len;
  while (p < end) {
    size_t n = utf8_char(p, (size_t)(end - p));
    if (n == 0 || *p == 0) {
      *is_nul = n != 0;
      return line;
    }
    line += *p == '\n';
    p += n;
  }
  return 0;
}

static void skip_string(struct scan *s) {
  char quote = *s->p;
  bool triple = s->end - s->p >= 3 && s->p[1] == quote && s->p[2] == quote;
  s->p += triple ? 3 : 1;
  while (s->p < s->end) {
    if (*s->p == '\\' && s->p + 1 < s->end) {
      s->p++;
    } else if (*s->p == quote && (!triple || (s->end - s->p >= 3 && s->p[1] == quote && s->p[2] == quote))) {
      s->p += triple ? 3 : 1;
      return;
    }
    if (*s->p == '\n') {
      if (!triple && s->p[-1] != '\\')
        return; /* CPython will refuse the unterminated string */
      s->line++;
      s->line_start = s->p + 1;
    }
    s->p++;
  }
}

/* Returns the depth of blocks at a line that begins a statement, based on its indentation. */
static int block_depth(struct scan *s, int indents[TRACE_NEST_MAX + 2], int depth) {
  int width = 0;
  const char *p = s->p;
  for (; p < s->end && (*p == ' ' || *p == '\t'); p++)
    width = *p == '\t' ? (width / 8 + 1) * 8 : width + 1;
  s->p = p;
  if (p == s->end || *p == '\n' || *p == '\r' || *p == '#')
    return depth;
  while (depth > 0 && depth <= TRACE_NEST_MAX && indents[depth] > width)
    depth--;
  if (depth <= TRACE_NEST_MAX && width > indents[depth])
    indents[++depth] = width;
  return depth;
}

/* Returns the line where the nesting exceeds the limit, and sets the column; 0 if it does not. */
static int too_deep(const char *source, size_t len, int *col) {
  struct scan s = {.p = source, .end = source + len, .line = 1, .line_start = source};
  int indents[TRACE_NEST_MAX + 2] = {0}, depth = 0;
  bool at_start = true;
  while (s.p < s.end) {
    if (at_start && s.brackets == 0)
      depth = block_depth(&s, indents, depth);
    at_start = false;
    if (s.brackets + depth > TRACE_NEST_MAX) {
      *col = (int)(s.p - s.line_start) + 1;
      return s.line;
    }
    if (s.p == s.end)
      break;
    switch (*s.p) {
    case '"':
    case '\'':
      skip_string(&s);
      continue;
    case '#':
      while (s.p < s.end && *s.p != '\n')
        s.p++;
      continue;
    case '(':
    case '[':
    case '{':
      s.brackets++;
      break;
    case ')':
    case ']':
    case '}':
      s.brackets -= s.brackets > 0;
      break;
    case '\n':
      s.line++;
      s.line_start = s.p + 1;
      at_start = s.p == source || s.p[-1] != '\\';
      break;
    default:
      break;
    }
    s.p++;
  }
  return 0;
}

static const struct src_loc *place(struct arena *a, const char *file, int line, int col) {
  struct src_loc *loc = arena_new(a, struct src_loc);
  loc->range = (struct src_range){arena_strdup(a, file), line, col, line, col + 1};
  return loc;
}

static bool precheck_file(const struct trace_file *f, struct diags *ds, struct arena *a, enum status *st) {
  bool is_nul = false;
  int col = 1, line;
  if ((line = bad_byte(f->source, f->source_len, &is_nul))) {
    diag_add(ds, DS_ERROR, DG_PYTHON_SYNTAX, place(a, f->name, line, 1),
             is_nul ? "the source contains a NUL byte" : "the source is not valid UTF-8");
    *st = ST_INPUT;
  } else if ((line = too_deep(f->source, f->source_len, &col))) {
    diag_add(ds, DS_ERROR, DG_NESTING_TOO_DEEP, place(a, f->name, line, col),
             "brackets and blocks are nested more than %d deep", TRACE_NEST_MAX);
    *st = ST_LIMIT;
  }
  return *st == ST_OK;
}

bool precheck_source(const struct trace_request *rq, struct diags *ds, struct arena *a, enum status *st) {
  const struct trace_file main = {rq->filename, rq->source, rq->source_len};
  size_t total = rq->source_len;
  bool ok = true;
  *st = ST_OK;
  for (int i = 0; i < rq->n_files; i++)
    total += rq->files[i].source_len;
  if (total > TRACE_SOURCE_MAX) {
    diag_add(ds, DS_ERROR, DG_SOURCE_TOO_LARGE, NULL, "the source has %zu bytes; the limit is %d", total,
             TRACE_SOURCE_MAX);
    *st = ST_LIMIT;
    return false;
  }
  ok = precheck_file(&main, ds, a, st);
  for (int i = 0; ok && i < rq->n_files; i++)
    ok = precheck_file(&rq->files[i], ds, a, st);
  return ok;
}
