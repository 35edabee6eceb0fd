/* plan: see plan.h. */
#include <assert.h>
#include <string.h>

#include "nki/plan.h"

/* ---- what a view covers ------------------------------------------------------------------------------------------ */

struct span {
  int64_t first_partition, last_partition, first, last;
};

static struct span span_of(const struct nki_view *v) {
  struct span s = {v->partition, v->partition, v->offset, v->offset};
  for (int i = 0; i < v->rank; i++) {
    const int64_t reach = (v->dim[i].size - 1) * v->dim[i].stride;
    if (i == 0)
      s.last_partition += reach;
    else
      s.last += reach;
  }
  return s;
}

static bool overlap(const struct nki_view *x, const struct nki_view *y) {
  const struct span a = span_of(x), b = span_of(y);
  return a.first_partition <= b.last_partition && b.first_partition <= a.last_partition && a.first <= b.last &&
         b.first <= a.last;
}

static bool covers_all(const struct nki_view *v) {
  const struct nki_tensor *t = v->tensor;
  return nki_is_contiguous(v) && v->dim[0].size == t->dims[0] && nki_free_elements(v) == nki_tensor_extent(t);
}

/* ---- the state of one tensor in PSUM ----------------------------------------------------------------------------- */

enum content { NOTHING, ZEROS, PRODUCTS, OTHER_DATA };

struct written {
  const struct nki_view *view;
  struct written *next;
};

struct group {
  enum content content;
  int memset;              /* with ZEROS: the item that wrote them, which is skipped so far */
  struct written *written; /* by products */
};

static bool refuse(struct diags *ds, const struct nki_call *c, const char *hint, const char *what) {
  const struct src_loc *at = c->locs.n ? c->locs.v[0] : NULL;
  diag_add(ds, DS_ERROR, DG_NKI_UNSUPPORTED, at, "%s", what)->hint = hint;
  return false;
}

/* Something other than a product uses the tensor: zeros have to be there. */
static void use_zeros(struct nki_plan *plan, struct group *g) {
  if (g->content != ZEROS)
    return;
  plan->items[g->memset].skip = false;
  g->content = OTHER_DATA;
}

static void begin_group(struct nki_plan *plan, struct group *g, int item) {
  plan->items[item].opens = true;
  *g = (struct group){.content = NOTHING};
}

/* A transpose is a product with the identity matrix. */
static bool is_product(const struct nki_call *c) {
  return c->kind == NKI_NC_MATMUL || c->kind == NKI_NC_MATMUL_MX ||
         (c->kind == NKI_NC_TRANSPOSE && c->engine == NISA_ENGINE_TENSOR);
}

/* True for a product that overwrites what dst has. */
static bool begins_anew(const struct nki_call *c) {
  if (c->kind == NKI_NC_TRANSPOSE)
    return true;
  const struct nki_value *accumulate = nki_value(c, "accumulate");
  return accumulate->kind == NKI_FLAG && !accumulate->integer;
}

/* A tensor in PSUM that was made outside of a loop or branch on the device would begin anew in each of its rounds. */
static bool may_begin(const struct nki_plan *plan, const struct nki_call *c, const struct nki_view *v,
                      struct diags *ds) {
  if (v->tensor->scope == plan->scope)
    return true;
  const struct src_loc *at = c->locs.n ? c->locs.v[0] : NULL;
  diag_add(ds, DS_ERROR, DG_NKI_DEVICE_LOOP, at,
           "%s in PSUM was made outside of this loop or branch on the device, and its products begin anew inside",
           v->tensor->name)
      ->hint = "make the tensor in the body, or add to it with every product";
  return false;
}

static bool plan_product(struct nki_plan *plan, struct group *g, int item, const struct nki_call *c, struct diags *ds) {
  const struct nki_view *dst = nki_value(c, "dst")->view;
  const bool anew = begins_anew(c);
  bool touched = false;
  if (anew && !may_begin(plan, c, dst, ds))
    return false;
  for (struct written *w = g->written; w; w = w->next)
    touched |= overlap(w->view, dst);
  if (g->content == OTHER_DATA && !anew)
    return refuse(ds, c, "accumulate in PSUM from zero, and add with the Vector engine",
                  "a product is added to data in PSUM that is not a product; that is not compiled here yet");
  if ((anew && touched) || g->content == OTHER_DATA) {
    if (!covers_all(dst))
      return refuse(ds, c, "use a tensor of its own for each group of products",
                    "a group of products begins anew in a part of a tensor in PSUM; that is not compiled here yet");
    begin_group(plan, g, item);
  }
  g->content = PRODUCTS;
  if (!touched || anew) {
    struct written *w = arena_new(plan->arena, struct written);
    *w = (struct written){dst, g->written};
    g->written = w;
  }
  return true;
}

static bool plan_other_write(struct nki_plan *plan, struct group *g, int item, const struct nki_call *c,
                             const struct nki_view *v, struct diags *ds) {
  if (!may_begin(plan, c, v, ds))
    return false;
  const bool zeros = c->kind == NKI_MEMSET && nki_value(c, "value")->number == 0 && covers_all(v);
  if (zeros) {
    if (g->content != NOTHING)
      begin_group(plan, g, item);
    g->content = ZEROS;
    g->memset = item;
    plan->items[item].skip = true;
    return true;
  }
  use_zeros(plan, g);
  if (g->content == PRODUCTS) {
    if (!covers_all(v))
      return refuse(
          ds, c, "use another tensor",
          "an instruction writes to a part of a tensor in PSUM that holds products; that is not compiled here yet");
    begin_group(plan, g, item);
  }
  g->content = OTHER_DATA;
  return true;
}

static bool plan_call(struct nki_plan *plan, struct group *groups, int item, const struct nki_call *c,
                      struct diags *ds) {
  const struct nki_call_def *def = nki_def(c);
  for (int k = 0; k < nki_n_params(def); k++) {
    const struct nki_value *v = &c->value[k];
    if (v->kind == NKI_VIEW && v->view->tensor->space == MEM_PSUM && def->param[k].kind != NKI_PARAM_DST)
      use_zeros(plan, &groups[v->view->tensor->number]);
  }
  for (int k = 0; k < nki_n_params(def); k++) {
    const struct nki_value *v = &c->value[k];
    if (v->kind != NKI_VIEW || v->view->tensor->space != MEM_PSUM || def->param[k].kind != NKI_PARAM_DST)
      continue;
    struct group *g = &groups[v->view->tensor->number];
    if (is_product(c) ? !plan_product(plan, g, item, c, ds) : !plan_other_write(plan, g, item, c, v->view, ds))
      return false;
    if (plan->items[item].opens && nki_reads(c, v->view->tensor))
      return refuse(ds, c, "write to another tensor",
                    "an instruction replaces products in PSUM that it reads; that is not compiled here yet");
  }
  return true;
}

/* Keeps the region around the next item, whose number the tensors that it makes have. */
static void follow(struct nki_plan *plan, const struct nki_call *c) {
  const enum nki_region region = nki_region_of(c);
  if (region == NKI_BEGINS)
    plan->outer[plan->n_outer++] = plan->scope;
  if (region == NKI_BEGINS || region == NKI_GOES_ON)
    plan->scope = c->scope;
  if (region == NKI_ENDS)
    plan->scope = plan->outer[--plan->n_outer];
}

bool nki_plan_make(const struct nki_program *p, struct arena *a, struct diags *ds, struct nki_plan *out) {
  struct group *groups = arena_new_array(a, struct group, (size_t)p->tensors.n);
  *out = (struct nki_plan){.arena = a, .items = arena_new_array(a, struct nki_item_plan, (size_t)p->items.n)};
  for (int i = 0; i < p->items.n; i++) {
    const struct nki_call *c = p->items.v[i].call;
    if (c && !plan_call(out, groups, i, c, ds))
      return false;
    if (c)
      follow(out, c);
  }
  return true;
}
