/* writes: finds out which arguments a program may write.
 *
 * A slot is marked if its buffer may be a part of the argument: views of marked buffers are marked, and control flow
 * hands marks on.  The walk is repeated until no mark is added.  The program may write the argument if a marked buffer
 * is written anywhere.
 */
#include <string.h>

#include "interp/internal.h"

struct marks {
  const struct interp_program *p;
  bool *is_marked; /* by slot */
  bool has_news, is_written;
};

static void mark(struct marks *m, int to, int from) {
  if (m->is_marked[from] && !m->is_marked[to])
    m->is_marked[to] = m->has_news = true;
}
static void mark_all(struct marks *m, int n, const int *to, const int *from) {
  for (int k = 0; k < n; k++)
    mark(m, to[k], from[k]);
}

static void walk_block(struct marks *m, const struct block *b);

static void walk_control(struct marks *m, const struct instr *in) {
  const struct block *first = in->blocks[0], *second = in->blocks[1];
  switch (in->op) {
  case OP_FOR:
    mark_all(m, in->n_results, in->results, in->args + 3);
    mark_all(m, in->n_results, first->args + 1, in->results);
    walk_block(m, first);
    mark_all(m, in->n_results, in->results, first->results);
    break;
  case OP_IF:
    for (int k = 0; k < 2; k++) {
      walk_block(m, in->blocks[k]);
      if (in->blocks[k]->n_results == in->n_results)
        mark_all(m, in->n_results, in->results, in->blocks[k]->results);
    }
    break;
  case OP_WHILE:
    mark_all(m, in->n_args, first->args, in->args);
    walk_block(m, first);
    mark_all(m, in->n_results, in->results, first->results + 1);
    mark_all(m, in->n_results, second->args, in->results);
    walk_block(m, second);
    mark_all(m, in->n_args, first->args, second->results);
    break;
  default:
    mark_all(m, in->n_args, in->callee->body.args, in->args);
    walk_block(m, &in->callee->body);
    mark_all(m, in->n_results, in->results, in->callee->body.results);
  }
}

static void walk_instr(struct marks *m, const struct instr *in) {
  switch (in->op) {
  case OP_SUBVIEW:
  case OP_REINTERPRET:
  case OP_COLLAPSE:
  case OP_EXPAND:
  case OP_CAST:
    mark(m, in->results[0], in->args[0]);
    break;
  case OP_STORE:
  case OP_COPY:
    m->is_written |= m->is_marked[in->args[1]];
    break;
  case OP_STRUCTURED:
    for (int k = in->structured->n_inputs; k < in->structured->n_operands; k++)
      m->is_written |= m->is_marked[in->structured->operands[k].slot];
    break;
  case OP_FOR:
  case OP_IF:
  case OP_WHILE:
  case OP_CALL:
    walk_control(m, in);
    break;
  default:
    break;
  }
}

static void walk_block(struct marks *m, const struct block *b) {
  for (int k = 0; k < b->code.n; k++)
    walk_instr(m, &b->code.v[k]);
}

bool interp_may_write(const struct interp_program *p, int arg) {
  const struct block *body = &p->entry->body;
  struct arena scratch;
  arena_init(&scratch);
  struct marks m = {.p = p, .is_marked = arena_new_array(&scratch, bool, (size_t)p->n_slots)};
  memset(m.is_marked, 0, (size_t)p->n_slots * sizeof *m.is_marked);
  m.is_marked[body->args[arg]] = true;
  do {
    m.has_news = false;
    walk_block(&m, body);
  } while (m.has_news && !m.is_written);
  arena_clear(&scratch);
  return m.is_written;
}
