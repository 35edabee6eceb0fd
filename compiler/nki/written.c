/* written: the calls of a record as the kernel wrote them, beside the items that they consist of. */
#include <assert.h>
#include <string.h>

#include "nki/canonical.h"
#include "nki/nki.h"

bool nki_written_begin(struct nki_program *p, const char *name, struct src_locs locs) {
  if (p->writing)
    return false;
  struct nki_written *w = arena_new(p->arena, struct nki_written);
  *w = (struct nki_written){
      .name = arena_strdup(p->arena, name), .locs = locs, .round = p->rounds.n ? p->round : -1, .core = p->core};
  p->writing = w;
  return true;
}

void nki_written_end(struct nki_program *p, const char *text) {
  struct nki_written *w = p->writing;
  assert(w);
  p->writing = NULL;
  w->text = text ? arena_strdup(p->arena, text) : w->name;
  if (!text || w->n)
    return;
  w->next = p->empty;
  p->empty = w;
}

void nki_written_note(struct nki_program *p, const char *text) {
  if (p->writing && !p->writing->note)
    p->writing->note = arena_strdup(p->arena, text);
}

/* Numbers the calls of a list, whose last one comes first.  Lists are short: a call without items is rare. */
static int number_list(struct nki_written *w, int id) {
  if (!w)
    return id;
  id = number_list(w->next, id);
  w->id = id;
  return id + 1;
}

void nki_number_lines(struct nki_program *p) {
  int id = 1, k = 0;
  for (int i = 0; i <= p->items.n; i++) {
    for (; k < p->instances.n && p->instances.v[k].first + p->instances.v[k].n <= i; k++)
      id = number_list(p->instances.v[k].after, id);
    if (i == p->items.n)
      break;
    struct nki_item *x = &p->items.v[i];
    id = number_list(x->before, id);
    if (!x->written)
      x->written_id = id++;
    else if (!x->written->id)
      x->written->id = id++;
  }
  p->next_written_id = id;
}
