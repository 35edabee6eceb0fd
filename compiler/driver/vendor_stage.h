/* vendor_stage: the NKI that the vendor's compiler prints on its way (lower_to_nki), in the form of a stage.
 *
 * Nothing says how such a text refers to the program that it was made from.  What can be known is taken: a line that has the name of an
 * HLO instruction, as it is or as a Python identifier, belongs to where that instruction comes from; and so does one with
 * "FILE:LINE" of a line that instructions come from, with or without the file's folder.  A line that names none has no place.
 *
 * It needs no MLIR: the terminal and the server write such stages.
 */
#ifndef DRIVER_VENDOR_STAGE_H
#define DRIVER_VENDOR_STAGE_H

#include "base/buf.h"
#include "base/index.h"
#include "base/src.h"
#include "driver/sources.h"

#define VENDOR_STAGE_NAME "vendor-nki"

struct vendor_names {
  struct arena *arena;
  struct index by_name;
  struct {
    struct vendor_name *v;
    int n, cap;
  } all;
};

void vendor_names_init(struct vendor_names *x, struct arena *a);
/* The instruction `name` comes from `loc`; both must outlive x.  Of two with one name, or from one line, the first counts. */
void vendor_names_add(struct vendor_names *x, const char *name, const struct src_loc *loc);

struct vendor_stage {
  const char *text;
  size_t len;
  int index;       /* after all stages of the pipeline */
  int64_t time_us; /* of the compiler; 0: not known */
};

/* Appends the stage as the API has it (frames.h), and numbers the places that it refers to in `sources`. */
void vendor_stage_put(struct buf *b, const struct vendor_stage *s, const struct vendor_names *names,
                      struct sources *sources);

#endif
