/* read_places: the places in HLO text.  Sections before the computations number files, functions, locations and frames; the
 * metadata of an instruction names a frame, or a file and a line.
 */
#include "hlo/read_places.h"

#include <string.h>

#include "base/array.h"

enum { LOC_FILE, LOC_FUNCTION, LOC_LINE, LOC_END_LINE, LOC_COLUMN, LOC_END_COLUMN, LOC_COUNT };
enum { FRAME_LOCATION, FRAME_PARENT, FRAME_COUNT };

/* ---- sections ------------------------------------------------------------------------------------------------------ */

static bool digit_is_next(struct hlo_cursor *c) {
  hlo_cur_space(c);
  return c->at < c->end && *c->at >= '0' && *c->at <= '9';
}

static bool read_texts(struct hlo_cursor *c, struct hlo_text_strings *t) {
  while (digit_is_next(c)) {
    int64_t number;
    const char *text;
    if (!hlo_cur_int(c, &number) || !hlo_cur_string(c, &text))
      return false;
    array_push(c->tmp, t, text);
  }
  return true;
}

/* 3 {key=1 key=2 …}: the values of the given keys in their order */
static bool read_record(struct hlo_cursor *c, int n, const char *const *keys, struct hlo_text_record *out) {
  int64_t number;
  memset(out, -1, sizeof *out);
  if (!hlo_cur_int(c, &number) || !hlo_cur_need(c, '{'))
    return false;
  while (!hlo_cur_take(c, '}')) {
    struct hlo_span key;
    int64_t value;
    if (!hlo_cur_word(c, &key, "a name") || !hlo_cur_need(c, '=') || !hlo_cur_int(c, &value))
      return false;
    for (int k = 0; k < n; k++)
      if (hlo_span_is(key, keys[k]))
        out->v[k] = value;
    hlo_cur_take(c, ',');
  }
  return true;
}

static bool read_records(struct hlo_cursor *c, struct hlo_text_records *t, int n, const char *const *keys) {
  struct hlo_text_record x;
  while (digit_is_next(c)) {
    if (!read_record(c, n, keys, &x))
      return false;
    array_push(c->tmp, t, x);
  }
  return true;
}

bool hlo_text_section(struct hlo_cursor *c, struct hlo_text_places *x, bool *found) {
  static const char *const of_location[LOC_COUNT] = {"file_name_id", "function_name_id", "line",
                                                     "end_line",     "column",           "end_column"};
  static const char *const of_frame[FRAME_COUNT] = {"file_location_id", "parent_frame_id"};
  *found = true;
  if (hlo_cur_take_word(c, "FileNames"))
    return read_texts(c, &x->files);
  if (hlo_cur_take_word(c, "FunctionNames"))
    return read_texts(c, &x->functions);
  if (hlo_cur_take_word(c, "FileLocations"))
    return read_records(c, &x->locations, LOC_COUNT, of_location);
  if (hlo_cur_take_word(c, "StackFrames"))
    return read_records(c, &x->frames, FRAME_COUNT, of_frame);
  *found = false;
  return true;
}

/* ---- the graph's side ---------------------------------------------------------------------------------------------- */

static const char *text_number(const struct hlo_text_strings *t, int64_t number) {
  return number >= 1 && number <= t->n ? t->v[number - 1] : NULL;
}

/* A line or column, 0 ("unknown") for a number that cannot be one. */
static int as_line(int64_t v) {
  return v > 0 && v < 1 << 30 ? (int)v : 0;
}

/* In the text, parent_frame_id is one more than the parent's number, and 1 where there is no parent.  A frame that names a
 * later one as its parent loses it, so that chains end. */
void hlo_text_link_frames(struct hlo_cursor *c, struct hlo_text_places *x) {
  x->frame_locs = arena_new_array(c->tmp, const struct src_loc *, (size_t)x->frames.n);
  for (int k = 0; k < x->frames.n; k++) {
    const int64_t location = x->frames.v[k].v[FRAME_LOCATION], parent = x->frames.v[k].v[FRAME_PARENT] - 1;
    if (location < 1 || location > x->locations.n)
      continue;
    const int64_t *l = x->locations.v[location - 1].v;
    const char *file = text_number(&x->files, l[LOC_FILE]);
    struct src_loc *p = arena_new(c->a, struct src_loc);
    p->range = (struct src_range){file ? file : "?", as_line(l[LOC_LINE]), as_line(l[LOC_COLUMN]),
                                  as_line(l[LOC_END_LINE]), as_line(l[LOC_END_COLUMN])};
    p->func = text_number(&x->functions, l[LOC_FUNCTION]);
    if (parent >= 1 && parent <= k)
      p->caller = x->frame_locs[parent - 1];
    x->frame_locs[k] = p;
  }
}

/* One key=value of metadata into range or *frame; others are skipped. */
static bool read_metadata_entry(struct hlo_cursor *c, struct src_range *range, int64_t *frame) {
  struct hlo_span key;
  const char *text;
  int64_t v;
  if (!hlo_cur_word(c, &key, "a name") || !hlo_cur_need(c, '='))
    return false;
  if (hlo_cur_peek(c, '"')) {
    if (!hlo_cur_string(c, &text))
      return false;
    if (hlo_span_is(key, "source_file"))
      range->file = text;
    return true;
  }
  if (!digit_is_next(c)) {
    hlo_cur_skip_item(c);
    return true;
  }
  if (!hlo_cur_int(c, &v))
    return false;
  if (hlo_span_is(key, "source_line"))
    range->line = as_line(v);
  else if (hlo_span_is(key, "source_end_line"))
    range->end_line = as_line(v);
  else if (hlo_span_is(key, "source_column"))
    range->col = as_line(v);
  else if (hlo_span_is(key, "source_end_column"))
    range->end_col = as_line(v);
  else if (hlo_span_is(key, "stack_frame_id"))
    *frame = v;
  return true;
}

bool hlo_text_metadata(struct hlo_cursor *outer, const struct hlo_text_places *x, struct hlo_span value,
                       const struct src_loc **out) {
  struct hlo_cursor c = hlo_cur_within(outer, value);
  struct src_range range = {0};
  int64_t frame = 0;
  *out = NULL;
  bool ok = hlo_cur_need(&c, '{');
  while (ok && !hlo_cur_take(&c, '}'))
    ok = read_metadata_entry(&c, &range, &frame);
  outer->is_bad |= c.is_bad;
  if (frame >= 1 && frame <= x->frames.n && x->frame_locs[frame - 1]) {
    *out = x->frame_locs[frame - 1];
  } else if (range.file && range.line) {
    struct src_loc *p = arena_new(outer->a, struct src_loc);
    p->range = range;
    *out = p;
  }
  return ok;
}
