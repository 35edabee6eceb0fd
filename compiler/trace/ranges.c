/* ranges: from running Python frames to places in the user's source.
 *
 * CPython 3.11 keeps, for every instruction, the line and UTF-8 byte columns of the expression it was compiled from
 * (PyCode_Addr2Location).  A place is that range of the innermost frame of the user's file, with the chain of calls
 * outside it; frames of other files (our shims, NumPy's Python parts) are left out.  Places are built once and found
 * again by (code object, instruction, caller), so that an operation in a loop costs a hash look-up per frame.
 */
#include "trace/tracer.h"

#include <string.h>

enum { CHAIN_MAX = 64 }; /* frames kept of one chain: the innermost ones, which are the ones that help */

struct range_entry {
  const void *code; /* identity only; the code objects outlive the job's module */
  int lasti;
  const struct src_loc *caller, *loc;
};

static void split_lines(struct ranges *r, const char *source, size_t len) {
  const char *text = arena_strndup(r->a, source, len);
  int n = 1;
  for (size_t i = 0; i < len; i++)
    n += text[i] == '\n' || (text[i] == '\r' && text[i + 1] != '\n');
  r->lines = arena_new_array(r->a, const char *, (size_t)n + 1);
  r->n_lines = n;
  n = 0;
  r->lines[n++] = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text; /* Python drops the mark, columns too */
  for (size_t i = 0; i < len; i++)
    if (text[i] == '\n' || (text[i] == '\r' && text[i + 1] != '\n'))
      r->lines[n++] = text + i + 1;
  r->lines[n] = text + len;
}

void ranges_init(struct ranges *r, struct arena *a, PyObject *filename, const char *source, size_t len) {
  *r = (struct ranges){.a = a};
  r->filename = Py_NewRef(filename);
  const char *name = PyUnicode_AsUTF8(filename);
  PyErr_Clear();
  r->file = arena_strdup(a, name ? name : "kernel.py");
  split_lines(r, source ? source : "", source ? len : 0);
  r->table_size = 256;
  r->table = arena_new_array(a, struct range_entry *, r->table_size);
}

void ranges_clear(struct ranges *r) {
  Py_CLEAR(r->filename);
  r->code_seen = NULL;
}

/* 1-based column in code points of the byte offset `byte` of line `line`. */
static int column(const struct ranges *r, int line, int byte) {
  if (byte < 0 || line < 1 || line > r->n_lines)
    return byte < 0 ? 1 : byte + 1;
  const char *p = r->lines[line - 1], *end = r->lines[line];
  int col = 1;
  for (const char *stop = p + byte; p < stop && p < end; p++)
    col += (*p & 0xc0) != 0x80;
  return col;
}

static const struct src_loc *make_loc(struct ranges *r, int line, int col, int end_line, int end_col, const char *func,
                                      const struct src_loc *caller) {
  struct src_loc *loc = arena_new(r->a, struct src_loc);
  *loc = (struct src_loc){.range = {r->file, line, col, end_line, end_col}, .func = func, .caller = caller};
  return loc;
}

const struct src_loc *ranges_exact(struct ranges *r, int line, int col, int end_line, int end_col) {
  if (line < 1)
    return NULL;
  if (col < 1)
    col = 1;
  if (end_line < line || (end_line == line && end_col <= col)) {
    end_line = line;
    end_col = col + 1;
  }
  return make_loc(r, line, col, end_line, end_col, NULL, NULL);
}

/* ---- headers of statements ------------------------------------------------------------------------------- */

/* Past the string that begins at p. */
static const char *skip_string(const char *p, const char *end) {
  char quote = *p;
  bool triple = end - p >= 3 && p[1] == quote && p[2] == quote;
  for (p += triple ? 3 : 1; p < end; p++) {
    if (*p == '\\' && p + 1 < end)
      p++;
    else if (*p == quote && !triple)
      return p + 1;
    else if (*p == quote && end - p >= 3 && p[1] == quote && p[2] == quote)
      return p + 3;
  }
  return end;
}

/* The colon that ends the header of the statement at p, or NULL.  *in: behind its first ` in `, where it has one. */
static const char *header_end(const struct ranges *r, const char *p, const char **in) {
  const char *end = r->lines[r->n_lines];
  for (int depth = 0; p < end;) {
    if (*p == '"' || *p == '\'') {
      p = skip_string(p, end);
      continue;
    }
    if (*p == '#')
      while (p < end && *p != '\n')
        p++;
    else if (strchr("([{", *p))
      depth++;
    else if (strchr(")]}", *p))
      depth--;
    else if (*p == ':' && depth == 0)
      return p;
    else if (in && !*in && depth == 0 && end - p > 4 && strncmp(p, " in ", 4) == 0)
      *in = p + 4 + strspn(p + 4, " ");
    p += p < end;
  }
  return NULL;
}

/* Line and byte column of a place in the text at or after line `line`. */
static void place_of(const struct ranges *r, const char *p, int *line, int *byte) {
  while (*line < r->n_lines && r->lines[*line] <= p)
    (*line)++;
  *byte = (int)(p - r->lines[*line - 1]);
}

/* CPython gives a `for` statement's whole text to the instructions that iterate; what iterates is behind `in`. */
static void narrow_for(const struct ranges *r, int *line, int *col, int *end_line, int *end_col) {
  if (*line > r->n_lines || *col < 0 || r->lines[*line - 1] + *col >= r->lines[*line])
    return;
  const char *p = r->lines[*line - 1] + *col, *in = NULL;
  if (strncmp(p, "async ", 6) == 0)
    p += 6;
  const char *colon = strncmp(p, "for ", 4) == 0 ? header_end(r, p, &in) : NULL;
  if (!colon || !in || in >= colon)
    return;
  while (colon > in && strchr(" \t", colon[-1]))
    colon--;
  place_of(r, in, line, col);
  *end_line = *line;
  place_of(r, colon, end_line, end_col);
}

/* ---- frames ---------------------------------------------------------------------------------------------- */

static bool is_user_code(struct ranges *r, PyCodeObject *code) {
  if (r->code_seen == (PyObject *)code)
    return r->code_is_user;
  if (!r->filename)
    return false;
  bool yes = code->co_filename == r->filename;
  if (!yes && PyUnicode_GET_LENGTH(code->co_filename) == PyUnicode_GET_LENGTH(r->filename))
    yes = PyUnicode_Compare(code->co_filename, r->filename) == 0;
  r->code_seen = (PyObject *)code;
  r->code_is_user = yes;
  return yes;
}

static size_t entry_hash(const void *code, int lasti, const struct src_loc *caller) {
  uint64_t h = (uintptr_t)code * 0x9e3779b97f4a7c15u ^ (uintptr_t)caller * 0xc2b2ae3d27d4eb4fu ^ (uint64_t)lasti;
  h ^= h >> 29;
  h *= 0xbf58476d1ce4e5b9u;
  return (size_t)(h ^ h >> 32);
}

/* The slot of an entry: the entry itself or the empty place for it. */
static struct range_entry **find_slot(struct range_entry **table, size_t size, const void *code, int lasti,
                                      const struct src_loc *caller) {
  size_t i = entry_hash(code, lasti, caller) & (size - 1);
  while (table[i] && (table[i]->code != code || table[i]->lasti != lasti || table[i]->caller != caller))
    i = (i + 1) & (size - 1);
  return &table[i];
}

static void grow(struct ranges *r) {
  size_t size = r->table_size * 2;
  struct range_entry **table = arena_new_array(r->a, struct range_entry *, size);
  for (size_t i = 0; i < r->table_size; i++)
    if (r->table[i])
      *find_slot(table, size, r->table[i]->code, r->table[i]->lasti, r->table[i]->caller) = r->table[i];
  r->table = table;
  r->table_size = size;
}

static bool is_iteration(PyCodeObject *code, int lasti) {
  enum { GET_ITER = 68, FOR_ITER = 93 }; /* CPython 3.11 */
  PyObject *bytes = lasti >= 0 ? PyCode_GetCode(code) : NULL;
  int op = bytes && lasti < PyBytes_GET_SIZE(bytes) ? (unsigned char)PyBytes_AS_STRING(bytes)[lasti] : 0;
  Py_XDECREF(bytes);
  PyErr_Clear();
  return op == GET_ITER || op == FOR_ITER;
}

const struct src_loc *ranges_code(struct ranges *r, PyCodeObject *code, int lasti, const struct src_loc *caller) {
  if (!is_user_code(r, code))
    return NULL;
  struct range_entry **slot = find_slot(r->table, r->table_size, code, lasti, caller);
  if (*slot)
    return (*slot)->loc;
  int line = 0, col = 0, end_line = 0, end_col = 0;
  if (!PyCode_Addr2Location(code, lasti, &line, &col, &end_line, &end_col) || line < 1) {
    line = end_line = code->co_firstlineno;
    col = end_col = 0;
  }
  if (is_iteration(code, lasti))
    narrow_for(r, &line, &col, &end_line, &end_col);
  const char *func = PyUnicode_AsUTF8(code->co_qualname);
  PyErr_Clear();
  struct range_entry *e = arena_new(r->a, struct range_entry);
  *e = (struct range_entry){code, lasti, caller, NULL};
  int first = column(r, line, col), last = column(r, end_line, end_col);
  if (end_line == line && last <= first)
    last = first + 1;
  e->loc = make_loc(r, line, first, end_line, last, func ? arena_strdup(r->a, func) : NULL, caller);
  *slot = e;
  if (++r->n_entries * 2 > r->table_size)
    grow(r);
  return e->loc;
}

const struct src_loc *ranges_here(struct ranges *r, PyFrameObject *base) {
  struct {
    PyCodeObject *code; /* kept alive by its running frame */
    int lasti;
  } chain[CHAIN_MAX];
  int n = 0;
  PyFrameObject *f = PyThreadState_GetFrame(PyThreadState_Get());
  while (f && f != base && n < CHAIN_MAX) {
    PyCodeObject *code = PyFrame_GetCode(f);
    if (is_user_code(r, code)) {
      chain[n].code = code;
      chain[n++].lasti = PyFrame_GetLasti(f);
    }
    Py_DECREF(code);
    PyFrameObject *back = PyFrame_GetBack(f);
    Py_DECREF(f);
    f = back;
  }
  Py_XDECREF(f);
  const struct src_loc *loc = NULL;
  while (n-- > 0)
    loc = ranges_code(r, chain[n].code, chain[n].lasti, loc);
  return loc;
}

const struct src_loc *ranges_traceback(struct ranges *r, PyObject *traceback) {
  const struct src_loc *loc = NULL;
  int depth = 0;
  for (PyTracebackObject *t = (PyTracebackObject *)traceback; t; t = t->tb_next) {
    PyCodeObject *code = PyFrame_GetCode(t->tb_frame);
    if (depth >= CHAIN_MAX) /* endless recursion: keep the chain short, from here on */
      depth = 0, loc = NULL;
    const struct src_loc *next = ranges_code(r, code, t->tb_lasti, loc);
    if (next)
      loc = next, depth++;
    Py_DECREF(code);
  }
  return loc;
}

/* The first line at or after `line` that begins with def (decorators come first): its text, or NULL. */
static const char *find_def(const struct ranges *r, int *line) {
  for (; *line >= 1 && *line <= r->n_lines; (*line)++) {
    const char *p = r->lines[*line - 1], *start = p + strspn(p, " \t");
    if (strncmp(start, "def ", 4) == 0 || strncmp(start, "async def ", 10) == 0)
      return start;
  }
  return NULL;
}

/* The place of n bytes at p, which lie on one line at or after `line`. */
static const struct src_loc *text_loc(struct ranges *r, int line, const char *p, size_t n, const char *func) {
  int byte = 0;
  place_of(r, p, &line, &byte);
  return make_loc(r, line, column(r, line, byte), line, column(r, line, byte + (int)n), func, NULL);
}

const struct src_loc *ranges_def(struct ranges *r, int line, const char *func) {
  int first = line, byte = 0;
  const char *start = find_def(r, &line);
  if (!start)
    return first >= 1 && first <= r->n_lines ? make_loc(r, first, 1, first, 2, func, NULL) : NULL;
  const char *colon = header_end(r, start, NULL);
  int end_line = line;
  place_of(r, colon ? colon : start + 3, &end_line, &byte);
  return make_loc(r, line, column(r, line, (int)(start - r->lines[line - 1])), end_line, column(r, end_line, byte),
                  func, NULL);
}

static size_t word_length(const char *p, const char *end) {
  const char *q = p;
  while (q < end && (*q == '_' || (*q >= '0' && *q <= '9') || ((*q | 32) >= 'a' && (*q | 32) <= 'z') || (*q & 0x80)))
    q++;
  return (size_t)(q - p);
}

const struct src_loc *ranges_param(struct ranges *r, int line, const char *name, const char *func) {
  const char *start = find_def(r, &line), *end = start ? header_end(r, start, NULL) : NULL;
  const char *p = end ? memchr(start, '(', (size_t)(end - start)) : NULL;
  bool fresh = false; /* behind the opening bracket or a comma: a parameter's name comes next */
  for (int depth = 0; p && p < end;) {
    size_t n = word_length(p, end);
    if (n) {
      if (fresh && strlen(name) == n && memcmp(p, name, n) == 0)
        return text_loc(r, line, p, n, func);
      fresh = false;
      p += n;
    } else if (*p == '"' || *p == '\'') {
      p = skip_string(p, end);
    } else if (*p == '#') {
      p += strcspn(p, "\n");
    } else {
      depth += strchr("([{", *p) ? 1 : strchr(")]}", *p) ? -1 : 0;
      fresh = fresh || (depth == 1 && strchr("(,", *p));
      p++;
    }
  }
  return NULL;
}
