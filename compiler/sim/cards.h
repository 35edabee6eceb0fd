/* cards: the effect and the cost of each instruction, for readers.  Made from cards.def and cost.def. */
#ifndef SIM_CARDS_H
#define SIM_CARDS_H

#include "nisa/kinds.h"

/* A rule of cost.def, with the columns that a reader needs. */
struct sim_cost_card {
  const char *name, *formula, *source;
  enum nisa_engine engine;
  const char *confidence[TARGET_COUNT]; /* "H", "M" or "L" */
};

/* A sentence. */
const char *sim_card_what(enum nisa_kind k);
/* The n-th cost of the instruction, from 0; NULL after the last.  An instruction that takes no time has none. */
const struct sim_cost_card *sim_card_cost(enum nisa_kind k, int n);

#endif
