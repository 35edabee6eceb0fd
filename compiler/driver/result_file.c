/* result_file: see the header. */
#include "driver/result_file.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

static const size_t frames_max = (size_t)4 << 30; /* in bytes; far more than a useful file needs */

void result_file_init(struct result_file *r) {
  *r = (struct result_file){0};
  buf_init(&r->frames, frames_max);
}

void result_file_clear(struct result_file *r) {
  gather_clear(&r->gather);
  buf_clear(&r->frames);
}

enum status result_file_add(struct result_file *r, const char *json, size_t len, struct error *err) {
  struct frame f;
  return frame_scan(json, len, &f, err) ? ST_BUG : result_file_keep(r, &f, json, len, err);
}

/* Keeps a frame for the result object.  An artifact is kept without its data, which are in the dump directory. */
enum status result_file_keep(struct result_file *r, const struct frame *f, const char *json, size_t len,
                             struct error *err) {
  const size_t at = r->frames.len;
  const struct frame_member *artifact = frame_get(f, "artifact");
  if (f->kind == FRAME_ARTIFACT)
    buf_printf(&r->frames, "{\"frame\":\"artifact\",\"artifact\":%.*s}\n", (int)artifact->value_len, artifact->value);
  else if (!buf_append(&r->frames, json, len))
    buf_putc(&r->frames, '\n');
  if (buf_status(&r->frames))
    return fail(err, buf_status(&r->frames), "the result is too large");
  enum status st = gather_add(&r->gather, f, at, r->frames.len - at - 1, err);
  return st == ST_INPUT ? ST_BUG : st;
}

static const char *kept_frame(void *user, size_t at, size_t len) {
  const struct result_file *r = user;
  assert(at + len <= r->frames.len);
  (void)len;
  return buf_text(&r->frames) + at;
}

enum status result_file_parse(const struct result_file *r, json_t **out, struct error *err) {
  const struct gather_text text = {kept_frame, (void *)r};
  struct buf b;
  buf_init(&b, frames_max);
  gather_result(&r->gather, &text, &b, NULL, NULL);
  *out = buf_status(&b) ? NULL : json_loadb(buf_text(&b), b.len, 0, NULL);
  const enum status st =
      *out ? ST_OK : fail(err, buf_status(&b) ? buf_status(&b) : ST_NOMEM, "the result is too large");
  buf_clear(&b);
  return st;
}

/* Writes the result while it is made, because it is as long as all frames.  Errors are recorded in the stream. */
static void drain(void *user, struct buf *out) {
  enum { PIECE = 1 << 20 };
  FILE *f = user;
  if (out->len < PIECE)
    return;
  fwrite(out->data, 1, out->len - 1, f);
  out->data[0] = out->data[out->len - 1];
  out->len = 1;
}

enum status result_file_refuse_path(const char *path, struct error *err) {
  const bool is_disk = errno == ENOSPC || errno == EDQUOT || errno == EIO || errno == EMFILE || errno == ENFILE;
  return fail(err, is_disk ? ST_IO : ST_INPUT, "cannot write %.160s: %m", path);
}

enum status result_file_write(const struct result_file *r, const char *path, struct error *err) {
  const struct gather_text text = {kept_frame, (void *)r};
  FILE *f = strcmp(path, "-") ? fopen(path, "we") : stdout;
  struct buf out;
  if (!f)
    return result_file_refuse_path(path, err);
  buf_init(&out, frames_max);
  gather_result(&r->gather, &text, &out, drain, f);
  buf_putc(&out, '\n');
  enum status st = buf_status(&out);
  bool ok = fwrite(buf_text(&out), 1, out.len, f) == out.len && !ferror(f);
  ok &= (f == stdout ? fflush(f) : fclose(f)) == 0;
  buf_clear(&out);
  if (st)
    return fail(err, st, "the result is too large");
  return ok ? ST_OK : fail(err, ST_IO, "%.160s: %m", path);
}
