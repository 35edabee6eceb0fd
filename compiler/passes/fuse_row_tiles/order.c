/* order: brings the members of each group next to each other, where they become a loop.  See fuse_row_tiles.c.
 *
 * The operations of the block are moved to an order in which the members of a group are next to each other: that of the
 * program, except that operations between two members that depend on a member come after the group.  Ready operations
 * are taken from a heap by their number in the program; a group has the number of its last member.
 */
#include <assert.h>

#include "base/array.h"
#include "passes/fuse_row_tiles/fuse_row_tiles.h"
#include "passes/lib/edit.h"

/* ---- what is left over ---------------------------------------------------------------------------------------------- */

static bool is_unread(MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (!layout_is_annotation(mlirOpOperandGetOwner(u)))
      return false;
  return true;
}

static void destroy_annotated(MlirOperation op) {
  MlirOpOperand u;
  while (u = mlirValueGetFirstUse(ir_result(op)), !mlirOpOperandIsNull(u)) {
    assert(ir_is_of(mlirOpOperandGetOwner(u), "nkipy."));
    mlirOperationDestroy(mlirOpOperandGetOwner(u));
  }
  mlirOperationDestroy(op);
}

/* ---- units ---------------------------------------------------------------------------------------------------------- */

/* What is moved as one: an operation or a group. */
struct unit {
  int number; /* of the node, or of the last member */
  const struct fuse_group *group;
  int waits; /* the operands that are not placed yet */
};

struct heap {
  int n;
  int *v; /* numbers of units; the parent is smaller than its children */
};

static void heap_push(struct heap *h, int x) {
  int i = h->n++;
  for (; i > 0 && h->v[(i - 1) / 2] > x; i = (i - 1) / 2)
    h->v[i] = h->v[(i - 1) / 2];
  h->v[i] = x;
}

static int heap_pop(struct heap *h) {
  const int top = h->v[0], x = h->v[--h->n];
  int i = 0;
  for (int child; child = 2 * i + 1, child < h->n; i = child) {
    child += child + 1 < h->n && h->v[child + 1] < h->v[child];
    if (h->v[child] >= x)
      break;
    h->v[i] = h->v[child];
  }
  h->v[i] = x;
  return top;
}

/* The unit that places the node, by the node's number. */
struct units {
  struct fuse_block *b;
  struct unit *v; /* v[i] is valid if i is the number of an operation without a group or of a last member */
  int *of_node;
};

static struct units find_units(struct fuse_block *b) {
  struct arena *a = b->run->arena;
  struct units u = {b, arena_new_array(a, struct unit, (size_t)b->n + 1), arena_new_array(a, int, (size_t)b->n + 1)};

  for (int i = 0; i < b->n; i++) {
    u.v[i].number = i;
    u.of_node[i] = i;
  }
  for (int k = 0; k < b->n_groups; k++) {
    const struct fuse_group *g = &b->groups[k];
    if (g->why_not)
      continue;
    const int last = (int)(g->v[g->n - 1]->node - b->v);
    for (int i = 0; i < g->n; i++)
      u.of_node[g->v[i]->node - b->v] = last;
    u.v[last].group = g;
  }
  return u;
}

/* Calls visit with the unit of each use, in this block, of a result of node i. */
static void each_reader(struct units *u, int i, void (*visit)(struct units *, int reader, void *), void *user) {
  MlirOperation op = u->b->v[i].op;

  for (intptr_t r = 0; r < mlirOperationGetNumResults(op); r++)
    for (MlirOpOperand use = mlirValueGetFirstUse(mlirOperationGetResult(op, r)); !mlirOpOperandIsNull(use);
         use = mlirOpOperandGetNextUse(use)) {
      MlirOperation here = ir_ancestor_in(mlirOpOperandGetOwner(use), u->b->block);
      const struct fuse_node *node = mlirOperationIsNull(here) ? NULL : table_get(&u->b->by_op, here.ptr);
      if (node && u->of_node[node - u->b->v] != u->of_node[i])
        visit(u, u->of_node[node - u->b->v], user);
    }
}

static void add_wait(struct units *u, int reader, void *user) {
  (void)user;
  u->v[reader].waits++;
}

static void take_wait(struct units *u, int reader, void *user) {
  if (!--u->v[reader].waits)
    heap_push(user, reader);
}

void fuse_outline(struct fuse_block *b) {
  struct arena *a = b->run->arena;
  struct units u = find_units(b);
  struct heap ready = {.v = arena_new_array(a, int, (size_t)b->n + 1)};
  int *order = arena_new_array(a, int, (size_t)b->n + 1), n = 0, n_placed = 0;
  MlirOperation end = mlirBlockGetTerminator(b->block);

  for (int i = 0; i < b->n; i++)
    each_reader(&u, i, add_wait, NULL);
  for (int i = 0; i < b->n; i++)
    if (u.of_node[i] == i && !u.v[i].waits)
      heap_push(&ready, i);
  while (ready.n) {
    const int i = order[n++] = heap_pop(&ready);
    const struct fuse_group *g = u.v[i].group;
    for (int k = 0; k < (g ? g->n : 1); k++, n_placed++)
      each_reader(&u, g ? (int)(g->v[k]->node - b->v) : i, take_wait, &ready);
  }
  assert(n_placed == b->n); /* groups never depend on themselves: see groups.c */
  for (int k = 0; k < n; k++) {
    if (!u.v[order[k]].group) {
      mlirOperationMoveBefore(b->v[order[k]].op, end);
      continue;
    }
    struct ir_builder at = edit_before(b->run, end);
    fuse_make_loop(&at, b, u.v[order[k]].group);
  }
  for (int i = b->n - 1; i >= 0; i--)
    if (u.v[u.of_node[i]].group || (ir_is(b->v[i].op, "linalg.broadcast") && is_unread(ir_result(b->v[i].op))))
      destroy_annotated(b->v[i].op);
}
