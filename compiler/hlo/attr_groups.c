/* attr_groups: attributes that are lists of lists: groups and pairs of devices, and aliases of custom calls. */
#include <string.h>

#include "base/array.h"
#include "hlo/attrs.h"

enum { GROUPS_MAX = 4096 }; /* the counted form takes little text for many groups */

/* ---- replica_groups={{0,1},{2,3}}, or [2,2]<=[4] ------------------------------------------------------------------- */

static void set_groups(struct arena *a, void *v, int n, const struct hlo_ints *groups) {
  *(const struct hlo_groups **)v = arena_dup(a, &(struct hlo_groups){n, groups}, sizeof(struct hlo_groups));
}

static void groups_dup(struct arena *a, const struct hlo_instr *i, void *v) {
  const struct hlo_groups *g = *(const struct hlo_groups **)v;
  (void)i;
  if (!g)
    return;
  struct hlo_ints *copy = arena_new_array(a, struct hlo_ints, (size_t)g->n);
  for (int k = 0; k < g->n; k++)
    copy[k] = hlo_ints_dup(a, g->v[k].n, g->v[k].v);
  set_groups(a, v, g->n, copy);
}

static bool groups_equal(const struct hlo_instr *i, const void *vx, const void *vy) {
  const struct hlo_groups *x = *(const struct hlo_groups *const *)vx, *y = *(const struct hlo_groups *const *)vy;
  (void)i;
  if (!x || !y || x->n != y->n)
    return x == y;
  for (int k = 0; k < x->n; k++)
    if (!hlo_ints_equal(x->v[k], y->v[k]))
      return false;
  return true;
}

static void groups_put(struct buf *out, const struct hlo_instr *i, const void *v) {
  const struct hlo_groups *g = *(const struct hlo_groups *const *)v;
  (void)i;
  buf_putc(out, '{');
  for (int k = 0; g && k < g->n; k++) {
    buf_puts(out, k ? "," : "");
    hlo_put_ints(out, g->v[k]);
  }
  buf_putc(out, '}');
}

/* [2,4]<=[8]: two groups of four, numbered through */
static bool read_counted_groups(struct hlo_cursor *c, void *v) {
  int64_t n, size, total;
  if (!hlo_cur_need(c, '[') || !hlo_cur_int(c, &n) || !hlo_cur_need(c, ',') || !hlo_cur_int(c, &size) ||
      !hlo_cur_need(c, ']') || !hlo_cur_need(c, '<') || !hlo_cur_need(c, '=') || !hlo_cur_need(c, '[') ||
      !hlo_cur_int(c, &total) || !hlo_cur_need(c, ']'))
    return false;
  if (n < 1 || size < 1 || n > GROUPS_MAX || size > GROUPS_MAX || n * size != total)
    return hlo_cur_fail(c, (struct hlo_span){c->at, 0}, DG_HLO_INVALID,
                        "%lld groups of %lld devices are not %lld devices", (long long)n, (long long)size,
                        (long long)total);
  struct hlo_ints *groups = arena_new_array(c->a, struct hlo_ints, (size_t)n);
  int64_t *ids = arena_new_array(c->a, int64_t, (size_t)total);
  for (int64_t k = 0; k < total; k++)
    ids[k] = k;
  for (int64_t k = 0; k < n; k++)
    groups[k] = (struct hlo_ints){(int)size, ids + k * size};
  set_groups(c->a, v, (int)n, groups);
  return true;
}

static bool groups_read(struct hlo_cursor *c, const struct hlo_instr *i, void *v) {
  struct {
    struct hlo_ints *v;
    int n, cap;
  } groups = {0};
  (void)i;
  if (hlo_cur_peek(c, '['))
    return read_counted_groups(c, v);
  if (!hlo_cur_need(c, '{'))
    return false;
  if (hlo_cur_take(c, '}')) /* all devices */
    return true;
  do {
    if (!hlo_cur_ints(c, array_push(c->a, &groups, (struct hlo_ints){0})))
      return false;
  } while (hlo_cur_take(c, ','));
  set_groups(c->a, v, groups.n, groups.v);
  return hlo_cur_need(c, '}');
}

static void groups_to_proto(struct arena *a, const struct hlo_instr *i, const void *v, struct hlo_proto_place to) {
  const struct hlo_groups *g = *(const struct hlo_groups *const *)v;
  Xla__ReplicaGroup **out;
  (void)i;
  if (!g)
    return;
  HLO_PROTO_MESSAGES(a, g->n, Xla__ReplicaGroup, xla__replica_group__init, out);
  for (int k = 0; k < g->n; k++) {
    out[k]->n_replica_ids = (size_t)g->v[k].n;
    out[k]->replica_ids = hlo_proto_borrow(g->v[k].v);
  }
  *to.n = (size_t)g->n;
  *(Xla__ReplicaGroup ***)to.field = out;
}

/* Newer versions of XLA put the groups into collective_device_list. */
static bool groups_from_proto(struct hlo_proto_reader *r, const struct hlo_instr *i, struct hlo_proto_place from,
                              void *v) {
  const Xla__CollectiveDeviceListProto *list = *from.n ? NULL : from.instr->collective_device_list;
  const size_t n = list ? list->n_replica_groups : *from.n;
  Xla__ReplicaGroup **groups = list ? list->replica_groups : *(Xla__ReplicaGroup ***)from.field;
  (void)i;
  if (list && list->iota_replica_group_list)
    return hlo_proto_refuse(r, DG_UNSUPPORTED_OP, "groups of devices that are given by counting are not supported");
  if (!n)
    return true;
  struct hlo_ints *copy = arena_new_array(r->a, struct hlo_ints, n);
  for (size_t k = 0; k < n; k++)
    copy[k] = hlo_ints_dup(r->a, (int)groups[k]->n_replica_ids, groups[k]->replica_ids);
  set_groups(r->a, v, (int)n, copy);
  return true;
}

const struct hlo_attr_kind hlo_kind_groups = {.dup = groups_dup,
                                              .equal = groups_equal,
                                              .put = groups_put,
                                              .read = groups_read,
                                              .to_proto = groups_to_proto,
                                              .from_proto = groups_from_proto};

/* ---- source_target_pairs={{0,1},{1,0}}: groups of two, which are separate fields of the proto ---------------------------------- */

static void pairs_to_proto(struct arena *a, const struct hlo_instr *i, const void *v, struct hlo_proto_place to) {
  const struct hlo_groups *g = *(const struct hlo_groups *const *)v;
  Xla__SourceTarget **out;
  (void)i;
  if (!g)
    return;
  HLO_PROTO_MESSAGES(a, g->n, Xla__SourceTarget, xla__source_target__init, out);
  for (int k = 0; k < g->n; k++) {
    assert(g->v[k].n == 2);
    out[k]->source = g->v[k].v[0];
    out[k]->target = g->v[k].v[1];
  }
  *to.n = (size_t)g->n;
  *(Xla__SourceTarget ***)to.field = out;
}

static bool pairs_from_proto(struct hlo_proto_reader *r, const struct hlo_instr *i, struct hlo_proto_place from,
                             void *v) {
  Xla__SourceTarget **pairs = *(Xla__SourceTarget ***)from.field;
  (void)i;
  if (!*from.n)
    return true;
  struct hlo_ints *copy = arena_new_array(r->a, struct hlo_ints, *from.n);
  for (size_t k = 0; k < *from.n; k++)
    copy[k] = hlo_ints_dup(r->a, 2, (int64_t[]){pairs[k]->source, pairs[k]->target});
  set_groups(r->a, v, (int)*from.n, copy);
  return true;
}

const struct hlo_attr_kind hlo_kind_pairs = {.dup = groups_dup,
                                             .equal = groups_equal,
                                             .put = groups_put,
                                             .read = groups_read,
                                             .to_proto = pairs_to_proto,
                                             .from_proto = pairs_from_proto};

/* ---- output_to_operand_aliasing={{0}: (1, {})}: output 0 is written into operand 1 ---------------------------------- */

static bool aliases_is_none(const void *v) {
  return !((const struct hlo_operand_aliases *)v)->n;
}

static void aliases_dup(struct arena *a, const struct hlo_instr *i, void *v) {
  struct hlo_operand_aliases *x = v;
  struct hlo_operand_alias *copy = arena_dup(a, x->v, (size_t)x->n * sizeof *copy);
  (void)i;
  for (int k = 0; k < x->n; k++)
    copy[k].output_index = hlo_ints_dup(a, copy[k].output_index.n, copy[k].output_index.v);
  x->v = copy;
}

static bool aliases_equal(const struct hlo_instr *i, const void *vx, const void *vy) {
  const struct hlo_operand_aliases *x = vx, *y = vy;
  (void)i;
  if (x->n != y->n)
    return false;
  for (int k = 0; k < x->n; k++)
    if (x->v[k].operand != y->v[k].operand || !hlo_ints_equal(x->v[k].output_index, y->v[k].output_index))
      return false;
  return true;
}

static void aliases_put(struct buf *out, const struct hlo_instr *i, const void *v) {
  const struct hlo_operand_aliases *x = v;
  (void)i;
  buf_putc(out, '{');
  for (int k = 0; k < x->n; k++) {
    buf_puts(out, k ? ", " : "");
    hlo_put_ints(out, x->v[k].output_index);
    buf_printf(out, ": (%lld, {})", (long long)x->v[k].operand);
  }
  buf_putc(out, '}');
}

static bool aliases_read(struct hlo_cursor *c, const struct hlo_instr *i, void *v) {
  struct {
    struct hlo_operand_alias *v;
    int n, cap;
  } list = {0};
  (void)i;
  if (!hlo_cur_need(c, '{'))
    return false;
  while (!hlo_cur_peek(c, '}')) {
    struct hlo_operand_alias *x = array_push(c->a, &list, (struct hlo_operand_alias){0});
    struct hlo_ints within;
    if (!hlo_cur_ints(c, &x->output_index) || !hlo_cur_need(c, ':') || !hlo_cur_need(c, '(') ||
        !hlo_cur_int(c, &x->operand) || !hlo_cur_need(c, ',') || !hlo_cur_ints(c, &within) || !hlo_cur_need(c, ')'))
      return false;
    if (within.n)
      return hlo_cur_fail(c, (struct hlo_span){c->at, 0}, DG_HLO_INVALID,
                          "an alias of a tuple's element is not supported");
    if (!hlo_cur_take(c, ','))
      break;
  }
  *(struct hlo_operand_aliases *)v = (struct hlo_operand_aliases){list.n, list.v};
  return hlo_cur_need(c, '}');
}

static void aliases_to_proto(struct arena *a, const struct hlo_instr *i, const void *v, struct hlo_proto_place to) {
  const struct hlo_operand_aliases *x = v;
  Xla__OutputOperandAliasing **out;
  (void)i;
  HLO_PROTO_MESSAGES(a, x->n, Xla__OutputOperandAliasing, xla__output_operand_aliasing__init, out);
  for (int k = 0; k < x->n; k++) {
    out[k]->n_output_shape_index = (size_t)x->v[k].output_index.n;
    out[k]->output_shape_index = hlo_proto_borrow(x->v[k].output_index.v);
    out[k]->operand_index = x->v[k].operand;
  }
  *to.n = (size_t)x->n;
  *(Xla__OutputOperandAliasing ***)to.field = out;
}

static bool aliases_from_proto(struct hlo_proto_reader *r, const struct hlo_instr *i, struct hlo_proto_place from,
                               void *v) {
  Xla__OutputOperandAliasing **p = *(Xla__OutputOperandAliasing ***)from.field;
  struct hlo_operand_alias *list = arena_new_array(r->a, struct hlo_operand_alias, *from.n);
  (void)i;
  for (size_t k = 0; k < *from.n; k++) {
    if (p[k]->n_operand_shape_index)
      return hlo_proto_refuse(r, DG_HLO_INVALID, "an alias of a tuple's element is not supported");
    list[k] = (struct hlo_operand_alias){hlo_ints_dup(r->a, (int)p[k]->n_output_shape_index, p[k]->output_shape_index),
                                         p[k]->operand_index};
  }
  *(struct hlo_operand_aliases *)v = (struct hlo_operand_aliases){(int)*from.n, list};
  return true;
}

const struct hlo_attr_kind hlo_kind_aliases = {.is_none = aliases_is_none,
                                               .dup = aliases_dup,
                                               .equal = aliases_equal,
                                               .put = aliases_put,
                                               .read = aliases_read,
                                               .to_proto = aliases_to_proto,
                                               .from_proto = aliases_from_proto};
