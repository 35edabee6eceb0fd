/* tell_stage: what `stages`, `read`, `find` and `diff` tell about the stages of results. */
#include "mcp/tools.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "diff/diff.h"
#include "driver/job.h"
#include "driver/result_stage.h"

enum { LINES_READ = 100, LINES_FOUND = 50 };

static bool is_full(const struct mcp_ask *ask) {
  return ask->text->len > MCP_TEXT_ENOUGH;
}

static json_t *line_string(const char *line, size_t len) {
  struct buf b;
  buf_init(&b, 2 * MCP_LINE_SHOWN);
  mcp_put_line(&b, line, len);
  json_t *s = json_stringn(buf_text(&b), b.len ? b.len - 1 : 0);
  buf_clear(&b);
  return s;
}

/* ---- stages ------------------------------------------------------------------------------------------------------ */

enum status mcp_tell_stages(const struct mcp_ask *ask, struct error *err) {
  const int kernel = mcp_arg_kernel(ask, err);
  if (kernel < 0)
    return ST_INPUT;
  const json_t *k = json_array_get(json_object_get(ask->result, "kernels"), (size_t)kernel), *s;
  json_t *list = json_array();
  size_t i;
  buf_printf(ask->text, "kernel %s; a stage that its pass left as it was has no *\n", mcp_text(k, "name"));
  json_array_foreach(json_object_get(k, "stages"), i, s) {
    const bool is_changed = json_is_true(json_object_get(s, "changed"));
    const json_t *check = json_object_get(s, "check");
    const long long ops = mcp_count_operations(s);
    buf_printf(ask->text, "%3zu %c %s (%s, %lld operations)%s%s\n", i, is_changed ? '*' : ' ', mcp_text(s, "name"),
               mcp_text(s, "dialect"), ops, check ? ": " : "", mcp_text(check, "status"));
    json_t *o = json_pack("{s:i,s:s,s:s,s:s,s:b,s:I}", "index", (int)i, "name", mcp_text(s, "name"), "phase",
                          mcp_text(s, "phase"), "dialect", mcp_text(s, "dialect"), "changed", is_changed, "operations",
                          (json_int_t)ops);
    if (check)
      json_object_set(o, "check", (json_t *)check);
    json_array_append_new(list, o);
  }
  json_object_set_new(ask->out, "kernel", json_string(mcp_text(k, "name")));
  json_object_set_new(ask->out, "stages", list);
  return ST_OK;
}

/* ---- read and find ----------------------------------------------------------------------------------------------- */

enum { PLACE_SIZE = JOB_FILE_NAME_MAX + 48 };

/* Writes where a line comes from, "kernel.py:12:5"; returns it, or NULL: from nowhere in the source. */
static const char *place_of(const struct mcp_ask *ask, const json_t *stage, size_t line, char to[PLACE_SIZE]) {
  const json_t *at = json_array_get(json_object_get(stage, "lines"), line);
  const char *file;
  const json_t *p = result_place(ask->result, at, 0, &file);
  if (!p)
    return NULL;
  snprintf(to, PLACE_SIZE, "%.*s:%lld:%lld", JOB_FILE_NAME_MAX, file,
           (long long)json_integer_value(json_array_get(p, 1)), (long long)json_integer_value(json_array_get(p, 2)));
  return to;
}

/* Tells one line; n from 0. */
static void tell_line(const struct mcp_ask *ask, json_t *list, const char *text, size_t len, size_t n,
                      const char *place, const char *stage) {
  json_t *o = json_pack("{s:I,s:o}", "line", (json_int_t)n + 1, "text", line_string(text, len));
  if (stage) {
    buf_printf(ask->text, "%s:", stage);
    json_object_set_new(o, "stage", json_string(stage));
  }
  buf_printf(ask->text, "%zu: ", n + 1);
  if (place) {
    buf_printf(ask->text, "[%s] ", place);
    json_object_set_new(o, "place", json_string(place));
  }
  mcp_put_line(ask->text, text, len);
  json_array_append_new(list, o);
}

/* Moves *at to the next line; false after the last. */
static bool next_line(const char **at, size_t len) {
  *at += len;
  if (**at != '\n')
    return false;
  ++*at;
  return **at != 0;
}

enum status mcp_tell_read(const struct mcp_ask *ask, struct error *err) {
  const int kernel = mcp_arg_kernel(ask, err);
  const json_t *stage = kernel < 0 ? NULL : mcp_arg_stage(ask, ask->result, kernel, "stage", err);
  if (!stage)
    return ST_INPUT;
  const size_t from = (size_t)mcp_arg_int(ask, "from_line", 1) - 1;
  const size_t most = (size_t)mcp_arg_int(ask, "lines", LINES_READ);
  const char *at = mcp_text(stage, "text");
  char place[PLACE_SIZE];
  json_t *list = json_array();
  size_t n = 0, told = 0;
  bool more = *at != 0;
  for (; more; n++) {
    const size_t len = strcspn(at, "\n");
    if (n >= from && told < most && !is_full(ask)) {
      tell_line(ask, list, at, len, n, place_of(ask, stage, n, place), NULL);
      told++;
    }
    more = next_line(&at, len);
  }
  if (from >= n && from)
    buf_printf(ask->text, "The stage has %zu lines.\n", n);
  else if (from + told < n)
    buf_printf(ask->text, "… the stage has %zu lines; go on with from_line %zu\n", n, from + told + 1);
  json_object_set_new(ask->out, "stage", json_string(mcp_text(stage, "name")));
  json_object_set_new(ask->out, "total_lines", json_integer((json_int_t)n));
  json_object_set_new(ask->out, "lines", list);
  return ST_OK;
}

/* True if the place begins with the text and does not go on with a digit: "kernel.py:1" is not line 12. */
static bool is_place(const char *place, const char *text) {
  const size_t n = strlen(text);
  return place && !strncmp(place, text, n) && (place[n] < '0' || place[n] > '9') && strchr(text, ':');
}

static bool has_text(const char *line, size_t len, const char *text) {
  return memmem(line, len, text, strlen(text)) != NULL;
}

struct search {
  const char *text;
  size_t most, found;
  json_t *list;
};

static void find_in(const struct mcp_ask *ask, struct search *s, const json_t *stage, const char *key) {
  const char *at = mcp_text(stage, "text");
  bool more = *at != 0;
  for (size_t n = 0; more; n++) {
    const size_t len = strcspn(at, "\n");
    char room[PLACE_SIZE];
    const char *place = place_of(ask, stage, n, room);
    if (has_text(at, len, s->text) || is_place(place, s->text)) {
      if (json_array_size(s->list) < s->most && !is_full(ask))
        tell_line(ask, s->list, at, len, n, place, key);
      s->found++;
    }
    more = next_line(&at, len);
  }
}

/* The key by which a stage is found again: its name, with its number among those of the name. */
static const char *key_of(const struct mcp_ask *ask, const json_t *stages, size_t i) {
  const char *name = mcp_text(json_array_get(stages, i), "name");
  int nth = 1;
  for (size_t k = 0; k < i; k++)
    nth += !strcmp(mcp_text(json_array_get(stages, k), "name"), name);
  return nth > 1 ? arena_printf(ask->arena, "%s:%d", name, nth) : name;
}

enum status mcp_tell_find(const struct mcp_ask *ask, struct error *err) {
  const int kernel = mcp_arg_kernel(ask, err);
  const json_t *stages, *only = NULL, *s;
  struct search search = {.text = mcp_arg(ask, "text"), .most = (size_t)mcp_arg_int(ask, "most", LINES_FOUND)};
  size_t i;
  if (kernel < 0)
    return ST_INPUT;
  if (mcp_arg(ask, "stage") && !(only = mcp_arg_stage(ask, ask->result, kernel, "stage", err)))
    return ST_INPUT;
  stages = json_object_get(json_array_get(json_object_get(ask->result, "kernels"), (size_t)kernel), "stages");
  search.list = json_array();
  json_array_foreach(stages, i, s) if (!only || s == only) find_in(ask, &search, s, key_of(ask, stages, i));
  if (search.found > json_array_size(search.list))
    buf_printf(ask->text, "… and %zu more lines\n", search.found - json_array_size(search.list));
  if (!search.found)
    buf_puts(ask->text, "No line has it.\n");
  json_object_set_new(ask->out, "found", json_integer((json_int_t)search.found));
  json_object_set_new(ask->out, "lines", search.list);
  return ST_OK;
}

/* ---- diff -------------------------------------------------------------------------------------------------------- */

/* Where each line of a text begins; one more than there are lines. */
static const char **index_lines(struct arena *a, const char *text, int n) {
  const char **at = arena_try_array(a, (size_t)n + 1, sizeof *at);
  for (int i = 0; at && i <= n; i++) {
    at[i] = text;
    text += strcspn(text, "\n");
    text += *text != 0;
  }
  return at;
}

static void put_side(const struct mcp_ask *ask, char sign, const char *const *lines, int first, int n) {
  for (int i = 0; i < n && !is_full(ask); i++) {
    const char *line = lines[first - 1 + i];
    buf_putc(ask->text, sign);
    mcp_put_line(ask->text, line, strcspn(line, "\n"));
  }
}

static enum status tell_diff(const struct mcp_ask *ask, const struct diff *d, const char *from, const char *to,
                             struct error *err) {
  const char **a = index_lines(ask->arena, from, d->lines_from), **b = index_lines(ask->arena, to, d->lines_to);
  int told = 0;
  if (!a || !b)
    return fail(err, ST_NOMEM, "diff");
  buf_printf(ask->text, "%d lines changed, %d removed, %d added\n", d->n_changed, d->n_removed, d->n_added);
  for (; told < d->n && !is_full(ask); told++) {
    const struct diff_hunk *h = &d->hunks[told];
    buf_printf(ask->text, "@@ -%d,%d +%d,%d @@\n", h->from, h->n_from, h->to, h->n_to);
    put_side(ask, '-', a, h->from, h->n_from);
    put_side(ask, '+', b, h->to, h->n_to);
  }
  if (is_full(ask))
    buf_printf(ask->text, "… cut here, in hunk %d of %d: read the lines of the others\n", told, d->n);
  json_t *hunks = json_array();
  for (int i = 0; i < told; i++)
    json_array_append_new(hunks, json_pack("{s:i,s:i,s:i,s:i}", "from_line", d->hunks[i].from, "removed",
                                           d->hunks[i].n_from, "to_line", d->hunks[i].to, "added", d->hunks[i].n_to));
  json_object_set_new(ask->out, "changed", json_integer(d->n_changed));
  json_object_set_new(ask->out, "removed", json_integer(d->n_removed));
  json_object_set_new(ask->out, "added", json_integer(d->n_added));
  json_object_set_new(ask->out, "total_hunks", json_integer(d->n));
  json_object_set_new(ask->out, "hunks", hunks);
  return ST_OK;
}

enum status mcp_tell_diff(const struct mcp_ask *ask, struct error *err) {
  const json_t *other = ask->with ? ask->with : ask->result;
  const int kernel = mcp_arg_kernel(ask, err);
  const json_t *x = kernel < 0 ? NULL : mcp_arg_stage(ask, ask->result, kernel, "from", err);
  const json_t *y = x ? mcp_arg_stage(ask, other, kernel, mcp_arg(ask, "to") ? "to" : "from", err) : NULL;
  struct diff d = {0};
  if (!y)
    return ST_INPUT;
  const char *from = mcp_text(x, "text"), *to = mcp_text(y, "text");
  enum status st = diff_make((struct diff_text){from, strlen(from)}, (struct diff_text){to, strlen(to)}, &d, err);
  if (!st)
    st = tell_diff(ask, &d, from, to, err);
  diff_clear(&d);
  return st;
}
