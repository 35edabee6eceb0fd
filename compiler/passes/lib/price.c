/* price: see the header. */
#include "passes/lib/price.h"

#include <inttypes.h>

#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/busy.h"
#include "passes/lib/descriptors.h"
#include "passes/lib/memrefs.h"

/* Of more elements a price is that of so many, without an overflow of what is computed from them. */
static const int64_t ELEMENTS_MAX = INT64_C(1) << 50;

enum { FREE_MAX = 2048 /* columns of an instruction */, COLUMNS_OF_A_BANK = 512 };

static double constant_ns(enum sim_constant c, enum target t) {
  return (double)sim_constant_ps(c, t) / SIM_PS_PER_NS;
}

static int64_t parts(int64_t n, int64_t each) {
  return n > each ? (n + each - 1) / each : 1;
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

struct price_shape price_shape_of(MlirValue v) {
  struct price_shape s = {1, 1, 4};
  MlirType t = mlirValueGetType(v);

  if (!mlirTypeIsAShaped(t) || !mlirShapedTypeHasRank(t))
    return s;
  const int64_t bytes = nisa_element_bytes(mlirShapedTypeGetElementType(t)), rank = mlirShapedTypeGetRank(t);
  s.element_bytes = bytes ? bytes : 4;
  for (int64_t d = 0; d < rank; d++) {
    const int64_t n = mlirShapedTypeIsDynamicDim(t, d) ? 1 : mlirShapedTypeGetDimSize(t, d);
    int64_t all;
    if (__builtin_mul_overflow(s.rows * s.columns, n, &all) || all > ELEMENTS_MAX)
      return (struct price_shape){ELEMENTS_MAX / FREE_MAX, FREE_MAX, s.element_bytes};
    if (d + 1 < rank)
      s.rows *= n;
    else
      s.columns = n;
  }
  return s;
}

int64_t price_bytes(const struct price_shape *s) {
  return s->rows * s->columns * s->element_bytes;
}

/* ---- transfers --------------------------------------------------------------------------------------------------- */

/* What the DMA engines do together, or how long the hardware of Sync and Scalar makes descriptors for them. */
static double moved_ns(enum target t, int64_t bytes, int64_t run) {
  const double each = constant_ns(SIM_DMA_DESCRIPTOR, t), engines = (double)sim_constant(SIM_DMA_ENGINES, t),
               rate = (double)sim_constant(SIM_DMA_RATE, t) / 1000, cap = (double)sim_constant(SIM_DMA_CAP, t) / 1000;
  run = run < 1 ? 1 : run > bytes ? bytes : run;
  const double n = (double)parts(bytes, run), alone = each + (double)run / rate, shared = (double)run / cap;
  const double twice = run < sim_constant(SIM_DMA_SMALL, t) ? 2 : 1;
  const double moved = n * (alone > shared ? alone : shared) * twice / engines,
               supply = n * constant_ns(SIM_DMA_SUPPLY, t);
  return moved > supply ? moved : supply;
}

double price_transfers_ns(enum target t, int64_t n, int64_t bytes, int64_t run) {
  const double start = constant_ns(SIM_TRIGGER_START_SYNC, t) + constant_ns(SIM_DMA_END, t),
               hold = busy_trigger_ns(NISA_ENGINE_SYNC, parts(bytes, run > 0 ? run : 1), t),
               moved = moved_ns(t, bytes, run);
  if (n < 1 || bytes < 1)
    return 0;
  return start + (double)(n - 1) * (hold > moved ? hold : moved) + moved;
}

double price_transfer_ns(enum target t, int64_t bytes, int64_t run) {
  return price_transfers_ns(t, 1, bytes, run);
}

static int64_t bytes_of(const struct nisa_access *x) {
  return nisa_partitions(x) * nisa_free_elements(x) * nisa_element_bytes(nisa_access_element(x));
}

double price_move_ns(enum target t, const struct nisa_access *dst, const struct nisa_access *src) {
  const int64_t bytes = bytes_of(dst), n = descriptors_of(dst, src);
  return price_transfer_ns(t, bytes, n ? bytes / n : bytes);
}

double price_turn_ns(enum target t, const struct nisa_access *dst, const struct nisa_access *src) {
  const int64_t bytes = bytes_of(dst), n = descriptors_of_transpose(dst, src);
  return price_transfer_ns(t, bytes, n ? bytes / n : bytes);
}

/* ---- engines ----------------------------------------------------------------------------------------------------- */

double price_instructions_ns(enum target t, enum sim_cost_rule rule, int64_t n, int64_t elements) {
  const struct sim_rule_def *def = sim_rule_def(rule);
  const double cycle = (double)sim_cycles_ps(1000, def->engine, t) / 1000 / SIM_PS_PER_NS;
  return (double)n * (constant_ns(def->hold, t) + (double)elements * def->slope[t] / 100 * cycle);
}

double price_rows_ns(enum target t, enum sim_cost_rule rule, int64_t rows, int64_t columns) {
  const int64_t tiles = parts(rows, NISA_PARTITIONS), runs = parts(columns, FREE_MAX);
  return price_instructions_ns(t, rule, tiles * runs, 0) + price_instructions_ns(t, rule, 1, tiles * columns) -
         price_instructions_ns(t, rule, 1, 0);
}

double price_product_ns(enum target t, int64_t m, int64_t k, int64_t n, int64_t element_bytes) {
  const int64_t tiles = parts(m, NISA_PARTITIONS) * parts(k, NISA_PARTITIONS), least = sim_constant(SIM_TENSOR_MIN, t),
                runs = parts(n, COLUMNS_OF_A_BANK), cycles = n > runs * least ? n : runs * least;
  const int64_t passes = element_bytes == 4 ? sim_constant(SIM_TENSOR_F32, t) : 1;
  return (double)sim_cycles_ps(tiles * cycles * passes, NISA_ENGINE_TENSOR, t) / SIM_PS_PER_NS;
}

double price_transpose_ns(enum target t, int64_t rows, int64_t columns, int64_t element_bytes) {
  const int64_t tiles = parts(rows, NISA_PARTITIONS) * parts(columns, NISA_PARTITIONS);
  const int64_t run = rows < NISA_PARTITIONS ? rows : NISA_PARTITIONS;
  return (double)tiles * price_product_ns(t, 1, 1, run, element_bytes) +
         price_instructions_ns(t, SIM_COST_VECTOR_COPY, tiles, run);
}

double price_copy_ns(enum target t, MlirValue v) {
  const struct price_shape s = price_shape_of(v);
  if (memrefs_is_on_chip(v))
    return price_rows_ns(t, SIM_COST_VECTOR_COPY, s.rows, s.columns);
  return price_transfer_ns(t, price_bytes(&s), s.columns * s.element_bytes);
}

double price_away_ns(enum target t, MlirValue v) {
  const struct price_shape s = price_shape_of(v);
  return 2 * price_transfer_ns(t, price_bytes(&s), s.columns * s.element_bytes);
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

const char *price_text(struct arena *a, double ns) {
  const double us = ns / 1000;
  if (ns < 0.5)
    return "nothing";
  return arena_printf(a, "about %.*f us", us < 1 ? 3 : us < 100 ? 1 : 0, us);
}

const char *price_count(struct arena *a, int64_t n, const char *what) {
  return arena_printf(a, "%" PRId64 " %s%s", n, what, n == 1 ? "" : "s");
}

void price_chosen(struct remark *r, double ns) {
  if (r)
    remark_cost(r, "%s", price_text(r->arena, ns));
}

void price_instead(struct remark *r, const char *choice, double ns, const char *reason) {
  if (r)
    remark_reject_for(r, choice, NULL, price_text(r->arena, ns), reason);
}
