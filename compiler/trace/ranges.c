/* ranges: finds places in the user's source.  CPython has the places of instructions; its syntax tree has those of
 * functions, parameters and loops.
 *
 * CPython stores the range of the expression of every instruction (bytecode.h).  A place has the chain of calls that
 * led to it, without frames of other files (this project's Python modules, NumPy's).  Places are cached by code object,
 * instruction and caller, so an operation in a loop costs one look-up per frame.
 *
 * The syntax tree (python/nkx/places.py) is made when it is first needed; a function's header is parsed alone if that is
 * possible.  Its columns, like CPython's, are bytes of UTF-8 and count from 0; those of a src_loc are code points and count from 1.
 */
#include "trace/ranges.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"
#include "trace/counting.h"

enum {
  CHAIN_MAX = 64,       /* frames of one chain; the innermost frames are kept, because they help most */
  CHAIN_LOOPS_MAX = 128 /* running loops of one chain; the inner frames' loops are kept */
};

struct range_entry {
  const void *code; /* only compared, never dereferenced, because the code may have been freed */
  int lasti;
  const void *loop; /* the place of the innermost running loop of the frame, compared like the code; NULL: none */
  const struct src_loc *caller, *loc;
};

struct range_round {
  const struct src_loc *place, *loc; /* the place without rounds, and in one round */
};

static bool ends_line(const char *p) {
  return *p == '\n' || (*p == '\r' && p[1] != '\n');
}

static void split_lines(struct arena *a, struct range_file *f, const char *source, size_t len) {
  const char *text = arena_strndup(a, source, len);
  int n = 1;
  for (size_t i = 0; i < len; i++)
    n += ends_line(text + i);
  f->lines = arena_new_array(a, const char *, (size_t)n + 1);
  f->n_lines = n;
  n = 0;
  f->lines[n++] = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text; /* columns do not count a byte order mark */
  for (size_t i = 0; i < len; i++)
    if (ends_line(text + i))
      f->lines[n++] = text + i + 1;
  f->lines[n] = text + len;
  assert(n == f->n_lines);
}

void ranges_init(struct ranges *r, struct arena *a) {
  *r = (struct ranges){.a = a, .index = {.arena = a}, .by_round = {.arena = a}};
}

void ranges_add_file(struct ranges *r, PyObject *filename, const char *source, size_t len) {
  const char *name = PyUnicode_AsUTF8(filename);
  PyErr_Clear();
  struct range_file f = {.filename = Py_NewRef(filename), .name = arena_strdup(r->a, name ? name : "kernel.py")};
  split_lines(r->a, &f, source ? source : "", source ? len : 0);
  array_push(r->a, &r->files, f);
  r->code_seen = NULL;
}

void ranges_clear(struct ranges *r) {
  for (int i = 0; i < r->files.n; i++) {
    Py_CLEAR(r->files.v[i].filename);
    Py_CLEAR(r->files.v[i].tree);
    Py_CLEAR(r->files.v[i].header);
    Py_CLEAR(r->files.v[i].header_of);
  }
  r->files.n = 0;
  r->code_seen = NULL;
  Py_CLEAR(r->others);
}

void ranges_find_files(struct ranges *r) {
  r->others = PySet_New(NULL);
  PyErr_Clear();
}

/* Returns the text of a file of the running program, a new reference; None for a file of a library.  NULL with an
 * exception. */
static PyObject *text_of(PyObject *filename) {
  PyObject *package = PyImport_ImportModule("nkx.package");
  PyObject *text = package ? PyObject_CallMethod(package, "source_of", "O", filename) : NULL;
  Py_XDECREF(package);
  return text;
}

/* Adds the code's file if it belongs to the running program.  Returns its number, or -1. */
static int find_file(struct ranges *r, PyCodeObject *code) {
  PyObject *type, *exc, *tb;
  if (PySet_Contains(r->others, bytecode_filename(code)) > 0)
    return -1;
  PyErr_Fetch(&type, &exc, &tb);
  Py_ssize_t len = 0;
  PyObject *text = text_of(bytecode_filename(code));
  const char *utf8 = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &len) : NULL;
  if (utf8)
    ranges_add_file(r, bytecode_filename(code), utf8, (size_t)len);
  else
    PySet_Add(r->others, bytecode_filename(code));
  Py_XDECREF(text);
  PyErr_Restore(type, exc, tb); /* discards an exception raised above; the file is then not known */
  return utf8 ? r->files.n - 1 : -1;
}

/* Returns the user's file that the code was compiled from, or NULL. */
static struct range_file *file_of(struct ranges *r, PyCodeObject *code) {
  if (r->code_seen != code) {
    r->code_seen = code;
    r->file_seen = r->files.n - 1;
    while (r->file_seen >= 0 && !bytecode_is_from(code, r->files.v[r->file_seen].filename))
      r->file_seen--;
    if (r->file_seen < 0 && r->others)
      r->file_seen = find_file(r, code);
    r->code_seen = code; /* also when a file was added */
  }
  return r->file_seen >= 0 ? &r->files.v[r->file_seen] : NULL;
}

bool ranges_has_code(struct ranges *r, PyCodeObject *code) {
  return file_of(r, code);
}

/* Returns the column of the byte offset `byte` of a line, in code points from 1. */
static int column(const struct range_file *f, int line, int byte) {
  if (byte < 0 || line < 1 || line > f->n_lines)
    return byte < 0 ? 1 : byte + 1;
  const char *p = f->lines[line - 1], *end = f->lines[line];
  int col = 1;
  for (const char *stop = p + byte; p < stop && p < end; p++)
    col += !utf8_is_continuation(*p);
  return col;
}

static struct src_loc *make_loc(struct arena *a, const struct range_file *f, struct bytecode_place p, const char *func,
                                const struct src_loc *caller) {
  struct src_loc *loc = arena_new(a, struct src_loc);
  const int first = column(f, p.line, p.col), last = column(f, p.end_line, p.end_col);
  *loc = (struct src_loc){.range = {f->name, p.line, first, p.end_line, last}, .func = func, .caller = caller};
  if (p.end_line == p.line && last <= first)
    loc->range.end_col = first + 1;
  assert(loc->range.line >= 1 && loc->range.col >= 1);
  return loc;
}

const struct src_loc *ranges_exact(struct ranges *r, PyObject *filename, int line, int col, int end_line, int end_col) {
  int i = r->files.n - 1;
  while (i >= 0 && PyUnicode_Compare(filename, r->files.v[i].filename) != 0)
    i--;
  if (line < 1 || i < 0)
    return NULL;
  col = col < 1 ? 1 : col;
  if (end_line < line || (end_line == line && end_col <= col)) {
    end_line = line;
    end_col = col + 1;
  }
  struct src_loc *loc = arena_new(r->a, struct src_loc);
  loc->range = (struct src_range){r->files.v[i].name, line, col, end_line, end_col};
  return loc;
}

/* ---- the syntax tree --------------------------------------------------------------------------------------------- */

static PyObject *syntax_tree(struct range_file *f) {
  if (!f->tree) {
    const char *text = f->lines[0], *end = f->lines[f->n_lines];
    PyObject *module = PyImport_ImportModule("nkx.places");
    f->tree = module ? PyObject_CallMethod(module, "source", "s#", text, (Py_ssize_t)(end - text)) : NULL;
    Py_XDECREF(module);
  }
  return f->tree;
}

/* Returns the tree of a function's header alone, borrowed: the lines before the body's first instruction.  In a worker a
 * tree of the whole file costs a twentieth of a small job.  Falls back to the whole file. */
static PyObject *header_tree(struct range_file *f, PyCodeObject *code) {
  const int first = bytecode_first_line(code), body = bytecode_body_line(code);
  if (f->tree || first < 1 || body <= first || body > f->n_lines)
    return syntax_tree(f);
  if (f->header_of != code) {
    const char *text = f->lines[first - 1], *end = f->lines[body - 1];
    const int indent = (int)strspn(end, " \t\f");
    PyObject *module = PyImport_ImportModule("nkx.places");
    Py_XSETREF(f->header, module ? PyObject_CallMethod(module, "header", "s#s#iO", text, (Py_ssize_t)(end - text), end,
                                                       (Py_ssize_t)indent, first, code)
                                 : NULL);
    Py_XDECREF(module);
    Py_XSETREF(f->header_of, (PyCodeObject *)Py_NewRef((PyObject *)code));
  }
  return f->header && f->header != Py_None ? f->header : syntax_tree(f);
}

/* Calls a method of nkx.places.Source with a tuple of arguments that is built from `format`: of the whole file, or, if
 * `code` is not NULL, of that function's header.  Returns false if it finds no place.  A pending exception is
 * preserved. */
static bool ask_tree(struct range_file *file, PyCodeObject *code, struct bytecode_place *out, const char *method,
                     const char *format, ...) {
  PyObject *type, *exc, *tb;
  va_list ap;
  PyErr_Fetch(&type, &exc, &tb);
  va_start(ap, format);
  PyObject *args = Py_VaBuildValue(format, ap), *tree = code ? header_tree(file, code) : syntax_tree(file);
  va_end(ap);
  PyObject *f = tree && args ? PyObject_GetAttrString(tree, method) : NULL;
  PyObject *place = f ? PyObject_CallObject(f, args) : NULL;
  const bool ok = place && place != Py_None &&
                  PyArg_ParseTuple(place, "iiii", &out->line, &out->col, &out->end_line, &out->end_col);
  Py_XDECREF(place);
  Py_XDECREF(f);
  Py_XDECREF(args);
  PyErr_Restore(type, exc, tb); /* discards an exception raised above; no place is then known */
  return ok;
}

/* CPython may give the range of a whole `for` statement to the instructions that iterate.  Narrows such a range to the
 * expression that is iterated over. */
static void narrow_for(struct range_file *f, struct bytecode_place *p) {
  struct bytecode_place iterated;
  if (ask_tree(f, NULL, &iterated, "iterated", "(ii)", p->line, p->col))
    *p = iterated;
}

/* Extends the place of a header's last part to the colon that ends the header.  Only brackets, commas and comments can
 * come before the colon. */
static void extend_to_colon(const struct range_file *f, struct bytecode_place *p) {
  if (p->end_line < 1 || p->end_line > f->n_lines)
    return;
  const char *end = f->lines[f->n_lines], *at = f->lines[p->end_line - 1] + p->end_col;
  while (at < end && *at != ':')
    at += *at == '#' ? strcspn(at, "\r\n") : 1;
  if (at >= end)
    return;
  while (p->end_line < f->n_lines && f->lines[p->end_line] <= at)
    p->end_line++;
  p->end_col = (int)(at - f->lines[p->end_line - 1]);
}

const struct src_loc *ranges_function(struct ranges *r, PyCodeObject *code, const char *func) {
  struct range_file *f = file_of(r, code);
  if (!f)
    return NULL;
  struct bytecode_place p;
  if (ask_tree(f, code, &p, "header", "(O)", code)) {
    extend_to_colon(f, &p);
    return make_loc(r->a, f, p, func, NULL);
  }
  const int line = bytecode_first_line(code);
  return line < 1 ? NULL : make_loc(r->a, f, (struct bytecode_place){line, 0, line, 0}, func, NULL);
}

const struct src_loc *ranges_param(struct ranges *r, PyCodeObject *code, const char *name, const char *func) {
  struct range_file *f = file_of(r, code);
  if (!f)
    return NULL;
  struct bytecode_place p;
  return ask_tree(f, code, &p, "param", "(Os)", code, name) ? make_loc(r->a, f, p, func, NULL) : NULL;
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

/* The running loops of one frame, the outermost first. */
struct frame_loops {
  int n;
  const struct counting_loop *v;
};

static const void *innermost(struct frame_loops loops) {
  return loops.n ? loops.v[loops.n - 1].place : NULL;
}

/* Makes the range of a loop's header. */
static struct src_range loop_range(const struct range_file *f, PyObject *place) {
  int at[4];
  assert(PyTuple_GET_SIZE(place) == 4);
  for (int i = 0; i < 4; i++)
    at[i] = (int)PyLong_AsLong(PyTuple_GET_ITEM(place, i));
  return (struct src_range){f->name, at[0], column(f, at[0], at[1]), at[2], column(f, at[2], at[3])};
}

static uint32_t entry_hash(const struct range_entry *e) {
  uint64_t h = hash_mix(hash_mix(0, (uintptr_t)e->code), (uintptr_t)e->caller);
  return (uint32_t)hash_mix(hash_mix(h, (uint64_t)e->lasti), (uintptr_t)e->loop);
}

/* Returns the place of one instruction in running loops. */
static const struct src_loc *code_in_loops(struct ranges *r, PyCodeObject *code, int lasti, struct frame_loops loops,
                                           const struct src_loc *caller) {
  struct range_file *file = file_of(r, code);
  if (!file)
    return NULL;
  struct range_entry at = {.code = code, .lasti = lasti, .loop = innermost(loops), .caller = caller};
  const uint32_t hash = entry_hash(&at);
  for (struct index_probe p = index_probe(&r->index, hash); index_next(&p);) {
    const struct range_entry *e = &r->known.v[p.entry];
    if (e->code == code && e->lasti == lasti && e->loop == at.loop && e->caller == caller)
      return e->loc;
  }
  struct bytecode_place place = bytecode_place(code, lasti);
  if (bytecode_is_iteration(code, lasti))
    narrow_for(file, &place);
  const char *func = bytecode_qualified_name(code);
  struct src_loc *loc = make_loc(r->a, file, place, func ? arena_strdup(r->a, func) : NULL, caller);
  if (loops.n) {
    struct src_range *v = arena_new_array(r->a, struct src_range, (size_t)loops.n);
    for (int i = 0; i < loops.n; i++)
      v[i] = loop_range(file, loops.v[i].place);
    loc->loops = v;
    loc->n_loops = loops.n;
  }
  at.loc = loc;
  index_add(&r->index, hash, r->known.n);
  array_push(r->a, &r->known, at);
  return loc;
}

const struct src_loc *ranges_code(struct ranges *r, PyCodeObject *code, int lasti, const struct src_loc *caller) {
  return code_in_loops(r, code, lasti, (struct frame_loops){0}, caller);
}

/* The frames of a chain of calls, and their running loops. */
struct frame_chain {
  struct {
    PyCodeObject *code; /* kept alive by its running frame */
    int lasti;
    struct frame_loops loops;
  } v[CHAIN_MAX]; /* the innermost first */
  int n;
  struct counting_loop loops[CHAIN_LOOPS_MAX];
  int n_loops;
};

static struct frame_loops loops_of(struct frame_chain *c, const PyFrameObject *f) {
  if (!counting_any())
    return (struct frame_loops){0};
  struct counting_loop *v = c->loops + c->n_loops;
  const int left = CHAIN_LOOPS_MAX - c->n_loops, n = counting_loops(f, v, left);
  const struct frame_loops loops = {n < left ? n : left, v};
  c->n_loops += loops.n;
  return loops;
}

static void read_chain(struct ranges *r, PyFrameObject *base, struct frame_chain *c) {
  PyFrameObject *f = PyThreadState_GetFrame(PyThreadState_Get());
  c->n = c->n_loops = 0;
  while (f && f != base && c->n < CHAIN_MAX) {
    PyCodeObject *code = PyFrame_GetCode(f);
    if (ranges_has_code(r, code)) {
      c->v[c->n].code = code;
      c->v[c->n].lasti = PyFrame_GetLasti(f);
      c->v[c->n++].loops = loops_of(c, f);
    }
    Py_DECREF(code);
    PyFrameObject *back = PyFrame_GetBack(f);
    Py_DECREF(f);
    f = back;
  }
  Py_XDECREF(f);
}

static const struct src_loc *place_of_chain(struct ranges *r, const struct frame_chain *c) {
  const struct src_loc *loc = NULL;
  for (int i = c->n - 1; i >= 0; i--)
    loc = code_in_loops(r, c->v[i].code, c->v[i].lasti, c->v[i].loops, loc);
  return loc;
}

const struct src_loc *ranges_here(struct ranges *r, PyFrameObject *base) {
  struct frame_chain c;
  read_chain(r, base, &c);
  return place_of_chain(r, &c);
}

static bool is_round(const struct rounds *rounds, const int *at, int depth) {
  for (int i = 0; i < depth; i++)
    if (rounds->v[i].first != at[i])
      return false;
  return true;
}

/* Returns the place in one round, which has `depth` numbers. */
static const struct src_loc *in_round(struct ranges *r, const struct src_loc *place, const int *at, int depth) {
  const uint32_t hash = hash_bytes(at, (size_t)depth * sizeof *at) ^ hash_pointer(place);
  for (struct index_probe p = index_probe(&r->by_round, hash); index_next(&p);) {
    const struct range_round *e = &r->rounds.v[p.entry];
    if (e->place == place && is_round(e->loc->rounds, at, depth))
      return e->loc;
  }
  struct src_loc *loc = arena_dup(r->a, place, sizeof *place);
  loc->rounds = rounds_one(r->a, at, depth);
  index_add(&r->by_round, hash, r->rounds.n);
  array_push(r->a, &r->rounds, (struct range_round){place, loc});
  return loc;
}

const struct src_loc *ranges_here_in_round(struct ranges *r, PyFrameObject *base) {
  struct frame_chain c;
  int at[CHAIN_LOOPS_MAX], depth = 0;
  read_chain(r, base, &c);
  const struct src_loc *place = place_of_chain(r, &c);
  for (int i = c.n - 1; i >= 0; i--)
    for (int k = 0; k < c.v[i].loops.n; k++)
      at[depth++] = c.v[i].loops.v[k].round;
  return depth ? in_round(r, place, at, depth) : place;
}

const struct src_loc *ranges_traceback(struct ranges *r, PyObject *traceback) {
  const struct src_loc *loc = NULL;
  int depth = 0;
  for (PyTracebackObject *t = (PyTracebackObject *)traceback; t; t = t->tb_next) {
    PyCodeObject *code = PyFrame_GetCode(t->tb_frame);
    if (depth >= CHAIN_MAX) { /* probably an endless recursion; the innermost frames are kept */
      depth = 0;
      loc = NULL;
    }
    const struct src_loc *next = ranges_code(r, code, t->tb_lasti, loc);
    if (next) {
      loc = next;
      depth++;
    }
    Py_DECREF(code);
  }
  return loc;
}
