/* step: how a pass tells a listener where one rewrite ends and the next begins.
 *
 * A pass calls step_next before it tries a rule on an operation.  What changes until the next call is that rewrite; a call
 * after which nothing changes means nothing.  Without a listener, which is how passes usually run, the call is one comparison.
 */
#ifndef BASE_STEP_H
#define BASE_STEP_H

#include <stddef.h>

struct step_listener {
  /* op: the operation that the rule is tried on: the pointer of an MlirOperation, or a struct hlo_instr; it still exists.  rule:
   * a name that lives as long as the program. */
  void (*next)(struct step_listener *l, void *op, const char *rule);
};

static inline void step_next(struct step_listener *l, void *op, const char *rule) {
  if (l)
    l->next(l, op, rule);
}

#endif
