/* stage: one IR snapshot in the form that users see, and its frame (frames.h). */
#ifndef DRIVER_STAGE_H
#define DRIVER_STAGE_H

#include "base/buf.h"
#include "base/diag.h"
#include "driver/check.h"
#include "driver/frames.h"
#include "driver/patterns.h"
#include "driver/pipeline.h"
#include "driver/sources.h"
#include "hlo/hlo.h"
#include "ir/snapshot.h"
#include "nki/ast.h"
#include "nki/nki.h"
#include "passes/pass.h"

struct stage_check {
  const char *status; /* "pass", "fail", "skipped"; NULL: no check was requested */
  const char *reason; /* why it was skipped, or NULL */
  struct check_result result;
  const char *note;                 /* what a result does not cover, or NULL */
  const struct trace_tensor *wrong; /* the output whose element result.wrong_index is wrong; NULL if it passes */
};

/* What a change of a stage's text (compile_resume.c) has to do with a stage. */
enum stage_edit { EDIT_NONE, EDIT_HERE, EDIT_EARLIER };

struct stage {
  int index;
  const struct stage_def *def;
  bool changed;
  int64_t elide_above; /* constants with more elements are shortened in the text; 0: none */
  enum stage_edit edit;
  bool partial; /* the kernel was refused; the stage has the operations before the refusal */
  int64_t time_us;
  const char *text;
  size_t text_len;
  struct ir_snapshot ops;
  struct remarks remarks;           /* of the stage's pass */
  const struct nki_program *nki;    /* of a stage of NKI: what its text shows, */
  int instance;                     /* that nki-trace shows alone; -1: all */
  const struct nki_line *nki_lines; /* and the items of its lines, as many as ops */
  struct stage_check check;
  struct pattern_result patterns; /* of the lines about this stage */
};

/* Set the text and the operations from an HLO or an MLIR module; they are allocated in a.  ST_LIMIT: the text is
 * longer than FRAME_MAX. */
MUST_USE enum status stage_read_hlo(struct stage *s, struct hlo_module *m, struct arena *a, struct error *err);
/* instance: as nki_print takes it. */
MUST_USE enum status stage_read_nki(struct stage *s, const struct nki_program *p, int instance, struct arena *a,
                                    struct error *err);
MUST_USE enum status stage_read_ast(struct stage *s, const struct nki_ast *ast, struct arena *a, struct error *err);
MUST_USE enum status stage_read_mlir(struct stage *s, struct ir *ir, MlirOperation module, struct arena *a,
                                     struct error *err);

/* A program of a stage's form. */
struct stage_program {
  struct ir *ir;
  const struct hlo_module *hlo; /* of a stage of HLO */
  MlirOperation module;         /* of any other */
  int64_t elide_above;          /* as in struct stage */
};
/* Its operations, MlirOperations or struct hlo_instr, and their lines, 0: none. */
struct stage_printed {
  int n;
  const void *const *ops;
  const int *lines;
};
/* Appends the program's text as stage `def` shows it, without changing the program.  ST_LIMIT when text is full. */
MUST_USE enum status stage_print(const struct stage_def *def, const struct stage_program *program, struct buf *text,
                                 struct arena *a, struct stage_printed *out, struct error *err);

/* What the frame of a stage says of its text.  Most passes leave the program as it is, and their stage has the text of the stage
 * before, at the same address; then this is not made again.  It starts with a buf_init of json. */
struct stage_told {
  const char *text;
  struct buf json;
};

/* Appends the "stage" frame of kernel number `kernel`, and numbers the places that it refers to in `sources`.  told: of the frame
 * before this one, and then of this one. */
void stage_put_frame(struct buf *b, const struct stage *s, int kernel, struct sources *sources,
                     struct stage_told *told);
/* Appends the members file, line, col, end_line and end_col to an open object. */
void stage_put_range(struct buf *b, const struct src_range *r);
/* Appends the frame of a diagnostic; kernel -1: it belongs to no kernel. */
void stage_put_diag_frame(struct buf *b, const struct diag *d, int kernel);

#endif
