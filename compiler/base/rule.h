/* rule: the rules by which passes decide.
 *
 * A remark of a pass names its rule.  What a rule decides, the fact behind it and the knob that changes its decisions are
 * in one table, rule.def, which the API lists; a remark holds only what is special to one decision.
 */
#ifndef BASE_RULE_H
#define BASE_RULE_H

#include "base/buf.h"

enum rule {
#define RULE(e, name, pass, says, because, knob, forced, via) e,
#include "base/rule.def"
#undef RULE
  RULE_COUNT
};

struct rule_def {
  const char *name; /* "tile-size", part of the API */
  const char *pass; /* the pass that decides by it */
  const char *says, *because;
  const char *knob;   /* the knob that changes a decision, or a sentence that begins with "No knob" */
  const char *forced; /* why its decisions have no other choice; "" if it chooses among several */
  const char *via;    /* the rule whose decisions, about the same expression, change this one; "" if there is none */
};

const struct rule_def *rule_def(enum rule r);
/* The rule of this name, or NULL. */
const struct rule_def *rule_find(const char *name);
/* Appends a JSON array of all rules, in the order of the passes. */
void rule_put_all(struct buf *b);

#endif
