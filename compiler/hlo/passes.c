/* passes: the passes by name. */
#include "hlo/passes.h"

#include <string.h>

const struct hlo_pass_def hlo_passes[] = {
    {"op-expander", hlo_op_expander},
    {"convert-legalization", hlo_convert_legalization},
    {"call-inliner", hlo_call_inliner},
    {"zero-sized-hlo-elimination", hlo_zero_sized_elimination},
    {"simplify-conditional", hlo_conditional_simplifier},
    {"simplify-while-loops", hlo_while_loop_simplifier},
    {"constant-folding", hlo_constant_folding},
    {"broadcast-canonicalizer", hlo_broadcast_canonicalizer},
    {"dot-decomposer", hlo_dot_decomposer},
    {"reshape-mover", hlo_reshape_mover},
    {"algebraic-simplifier", hlo_algebraic_simplifier},
    {"transpose-folding", hlo_transpose_folding},
    {"cse", hlo_cse},
    {"dce", hlo_dce},
};
const int hlo_n_passes = sizeof hlo_passes / sizeof *hlo_passes;

hlo_pass *hlo_pass_find(const char *name) {
  for (int k = 0; k < hlo_n_passes; k++)
    if (!strcmp(hlo_passes[k].name, name))
      return hlo_passes[k].fn;
  return NULL;
}
