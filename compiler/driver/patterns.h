/* patterns: FileCheck's lines on the texts of stages.
 *
 *   // STAGE: hlo-to-linalg          the lines below are about this stage (of the first kernel, or: hlo-to-linalg IN softmax)
 *   // CHECK: linalg.matmul          a later line, or the rest of this one, has this
 *   // CHECK-NEXT: [[R:%[0-9]+]] =   the line after that one
 *   // CHECK-SAME: ins(              the same line, further right
 *   // CHECK-NOT: {{tensor.(pad|empty)}}   nothing between the lines before and after it
 *   // CHECK-DAG: … CHECK-LABEL: … CHECK-EMPTY: … CHECK-COUNT-3: …
 *
 * {{…}} is a regular expression (POSIX, extended), [[NAME:…]] one whose match has a name, [[NAME]] that text again; runs of spaces and
 * tabs are as good as one space.  What stands before CHECK on its line, such as a comment's sign, means nothing.  As LLVM's
 * FileCheck (llvm.org/docs/CommandGuide/FileCheck.html) without numeric variables; a match lies within one line.
 */
#ifndef DRIVER_PATTERNS_H
#define DRIVER_PATTERNS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

#define PATTERNS_FILE "patterns" /* the name of the text in places of diagnostics */
enum { PATTERNS_LEN_MAX = 64 << 10, PATTERNS_REGEX_MAX = 2000 };

enum pattern_kind {
  PATTERN_PLAIN,
  PATTERN_NEXT,
  PATTERN_SAME,
  PATTERN_EMPTY,
  PATTERN_NOT,
  PATTERN_DAG,
  PATTERN_LABEL,
};

struct pattern {
  enum pattern_kind kind;
  int line;         /* of the patterns' text, from 1 */
  const char *text; /* white space made one space */
};

/* The lines about one stage. */
struct pattern_section {
  const char *stage, *kernel; /* kernel NULL: the first; stage as in --stop-after */
  int line;                   /* of its STAGE: line */
  bool is_used;
  struct pattern *v;
  int n, cap;
};

struct patterns {
  struct pattern_section *v;
  int n, cap;
};

/* What wrong lines are: where and why. */
struct pattern_fault {
  int line;
  const char *message;
};

/* Reads a text of at most PATTERNS_LEN_MAX bytes.  False: *fault says what is wrong. */
MUST_USE bool patterns_read(struct arena *a, const char *text, size_t len, struct patterns *out,
                            struct pattern_fault *fault);

/* Where the lines were found in a stage's text. */
struct pattern_result {
  bool is_set, ok;
  int n, cap;
  struct pattern_hit {
    int line, at; /* of the patterns; of the stage */
  } *v;
  struct pattern_fault fault; /* if not ok */
  int at; /* the stage's line from which a line was not found, or where one was that should not be */
};

/* Tries the lines of a section on a text. */
void patterns_try(struct arena *a, const struct pattern_section *s, const char *text, size_t len,
                  struct pattern_result *out);

#endif
