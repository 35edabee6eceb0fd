/* passes: the passes by name. */
#include "hlo/passes.h"

#include <string.h>

static const struct {
  const char *name;
  hlo_pass_fn fn;
} passes[] = {
    {"call-inliner", hlo_call_inliner},
    {"zero-sized-hlo-elimination", hlo_zero_sized_elimination},
    {"simplify-conditional", hlo_conditional_simplifier},
    {"simplify-while-loops", hlo_while_loop_simplifier},
    {"constant-folding", hlo_constant_folding},
    {"algebraic-simplifier", hlo_algebraic_simplifier},
    {"transpose-folding", hlo_transpose_folding},
    {"cse", hlo_cse},
    {"dce", hlo_dce},
};

hlo_pass_fn hlo_pass_find(const char *name) {
  for (size_t k = 0; k < sizeof passes / sizeof *passes; k++)
    if (!strcmp(passes[k].name, name))
      return passes[k].fn;
  return NULL;
}
