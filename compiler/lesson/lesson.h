/* lesson: a lesson is a Markdown file with steps: text, a kernel, the view to open, and perhaps a task.
 *
 *     # Title
 *     What the lesson is about: the summary.
 *     ## Title of a step
 *     Markdown, in which these fences are not text:
 *     ```python kernel      the kernel; a step without one has that of the step before
 *     ```python before      result A of a comparison
 *     ```edit STAGE         a stage's text with one change: a line "- old", a line "+ new"; the pipeline goes on from it
 *     ```view               lines "key: value": what the page shows (struct lesson_view)
 *     ```fact               conditions on the step's result: what the text says must be so; not shown
 *     ### Task
 *     Markdown, and one of these fences:
 *     ```goal               conditions that the learner's kernel must meet; ```python solution has one that does
 *     ```choose             lines "- choice", "answer: choice", "proof: condition", "says: text"
 *     ```click              "stage: STAGE", or "line: text" with "stage: STAGE", "proof: condition", "says: text"
 *
 * A condition is a line (conditions.c):
 *     count STAGE WORD < 10        how often the word stands in the stage's text; < <= == != >= >
 *     lines STAGE < 10             its lines
 *     time_us | instructions | matmuls | dma_bytes | sbuf | psum < 10     of the simulated run; sbuf, psum: the most bytes
 *                                  that a partition holds
 *     share LANE < 10              the percentage of that time for which an engine or a queue is busy
 *     has STAGE TEXT, lacks STAGE TEXT     "kernel" is the source itself
 *     changed STAGE, unchanged STAGE
 *     decided STAGE RULE           the stage has a remark of that rule
 *     equals numpy                 every stage computes what NumPy does
 *     differs STAGE                that stage is the first that does not
 *     refused CODE                 the kernel is refused with that code
 * STAGE is a stage's name, "canonicalize:2" for the second of that name, or "last".
 *
 * The reader needs no compiler.  Everything lives in the arena.
 */
#ifndef LESSON_LESSON_H
#define LESSON_LESSON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

enum { LESSON_MAX = 128 << 10, LESSON_STEPS_MAX = 100 }; /* bytes of a file */

enum lesson_kind {
  COND_COUNT,
  COND_LINES,
  COND_FIGURE,
  COND_SHARE,
  COND_HAS,
  COND_LACKS,
  COND_CHANGED,
  COND_UNCHANGED,
  COND_DECIDED,
  COND_EQUALS,
  COND_DIFFERS,
  COND_REFUSED
};

enum lesson_relation { IS_LESS, IS_AT_MOST, IS_EQUAL, IS_NOT, IS_AT_LEAST, IS_MORE };

struct lesson_condition {
  int line; /* of the file, from 1 */
  const char *text;
  enum lesson_kind kind;
  const char *stage; /* or NULL */
  const char *what;  /* word, text, figure, lane, rule or code; or NULL */
  enum lesson_relation relation;
  double number;
};

struct lesson_conditions {
  struct lesson_condition *v;
  int n, cap;
};

struct lesson_view {
  const char *target, *stage, *beside, *compared; /* stage keys; NULL: the page's own choice */
  const char *mode;                               /* "read", "run", "compare"; NULL: read */
  const char *select;                             /* an expression of the kernel */
  const char *selected;                           /* its place, "line:col-line:col", columns in code points from 1 */
  const char *line;                               /* text in a line of the stage, which is marked */
  const char *inspect;                            /* "values" or "tiles" of that line */
  const char *diff;                               /* "previous" or a stage's key */
  bool has_picture, has_check;
};

enum lesson_task_kind { TASK_NONE, TASK_CHANGE, TASK_CHOOSE, TASK_CLICK };

struct lesson_task {
  enum lesson_task_kind kind;
  int line;
  const char *text; /* Markdown */
  struct lesson_conditions goals, proofs;
  const char *solution;
  struct {
    const char **v;
    int n, cap;
  } choices;
  int answer;                  /* of the choices */
  const char *stage, *clicked; /* to click; clicked: text of the line, or NULL */
  const char *says;            /* after the right answer, or NULL */
};

struct lesson_step {
  int line;
  const char *title, *text;                     /* Markdown */
  const char *kernel;                           /* the one in force */
  const char *before;                           /* or NULL */
  const char *edit_stage, *edit_old, *edit_new; /* or NULL */
  struct lesson_view view;
  struct lesson_conditions facts;
  struct lesson_task task;
};

struct lesson {
  const char *title, *summary;
  struct {
    struct lesson_step *v;
    int n, cap;
  } steps;
};

/* Reads a lesson.  ST_INPUT or ST_LIMIT: err says why, and *line where, from 1. */
MUST_USE enum status lesson_read(struct arena *a, const char *text, size_t len, struct lesson *out, int *line,
                                 struct error *err);

/* Appends the lesson as JSON: {"title","summary","steps":[…]}, as the page takes it. */
void lesson_put(struct buf *b, const struct lesson *l);

/* conditions.c */

/* Reads one condition; ST_INPUT with a message if it is none. */
MUST_USE enum status lesson_read_condition(struct arena *a, const char *text, int line, struct lesson_condition *out,
                                           struct error *err);
/* True if the condition cannot be judged without a check, or without a simulated run. */
bool lesson_needs_check(const struct lesson_condition *c);
bool lesson_needs_run(const struct lesson_condition *c);

struct json_t;
/* Judges the condition on a result object of the API (gather.h) and its source.  found, if not NULL, says what there is. */
bool lesson_holds(struct arena *a, const struct lesson_condition *c, const struct json_t *result, const char *source,
                  const char **found);
/* Returns the stage with this key in the result's first kernel; NULL: there is none. */
const struct json_t *lesson_stage(const struct json_t *result, const char *key);

#endif
