#include "sim/accuracy.h"

#include <string.h>

#include "sim/cost.h"

struct sim_accuracy sim_accuracy(enum target t) {
  static const struct sim_accuracy all[TARGET_COUNT] = {
#define MEASURED(target, n, median_permille, worst_permille) \
  [target] = {n, (median_permille) / 1000.0, (worst_permille) / 1000.0},
#include "sim/measured.def"
#undef MEASURED
  };
  return all[t];
}

void sim_uncalibrated(enum target t, void (*fn)(void *user, const char *what), void *user) {
  for (int k = 0; k < SIM_COST_COUNT; k++)
    if (sim_rule_def((enum sim_cost_rule)k)->confidence[t] == SIM_CONFIDENCE_L)
      fn(user, sim_rule_def((enum sim_cost_rule)k)->name);
  for (int k = 0; k < SIM_CONSTANT_COUNT; k++)
    if (sim_constant_def((enum sim_constant)k)->confidence[t] == SIM_CONFIDENCE_L)
      fn(user, sim_constant_def((enum sim_constant)k)->what);
}

void sim_accuracy_text(enum target t, struct buf *b) {
  const struct sim_accuracy a = sim_accuracy(t);
  if (a.kernels)
    buf_printf(
        b, "simulated times of %s differ from measured ones by %.0f %% at the median and %.0f %% at most (%d kernels)",
        target_name(t), a.median * 100, a.worst * 100, a.kernels);
  else
    buf_printf(b, "no kernel was measured on %s: simulated times are an order of magnitude", target_name(t));
}
