/* cost: the formulas of cost.def. */
#include "sim/cost.h"

#include <assert.h>

static const struct sim_constant_def constants[] = {
#define SIM_CONSTANT(e, unit, v1, v2, v3, c1, c2, c3, what, source) \
  [e] = {what, source, SIM_UNIT_##unit, {v1, v2, v3}, {SIM_CONFIDENCE_##c1, SIM_CONFIDENCE_##c2, SIM_CONFIDENCE_##c3}},
#define SIM_RULE(e, name, engine, s1, s2, s3, hold, done, c1, c2, c3, formula, source)
#include "sim/cost.def"
#undef SIM_CONSTANT
#undef SIM_RULE
};

static const struct sim_rule_def rules[] = {
#define SIM_CONSTANT(e, unit, v1, v2, v3, c1, c2, c3, what, source)
#define SIM_RULE(e, name, engine, s1, s2, s3, hold, done, c1, c2, c3, formula, source) \
  [e] = {name,         formula, source, NISA_ENGINE_##engine, \
         {s1, s2, s3}, hold,    done,   {SIM_CONFIDENCE_##c1, SIM_CONFIDENCE_##c2, SIM_CONFIDENCE_##c3}},
#include "sim/cost.def"
#undef SIM_CONSTANT
#undef SIM_RULE
};

const struct sim_constant_def *sim_constant_def(enum sim_constant c) {
  assert(c >= 0 && c < SIM_CONSTANT_COUNT);
  return &constants[c];
}

const struct sim_rule_def *sim_rule_def(enum sim_cost_rule r) {
  assert(r >= 0 && r < SIM_COST_COUNT);
  return &rules[r];
}

int64_t sim_constant(enum sim_constant c, enum target t) {
  return sim_constant_def(c)->value[t];
}

int64_t sim_constant_ps(enum sim_constant c, enum target t) {
  assert(constants[c].unit == SIM_UNIT_NS || constants[c].unit == SIM_UNIT_PS);
  return constants[c].value[t] * (constants[c].unit == SIM_UNIT_NS ? SIM_PS_PER_NS : 1);
}

static int64_t divide_up(int64_t n, int64_t by) {
  return (n + by - 1) / by;
}

static int64_t clock_mhz(enum nisa_engine e, enum target t) {
  switch (e) {
  case NISA_ENGINE_TENSOR:
    return sim_constant(SIM_TENSOR_MHZ, t);
  case NISA_ENGINE_VECTOR:
    return sim_constant(SIM_VECTOR_MHZ, t);
  case NISA_ENGINE_SCALAR:
    return sim_constant(SIM_SCALAR_MHZ, t);
  case NISA_ENGINE_GPSIMD:
    return sim_constant(SIM_GPSIMD_MHZ, t);
  default:
    return sim_constant(SIM_SYNC_MHZ, t);
  }
}

int64_t sim_cycles_ps(int64_t cycles, enum nisa_engine e, enum target t) {
  const int64_t mhz = clock_mhz(e, t);
  return (cycles * 1000000 + mhz / 2) / mhz;
}

int64_t sim_cost_signal(enum nisa_engine from, enum nisa_engine to, enum target t) {
  if (from == NISA_ENGINE_DMA)
    return sim_constant_ps(SIM_SIGNAL_DMA, t);
  if (from == to)
    return sim_constant_ps(SIM_SIGNAL_SELF, t);
  if (from == NISA_ENGINE_TENSOR)
    return sim_constant_ps(SIM_SIGNAL_TENSOR, t);
  return sim_constant_ps(to == NISA_ENGINE_TENSOR ? SIM_SIGNAL_TO_TENSOR : SIM_SIGNAL, t);
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

/* An access through a register names a buffer that is known only at run time: MEM_NONE. */
static enum mem_space space_of(const struct sim_program *p, const struct sim_operand *o) {
  return o->kind == SIM_ACCESS && o->buffer >= 0 ? p->buffers[o->buffer].space : MEM_NONE;
}

static bool is_half(const struct sim_operand *o) {
  return o->type == SIM_BF16 || o->type == SIM_F16;
}

static bool is_in_sbuf(const struct sim_program *p, const struct sim_operand *o) {
  return o->kind == SIM_ACCESS && space_of(p, o) != MEM_PSUM;
}

/* The operand of this name, which the instruction may lack. */
static const struct sim_operand *named(const struct sim_instr *i, const char *name) {
  static const struct sim_operand absent = {SIM_ABSENT};
  for (int k = 0; k < i->def->n_operands; k++) {
    const char *a = i->def->operand[k].name, *b = name;
    while (*a && *a == *b)
      a++, b++;
    if (*a == *b)
      return &i->operand[k];
  }
  return &absent;
}

/* Elements of each partition of the largest operand. */
static int64_t longest(const struct sim_instr *i) {
  int64_t n = 1;
  for (int k = 0; k < i->def->n_operands; k++)
    if (i->operand[k].kind == SIM_ACCESS && i->operand[k].elements > n)
      n = i->operand[k].elements;
  return n;
}

int64_t sim_run_elements(const struct sim_program *p, const struct sim_operand *o) {
  const int first = mem_is_on_chip(space_of(p, o)) ? o->par_dims : 0;
  int64_t n = 1;
  for (int k = o->n_dims - 1; k >= first; k--) {
    if (o->dim[k].n == 1)
      continue;
    if (o->dim[k].step != n * sim_type_bytes(o->type))
      break;
    n *= o->dim[k].n;
  }
  return n;
}

static bool is_contiguous(const struct sim_program *p, const struct sim_operand *o) {
  return sim_run_elements(p, o) >= o->elements;
}

/* ---- engines ----------------------------------------------------------------------------------------------------- */

/* Vector's modes for copies and tensor_scalar: elements per cycle. */
static int64_t vector_mode(const struct sim_program *p, const struct sim_operand *dst, const struct sim_operand *src,
                           enum target t) {
  if (t == TARGET_TRN1 || (!is_in_sbuf(p, dst) && !is_in_sbuf(p, src)))
    return 1;
  const bool in_sbuf = is_in_sbuf(p, dst) && is_in_sbuf(p, src);
  if (is_half(dst) && is_half(src))
    return in_sbuf && is_contiguous(p, dst) && is_contiguous(p, src) ? 4 : 2;
  return in_sbuf && dst->type == SIM_F32 && src->type == SIM_F32 ? 2 : 1;
}

/* Elements per cycle for two inputs, in halves of the rule's 2N cycles. */
static int64_t two_input_mode(const struct sim_program *p, const struct sim_operand *dst, const struct sim_operand *x,
                              const struct sim_operand *y) {
  if (x->kind != SIM_ACCESS || y->kind != SIM_ACCESS)
    return 2;
  if (!is_in_sbuf(p, x) || !is_in_sbuf(p, y))
    return 2;
  return is_half(dst) && is_half(x) && is_half(y) && is_in_sbuf(p, dst) ? 2 : 1;
}

static bool is_pointer(const struct sim_operand *o) {
  return o->kind == SIM_ACCESS;
}

struct shape {
  enum sim_cost_rule rule;
  int64_t n, rate; /* elements; elements per cycle of slope 1 */
};

static struct shape on_vector(const struct sim_program *p, const struct sim_instr *i, enum target t) {
  const struct sim_operand *dst = &i->operand[0], *src = named(i, "src");
  struct shape s = {.n = longest(i), .rate = 1};
  switch (i->kind) {
  case NISA_TENSOR_SCALAR_ARITH:
    s.rule = SIM_COST_VECTOR_SCALAR;
    s.rate = vector_mode(p, dst, src, t);
    return s;
  case NISA_TENSOR_TENSOR_ARITH:
  case NISA_TENSOR_TENSOR_POWER:
    s.rule = SIM_COST_VECTOR_TENSOR;
    s.rate = two_input_mode(p, dst, &i->operand[1], &i->operand[2]);
    return s;
  case NISA_SCALAR_TENSOR_TENSOR:
    s.rule = SIM_COST_SCALAR_TENSOR;
    s.rate = is_half(src) && is_half(named(i, "operand1")) && i->op[0] == SIM_SUBTRACT && i->op[1] == SIM_MULTIPLY &&
                     s.n % 2 == 0
                 ? 2
                 : 1;
    return s;
  case NISA_TENSOR_COPY_PREDICATED:
    s.rule = SIM_COST_VECTOR_PREDICATED;
    s.rate = two_input_mode(p, dst, src, named(i, "predicate"));
    return s;
  case NISA_TENSOR_REDUCE_ARITH:
    s.rule = SIM_COST_VECTOR_REDUCE;
    s.rate = dst->type == SIM_BF16 && src->type == SIM_BF16 && (i->op[0] == SIM_ADD || i->op[0] == SIM_MAX) ? 2 : 1;
    return s;
  case NISA_RECIPROCAL:
    s.rule = SIM_COST_RECIPROCAL;
    return s;
  case NISA_TENSOR_TENSOR_SCAN:
    s.rule = SIM_COST_SCAN;
    return s;
  case NISA_TENSOR_SCALAR_CUMULATIVE:
    s.rule = SIM_COST_CUMULATIVE;
    return s;
  case NISA_BN_STATS:
    s.rule = SIM_COST_BN_STATS;
    return s;
  case NISA_BN_AGGR:
    s.rule = SIM_COST_BN_AGGR;
    return s;
  case NISA_MAX8:
  case NISA_FIND_INDEX8:
  case NISA_MATCH_REPLACE8:
    s.rule = SIM_COST_EIGHT;
    return s;
  case NISA_QUANTIZE_MX:
    s.rule = SIM_COST_QUANTIZE;
    return s;
  case NISA_STREAM_SHUFFLE:
    s.rule = SIM_COST_SHUFFLE;
    return s;
  case NISA_TRANSPOSE:
    s.rule = SIM_COST_VECTOR_TRANSPOSE;
    return s;
  case NISA_TOPK:
    s.rule = SIM_COST_TOPK;
    s.n = 4 * named(i, "src")->elements + named(i, "dst")->elements;
    return s;
  case NISA_RANDOM:
  case NISA_RANDOM_SEED:
  case NISA_RANDOM_SET_STATE:
  case NISA_RANDOM_GET_STATE:
    s.rule = SIM_COST_RANDOM;
    return s;
  case NISA_MEMSET:
    s.rule = SIM_COST_VECTOR_MEMSET;
    s.rate = is_half(dst) ? 2 : 1;
    return s;
  default:
    s.rule = SIM_COST_VECTOR_COPY;
    s.rate = vector_mode(p, dst, src, t);
    return s;
  }
}

static struct shape on_gpsimd(const struct sim_instr *i) {
  struct shape s = {.n = longest(i), .rate = 1};
  switch (i->kind) {
  case NISA_TENSOR_SCALAR_ARITH:
    s.rule = SIM_COST_GPSIMD_SCALAR;
    return s;
  case NISA_TENSOR_TENSOR_ARITH:
  case NISA_TENSOR_COPY_PREDICATED:
    s.rule = SIM_COST_GPSIMD_TENSOR;
    return s;
  case NISA_TENSOR_TENSOR_POWER:
    s.rule = SIM_COST_POWER;
    return s;
  case NISA_TENSOR_REDUCE_ARITH:
    s.rule = SIM_COST_GPSIMD_REDUCE;
    return s;
  case NISA_CROSS_LANE_REDUCE_ARITH:
    s.rule = SIM_COST_CROSS_LANE;
    for (int64_t k = 1; k < named(i, "src")->partitions; k *= 2)
      s.rate++; /* rounds, see below */
    s.n *= s.rate > 1 ? s.rate - 1 : 1;
    s.rate = 1;
    return s;
  case NISA_GATHER:
  case NISA_LOCAL_GATHER:
    s.rule = SIM_COST_GATHER;
    return s;
  case NISA_SEQUENCE_BOUNDS:
  case NISA_NONZERO_WITH_COUNT:
    s.rule = SIM_COST_PLACES;
    return s;
  case NISA_RANDOM:
  case NISA_RANDOM_SEED:
  case NISA_RANDOM_SET_STATE:
  case NISA_RANDOM_GET_STATE:
    s.rule = SIM_COST_GPSIMD_RANDOM;
    return s;
  case NISA_MEMSET:
    s.rule = SIM_COST_GPSIMD_MEMSET;
    return s;
  case NISA_IOTA:
    s.rule = SIM_COST_IOTA;
    return s;
  default:
    s.rule = SIM_COST_GPSIMD_COPY;
    return s;
  }
}

/* Functions whose tables are loaded together; the others need none. */
static int table_of(enum sim_operator o) {
  switch (o) {
  case SIM_EXP:
    return 1;
  case SIM_LOG:
    return 2;
  case SIM_SQRT:
  case SIM_RSQRT:
    return 3;
  case SIM_TANH:
    return 4;
  case SIM_SIN:
    return 5;
  case SIM_ERF:
  case SIM_ERF_DX:
    return 6;
  case SIM_ARCTAN:
    return 7;
  case SIM_SIGMOID:
    return 8;
  case SIM_GELU:
  case SIM_GELU_DX:
  case SIM_GELU_APPRX_TANH:
  case SIM_GELU_APPRX_SIGMOID:
  case SIM_GELU_APPRX_SIGMOID_DX:
    return 9;
  case SIM_SILU:
  case SIM_SILU_DX:
    return 10;
  case SIM_SOFTPLUS:
    return 11;
  case SIM_MISH:
    return 12;
  case SIM_RECIPROCAL:
    return 13;
  default:
    return 0;
  }
}

static struct shape on_scalar(const struct sim_instr *i, enum target t) {
  const bool is_copy = i->kind != NISA_ACTIVATION;
  struct shape s = {is_copy ? SIM_COST_SCALAR_COPY : SIM_COST_ACTIVATION, longest(i), 1};
  if (t == TARGET_TRN3 && is_half(&i->operand[0]) && is_half(named(i, "src")))
    s.rate = 2;
  return s;
}

/* The overheads besides the rule's own. */
static void add_overheads(const struct sim_program *p, const struct sim_instr *i, enum target t, struct sim_cost *c) {
  if ((c->rule == SIM_COST_VECTOR_SCALAR && (is_pointer(named(i, "operand0")) || is_pointer(named(i, "operand1")))) ||
      (c->rule == SIM_COST_SCALAR_TENSOR && is_pointer(named(i, "operand0")))) {
    c->hold += sim_constant_ps(SIM_VECTOR_POINTER_HOLD, t);
    c->done += sim_constant_ps(SIM_VECTOR_POINTER_DONE, t);
  }
  if (i->kind != NISA_ACTIVATION)
    return;
  if (is_pointer(named(i, "bias")) || is_pointer(named(i, "scale"))) {
    c->hold += sim_constant_ps(SIM_SCALAR_POINTER_HOLD, t);
    c->done += sim_constant_ps(SIM_SCALAR_POINTER_DONE, t);
  }
  c->table = table_of(i->op[0]);
  if (c->table) {
    c->hold += sim_constant_ps(SIM_SCALAR_FUNCTION_HOLD, t);
    c->done += sim_constant_ps(SIM_SCALAR_FUNCTION_DONE, t);
    if (is_in_sbuf(p, named(i, "src")))
      c->done += sim_constant_ps(SIM_SCALAR_SBUF_DONE, t);
  }
  if (named(i, "reduce_res")->kind == SIM_ACCESS) {
    const int64_t sum = sim_cycles_ps(sim_constant(SIM_SCALAR_SUM, t), NISA_ENGINE_SCALAR, t);
    c->hold += sum;
    c->done += sum;
  }
}

static void engine_cost(const struct sim_program *p, const struct sim_instr *i, struct shape s, enum target t,
                        struct sim_cost *c) {
  const struct sim_rule_def *r = sim_rule_def(s.rule);
  const int64_t mhz = clock_mhz(i->engine, t), hundredths = s.n * r->slope[t];
  const int64_t data = (hundredths * 10000 + s.rate * mhz / 2) / (s.rate * mhz);
  c->rule = s.rule;
  c->hold = data + sim_constant_ps(r->hold, t);
  c->done = data + sim_constant_ps(r->done, t);
  add_overheads(p, i, t, c);
}

static void matmul_cost(const struct sim_instr *i, enum target t, struct sim_cost *c) {
  const struct sim_operand *stationary = named(i, "stationary"), *moving = named(i, "moving");
  const int64_t columns = stationary->elements, least = sim_constant(SIM_TENSOR_MIN, t);
  const int64_t floor = columns < least ? columns : least;
  c->rule = SIM_COST_MATMUL;
  c->cycles = moving->elements > floor ? moving->elements : floor;
  c->load_cycles = divide_up(columns * sim_constant(SIM_TENSOR_LOAD, t), 100);
  if (moving->type == SIM_F32 && !(i->is_tf32[0] && i->is_tf32[1])) {
    /* Two passes, each of which loads half of the bits of the stationary operand: the second load is hidden, unless it takes
     * longer than the pass.  A transpose needs one. */
    const int64_t passes = 2, pass = c->cycles * sim_constant(SIM_TENSOR_F32, t) / passes;
    c->load_cycles *= passes;
    c->cycles = pass;
    if (!i->is_transpose || t == TARGET_TRN1)
      c->cycles += pass > c->load_cycles ? pass : c->load_cycles;
  } else if (i->kind == NISA_MATMUL_MX) {
    c->cycles = divide_up(c->cycles * sim_constant(SIM_TENSOR_MX, t), 100);
  } else if (sim_type_bytes(moving->type) == 1) {
    c->cycles = divide_up(c->cycles * sim_constant(SIM_TENSOR_MX, t), 100);
    if (i->is_double_row) {
      c->cycles = divide_up(c->cycles, 2);
      c->load_cycles = divide_up(c->load_cycles, 2);
    }
  }
}

struct sim_cost sim_cost_of(const struct sim_program *p, const struct sim_instr *i, enum target t) {
  struct sim_cost c = {.rule = SIM_COST_DMA};
  if (i->kind == NISA_REGISTER_LOAD)
    engine_cost(p, i, (struct shape){SIM_COST_REGISTER_LOAD, 0, 1}, t, &c);
  else if (i->kind == NISA_REGISTER_STORE)
    engine_cost(p, i, (struct shape){SIM_COST_REGISTER_STORE, 0, 1}, t, &c);
  else if (i->engine == NISA_ENGINE_TENSOR)
    matmul_cost(i, t, &c);
  else if (i->engine == NISA_ENGINE_VECTOR)
    engine_cost(p, i, on_vector(p, i, t), t, &c);
  else if (i->engine == NISA_ENGINE_SCALAR)
    engine_cost(p, i, on_scalar(i, t), t, &c);
  else if (i->engine == NISA_ENGINE_GPSIMD)
    engine_cost(p, i, on_gpsimd(i), t, &c);
  else
    c.dma = sim_dma_cost_of(p, i, t, &c.rule);
  c.confidence = rules[c.rule].confidence[t];
  return c;
}

int64_t sim_instr_operations(const struct sim_instr *i) {
  if (i->kind == NISA_MATMUL || i->kind == NISA_MATMUL_MX) {
    const struct sim_operand *stationary = named(i, "stationary"), *moving = named(i, "moving");
    return 2 * stationary->partitions * stationary->elements * moving->elements;
  }
  const struct sim_operand *dst = &i->operand[0];
  return i->engine == NISA_ENGINE_DMA || i->engine == NISA_ENGINE_SYNC || i->kind == NISA_REGISTER_LOAD
             ? 0
             : longest(i) * dst->partitions;
}
