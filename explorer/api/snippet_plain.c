/* A link's HTML without a script: its sources, what the compiler said, and links to the text of each stage.  Every text
 * of the user's is escaped, and the answer's policy lets no script run. */
#include <string.h>
#include <time.h>

#include "api/html.h"
#include "api/snippet_view.h"
#include "driver/frame_scan.h"

struct plain {
  struct buf *out;
  const char *id;
  int kernel; /* whose stages are listed; -1: none yet */
  bool has_messages;
};

/* ---- the sources ------------------------------------------------------------------------------------------------- */

static void put_file(struct buf *b, const char *name, const json_t *source) {
  buf_puts(b, "<h2>");
  html_put(b, name);
  buf_puts(b, "</h2>\n<pre>");
  if (json_is_string(source))
    html_put_text(b, json_string_value(source), json_string_length(source));
  else
    buf_puts(b, "(a serialized module)");
  buf_puts(b, "</pre>\n");
}

static void put_sources(struct buf *b, const json_t *request) {
  const char *name = json_string_value(json_object_get(request, "filename"));
  size_t i;
  json_t *file;
  put_file(b, name ? name : "kernel", json_object_get(request, "source"));
  json_array_foreach(json_object_get(request, "files"), i, file) {
    const char *own = json_string_value(json_object_get(file, "name"));
    put_file(b, own ? own : "?", json_object_get(file, "source"));
  }
}

/* ---- the frames -------------------------------------------------------------------------------------------------- */

/* Appends the text of a member that is a string, escaped. */
static void put_string(struct buf *b, const struct frame_member *m) {
  json_t *v = m ? json_loadb(m->value, m->value_len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;
  if (json_is_string(v))
    html_put_text(b, json_string_value(v), json_string_length(v));
  json_decref(v);
}

/* Moves on to a kernel: ends the list of the one before and begins its own; -1: no more kernels. */
static void move_to(struct plain *p, int kernel, const struct frame_member *name) {
  if (p->kernel >= 0)
    buf_puts(p->out, "</ol>\n");
  p->kernel = kernel;
  if (kernel < 0)
    return;
  buf_puts(p->out, "<h2>Stages of ");
  put_string(p->out, name);
  buf_puts(p->out, "</h2>\n<ol start=\"0\">\n");
}

static void put_stage(struct plain *p, int kernel, const struct frame_member *stage) {
  struct frame s;
  if (frame_scan_object(stage->value, stage->value_len, &s, NULL))
    return;
  const struct frame_member *changed = frame_get(&s, "changed");
  buf_printf(p->out, "<li><a href=\"/z/%s/raw?stage=%ld&amp;kernel=%d\">", p->id, frame_int(&s, "index"), kernel);
  put_string(p->out, frame_get(&s, "name"));
  buf_puts(p->out, "</a> <small>");
  put_string(p->out, frame_get(&s, "dialect"));
  buf_puts(p->out, changed && *changed->value == 'f' ? ", unchanged" : "");
  buf_puts(p->out, "</small></li>\n");
}

static bool put_frame(void *user, const char *json, size_t len) {
  struct plain *p = user;
  struct frame f;
  if (frame_scan(json, len, &f, NULL))
    return false;
  const int kernel = (int)frame_int(&f, "kernel");
  if (f.kind == FRAME_KERNEL)
    move_to(p, kernel, frame_get(&f, "name"));
  else if (f.kind == FRAME_STAGE)
    put_stage(p, kernel, frame_get(&f, "stage"));
  return true;
}

static bool put_message(void *user, const char *json, size_t len) {
  struct plain *p = user;
  struct frame f, d, range;
  if (frame_scan(json, len, &f, NULL) || f.kind != FRAME_DIAGNOSTIC)
    return true;
  const struct frame_member *m = frame_get(&f, "diagnostic");
  if (frame_scan_object(m->value, m->value_len, &d, NULL))
    return true;
  if (!p->has_messages)
    buf_puts(p->out, "<h2>Messages</h2>\n<ul>\n");
  p->has_messages = true;
  buf_puts(p->out, "<li><strong>");
  put_string(p->out, frame_get(&d, "severity"));
  buf_puts(p->out, "</strong>");
  m = frame_get(&d, "range");
  if (m && !frame_scan_object(m->value, m->value_len, &range, NULL))
    buf_printf(p->out, " in line %ld", frame_int(&range, "line"));
  buf_puts(p->out, ": ");
  put_string(p->out, frame_get(&d, "message"));
  buf_putc(p->out, ' ');
  put_string(p->out, frame_get(&d, "hint"));
  buf_puts(p->out, "</li>\n");
  return true;
}

/* ---- the page ---------------------------------------------------------------------------------------------------- */

static void put_top(struct buf *b, const struct snippet_state *s, const json_t *doc) {
  char date[40];
  struct tm tm;
  time_t t = (time_t)(s->snippet.created_ms / 1000);
  strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&t, &tm));
  buf_puts(b, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
              "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
              "<meta name=\"color-scheme\" content=\"light dark\">\n");
  snippet_put_head(b, doc);
  buf_printf(b,
             "\n<link rel=\"icon\" href=\"/favicon.svg\" type=\"image/svg+xml\">\n"
             "<link rel=\"stylesheet\" href=\"/plain.css\">\n</head>\n<body>\n<main>\n"
             "<h1>Neuron Kernel Explorer</h1>\n<p>Stored on %s. <a href=\"/z/%s\">Open it in the explorer</a>, or take "
             "<a href=\"/z/%s/raw\">its source</a>, <a href=\"/z/%s/page.html\">one HTML file with everything</a> or "
             "<a href=\"/z/%s/all.tar.gz\">all files</a>.</p>\n",
             date, s->id, s->id, s->id, s->id);
  if (s->report_url) {
    struct buf url;
    buf_init(&url, REPORT_URL_MAX);
    snippet_put_report_url(&url, s);
    buf_puts(b, "<p><a href=\"");
    html_put(b, buf_text(&url));
    buf_puts(b, "\">Report this link</a> to whoever runs this server.</p>\n");
    buf_clear(&url);
  }
}

void snippet_get_plain(struct request *rq, struct db *db) {
  struct snippet_state *s = rq->state;
  struct buf *b = &s->answer;
  struct plain p = {.out = b, .id = s->id, .kernel = -1};
  struct work *w = snippet_load_work(s, db);
  if (!w)
    return;
  json_t *doc = json_loadb(buf_text(&s->snippet.doc), s->snippet.doc.len, JSON_ALLOW_NUL, NULL);
  put_top(b, s, doc);
  put_sources(b, json_object_get(doc, "request"));
  bool ok = work_each_frame(w, put_message, &p);
  if (p.has_messages)
    buf_puts(b, "</ul>\n");
  ok = ok && work_each_frame(w, put_frame, &p);
  move_to(&p, -1, NULL);
  buf_puts(b, "</main>\n</body>\n</html>\n");
  if (!ok || buf_status(b))
    s->st = fail(&s->err, ST_NOMEM, "snippet");
  json_decref(doc);
  work_unref(w);
}
