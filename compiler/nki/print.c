/* print: a program in the syntax of NKI.
 *
 *     def add(a: float32[256, 512], b: float32[256, 512]):
 *       out = nl.ndarray((256, 512), nl.float32, buffer=nl.shared_hbm)
 *       x = nl.ndarray((128, 512), nl.float32, buffer=nl.sbuf)
 *       nisa.dma_copy(dst=x, src=a[0:128, :])
 *       nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)
 *       return out
 *
 * One line shows one item.  Parameters that were left out are not shown.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "nki/nki.h"

/* ---- views ------------------------------------------------------------------------------------------------------- */

/* The position in a tensor's own dimensions. */
struct spot {
  int64_t start[NKI_RANK_MAX];
  int dim_of[NKI_RANK_MAX]; /* the dimension of the view that steps along it, or -1 */
};

/* Finds the slices of the tensor's dimensions that are the view.  False if the view is not made of slices and integers
 * in their order. */
static bool find_slices(const struct nki_view *v, struct spot *out) {
  const struct nki_tensor *t = v->tensor;
  const struct nki_view whole = nki_whole(v->tensor);
  int64_t rest = v->offset;
  int next = 0;
  for (int d = 0; d < t->rank; d++) {
    const int64_t stride = whole.dim[d].stride;
    const bool partition = mem_is_on_chip(t->space) && d == 0;
    out->start[d] = partition ? v->partition : rest / stride;
    rest = partition ? rest : rest % stride;
    out->dim_of[d] = -1;
    if (next == v->rank)
      continue;
    const struct nki_dim *x = &v->dim[next];

    const bool steps = x->size > 1 && x->stride >= stride && x->stride % stride == 0;
    const bool one = x->size == 1 && t->rank - d <= v->rank - next;
    if (!steps && !one)
      continue;
    if (x->size > 1 && out->start[d] + (x->size - 1) * (x->stride / stride) >= t->dims[d])
      return false;
    out->dim_of[d] = next++;
  }
  return next == v->rank && rest == 0;
}

static const char *ap_text(struct arena *a, const struct nki_view *v) {
  const int64_t extent = nki_tensor_extent(v->tensor);
  const char *text = arena_printf(a, "%s.ap([", v->tensor->name);
  for (int i = 0; i < v->rank; i++) {
    const bool partition = nki_is_on_chip(v) && i == 0;
    text = arena_printf(a, "%s%s[%" PRId64 ", %" PRId64 "]", text, i ? ", " : "",
                        partition ? extent * v->dim[i].stride : v->dim[i].stride, v->dim[i].size);
  }
  const int64_t offset = v->offset + v->partition * (nki_is_on_chip(v) ? extent : 0);
  return offset ? arena_printf(a, "%s], offset=%" PRId64 ")", text, offset) : arena_printf(a, "%s])", text);
}

const char *nki_view_text(struct arena *a, const struct nki_view *v) {
  const struct nki_tensor *t = v->tensor;
  const struct nki_view whole = nki_whole(v->tensor);
  struct spot at;
  if (!find_slices(v, &at))
    return ap_text(a, v);
  bool is_whole = v->rank == t->rank;
  const char *text = arena_printf(a, "%s[", t->name);
  for (int d = 0; d < t->rank; d++) {
    const char *comma = d ? ", " : "";
    if (at.dim_of[d] < 0) {
      text = arena_printf(a, "%s%s%" PRId64, text, comma, at.start[d]);
      is_whole = false;
      continue;
    }
    const struct nki_dim *x = &v->dim[at.dim_of[d]];
    const int64_t step = x->size > 1 ? x->stride / whole.dim[d].stride : 1,
                  stop = at.start[d] + (x->size - 1) * step + 1;
    const bool all = at.start[d] == 0 && x->size == t->dims[d];
    is_whole &= all;
    if (all)
      text = arena_printf(a, "%s%s:", text, comma);
    else if (step == 1)
      text = arena_printf(a, "%s%s%" PRId64 ":%" PRId64, text, comma, at.start[d], stop);
    else
      text = arena_printf(a, "%s%s%" PRId64 ":%" PRId64 ":%" PRId64, text, comma, at.start[d], stop, step);
  }
  return is_whole ? t->name : arena_printf(a, "%s]", text);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void put_number(struct buf *b, double v) {
  if (isfinite(v) && v == floor(v) && fabs(v) < 1e15)
    buf_printf(b, "%.1f", v);
  else
    buf_printf(b, "%.9g", v);
}

static void put_value(struct buf *b, struct arena *a, const struct nki_param_def *def, const struct nki_value *v) {
  switch (v->kind) {
  case NKI_ABSENT:
    break;
  case NKI_VIEW:
    buf_puts(b, nki_view_text(a, v->view));
    break;
  case NKI_FLOAT:
    put_number(b, v->number);
    break;
  case NKI_INT:
    buf_printf(b, "%" PRId64, v->integer);
    break;
  case NKI_OP:
    buf_printf(b, "nl.%s", v->op->name);
    break;
  case NKI_FLAG:
    buf_puts(b, v->integer ? "True" : "False");
    break;
  case NKI_WORD:
    buf_puts(b, v->word);
    break;
  case NKI_LIST:
    buf_putc(b, '[');
    for (int i = 0; i < v->n; i++) {
      const bool pairs = !strcmp(def->name, "pattern");
      buf_printf(b,
                 pairs ? (i % 2 ? ", %" PRId64 "]"
                          : i   ? ", [%" PRId64
                                : "[%" PRId64)
                 : i   ? ", %" PRId64
                       : "%" PRId64,
                 v->ints[i]);
    }
    buf_putc(b, ']');
    break;
  }
}

static void put_call(struct buf *b, struct arena *a, const struct nki_call *c) {
  const struct nki_call_def *def = nki_def(c);
  bool first = true;
  buf_printf(b, "nisa.%s(", def->name);
  for (int i = 0; i < nki_n_params(def); i++) {
    const struct nki_param_def *param = &def->param[i];
    if (c->value[i].kind == NKI_ABSENT || param->kind == NKI_PARAM_ENGINE)
      continue;
    buf_printf(b, first ? "%s=" : ", %s=", param->name);
    put_value(b, a, param, &c->value[i]);
    first = false;
  }
  if (c->engine != def->engines[0])
    buf_printf(b, ", engine=nisa.engine.%s", nisa_engine_name(c->engine));
  buf_putc(b, ')');
}

static void put_dims(struct buf *b, const struct nki_tensor *t) {
  for (int i = 0; i < t->rank; i++)
    buf_printf(b, i ? ", %" PRId64 : "%" PRId64, t->dims[i]);
}

static void put_tensor(struct buf *b, const struct nki_tensor *t) {
  if (t->initial) {
    buf_printf(b, "%s = nl.shared_constant(%s[", t->name, nki_type_name(t));
    put_dims(b, t);
    buf_puts(b, "])");
    return;
  }
  buf_printf(b, "%s = nl.ndarray((", t->name);
  put_dims(b, t);
  buf_printf(b, t->rank == 1 ? ",), nl.%s, buffer=nl.%s)" : "), nl.%s, buffer=nl.%s)", nki_type_name(t),
             nisa_space_name(t->space));
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static void put_header(struct buf *b, const struct nki_program *p) {
  bool first = true;
  buf_printf(b, "def %s(", p->name);
  for (int i = 0; i < p->tensors.n; i++) {
    const struct nki_tensor *t = p->tensors.v[i];
    if (t->input < 0)
      continue;
    buf_printf(b, first ? "%s: %s[" : ", %s: %s[", t->name, dtype_numpy_name(t->dtype));
    put_dims(b, t);
    buf_putc(b, ']');
    first = false;
  }
  buf_puts(b, "):\n");
}

enum status nki_print(const struct nki_program *p, struct buf *out, struct arena *a, struct nki_line **lines, int *n) {
  struct nki_line *v = arena_new_array(a, struct nki_line, (size_t)p->items.n + 2);
  struct arena scratch; /* of the texts of views */
  arena_init(&scratch);
  *lines = v;
  *n = 0;
  v[(*n)++] = (struct nki_line){1, -1};
  put_header(out, p);
  for (int i = 0; i < p->items.n; i++) {
    const struct nki_item *x = &p->items.v[i];
    v[*n] = (struct nki_line){*n + 1, i};
    ++*n;
    buf_puts(out, "  ");
    if (x->call)
      put_call(out, &scratch, x->call);
    else
      put_tensor(out, x->tensor);
    buf_putc(out, '\n');
    if (scratch.total > 1 << 20)
      arena_clear(&scratch);
  }
  if (p->n_outputs) {
    v[*n] = (struct nki_line){*n + 1, -2};
    ++*n;
    buf_puts(out, "  return ");
    for (int i = 0; i < p->n_outputs; i++)
      buf_printf(out, i ? ", %s" : "%s", p->outputs[i]->name);
    buf_putc(out, '\n');
  }
  arena_clear(&scratch);
  return buf_status(out);
}
