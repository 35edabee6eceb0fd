/* lessons: see the header.  A lesson's form is in lesson/lesson.h; its name is its file's, without number and ending. */
#include "api/lessons.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "api/compile.h"
#include "api/services.h"
#include "base/json.h"
#include "lesson/lesson.h"

enum {
  LESSONS_MAX = 200,
  JSON_TIMES = 16, /* of a lesson's text: its JSON repeats the kernel in each step */
  ARENA_TIMES = 40 /* of a lesson's text: what reading it takes, at most */
};

struct one_lesson {
  char *name;
  struct buf json;
};

struct lessons {
  struct buf list; /* the answer that lists them */
  int n;
  struct one_lesson v[LESSONS_MAX];
};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Reads the text, and appends the lesson's JSON to b and its line of the list to `list`, which may be NULL. */
static enum status read_lesson(const char *name, const char *text, size_t len, struct buf *b, struct buf *list,
                               struct error *err) {
  struct arena a;
  struct lesson l;
  struct error why = {0};
  int line = 1;
  arena_init(&a);
  enum status st = len > LESSON_MAX ? fail(err, ST_LIMIT, "a lesson has at most %d bytes", LESSON_MAX)
                   : arena_reserve(&a, (size_t)ARENA_TIMES * len + (64 << 10)) ? ST_OK
                                                                               : fail(err, ST_NOMEM, "lesson");
  if (st)
    return arena_clear(&a), st;
  st = lesson_read(&a, text, len, &l, &line, &why);
  if (st)
    st = fail(err, st, "line %d: %s", line, why.text);
  else {
    lesson_put(b, &l);
    st = buf_status(b) ? fail(err, buf_status(b), "the kernels of the steps are too long together") : ST_OK;
  }
  if (!st && list) {
    json_put_comma(list);
    buf_putc(list, '{');
    json_put_field_str(list, "name", name);
    json_put_field_str(list, "title", l.title);
    json_put_field_str(list, "summary", l.summary);
    json_put_field_int(list, "steps", l.steps.n);
    buf_putc(list, '}');
  }
  arena_clear(&a);
  return st;
}

static enum status read_file(int dir, const char *name, struct buf *out, struct error *err) {
  FILE *f = NULL;
  const int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || !(f = fdopen(fd, "r"))) {
    if (fd >= 0)
      close(fd);
    return fail(err, ST_IO, "lesson %.80s: %m", name);
  }
  char chunk[8 << 10];
  size_t n;
  while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
    buf_append(out, chunk, n);
  const enum status st = ferror(f) ? fail(err, ST_IO, "lesson %.80s: %m", name)
                         : buf_status(out)
                             ? fail(err, buf_status(out), "lesson %.80s: more than %d bytes", name, LESSON_MAX)
                             : ST_OK;
  fclose(f);
  return st;
}

static enum status add_file(struct lessons *l, int dir, const char *file, struct error *err) {
  struct one_lesson *o = &l->v[l->n];
  struct error why = {0};
  struct buf text;
  const char *name = file + strspn(file, "0123456789_");
  buf_init(&text, LESSON_MAX);
  buf_init(&o->json, (size_t)JSON_TIMES * LESSON_MAX);
  o->name = strndup(name, strlen(name) - strlen(".md"));
  l->n++; /* so that it is freed, whatever happens */
  enum status st = o->name ? read_file(dir, file, &text, err) : fail(err, ST_NOMEM, "lesson");
  if (!st) {
    st = read_lesson(o->name, buf_text(&text), text.len, &o->json, &l->list, &why);
    if (st)
      st = fail(err, st, "lesson %.80s: %.140s", file, why.text);
  }
  buf_putc(&o->json, '\n');
  buf_clear(&text);
  return st;
}

static int is_lesson(const struct dirent *e) {
  const size_t n = strlen(e->d_name);
  return n > 3 && e->d_name[0] != '.' && !strcmp(e->d_name + n - 3, ".md");
}

static enum status add_folder(struct lessons *l, int dir, struct error *err) {
  struct dirent **list = NULL;
  const int n = dir < 0 ? 0 : scandirat(dir, ".", &list, is_lesson, alphasort);
  enum status st = n < 0             ? fail(err, ST_IO, "lessons: %m")
                   : n > LESSONS_MAX ? fail(err, ST_LIMIT, "more than %d lessons", LESSONS_MAX)
                                     : ST_OK;
  for (int i = 0; i < n; i++) {
    if (!st)
      st = add_file(l, dir, list[i]->d_name, err);
    free(list[i]);
  }
  free(list);
  return st;
}

enum status lessons_load(const char *examples_dir, struct lessons **out, struct error *err) {
  struct lessons *l = calloc(1, sizeof *l);
  *out = NULL;
  if (!l)
    return fail(err, ST_NOMEM, "lessons");
  buf_init(&l->list, 1 << 20);
  buf_puts(&l->list, "{\"lessons\":[");
  const int examples = open(examples_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int dir = examples < 0 ? -1 : openat(examples, "lessons", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  enum status st = add_folder(l, dir, err);
  buf_puts(&l->list, "]}\n");
  if (!st && buf_status(&l->list))
    st = fail(err, buf_status(&l->list), "the lessons' summaries are too long");
  if (dir >= 0)
    close(dir);
  if (examples >= 0)
    close(examples);
  if (st) {
    lessons_free(l);
    return st;
  }
  *out = l;
  return ST_OK;
}

void lessons_free(struct lessons *l) {
  if (!l)
    return;
  for (int i = 0; i < l->n; i++) {
    free(l->v[i].name);
    buf_clear(&l->v[i].json);
  }
  buf_clear(&l->list);
  free(l);
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

enum MHD_Result api_lessons(struct request *rq) {
  const struct lessons *l = services_of(rq)->lessons;
  return http_json(rq, MHD_HTTP_OK, buf_text(&l->list), l->list.len, true);
}

enum MHD_Result api_lesson(struct request *rq) {
  const struct lessons *l = services_of(rq)->lessons;
  for (int i = 0; i < l->n; i++)
    if (!strcmp(l->v[i].name, rq->rest))
      return http_json(rq, MHD_HTTP_OK, buf_text(&l->v[i].json), l->v[i].json.len, true);
  return http_problem(rq, PB_NOT_FOUND, NULL, NULL);
}

enum MHD_Result api_lessons_read(struct request *rq) {
  struct error err = {0};
  const enum status nested = compile_check_nesting(&rq->body, &err);
  if (nested)
    return http_status_problem(rq, nested, &err);
  json_t *root = json_loadb(buf_text(&rq->body), rq->body.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
  const json_t *text = json_object_get(root, "text");
  struct buf b;
  enum MHD_Result r;
  buf_clear(&rq->body);
  buf_init(&b, (size_t)JSON_TIMES * LESSON_MAX);
  if (!root)
    r = http_problem(rq, PB_BAD_JSON, NULL, NULL);
  else if (!json_is_string(text) || json_object_size(root) != 1)
    r = http_problem(rq, PB_BAD_FIELD, "text: expected the text of a lesson, and no other member", "text");
  else {
    const enum status st = read_lesson("", json_string_value(text), json_string_length(text), &b, NULL, &err);
    buf_putc(&b, '\n');
    r = st == ST_INPUT || st == ST_LIMIT ? http_problem(rq, PB_BAD_FIELD, err.text, "text")
        : st                             ? http_status_problem(rq, st, &err)
                                         : http_json(rq, MHD_HTTP_OK, buf_text(&b), b.len, false);
  }
  buf_clear(&b);
  json_decref(root);
  return r;
}
