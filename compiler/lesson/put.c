/* put: a lesson as JSON, for the page. */
#include "lesson/lesson.h"

#include "base/json.h"

static void put_text(struct buf *b, const char *key, const char *s) {
  if (s)
    json_put_field_str(b, key, s);
}

static void put_conditions(struct buf *b, const char *key, const struct lesson_conditions *list) {
  static const char *const kinds[] = {"count",   "lines",     "figure",  "share",  "has",     "lacks",
                                      "changed", "unchanged", "decided", "equals", "differs", "refused"};
  static const char *const relations[] = {"<", "<=", "==", "!=", ">=", ">"};
  json_put_key(b, key);
  buf_putc(b, '[');
  for (int i = 0; i < list->n; i++) {
    const struct lesson_condition *c = &list->v[i];
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_str(b, "text", c->text);
    json_put_field_str(b, "kind", kinds[c->kind]);
    put_text(b, "stage", c->stage);
    put_text(b, "what", c->what);
    if (c->kind <= COND_SHARE) {
      json_put_field_str(b, "relation", relations[c->relation]);
      json_put_field_double(b, "number", c->number);
    }
    buf_putc(b, '}');
  }
  buf_putc(b, ']');
}

static void put_view(struct buf *b, const struct lesson_view *v) {
  json_put_key(b, "view");
  buf_putc(b, '{');
  json_put_field_str(b, "mode", v->mode ? v->mode : "read");
  put_text(b, "target", v->target);
  put_text(b, "stage", v->stage);
  put_text(b, "beside", v->beside);
  put_text(b, "compared", v->compared);
  put_text(b, "selected", v->selected);
  put_text(b, "line", v->line);
  put_text(b, "inspect", v->inspect);
  put_text(b, "diff", v->diff);
  json_put_field_bool(b, "picture", v->has_picture);
  json_put_field_bool(b, "check", v->has_check);
  buf_putc(b, '}');
}

static void put_task(struct buf *b, const struct lesson_task *t) {
  static const char *const kinds[] = {"none", "change", "choose", "click"};
  json_put_key(b, "task");
  buf_putc(b, '{');
  json_put_field_str(b, "kind", kinds[t->kind]);
  json_put_field_str(b, "text", t->text);
  if (t->kind == TASK_CHANGE) {
    put_conditions(b, "goals", &t->goals);
    json_put_field_str(b, "solution", t->solution);
  } else if (t->kind == TASK_CHOOSE) {
    json_put_key(b, "choices");
    buf_putc(b, '[');
    for (int i = 0; i < t->choices.n; i++) {
      json_put_comma(b);
      json_put_cstr(b, t->choices.v[i]);
    }
    buf_putc(b, ']');
    json_put_field_int(b, "answer", t->answer);
  } else {
    json_put_field_str(b, "stage", t->stage);
    put_text(b, "line", t->clicked);
  }
  put_text(b, "says", t->says);
  buf_putc(b, '}');
}

static void put_step(struct buf *b, const struct lesson_step *s) {
  json_put_comma(b);
  buf_putc(b, '{');
  json_put_field_str(b, "title", s->title);
  json_put_field_str(b, "text", s->text);
  json_put_field_str(b, "kernel", s->kernel);
  put_text(b, "before", s->before);
  if (s->edit_stage) {
    json_put_key(b, "edit");
    buf_putc(b, '{');
    json_put_field_str(b, "stage", s->edit_stage);
    json_put_field_str(b, "old", s->edit_old);
    json_put_field_str(b, "new", s->edit_new);
    buf_putc(b, '}');
  }
  put_view(b, &s->view);
  if (s->task.kind != TASK_NONE)
    put_task(b, &s->task);
  buf_putc(b, '}');
}

void lesson_put(struct buf *b, const struct lesson *l) {
  buf_putc(b, '{');
  json_put_field_str(b, "title", l->title);
  json_put_field_str(b, "summary", l->summary);
  json_put_key(b, "steps");
  buf_putc(b, '[');
  for (int i = 0; i < l->steps.n; i++)
    put_step(b, &l->steps.v[i]);
  buf_puts(b, "]}");
}
