/* compose: see compose.h. */
#include "nki/compose.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define VIEW(name) (nki_value(c, name)->view)

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* A temporary tensor with a row of v's elements in each partition. */
static struct nki_view *temp_like(struct nki_steps *s, const struct nki_view *v, enum dtype dtype) {
  assert(s->n_temps < NKI_TEMPS_MAX);
  struct nki_tensor *t = arena_new(s->arena, struct nki_tensor);
  *t = (struct nki_tensor){.number = s->first_temp + s->n_temps,
                           .dtype = dtype,
                           .space = MEM_SBUF,
                           .rank = 2,
                           .dims = {v->dim[0].size, nki_free_elements(v)},
                           .input = -1};
  s->temp[s->n_temps++] = t;
  struct nki_view *whole = arena_new(s->arena, struct nki_view);
  *whole = nki_whole(t);
  return whole;
}

static struct nki_call *add_step(struct nki_steps *s, const struct nki_call *c, enum nki_call_kind kind,
                                 enum nisa_engine engine) {
  assert(s->n < NKI_STEPS_MAX);
  struct nki_call *step = &s->step[s->n++];
  *step = (struct nki_call){.kind = kind, .engine = engine, .in_order = c->in_order, .locs = c->locs};
  return step;
}

static void set(struct nki_call *step, const char *name, struct nki_value v) {
  step->value[nki_value(step, name) - step->value] = v;
}
static void set_view(struct nki_call *step, const char *name, struct nki_view *v) {
  set(step, name, (struct nki_value){.kind = NKI_VIEW, .view = v});
}
static void set_op(struct nki_call *step, const char *name, const char *op) {
  set(step, name, (struct nki_value){.kind = NKI_OP, .op = nki_op_find(op)});
}
static void set_flag(struct nki_call *step, const char *name, bool v) {
  set(step, name, (struct nki_value){.kind = NKI_FLAG, .integer = v});
}

/* dst = op over the free dimensions of data */
static void add_reduce(struct nki_steps *s, const struct nki_call *c, struct nki_view *dst, const struct nki_op *op,
                       struct nki_view *data) {
  struct nki_call *r = add_step(s, c, NKI_TENSOR_REDUCE, NISA_ENGINE_VECTOR);
  int64_t *axes = arena_new_array(s->arena, int64_t, NKI_RANK_MAX);
  for (int k = 1; k < data->rank; k++)
    axes[k - 1] = k;
  set_view(r, "dst", dst);
  set_view(r, "data", data);
  set(r, "op", (struct nki_value){.kind = NKI_OP, .op = op});
  set(r, "axis", (struct nki_value){.kind = NKI_LIST, .n = data->rank - 1, .ints = axes});
}

/* ---- accumulator registers --------------------------------------------------------------------------------------- */

enum nki_registers nki_registers_of(const struct nki_call *c) {
  switch (c->kind) {
  case NKI_ACTIVATION:
  case NKI_ACTIVATION_REDUCE:
  case NKI_ACTIVATE2:
    return NKI_SCALAR_REGISTERS;
  case NKI_TENSOR_SCALAR_REDUCE:
  case NKI_TENSOR_SCALAR_CUMULATIVE:
  case NKI_RANGE_SELECT:
  case NKI_SELECT_REDUCE:
  case NKI_EXPONENTIAL:
    return NKI_VECTOR_REGISTERS;
  default:
    return NKI_REGISTERS;
  }
}

const char *nki_reduce_cmd(const struct nki_call *c) {
  if (c->kind == NKI_ACTIVATION_REDUCE)
    return "reset_reduce";
  if (nki_value(c, "reduce_cmd")->kind == NKI_WORD)
    return nki_value(c, "reduce_cmd")->word;
  if (c->kind == NKI_TENSOR_SCALAR_CUMULATIVE || c->kind == NKI_TENSOR_SCALAR_REDUCE || c->kind == NKI_RANGE_SELECT ||
      nki_value(c, "reduce_res")->kind == NKI_VIEW)
    return "reset_reduce";
  return "idle";
}

bool nki_needs_registers(const struct nki_call *c) {
  if (nki_registers_of(c) == NKI_REGISTERS)
    return false;
  const char *cmd = nki_reduce_cmd(c);
  const bool has_result = c->kind != NKI_TENSOR_SCALAR_CUMULATIVE && nki_value(c, "reduce_res")->kind == NKI_VIEW;
  return !strcmp(cmd, "reduce") || !strcmp(cmd, "reset") || (!strcmp(cmd, "idle") && has_result);
}

/* The registers of the partitions of v; NULL if the program needs none. */
static struct nki_view *registers_for(struct nki_steps *s, const struct nki_call *c, const struct nki_view *v) {
  struct nki_tensor *t = s->registers[nki_registers_of(c)];
  if (!t)
    return NULL;
  struct nki_view *out = arena_new(s->arena, struct nki_view);
  *out = nki_whole(t);
  out->partition = v->partition;
  out->dim[0].size = v->dim[0].size;
  struct nki_term *terms = arena_new_array(s->arena, struct nki_term, NKI_TERMS_MAX);
  for (int i = 0; i < v->n_terms; i++) /* they move over the partitions as v does */
    if (v->terms[i].partition)
      terms[out->n_terms++] = (struct nki_term){.loop = v->terms[i].loop, .partition = v->terms[i].partition};
  out->terms = terms;
  return out;
}

static struct nki_view *temp_column(struct nki_steps *s, const struct nki_view *v) {
  struct nki_view column = *v;
  column.rank = 2;
  column.dim[1] = (struct nki_dim){1, 1};
  return temp_like(s, &column, DT_F32);
}

static void add_number(struct nki_steps *s, const struct nki_call *c, struct nki_view *dst, double v) {
  struct nki_call *w = add_step(s, c, NKI_MEMSET, NISA_ENGINE_VECTOR);
  set_view(w, "dst", dst);
  set(w, "value", (struct nki_value){.kind = NKI_FLOAT, .number = v});
}

/* dst = src op operand */
static struct nki_call *add_scalar(struct nki_steps *s, const struct nki_call *c, struct nki_view *dst,
                                   struct nki_view *src, const char *op, struct nki_value operand) {
  struct nki_call *t = add_step(s, c, NKI_TENSOR_SCALAR, NISA_ENGINE_VECTOR);
  set_view(t, "dst", dst);
  set_view(t, "data", src);
  set_op(t, "op0", op);
  set(t, "operand0", operand);
  return t;
}

static struct nki_value number(double v) {
  return (struct nki_value){.kind = NKI_FLOAT, .number = v};
}

/* dst = x op y */
static void add_tensors(struct nki_steps *s, const struct nki_call *c, struct nki_view *dst, struct nki_view *x,
                        struct nki_view *y, const char *op) {
  struct nki_call *t = add_step(s, c, NKI_TENSOR_TENSOR, NISA_ENGINE_VECTOR);
  set_view(t, "dst", dst);
  set_view(t, "data1", x);
  set_view(t, "data2", y);
  set_op(t, "op", op);
}

/* Where a reduction by `op` starts. */
static double start_of(const char *op) {
  return !strcmp(op, "multiply")  ? 1
         : !strcmp(op, "max")     ? -INFINITY
         : !strcmp(op, "min")     ? INFINITY
         : !strcmp(op, "abs_min") ? INFINITY
                                  : 0;
}

/* reduce_res = the registers, or minus them */
static void add_result(struct nki_steps *s, const struct nki_call *c, struct nki_view *registers, bool negate) {
  const struct nki_value *res = nki_value(c, "reduce_res");
  if (res->kind != NKI_VIEW || (registers == res->view && !negate))
    return;
  if (negate) {
    add_scalar(s, c, res->view, registers, "multiply", number(-1));
    return;
  }
  struct nki_call *copy = add_step(s, c, NKI_TENSOR_COPY, NISA_ENGINE_VECTOR);
  set_view(copy, "dst", res->view);
  set_view(copy, "src", registers);
}

/* What the call's reduce_cmd asks for: `op` over the free dimensions of t, which is f32. */
static void add_reduction(struct nki_steps *s, const struct nki_call *c, const char *op, struct nki_view *t,
                          double init, bool negate) {
  const struct nki_value *res = nki_value(c, "reduce_res");
  const char *cmd = nki_reduce_cmd(c);
  struct nki_view *registers = registers_for(s, c, t);
  const bool reduces = strstr(cmd, "reduce") != NULL;
  if (!registers && res->kind != NKI_VIEW)
    return;
  if (!registers)
    registers = negate || !strcmp(cmd, "load_reduce") ? temp_column(s, t) : res->view;
  if (!strcmp(cmd, "reset"))
    add_number(s, c, registers, start_of(op));
  if (reduces) {
    struct nki_view *now = !strcmp(cmd, "reduce") ? temp_column(s, t) : registers;
    add_reduce(s, c, now, nki_op_find(op), t);
    if (now != registers)
      add_tensors(s, c, registers, registers, now, op);
    if (!strcmp(cmd, "load_reduce"))
      add_scalar(s, c, registers, registers, op, number(init));
  }
  add_result(s, c, registers, negate);
}

/* ---- writes ------------------------------------------------------------------------------------------------------ */

/* dst = v, which is a tensor or a number */
static void add_write(struct nki_steps *s, const struct nki_call *c, struct nki_view *dst, const struct nki_value *v) {
  struct nki_call *w = add_step(s, c, v->kind == NKI_VIEW ? NKI_TENSOR_COPY : NKI_MEMSET, NISA_ENGINE_VECTOR);
  set_view(w, "dst", dst);
  set(w, v->kind == NKI_VIEW ? "src" : "value", *v);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* t = data op0 operand0;  reduce_res = reduce_op over t;  dst = t.  If dst is f32, it is t. */
static void compose_scalar_reduce(struct nki_steps *s, const struct nki_call *c) {
  struct nki_view *dst = VIEW("dst"), *t = dst->tensor->dtype == DT_F32 ? dst : temp_like(s, dst, DT_F32);
  struct nki_call *first = add_step(s, c, NKI_TENSOR_SCALAR, NISA_ENGINE_VECTOR);
  set_view(first, "dst", t);
  set_view(first, "data", VIEW("data"));
  set(first, "op0", *nki_value(c, "op0"));
  set(first, "operand0", *nki_value(c, "operand0"));
  set(first, "reverse0", *nki_value(c, "reverse0"));
  add_reduction(s, c, nki_value(c, "reduce_op")->op->nisa, t, nki_value(c, "reduce_init")->number,
                nki_value(c, "reduce_res_negate")->integer);
  if (t != dst)
    add_write(s, c, dst, &(struct nki_value){.kind = NKI_VIEW, .view = t});
}

/* dst = one of both;  dst = the other where the predicate says so.  The first is the one that is in dst already, if any. */
static void add_select(struct nki_steps *s, const struct nki_call *c, struct nki_view *dst, struct nki_view *predicate,
                       bool reverse, const struct nki_value *on_true, const struct nki_value *on_false) {
  const bool false_first = on_false->kind == NKI_VIEW && nki_is_same(on_false->view->tensor, dst->tensor);
  add_write(s, c, dst, false_first ? on_false : on_true);
  struct nki_call *p = add_step(s, c, NKI_TENSOR_COPY_PREDICATED, NISA_ENGINE_VECTOR);
  set_view(p, "dst", dst);
  set(p, "src", false_first ? *on_true : *on_false);
  set_view(p, "predicate", predicate);
  set_flag(p, "reverse_pred", false_first ? reverse : !reverse);
}

static void compose_select(struct nki_steps *s, const struct nki_call *c) {
  const bool reduces = strstr(nki_reduce_cmd(c), "reduce") != NULL;
  struct nki_view *dst = VIEW("dst");
  struct nki_view *t = reduces && dst->tensor->dtype != DT_F32 ? temp_like(s, dst, DT_F32) : dst;
  add_select(s, c, t, VIEW("predicate"), nki_value(c, "reverse_pred")->integer, nki_value(c, "on_true"),
             nki_value(c, "on_false"));
  add_reduction(s, c, "max", t, 0, false);
  if (t != dst)
    add_write(s, c, dst, &(struct nki_value){.kind = NKI_VIEW, .view = t});
}

/* t = the affine numbers, as f32, which keeps their signs;  mask = t cmp_op 0;  dst = the tile or the number. */
static void compose_affine_select(struct nki_steps *s, const struct nki_call *c) {
  struct nki_view *t = temp_like(s, VIEW("dst"), DT_F32), *mask = temp_like(s, VIEW("dst"), DT_U8);
  struct nki_call *numbers = add_step(s, c, NKI_IOTA, NISA_ENGINE_GPSIMD);
  set_view(numbers, "dst", t);
  set(numbers, "pattern", *nki_value(c, "pattern"));
  set(numbers, "offset", *nki_value(c, "offset"));
  set(numbers, "channel_multiplier", *nki_value(c, "channel_multiplier"));
  struct nki_call *compare = add_step(s, c, NKI_TENSOR_SCALAR, NISA_ENGINE_VECTOR);
  set_view(compare, "dst", mask);
  set_view(compare, "data", t);
  set_op(compare, "op0", nki_value(c, "cmp_op")->kind == NKI_OP ? nki_value(c, "cmp_op")->op->name : "equal");
  set(compare, "operand0", (struct nki_value){.kind = NKI_FLOAT});
  add_select(s, c, VIEW("dst"), mask, false, nki_value(c, "on_true_tile"), nki_value(c, "on_false_value"));
}

/* i = the indices;  below = i comp_op0 bound0;  above = i comp_op1 bound1;  mask = both;  dst = the tile or the number. */
static void compose_range_select(struct nki_steps *s, const struct nki_call *c) {
  struct nki_view *dst = VIEW("dst"), *i = temp_like(s, dst, DT_F32), *other = temp_like(s, dst, DT_F32),
                  *mask = temp_like(s, dst, DT_U8);
  struct nki_view *t = dst->tensor->dtype == DT_F32 ? dst : i;
  const struct nki_value *start = nki_value(c, "range_start"), *on_false = nki_value(c, "on_false_value");
  int64_t *ints = arena_new_array(s->arena, int64_t, 3);
  ints[0] = 1, ints[1] = nki_free_elements(dst), ints[2] = (int64_t)start->number;
  struct nki_call *numbers = add_step(s, c, NKI_IOTA, NISA_ENGINE_GPSIMD);
  set_view(numbers, "dst", i);
  set(numbers, "pattern", (struct nki_value){.kind = NKI_LIST, .n = 2, .ints = ints});
  set(numbers, "offset", (struct nki_value){.kind = NKI_LIST, .n = 1, .ints = ints + 2});
  add_scalar(s, c, other, i, nki_value(c, "comp_op0")->op->name, *nki_value(c, "bound0"));
  add_scalar(s, c, i, i, nki_value(c, "comp_op1")->op->name, *nki_value(c, "bound1"));
  add_tensors(s, c, mask, i, other, "logical_and");
  const struct nki_value missing = number(-3.4028234663852886e38);
  add_select(s, c, t, mask, false, nki_value(c, "on_true_tile"), on_false->kind == NKI_ABSENT ? &missing : on_false);
  add_reduction(s, c, "max", t, 0, false);
  if (t != dst)
    add_write(s, c, dst, &(struct nki_value){.kind = NKI_VIEW, .view = t});
}

static struct nki_call *add_function(struct nki_steps *s, const struct nki_call *c, struct nki_view *dst,
                                     const char *op, struct nki_view *data) {
  struct nki_call *a = add_step(s, c, NKI_ACTIVATION, NISA_ENGINE_SCALAR);
  set_view(a, "dst", dst);
  set_op(a, "op", op);
  set_view(a, "data", data);
  return a;
}

/* t = exp(src - max_value), by the Scalar engine;  dst = t */
static void compose_exponential(struct nki_steps *s, const struct nki_call *c) {
  const struct nki_value *most = nki_value(c, "max_value");
  struct nki_view *dst = VIEW("dst"), *t = dst->tensor->dtype == DT_F32 ? dst : temp_like(s, dst, DT_F32);
  struct nki_value bias = number(-most->number);
  if (most->kind == NKI_VIEW) {
    struct nki_view *column = temp_column(s, dst);
    add_scalar(s, c, column, most->view, "multiply", number(-1));
    bias = (struct nki_value){.kind = NKI_VIEW, .view = column};
  }
  set(add_function(s, c, t, "exp", VIEW("src")), "bias", bias);
  add_reduction(s, c, "add", t, nki_value(c, "reduce_init")->number, false);
  if (t != dst)
    add_write(s, c, dst, &(struct nki_value){.kind = NKI_VIEW, .view = t});
}

/* x = (data op0 imm0) op1 imm1;  t = op(x);  dst = t.  prelu(x) is max(x, 0) + relu_param * min(x, 0). */
static void compose_activate2(struct nki_steps *s, const struct nki_call *c) {
  struct nki_view *dst = VIEW("dst"), *x = VIEW("data"), *t = temp_like(s, dst, DT_F32);
  const char *ops[] = {nki_value(c, "op0")->op->name, nki_value(c, "op1")->op->name};
  static const char *const operands[] = {"imm0", "imm1"}, *const turns[] = {"reverse0", "reverse1"};
  for (int k = 0; k < 2; k++)
    if (strcmp(ops[k], "bypass") != 0) {
      set(add_scalar(s, c, t, x, ops[k], *nki_value(c, operands[k])), "reverse0", *nki_value(c, turns[k]));
      x = t;
    }
  if (!strcmp(nki_value(c, "op")->op->name, "prelu")) {
    struct nki_view *low = temp_like(s, dst, DT_F32);
    struct nki_call *scaled = add_scalar(s, c, low, x, "min", number(0));
    set_op(scaled, "op1", "multiply");
    set(scaled, "operand1", number(nki_value(c, "relu_param")->number));
    add_scalar(s, c, t, x, "max", number(0));
    add_tensors(s, c, t, t, low, "add");
  } else
    add_function(s, c, t, nki_value(c, "op")->op->name, x);
  add_reduction(s, c, nki_value(c, "reduce_op")->kind == NKI_OP ? nki_value(c, "reduce_op")->op->nisa : "add", t, 0,
                false);
  add_write(s, c, dst, &(struct nki_value){.kind = NKI_VIEW, .view = t});
}

/* bits = random;  mask = (the high 24 bits) / 2^24 >= prob;  dst = data or 0 */
static void compose_dropout(struct nki_steps *s, const struct nki_call *c) {
  struct nki_view *dst = VIEW("dst"), *bits = temp_like(s, dst, DT_U32), *mask = temp_like(s, dst, DT_U8);
  const struct nki_value zero = number(0);
  set_view(add_step(s, c, NKI_RNG, NISA_ENGINE_VECTOR), "dst", bits);
  add_scalar(s, c, bits, bits, "right_shift", (struct nki_value){.kind = NKI_INT, .number = 8, .integer = 8});
  struct nki_call *compare = add_scalar(s, c, mask, bits, "multiply", number(0x1p-24));
  set_op(compare, "op1", "greater_equal");
  set(compare, "operand1", *nki_value(c, "prob"));
  add_select(s, c, dst, mask, false, nki_value(c, "data"), &zero);
}

/* dst = op(data * scale + bias), with the sum added to the registers.  False if no registers are needed: then the call is
 * one instruction. */
static bool compose_activation(struct nki_steps *s, const struct nki_call *c) {
  struct nki_view *registers = registers_for(s, c, VIEW("data"));
  static const char *const passed[] = {"dst", "op", "data", "bias", "scale"};
  if (!registers)
    return false;
  const char *cmd = nki_reduce_cmd(c);
  struct nki_call *a = add_step(s, c, NKI_ACTIVATION, NISA_ENGINE_SCALAR);
  for (size_t k = 0; k < sizeof passed / sizeof *passed; k++)
    set(a, passed[k], *nki_value(c, passed[k]));
  if (strstr(cmd, "reduce")) {
    set_view(a, "reduce_res", registers);
    set(a, "reduce_cmd", (struct nki_value){.kind = NKI_WORD, .word = cmd});
  } else if (!strcmp(cmd, "reset"))
    add_number(s, c, registers, 0);
  add_result(s, c, registers, false);
  return true;
}

/* The running result goes on from the registers, and its last element is what they have then. */
static bool compose_cumulative(struct nki_steps *s, const struct nki_call *c) {
  struct nki_view *dst = VIEW("dst"), *registers = registers_for(s, c, dst);
  if (!registers)
    return false;
  struct nki_view *t = temp_like(s, dst, DT_F32), *last = arena_dup(s->arena, t, sizeof *t);
  struct nki_call *scan = add_step(s, c, NKI_TENSOR_SCALAR_CUMULATIVE, NISA_ENGINE_VECTOR);
  *scan = nki_call_copy(c);
  set_view(scan, "dst", t);
  if (!strcmp(nki_reduce_cmd(c), "reduce"))
    set_view(scan, "imm1", registers);
  last->offset = last->dim[1].size - 1;
  last->dim[1].size = 1;
  struct nki_call *keep = add_step(s, c, NKI_TENSOR_COPY, NISA_ENGINE_VECTOR);
  set_view(keep, "dst", registers);
  set_view(keep, "src", last);
  add_write(s, c, dst, &(struct nki_value){.kind = NKI_VIEW, .view = t});
  return true;
}

bool nki_compose(const struct nki_call *c, struct nki_steps *out) {
  switch (c->kind) {
  case NKI_TENSOR_SCALAR_REDUCE:
    compose_scalar_reduce(out, c);
    return true;
  case NKI_SELECT_REDUCE:
    compose_select(out, c);
    return true;
  case NKI_AFFINE_SELECT:
    compose_affine_select(out, c);
    return true;
  case NKI_RANGE_SELECT:
    compose_range_select(out, c);
    return true;
  case NKI_EXPONENTIAL:
    compose_exponential(out, c);
    return true;
  case NKI_ACTIVATE2:
    compose_activate2(out, c);
    return true;
  case NKI_DROPOUT:
    compose_dropout(out, c);
    return true;
  case NKI_ACTIVATION:
  case NKI_ACTIVATION_REDUCE:
    return compose_activation(out, c);
  case NKI_TENSOR_SCALAR_CUMULATIVE:
    return compose_cumulative(out, c);
  default:
    return false;
  }
}
