/* cards: see cards.h. */
#include "sim/cards.h"

#include <assert.h>
#include <stddef.h>

enum { RULES_MAX = 4 };

enum rule {
  RULE_NONE,
#define SIM_CONSTANT(e, unit, v1, v2, v3, c1, c2, c3, what, source)
#define SIM_RULE(e, name, engine, s1, s2, s3, hold, done, c1, c2, c3, formula, source) e,
#include "sim/cost.def"
#undef SIM_RULE
  RULE_COUNT
};

static const struct sim_cost_card rules[RULE_COUNT] = {
#define SIM_RULE(e, name, engine, s1, s2, s3, hold, done, c1, c2, c3, formula, source) \
  [e] = {name, formula, source, NISA_ENGINE_##engine, {#c1, #c2, #c3}},
#include "sim/cost.def"
#undef SIM_RULE
#undef SIM_CONSTANT
};

#define RULES(...) {__VA_ARGS__}
#define NO_RULES {RULE_NONE}
static const struct {
  const char *what;
  enum rule rule[RULES_MAX]; /* up to RULE_NONE */
} cards[NISA_KIND_COUNT] = {
#define NISA_CARD(kind, what, rules) [kind] = {what, rules},
#include "sim/cards.def"
#undef NISA_CARD
};
#undef RULES
#undef NO_RULES

const char *sim_card_what(enum nisa_kind k) {
  assert(cards[k].what); /* cards.def has a line for each of ops.def */
  return cards[k].what;
}

const struct sim_cost_card *sim_card_cost(enum nisa_kind k, int n) {
  for (int i = 0; i <= n; i++)
    if (i == RULES_MAX || cards[k].rule[i] == RULE_NONE)
      return NULL;
  return &rules[cards[k].rule[n]];
}
