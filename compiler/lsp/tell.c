/* tell: diagnostics, hovers and hints of a document. */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/rule.h"
#include "driver/result_stage.h"
#include "lsp/lsp.h"

enum { LINES_TOLD = 6, TEXT_MAX = 64 << 10 };

static const char *text_of(const json_t *o, const char *key) {
  const char *s = json_string_value(json_object_get(o, key));
  return s ? s : "";
}

static int int_of(const json_t *o, const char *key) {
  return (int)json_integer_value(json_object_get(o, key));
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

static bool is_before(struct place p, struct place q) {
  return p.line < q.line || (p.line == q.line && p.col < q.col);
}

bool span_has(const struct span *s, struct place p) {
  return !is_before(p, s->from) && !is_before(s->to, p);
}

struct span span_read(const json_t *place) {
  int v[5];
  for (size_t i = 0; i < 5; i++)
    v[i] = (int)json_integer_value(json_array_get(place, i));
  return (struct span){{v[1], v[2]}, {v[3], v[4]}};
}

static bool is_own(const struct document *d, const char *file) {
  return !strcmp(file, d->path);
}

bool lsp_own_span(const struct document *d, const json_t *holder, struct span *out) {
  const char *file;
  const json_t *place;
  for (size_t i = 0; (place = result_place(d->good.result, holder, i, &file)); i++)
    if (is_own(d, file)) {
      *out = span_read(place);
      return true;
    }
  return false;
}

json_t *lsp_present_range(const struct document *d, const struct span *s) {
  struct place from = s->from, to = s->to;
  return place_carry(d->good.text, d->text, &from) && place_carry(d->good.text, d->text, &to)
             ? range_write(d->text, from, to)
             : NULL;
}

/* ---- diagnostics ------------------------------------------------------------------------------------------------- */

/* A range of the document where the diagnostic belongs: its own, or that of the call that led to another file; its first line
 * otherwise. */
static json_t *range_of(const struct document *d, const json_t *diag) {
  const json_t *range = json_object_get(diag, "range"), *call;
  size_t i;
  if (!is_own(d, text_of(range, "file")))
    json_array_foreach(json_object_get(diag, "calls"), i, call) if (is_own(d, text_of(call, "file"))) {
      range = call;
      break;
    }
  struct place from = {1, 1}, to = {1, 1 << 28};
  if (range && is_own(d, text_of(range, "file"))) {
    from = (struct place){int_of(range, "line"), int_of(range, "col")};
    to = (struct place){int_of(range, "end_line"), int_of(range, "end_col")};
  }
  return range_write(d->text, from, to);
}

json_t *lsp_diagnostics(const struct document *d, const json_t *result) {
  json_t *list = json_array();
  const json_t *diag;
  size_t i;
  json_array_foreach(json_object_get(result, "diagnostics"), i, diag) {
    const char *severity = text_of(diag, "severity"), *hint = text_of(diag, "hint");
    json_array_append_new(list, json_pack("{s:o,s:i,s:s,s:s,s:o}", "range", range_of(d, diag), "severity",
                                          !strcmp(severity, "error")     ? 1
                                          : !strcmp(severity, "warning") ? 2
                                                                         : 3,
                                          "code", text_of(diag, "code"), "source", "nkx", "message",
                                          *hint ? json_sprintf("%s\n%s", text_of(diag, "message"), hint)
                                                : json_string(text_of(diag, "message"))));
  }
  return list;
}

/* ---- hover ------------------------------------------------------------------------------------------------------- */

/* True if span a is inside of b and not equal to it. */
static bool is_inner(const struct span *a, const struct span *b) {
  return span_has(b, a->from) && span_has(b, a->to) && (is_before(b->from, a->from) || is_before(a->to, b->to));
}

/* The smallest expression around a place of the good text that became something. */
static bool find_expression(const struct document *d, struct place p, struct span *out) {
  const json_t *place;
  bool found = false;
  size_t i;
  json_array_foreach(json_object_get(d->good.result, "places"), i, place) {
    const json_t *file =
        json_array_get(json_object_get(d->good.result, "files"), (size_t)json_integer_value(json_array_get(place, 0)));
    const struct span s = span_read(place);
    if (json_string_value(file) && is_own(d, json_string_value(file)) && span_has(&s, p) &&
        (!found || is_inner(&s, out))) {
      *out = s;
      found = true;
    }
  }
  return found;
}

/* True if the line comes from the expression. */
static bool comes_from(const struct document *d, const json_t *line, const struct span *e) {
  const char *file;
  const json_t *place;
  for (size_t i = 0; (place = result_place(d->good.result, line, i, &file)); i++) {
    const struct span s = span_read(place);
    if (is_own(d, file) && !memcmp(&s, e, sizeof s))
      return true;
  }
  return false;
}

/* Lines that compute nothing: buffers, constants and empty tensors. */
static bool is_setup(const char *text, size_t len) {
  static const char *const names[] = {"nisa.alloc ", "nisa.dealloc", "nisa.release", "arith.constant ",
                                      "tensor.empty("};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (memmem(text, len, names[i], strlen(names[i])))
      return true;
  return false;
}

/* Appends the lines of a stage that come from the expression and compute; false if there are none. */
static bool put_lines(const struct document *d, struct buf *b, const json_t *stage, const char *title,
                      const struct span *e) {
  const json_t *line;
  size_t i, n = 0, len;
  json_array_foreach(json_object_get(stage, "lines"), i, line) {
    if (!comes_from(d, line, e))
      continue;
    const char *text = result_line(stage, (int)i + 1, &len);
    if (is_setup(text, len))
      continue;
    if (!n)
      buf_printf(b, "**%s** (%s)\n```mlir\n", title, text_of(stage, "name"));
    if (n++ >= LINES_TOLD)
      continue;
    buf_append(b, text, len);
    buf_putc(b, '\n');
  }
  if (n > LINES_TOLD)
    buf_printf(b, "… and %zu more\n", n - LINES_TOLD);
  if (n)
    buf_puts(b, "```\n");
  return n;
}

/* What the simulated run says about the source line. */
static void put_cost(const struct document *d, struct buf *b, const json_t *kernel, int line) {
  const json_t *l, *busy;
  const char *engine;
  size_t i;
  json_array_foreach(json_object_get(json_object_get(kernel, "profile"), "lines"), i, l) {
    if (int_of(l, "line") != line || !is_own(d, text_of(l, "file")))
      continue;
    buf_printf(
        b, "**Cost** of line %d, simulated: %.3g µs of the critical path (%.0f %%), %d executions, %lld bytes moved",
        line, json_number_value(json_object_get(l, "critical_us")),
        100 * json_number_value(json_object_get(l, "share")), int_of(l, "executions"),
        (long long)json_integer_value(json_object_get(l, "bytes")));
    json_object_foreach(json_object_get(l, "busy_us"), engine, busy)
        buf_printf(b, "; %s %.3g µs", engine, json_number_value(busy));
    buf_puts(b, "\n");
  }
}

static bool put_kernel(const struct document *d, struct buf *b, const json_t *kernel, const struct span *e) {
  static const struct {
    const char *stage, *title;
  } told[] = {{"trace", "HLO"},
              {"nki-canonicalize", "Calls of nki.isa"},
              {"hlo-to-linalg", "linalg"},
              {"linalg-to-nisa", "NISA"},
              {"nki-to-nisa", "NISA"}};
  const json_t *stage;
  bool any = false;
  size_t i;
  json_array_foreach(json_object_get(kernel, "stages"), i,
                     stage) for (size_t k = 0; k < sizeof told / sizeof *told;
                                 k++) if (!strcmp(text_of(stage, "name"), told[k].stage)) any |=
      put_lines(d, b, stage, told[k].title, e);
  if (any)
    put_cost(d, b, kernel, e->from.line);
  return any;
}

json_t *lsp_hover(const struct document *d, const json_t *position) {
  struct place p = place_read(d->text, position);
  struct span e;
  const json_t *kernel;
  json_t *hover = NULL, *range;
  size_t i;
  struct buf b;
  if (!d->good.result || !place_carry(d->text, d->good.text, &p) || !find_expression(d, p, &e))
    return NULL;
  buf_init(&b, TEXT_MAX);
  json_array_foreach(json_object_get(d->good.result, "kernels"), i, kernel) if (put_kernel(d, &b, kernel, &e)) break;
  range = lsp_present_range(d, &e);
  if (b.len)
    hover = json_pack("{s:{s:s,s:s}}", "contents", "kind", "markdown", "value", buf_text(&b));
  if (hover && range)
    json_object_set(hover, "range", range);
  json_decref(range);
  buf_clear(&b);
  return hover;
}

/* ---- hints ------------------------------------------------------------------------------------------------------- */

static bool is_hinted(const json_t *remark) {
  const char *rule = text_of(remark, "rule");
  return !strcmp(rule, "tile-size") || !strcmp(rule, "value-memory");
}

/* True if the hint is none of those that were seen, which it then is. */
static bool is_new(json_t *seen, const struct span *s, const char *label) {
  json_t *key = json_sprintf("%d:%d %s", s->to.line, s->to.col, label);
  const char *text = json_string_value(key);
  const bool is = text && !json_object_get(seen, text);
  if (is)
    json_object_set_new(seen, text, json_true());
  json_decref(key);
  return is;
}

/* The fact behind a decision, what it costs, and what the first priced of the rejected choices would. */
static const char *tip_of(struct arena *a, const json_t *remark) {
  const struct rule_def *rule = rule_find(text_of(remark, "rule"));
  const char *tip = rule ? rule->because : "", *cost = text_of(remark, "cost");
  const json_t *x;
  size_t i;
  json_array_foreach(json_object_get(remark, "rejected"), i, x) if (*cost && *text_of(x, "cost")) return arena_printf(
      a, "%s\nthis: %s; instead %s: %s", tip, cost, text_of(x, "choice"), text_of(x, "cost"));
  return tip;
}

/* Adds the hint of a remark after its expression; one that many remarks give is added once. */
static void add_hint(json_t *list, json_t *seen, const struct document *d, const json_t *remark,
                     const struct span *within) {
  struct span s;
  struct arena a;
  if (!is_hinted(remark) || !lsp_own_span(d, remark, &s) || !is_new(seen, &s, text_of(remark, "text")))
    return;
  struct place end = s.to;
  arena_init(&a);
  if (place_carry(d->good.text, d->text, &end) && span_has(within, end))
    json_array_append_new(list, json_pack("{s:o,s:s,s:b,s:s}", "position", place_write(d->text, end), "label",
                                          text_of(remark, "text"), "paddingLeft", 1, "tooltip", tip_of(&a, remark)));
  arena_clear(&a);
}

json_t *lsp_hints(const struct document *d, const json_t *range) {
  const struct span within = {place_read(d->text, json_object_get(range, "start")),
                              place_read(d->text, json_object_get(range, "end"))};
  const json_t *kernel, *stage, *remark;
  json_t *list = json_array(), *seen = json_object();
  size_t i, k, m;
  json_array_foreach(json_object_get(d->good.result, "kernels"), i, kernel)
      json_array_foreach(json_object_get(kernel, "stages"), k, stage)
          json_array_foreach(json_object_get(stage, "remarks"), m, remark) add_hint(list, seen, d, remark, &within);
  json_decref(seen);
  return list;
}
