/* dependence: rounds of a loop of beta 1's affine_range that overwrite what another round of it has written.
 *
 * A write is an overwrite if its call does not read the tensor, and adds nothing to it: sums over rounds are allowed.  It is a
 * box in the tensor's own indices, such as out[0:128:1, 512:1024:1]; writes through other views are not looked at.
 *
 * Boxes of one tensor are sorted by where they begin in the dimension in which most begin at different places, so that few pairs
 * have to be compared: those whose parts of this dimension overlap.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "nki/nki.h"

struct part { /* of a dimension: begin, begin + step, … */
  int64_t begin, step, n;
};
struct box {
  const struct nki_call *call;
  const struct nki_tensor *tensor;
  int item, round;
  struct part part[NKI_RANK_MAX];
  int64_t key; /* part[by].begin, where `by` is the tensor's */
};

static int64_t last_of(const struct part *p) {
  return p->begin + (p->n - 1) * p->step;
}

/* The view as a box.  False if it is none, or lies where only the device knows. */
static bool box_of(const struct nki_view *v, struct box *out) {
  const struct nki_tensor *t = v->tensor;
  const struct nki_view whole = nki_whole((struct nki_tensor *)v->tensor);
  const bool on_chip = nki_is_on_chip(v);
  struct nki_start start;
  if (v->rows || v->n_terms || t->storage || !nki_start_of(v, &start))
    return false;
  for (int d = 0; d < t->rank; d++)
    out->part[d] = (struct part){start.start[d], 1, 1};
  for (int i = 0; i < v->rank; i++) {
    const struct nki_dim *x = &v->dim[i];
    if (x->size == 1 || x->stride == 0)
      continue;
    int d = on_chip && i ? 1 : 0;
    while ((i || !on_chip) && d < t->rank && (whole.dim[d].stride > x->stride || t->dims[d] == 1))
      d++;
    if (d == t->rank || x->stride % whole.dim[d].stride || out->part[d].n > 1)
      return false;
    out->part[d].n = x->size;
    out->part[d].step = x->stride / whole.dim[d].stride;
    if (last_of(&out->part[d]) >= t->dims[d])
      return false;
  }
  return true;
}

static bool parts_meet(const struct part *x, const struct part *y) {
  if (x->begin > last_of(y) || y->begin > last_of(x))
    return false;
  for (int64_t i = 0; x->step > 1 || y->step > 1; i++) { /* the first of x that y has, too */
    const int64_t at = x->begin + i * x->step - y->begin;
    if (i == x->n || at > (y->n - 1) * y->step)
      return false;
    if (at >= 0 && at % y->step == 0)
      break;
  }
  return true;
}

static bool boxes_meet(const struct box *x, const struct box *y) {
  for (int d = 0; d < x->tensor->rank; d++)
    if (!parts_meet(&x->part[d], &y->part[d]))
      return false;
  return true;
}

/* Whether the call leaves nothing of what was there, and its place is known. */
static bool overwrites(const struct nki_call *c, const struct nki_tensor *t) {
  if (c->kind == NKI_NC_MATMUL || c->kind == NKI_NC_MATMUL_MX) {
    const struct nki_value *accumulate = nki_value(c, "accumulate");
    return accumulate->kind == NKI_FLAG && !accumulate->integer;
  }
  if (c->kind == NKI_DMA_COMPUTE && nki_value(c, "other")->kind == NKI_ABSENT)
    return false;
  if ((c->kind == NKI_DMA_COPY || c->kind == NKI_DMA_COMPUTE) && nki_value(c, "dst_index")->kind != NKI_ABSENT)
    return false;
  return !nki_reads(c, t);
}

/* Whether an independent loop runs around the round, within that of the tensor. */
static bool is_in_question(const struct nki_program *p, int round, int outermost) {
  for (; round >= 0 && round != outermost; round = p->rounds.v[round].outer)
    if (p->rounds.v[round].is_independent)
      return true;
  return false;
}

static int depth_of(const struct nki_program *p, int round) {
  int depth = 0;
  for (; round >= 0; round = p->rounds.v[round].outer)
    depth++;
  return depth;
}

/* Whether both rounds lie in different rounds of one run of an independent loop, and in the same rounds of those around it. */
static bool are_independent(const struct nki_program *p, int x, int y) {
  const struct nki_round *v = p->rounds.v;
  int a = depth_of(p, x), b = depth_of(p, y);
  for (; a > b; a--)
    x = v[x].outer;
  for (; b > a; b--)
    y = v[y].outer;
  if (x == y)
    return false;
  while (v[x].outer != v[y].outer) {
    x = v[x].outer;
    y = v[y].outer;
  }
  return v[x].loop == v[y].loop && v[x].is_independent;
}

static int by_key(const void *x, const void *y) {
  const struct box *a = x, *b = y;
  if (a->key != b->key)
    return a->key < b->key ? -1 : 1;
  return (a->item > b->item) - (a->item < b->item);
}

static int by_tensor(const void *x, const void *y) {
  const struct box *a = x, *b = y;
  if (a->tensor != b->tensor)
    return a->tensor->number < b->tensor->number ? -1 : 1;
  return by_key(x, y);
}

/* Sorts the boxes of one tensor as said above.  Returns the dimension. */
static int sort_boxes(struct box *v, int n) {
  int by = 0, most = -1;
  for (int d = 0; d <= v->tensor->rank; d++) {
    const int at = d < v->tensor->rank ? d : by; /* at last by the one that was found */
    int different = 0;
    for (int i = 0; i < n; i++)
      v[i].key = v[i].part[at].begin;
    qsort(v, (size_t)n, sizeof *v, by_key);
    for (int i = 1; i < n; i++)
      different += v[i].key != v[i - 1].key;
    if (different > most) {
      by = d;
      most = different;
    }
  }
  return by;
}

/* Finds two boxes of one tensor that independent rounds write: the later one becomes *at, if it comes before the one there. */
static void find_pair(const struct nki_program *p, struct box *v, int n, const struct box **first,
                      const struct box **at) {
  const int by = sort_boxes(v, n);
  for (int i = 0; i < n; i++)
    for (int k = i + 1; k < n && v[k].key <= last_of(&v[i].part[by]); k++) {
      const struct box *x = v[i].item < v[k].item ? &v[i] : &v[k], *y = x == &v[i] ? &v[k] : &v[i];
      if ((!*at || y->item < (*at)->item) && are_independent(p, x->round, y->round) && boxes_meet(x, y)) {
        *first = x;
        *at = y;
      }
    }
}

/* The boxes that calls overwrite in independent rounds. */
struct boxes {
  struct box *v;
  int n, cap;
};

static void add_boxes(const struct nki_program *p, int i, const int *made, struct arena *a, struct boxes *out) {
  const struct nki_item *item = &p->items.v[i];
  for (int k = 0; k < nki_n_params(nki_def(item->call)); k++) {
    const struct nki_value *value = &item->call->value[k];
    if (nki_def(item->call)->param[k].kind != NKI_PARAM_DST || value->kind != NKI_VIEW || value->view->tensor->reg)
      continue;
    const struct nki_tensor *t = value->view->tensor;
    struct box box = {.call = item->call, .tensor = t, .item = i, .round = item->round};
    if (is_in_question(p, item->round, made[t->number]) && overwrites(item->call, t) && box_of(value->view, &box))
      array_push(a, out, box);
  }
}

bool nki_check_dependences(const struct nki_program *p, struct nki_error *err, const struct nki_call **at) {
  bool is_any = false;
  for (int i = 0; i < p->rounds.n && !is_any; i++)
    is_any = p->rounds.v[i].is_independent;
  if (!is_any)
    return true;
  int *made = arena_new_array(err->arena, int, (size_t)p->tensors.n); /* the round of each tensor */
  struct boxes boxes = {0};
  const struct box *x = NULL, *y = NULL;
  for (int i = 0; i < p->tensors.n; i++)
    made[i] = -1;
  for (int i = 0; i < p->items.n; i++)
    if (p->items.v[i].tensor)
      made[p->items.v[i].tensor->number] = p->items.v[i].round;
    else if (p->items.v[i].call)
      add_boxes(p, i, made, err->arena, &boxes);
  if (boxes.n)
    qsort(boxes.v, (size_t)boxes.n, sizeof *boxes.v, by_tensor);
  for (int i = 0, k; i < boxes.n; i = k) {
    for (k = i + 1; k < boxes.n && boxes.v[k].tensor == boxes.v[i].tensor; k++)
      ;
    find_pair(p, boxes.v + i, k - i, &x, &y);
  }
  if (!y)
    return true;
  *at = y->call;
  const struct src_loc *there = x->call->locs.n ? x->call->locs.v[0] : NULL;
  return nki_refuse(
      err, DG_NKI_AFFINE_DEPENDENCE,
      "use nl.sequential_range, or write to a place of each round's own; sums over rounds (+=) are allowed",
      "another round of this nl.affine_range has written to the same place of %s%s, but its rounds are independent",
      y->tensor->name, there ? arena_printf(err->arena, " in line %d", there->range.line) : "");
}
