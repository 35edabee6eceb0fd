/* A link's preview: what the picture says, taken from the stored document and the frames of its result. */
#include <stdlib.h>

#include "api/snippet_view.h"
#include "driver/frame_scan.h"
#include "preview/preview.h"

/* Of the first kernel, whose stages come first. */
static bool read_frame(void *user, const char *json, size_t len) {
  struct preview *p = user;
  struct frame f, stage, check;
  if (frame_scan(json, len, &f, NULL))
    return false;
  if (f.kind == FRAME_END)
    p->is_refused = !frame_has_string(&f, "status", "ok", 2);
  if (f.kind == FRAME_PROFILE && frame_int(&f, "kernel") == 0) {
    const struct frame_member *m = frame_get(&f, "profile"), *total;
    struct frame profile;
    if (m && !frame_scan_object(m->value, m->value_len, &profile, NULL) && (total = frame_get(&profile, "total_us")))
      p->simulated_us = strtod(total->value, NULL);
  }
  if (f.kind != FRAME_STAGE || frame_int(&f, "kernel") != 0)
    return true;
  const struct frame_member *m = frame_get(&f, "stage");
  if (frame_scan_object(m->value, m->value_len, &stage, NULL))
    return true;
  p->stages++;
  m = frame_get(&stage, "check");
  if (m && !frame_scan_object(m->value, m->value_len, &check, NULL)) {
    p->checked += !frame_has_string(&check, "status", "skipped", 7);
    p->failed += frame_has_string(&check, "status", "fail", 4);
  }
  return true;
}

static void describe(struct preview *p, const json_t *doc) {
  const json_t *request = json_object_get(doc, "request"), *source = json_object_get(request, "source");
  const char *language = json_string_value(json_object_get(request, "language"));
  p->target = json_string_value(json_object_get(request, "target"));
  p->is_python = !language || !strcmp(language, "nkipy") || !strcmp(language, "nki");
  if (json_is_string(source)) {
    p->source = json_string_value(source);
    p->source_len = json_string_length(source);
  }
}

void snippet_get_preview(struct request *rq, struct db *db) {
  struct snippet_state *s = rq->state;
  struct preview p = {0};
  struct buf title;
  struct work *w = snippet_load_work(s, db);
  if (!w)
    return;
  json_t *doc = json_loadb(buf_text(&s->snippet.doc), s->snippet.doc.len, JSON_ALLOW_NUL, NULL);
  buf_init(&title, s->answer.max);
  snippet_put_title(&title, doc);
  p.title = buf_text(&title);
  p.title_len = title.len;
  describe(&p, doc);
  bool ok = work_each_frame(w, read_frame, &p);
  if (!ok || buf_status(&title) || preview_png(&p, &s->answer))
    s->st = fail(&s->err, ST_NOMEM, "snippet");
  buf_clear(&title);
  json_decref(doc);
  work_unref(w);
  snippet_keep(rq, &s->answer);
}
