/* What the server makes of a worker's frames, in all forms in which it sends them: each is JSON, whatever the worker sent. */
#include "api/diffs.h"
#include "api/whys.h"
#include "ce/internal.h"
#include "fuzz_frames.h"
#include "job/export.h"
#include "work/delta.h"

enum { ROOM = 256 << 20, STAGES = 4, LINES = 3 };

static bool allows_twins;

static void check_sent(struct buf *b, bool was_sent) {
  FUZZ_CHECK(buf_status(b) == ST_OK);
  if (was_sent)
    check_json(buf_text(b), b->len, allows_twins);
  buf_clear(b);
}

static void check_stages(struct work *w, struct buf *b) {
  const char *type;
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < STAGES; i++) {
      const struct gather_stage which = {.kernel = k, .nth = i};
      const struct diff_query q = {which, {.kernel = k, .nth = i + 1}};
      enum diff_found found;
      struct error err;
      check_sent(b, work_stage(w, &which, b));
      export_stage_text(w, &which, b); /* text, not JSON */
      buf_clear(b);
      check_sent(b, diff_build(w, w, &q, b, &found, &err) == ST_OK && found == DIFF_FOUND);
    }
  check_sent(b, export_file(w, "source-map.json", b, &type));
}

static void check_whys(struct work *w, struct buf *b) {
  for (int line = 1; line <= LINES; line++) {
    bool found;
    struct error err;
    enum status st = why_build(w, &(struct why_query){.stage = "0", .line = line}, b, &found, &err);
    check_sent(b, st == ST_OK && found);
  }
}

/* Compiler Explorer's answer, with all that a client can ask for. */
static void check_ce(struct work *w, struct buf *b) {
  for (int i = 0; i < 2; i++) {
    struct ce_ask q;
    ce_ask_init(&q);
    q.wants_pipeline = q.wants_ir = q.wants_remarks = q.has_numerics = q.has_run = true;
    q.args.check = q.args.simulate = true;
    q.executes = q.filters_ansi = i;
    json_t *reply = ce_reply(&q, w, false);
    char *text = json_dumps(reply, JSON_COMPACT); /* fails if a part of it is missing */
    FUZZ_CHECK(reply && text);
    check_json(text, strlen(text), false);
    ce_reply_text(reply, i, b);
    FUZZ_CHECK(buf_status(b) == ST_OK);
    buf_clear(b);
    free(text);
    json_decref(reply);
    ce_ask_clear(&q);
  }
}

/* Each stage as its difference from the first one, as to a client that has that. */
static void check_deltas(struct work *w, struct buf *b) {
  struct buf base, frame;
  size_t at = 0;
  bool at_end = false;
  buf_init(&base, ROOM);
  buf_init(&frame, ROOM);
  const bool has_base = work_stage(w, &(struct gather_stage){.kernel = 0, .nth = 0}, &base);
  while (has_base && work_read_frame(w, &at, ROOM, &frame, &at_end) && frame.len) {
    struct delta d;
    const size_t len = frame.len - 1; /* without its newline */
    check_json(buf_text(&frame), len, allows_twins);
    check_sent(b, delta_read(&d, buf_text(&frame), len) && delta_put(&d, buf_text(&base), base.len, b));
    buf_clear(&frame);
  }
  buf_clear(&frame);
  buf_clear(&base);
}

static void check_all(struct work *w) {
  struct buf b;
  buf_init(&b, ROOM);
  check_sent(&b, export_result(w, &b));
  check_sent(&b, work_sources(w, &b));
  check_sent(&b, export_comparison(w, w, &b));
  check_stages(w, &b);
  check_whys(w, &b);
  check_deltas(w, &b);
  check_ce(w, &b);
  FUZZ_CHECK(work_look(w, NULL, NULL) == WORK_ENDED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text;
  bool is_whole;
  struct work *w = worked(data, size, &text, &is_whole);
  allows_twins = !frames_have_no_twins(text, size);
  check_all(w);
  free(text);
  work_unref(w);
  return 0;
}
