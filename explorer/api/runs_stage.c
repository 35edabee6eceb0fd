/* GET /api/v1/runs/ID/stage: the kernel as NKI, which the vendor's compiler printed, as one more stage (driver/vendor_stage.h). */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "api/runs_internal.h"
#include "driver/pipeline.h"
#include "driver/vendor_stage.h"

static const char nki_file[] = RUN_OUT "kernel.nki.py";

enum { ANSWER_MAX = 256 << 20 }; /* a stage of a file of RUN_FILE_MAX, with its maps */

static bool read_number(const json_t *o, const char *name, int *out) {
  const json_t *v = json_object_get(o, name);
  const json_int_t n = json_integer_value(v);
  *out = (int)n;
  return json_is_integer(v) && n >= 1 && n <= INT_MAX;
}

/* The file comes from the process that ran the kernel's Python, and may be anything: what is no place is left out. */
static void add_places(struct vendor_names *names, const json_t *all) {
  const char *name;
  const json_t *o;
  json_object_foreach((json_t *)all, name, o) {
    struct src_loc *loc = arena_new(names->arena, struct src_loc);
    const char *file = json_string_value(json_object_get(o, "file"));
    struct src_range *r = &loc->range;
    *loc = (struct src_loc){.range.file = file};
    if (file && read_number(o, "line", &r->line) && read_number(o, "col", &r->col) &&
        read_number(o, "end_line", &r->end_line) && read_number(o, "end_col", &r->end_col))
      vendor_names_add(names, name, loc);
  }
}

static void put(struct buf *out, const struct buf *text, const json_t *places) {
  struct vendor_names names;
  struct sources sources;
  struct arena a;
  const struct vendor_stage stage = {.text = buf_text(text), .len = text->len, .index = pipeline_hlo.n};
  const json_t *first = json_object_iter_value(json_object_iter((json_t *)places));
  const char *file = json_string_value(json_object_get(first, "file"));
  arena_init(&a);
  vendor_names_init(&names, &a);
  add_places(&names, places);
  sources_init(&sources, &a, file ? file : "kernel.py");
  buf_puts(out, "{\"stage\":");
  vendor_stage_put(out, &stage, &names, &sources);
  sources_put_members(out, &sources);
  buf_puts(out, "}\n");
  arena_clear(&a);
}

void runs_read_stage(struct request *rq, struct db *db) {
  struct run_state_of *s = rq->state;
  struct buf text, places;
  bool has_places = false;
  buf_init(&text, RUN_FILE_MAX);
  buf_init(&places, RUN_FILE_MAX);
  s->st = store_get_run(db, &s->run, &s->view, &s->found, &s->err);
  s->found &= s->view.state == RUN_DONE;
  if (!s->st && s->found)
    s->st = store_get_run_file(db, &s->run, nki_file, &text, &s->found, &s->err);
  if (!s->st && s->found)
    s->st = store_get_run_file(db, &s->run, RUN_PLACES, &places, &has_places, &s->err);
  if (!s->st && s->found) {
    json_t *all = has_places ? json_loadb(buf_text(&places), places.len, 0, NULL) : NULL;
    buf_init(&s->answer, ANSWER_MAX);
    put(&s->answer, &text, all);
    json_decref(all);
    s->st =
        buf_status(&s->answer) ? fail(&s->err, ST_LIMIT, "the stage is larger than %d MiB", ANSWER_MAX >> 20) : ST_OK;
  }
  buf_clear(&places);
  buf_clear(&text);
}
