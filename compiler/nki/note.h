/* note: what a step over an NKI program decided, for its remarks. */
#ifndef NKI_NOTE_H
#define NKI_NOTE_H

#include "base/rule.h"
#include "nki/nki.h"

struct nki_note {
  enum rule rule;
  const char *name; /* of the operation that it is about, in the new text; "": any */
  const char *text; /* "16 rounds are one loop of 3 lines", or why not */
  struct src_locs locs;
  int id;                                               /* of the line in the text before */
  const char *cost, *rejected, *rejected_cost, *reason; /* of a rule that chooses (passes/remark.h); otherwise NULL */
};
struct nki_notes {
  struct nki_note *v;
  int n, cap;
};

#endif
