/* compose: see compose.h. */
#include "nki/compose.h"

#include <assert.h>
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
  *step = (struct nki_call){.kind = kind, .engine = engine, .locs = c->locs};
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

/* dst = v, which is a tensor or a number */
static void add_write(struct nki_steps *s, const struct nki_call *c, struct nki_view *dst, const struct nki_value *v) {
  struct nki_call *w = add_step(s, c, v->kind == NKI_VIEW ? NKI_TENSOR_COPY : NKI_MEMSET, NISA_ENGINE_VECTOR);
  set_view(w, "dst", dst);
  set(w, v->kind == NKI_VIEW ? "src" : "value", *v);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* t = data op0 operand0;  dst = t op1 operand1 */
static void compose_scalar_tensor(struct nki_steps *s, const struct nki_call *c) {
  struct nki_view *t = temp_like(s, VIEW("dst"), DT_F32);
  const bool turned = nki_value(c, "reverse1")->integer;
  struct nki_call *first = add_step(s, c, NKI_TENSOR_SCALAR, NISA_ENGINE_VECTOR);
  set_view(first, "dst", t);
  set_view(first, "data", VIEW("data"));
  set(first, "op0", *nki_value(c, "op0"));
  set(first, "operand0", *nki_value(c, "operand0"));
  set(first, "reverse0", *nki_value(c, "reverse0"));
  struct nki_call *second = add_step(s, c, NKI_TENSOR_TENSOR, NISA_ENGINE_VECTOR);
  set_view(second, "dst", VIEW("dst"));
  set_view(second, turned ? "data2" : "data1", t);
  set_view(second, turned ? "data1" : "data2", VIEW("operand1"));
  set(second, "op", *nki_value(c, "op1"));
}

/* t = data op0 operand0;  reduce_res = reduce_op over t;  dst = t.  If dst is f32, it is t. */
static void compose_scalar_reduce(struct nki_steps *s, const struct nki_call *c) {
  struct nki_view *dst = VIEW("dst"), *t = dst->tensor->dtype == DT_F32 ? dst : temp_like(s, dst, DT_F32);
  struct nki_call *first = add_step(s, c, NKI_TENSOR_SCALAR, NISA_ENGINE_VECTOR);
  set_view(first, "dst", t);
  set_view(first, "data", VIEW("data"));
  set(first, "op0", *nki_value(c, "op0"));
  set(first, "operand0", *nki_value(c, "operand0"));
  set(first, "reverse0", *nki_value(c, "reverse0"));
  if (nki_value(c, "reduce_res")->kind == NKI_VIEW)
    add_reduce(s, c, VIEW("reduce_res"), nki_value(c, "reduce_op")->op, t);
  if (t != dst)
    add_write(s, c, dst, &(struct nki_value){.kind = NKI_VIEW, .view = t});
}

/* dst = one of both;  dst = the other where the predicate says so.  The first is the one that is in dst already, if any. */
static void add_select(struct nki_steps *s, const struct nki_call *c, struct nki_view *dst, struct nki_view *predicate,
                       bool reverse, const struct nki_value *on_true, const struct nki_value *on_false) {
  const bool false_first = on_false->kind == NKI_VIEW && on_false->view->tensor == dst->tensor;
  add_write(s, c, dst, false_first ? on_false : on_true);
  struct nki_call *p = add_step(s, c, NKI_TENSOR_COPY_PREDICATED, NISA_ENGINE_VECTOR);
  set_view(p, "dst", dst);
  set(p, "src", false_first ? *on_true : *on_false);
  set_view(p, "predicate", predicate);
  set_flag(p, "reverse_pred", false_first ? reverse : !reverse);
}

static void compose_select(struct nki_steps *s, const struct nki_call *c) {
  const bool reduces = nki_value(c, "reduce_res")->kind == NKI_VIEW;
  struct nki_view *dst = VIEW("dst");
  struct nki_view *t = reduces && dst->tensor->dtype != DT_F32 ? temp_like(s, dst, DT_F32) : dst;
  add_select(s, c, t, VIEW("predicate"), nki_value(c, "reverse_pred")->integer, nki_value(c, "on_true"),
             nki_value(c, "on_false"));
  if (reduces)
    add_reduce(s, c, VIEW("reduce_res"), nki_op_find("maximum"), t);
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

bool nki_compose(const struct nki_call *c, struct nki_steps *out) {
  switch (c->kind) {
  case NKI_SCALAR_TENSOR_TENSOR:
    compose_scalar_tensor(out, c);
    return true;
  case NKI_TENSOR_SCALAR_REDUCE:
    compose_scalar_reduce(out, c);
    return true;
  case NKI_SELECT_REDUCE:
    compose_select(out, c);
    return true;
  case NKI_AFFINE_SELECT:
    compose_affine_select(out, c);
    return true;
  default:
    return false;
  }
}
