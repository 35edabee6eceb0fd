/* read: the parts of a lesson's Markdown (lesson.h).
 *
 * One pass over the lines.  Text is collected in a buffer, which a heading or the end gives to where it belongs.
 */
#include "lesson/lesson.h"

#include <string.h>

#include "base/array.h"
#include "base/utf8.h"

struct reader {
  struct arena *a;
  struct lesson *l;
  const char *p, *end;
  int line; /* of the text before p, from 1 */
  struct buf text;
  bool is_task;
  struct error *err;
};

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* Returns the next line without its end, in the arena; NULL at the end. */
static const char *next_line(struct reader *r) {
  if (r->p >= r->end)
    return NULL;
  const char *nl = memchr(r->p, '\n', (size_t)(r->end - r->p));
  size_t n = (size_t)((nl ? nl : r->end) - r->p);
  const char *s = r->p;
  r->p = nl ? nl + 1 : r->end;
  r->line++;
  return arena_strndup(r->a, s, n && s[n - 1] == '\r' ? n - 1 : n);
}

static struct lesson_step *step(struct reader *r) {
  return r->l->steps.n ? &r->l->steps.v[r->l->steps.n - 1] : NULL;
}

static const char *trimmed(struct arena *a, const char *s, size_t n) {
  while (n && strchr(" \t\n", *s))
    s++, n--;
  while (n && strchr(" \t\n", s[n - 1]))
    n--;
  return arena_strndup(a, s, n);
}

/* Gives the collected text to the part of the lesson that it stands in. */
static void end_text(struct reader *r) {
  const char *text = trimmed(r->a, buf_text(&r->text), r->text.len);
  struct lesson_step *s = step(r);
  if (!s)
    r->l->summary = text;
  else if (r->is_task)
    s->task.text = text;
  else
    s->text = text;
  r->text.len = 0;
}

/* If the line is "key: value", returns the value. */
static const char *value_of(const char *line, const char *key) {
  const size_t n = strlen(key);
  if (strncmp(line, key, n) != 0 || line[n] != ':')
    return NULL;
  return line + n + 1 + strspn(line + n + 1, " ");
}

/* ---- fences ------------------------------------------------------------------------------------------------------ */

typedef enum status (*take_line)(struct reader *r, const char *line);

static enum status add_condition(struct reader *r, struct lesson_conditions *to, const char *line) {
  struct lesson_condition c;
  enum status st = lesson_read_condition(r->a, line, r->line, &c, r->err);
  if (!st)
    array_push(r->a, to, c);
  return st;
}

static enum status take_fact(struct reader *r, const char *line) {
  return add_condition(r, &step(r)->facts, line);
}

static enum status take_goal(struct reader *r, const char *line) {
  step(r)->task.kind = TASK_CHANGE;
  return add_condition(r, &step(r)->task.goals, line);
}

static enum status take_choose(struct reader *r, const char *line) {
  struct lesson_task *t = &step(r)->task;
  const char *v;
  t->kind = TASK_CHOOSE;
  if (!strncmp(line, "- ", 2))
    return array_push(r->a, &t->choices, line + 2), ST_OK;
  if ((v = value_of(line, "proof")))
    return add_condition(r, &t->proofs, v);
  if ((v = value_of(line, "says")))
    return t->says = v, ST_OK;
  if (!(v = value_of(line, "answer")))
    return fail(r->err, ST_INPUT, "expected \"- choice\", \"answer:\", \"proof:\" or \"says:\"");
  for (int i = 0; i < t->choices.n; i++)
    if (!strcmp(t->choices.v[i], v))
      return t->answer = i, ST_OK;
  return fail(r->err, ST_INPUT, "the answer is none of the choices before it");
}

static enum status take_click(struct reader *r, const char *line) {
  struct lesson_task *t = &step(r)->task;
  const char *v;
  t->kind = TASK_CLICK;
  if ((v = value_of(line, "stage")))
    t->stage = v;
  else if ((v = value_of(line, "line")))
    t->clicked = v;
  else if ((v = value_of(line, "says")))
    t->says = v;
  else if ((v = value_of(line, "proof")))
    return add_condition(r, &t->proofs, v);
  else
    return fail(r->err, ST_INPUT, "expected \"stage:\", \"line:\", \"proof:\" or \"says:\"");
  return ST_OK;
}

static bool is_one_of(const char *s, const char *const *list) {
  for (; *list; list++)
    if (!strcmp(s, *list))
      return true;
  return false;
}

static enum status take_view(struct reader *r, const char *line) {
  static const char *const modes[] = {"read", "run", "compare", NULL}, *const inspects[] = {"values", "tiles", NULL};
  struct lesson_view *v = &step(r)->view;
  const struct {
    const char *key;
    const char **to;
  } texts[] = {{"target", &v->target},     {"stage", &v->stage},     {"beside", &v->beside},
               {"compared", &v->compared}, {"mode", &v->mode},       {"select", &v->select},
               {"line", &v->line},         {"inspect", &v->inspect}, {"diff", &v->diff}};
  const char *value;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if ((value = value_of(line, texts[i].key)))
      *texts[i].to = value;
  if ((v->mode && !is_one_of(v->mode, modes)) || (v->inspect && !is_one_of(v->inspect, inspects)))
    return fail(r->err, ST_INPUT, "expected mode: read, run or compare; inspect: values or tiles");
  v->has_picture |= !strcmp(line, "picture: yes");
  v->has_check |= !strcmp(line, "check: yes");
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (value_of(line, texts[i].key))
      return ST_OK;
  return !strcmp(line, "picture: yes") || !strcmp(line, "check: yes")
             ? ST_OK
             : fail(r->err, ST_INPUT,
                    "expected target, stage, beside, compared, mode, select, line, inspect or diff with a value, or "
                    "\"picture: yes\" or \"check: yes\"");
}

static enum status take_edit(struct reader *r, const char *line) {
  struct lesson_step *s = step(r);
  if (!strncmp(line, "- ", 2))
    s->edit_old = line + 2;
  else if (!strncmp(line, "+ ", 2))
    s->edit_new = line + 2;
  else
    return fail(r->err, ST_INPUT, "expected \"- old\" or \"+ new\"");
  return ST_OK;
}

static bool is_fence(const char *line) {
  return !strncmp(line, "```", 3);
}

/* Reads the lines up to the fence's end. */
static enum status take_lines(struct reader *r, take_line take) {
  enum status st = ST_OK;
  const char *line;
  while (!st && (line = next_line(r)) && !is_fence(line))
    if (line[strspn(line, " \t")])
      st = take(r, line);
  return st || line ? st : fail(r->err, ST_INPUT, "the fence has no end");
}

static enum status take_code(struct reader *r, const char **to) {
  const char *from = r->p, *line, *before = r->p;
  while ((line = next_line(r)) && !is_fence(line))
    before = r->p;
  *to = arena_strndup(r->a, from, (size_t)(before - from));
  return line ? ST_OK : fail(r->err, ST_INPUT, "the fence has no end");
}

/* A fence that is text, such as ```text: it is a part of the Markdown. */
static enum status copy_fence(struct reader *r, const char *line) {
  buf_printf(&r->text, "%s\n", line);
  while ((line = next_line(r))) {
    buf_printf(&r->text, "%s\n", line);
    if (is_fence(line))
      return ST_OK;
  }
  return fail(r->err, ST_INPUT, "the fence has no end");
}

static enum status take_fence(struct reader *r, const char *line) {
  static const struct {
    const char *info;
    take_line take;
    bool is_of_task;
  } lists[] = {{"view", take_view, false},
               {"fact", take_fact, false},
               {"goal", take_goal, true},
               {"choose", take_choose, true},
               {"click", take_click, true}};
  const char *info = line + 3;
  struct lesson_step *s = step(r);
  const bool is_edit = !strncmp(info, "edit ", 5);
  bool is_ours =
      is_edit || !strcmp(info, "python kernel") || !strcmp(info, "python before") || !strcmp(info, "python solution");
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    is_ours |= !strcmp(info, lists[i].info);
  if (!is_ours)
    return copy_fence(r, line);
  if (!s)
    return fail(r->err, ST_INPUT, "a fence of a step before the first step");
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    if (!strcmp(info, lists[i].info)) {
      if (lists[i].is_of_task && (!r->is_task || s->task.kind != TASK_NONE))
        return fail(r->err, ST_INPUT, r->is_task ? "the task has a check already" : "it belongs below \"### Task\"");
      return take_lines(r, lists[i].take);
    }
  if (is_edit) {
    s->edit_stage = info + 5;
    return take_lines(r, take_edit);
  }
  return take_code(r, !strcmp(info, "python kernel")   ? &s->kernel
                      : !strcmp(info, "python before") ? &s->before
                                                       : &s->task.solution);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* Finds the place of the selected expression in the kernel. */
static enum status find_selection(struct reader *r, struct lesson_step *s) {
  const char *at = strstr(s->kernel, s->view.select);
  if (!at)
    return fail(r->err, ST_INPUT, "the kernel has no \"%.120s\" to select", s->view.select);
  int line = 1;
  const char *start = s->kernel;
  for (const char *p = s->kernel; p < at; p++)
    if (*p == '\n')
      line++, start = p + 1;
  const size_t col = utf8_count(start, (size_t)(at - start)) + 1;
  s->view.selected =
      arena_printf(r->a, "%d:%zu-%d:%zu", line, col, line, col + utf8_count(s->view.select, strlen(s->view.select)));
  return ST_OK;
}

/* Says what a complete step lacks. */
static enum status judge_step(struct reader *r, struct lesson_step *s) {
  const struct lesson_task *t = &s->task;
  const int n = r->l->steps.n;
  if (!s->kernel)
    s->kernel = n > 1 ? s[-1].kernel : NULL;
  if (!s->kernel)
    return fail(r->err, ST_INPUT, "the step \"%.80s\" has no kernel, and none is before it", s->title);
  if (s->edit_stage && (!s->edit_old || !s->edit_new))
    return fail(r->err, ST_INPUT, "the edit of \"%.80s\" needs \"- old\" and \"+ new\"", s->title);
  if (r->is_task && t->kind == TASK_NONE)
    return fail(r->err, ST_INPUT, "the task of \"%.80s\" has no goal, choose or click", s->title);
  if ((t->kind == TASK_CHANGE) != (t->solution != NULL))
    return fail(r->err, ST_INPUT, "\"%.80s\": a goal and a solution belong together", s->title);
  if (t->kind == TASK_CHOOSE && (t->choices.n < 2 || t->answer < 0 || !t->proofs.n))
    return fail(r->err, ST_INPUT, "\"%.80s\": two choices, an answer and a proof are needed", s->title);
  if (t->kind == TASK_CLICK && (!t->stage || !t->proofs.n))
    return fail(r->err, ST_INPUT, "\"%.80s\": a stage and a proof are needed", s->title);
  return s->view.select ? find_selection(r, s) : ST_OK;
}

static enum status end_step(struct reader *r) {
  struct lesson_step *s = step(r);
  end_text(r);
  const enum status st = s ? judge_step(r, s) : ST_OK;
  if (st)
    r->line = s->line; /* where the step begins */
  return st;
}

static enum status begin_step(struct reader *r, const char *title) {
  enum status st = end_step(r);
  if (!st && r->l->steps.n == LESSON_STEPS_MAX)
    st = fail(r->err, ST_LIMIT, "more than %d steps", LESSON_STEPS_MAX);
  if (!st && !*title)
    st = fail(r->err, ST_INPUT, "a step needs a title");
  if (!st)
    array_push(r->a, &r->l->steps,
               (struct lesson_step){.line = r->line, .title = title, .text = "", .task = {.text = "", .answer = -1}});
  r->is_task = false;
  return st;
}

static enum status begin_task(struct reader *r) {
  if (!step(r) || r->is_task)
    return fail(r->err, ST_INPUT, "a task belongs to a step, which has one at most");
  end_text(r);
  r->is_task = true;
  step(r)->task.line = r->line;
  return ST_OK;
}

static enum status take(struct reader *r, const char *line) {
  if (is_fence(line))
    return take_fence(r, line);
  if (!strncmp(line, "## ", 3))
    return begin_step(r, line + 3);
  if (!strcmp(line, "### Task"))
    return begin_task(r);
  if (!strncmp(line, "# ", 2) && !r->l->title)
    return r->l->title = line + 2, ST_OK;
  if (!r->l->title && line[strspn(line, " \t")])
    return fail(r->err, ST_INPUT, "a lesson begins with \"# Title\"");
  buf_printf(&r->text, "%s\n", line);
  return ST_OK;
}

enum status lesson_read(struct arena *a, const char *text, size_t len, struct lesson *out, int *at, struct error *err) {
  struct reader r = {.a = a, .l = out, .p = text, .end = text + len, .err = err};
  enum status st = ST_OK;
  const char *line;

  *out = (struct lesson){.summary = ""};
  *at = 1;
  if (len > LESSON_MAX)
    return fail(err, ST_LIMIT, "a lesson has at most %d bytes", LESSON_MAX);
  if (!utf8_is_valid(text, len) || memchr(text, 0, len))
    return fail(err, ST_INPUT, "a lesson is text in UTF-8");
  buf_init(&r.text, LESSON_MAX + 1);
  while (!st && (line = next_line(&r)))
    st = take(&r, line);
  if (!st)
    st = end_step(&r);
  if (!st && !out->steps.n)
    st = fail(err, ST_INPUT, "a lesson has a title, \"# Title\", and steps, \"## Title\"");
  *at = r.line ? r.line : 1;
  if (!st && buf_status(&r.text))
    st = fail(err, buf_status(&r.text), "a lesson has at most %d bytes", LESSON_MAX);
  buf_clear(&r.text);
  return st;
}
