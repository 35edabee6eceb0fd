/* reroll_internal: what the files of nki_reroll share; reroll.h is the interface.
 *
 *   reroll_tensors.c   the tensors: groups of products, where each is made, which become parts of one
 *   reroll_match.c     compares rounds, and makes a loop of equal ones
 *   reroll_sink.c      moves tensors to their first use
 *   reroll.c           the rounds as a tree, from the inside out
 */
#ifndef NKI_REROLL_INTERNAL_H
#define NKI_REROLL_INTERNAL_H

#include "nki/plan.h"

struct nki_notes; /* reroll.h */

/* What is known of a tensor of the record, or of one that was made for it, by its number. */
struct roll_tensor {
  struct nki_tensor *tensor;
  int made;        /* the body in which the kernel made it */
  int home;        /* the innermost body that has all its uses; -1: there is none */
  int first, last; /* the items that use it first and last */
  int line;        /* the id of the line of the record that makes it, or its first part */
  struct nki_tensor
      *part_of; /* it is a part of this tensor, at element `at` of each partition (HBM: of all); or NULL */
  int64_t at;
  struct nki_tensor *same_as; /* in a round that equals another: the tensor of that one; or NULL */
  bool is_placed;             /* it has a node in the tree */
  struct nki_tensor *final;   /* of the result, once it has a line there */
};

/* A tensor that exists before a loop or branch on the device, which uses it. */
struct roll_carried {
  struct nki_tensor *tensor;
  struct roll_carried *next;
};

/* The calls of one round, or of the kernel (body 0). */
struct roll_body {
  int outer, depth; /* outer: -1 for body 0 */
  bool is_placed;   /* it is in the tree */
  struct {
    struct roll_node *v;
    int n, cap;
  } nodes;
};

/* A run of a loop of Python: its rounds in which something happens. */
struct roll_rounds {
  uint64_t loop;
  int depth;
  struct {
    int *v;
    int n, cap;
  } bodies;
};

struct roll_node {
  struct nki_item item;
  struct roll_rounds *rounds; /* then the item is empty */
};

struct roll {
  struct arena *arena;
  const struct nki_program *record;
  bool keep_rounds;
  struct nki_call **calls;       /* of the items of the record; NULL: a tensor, or a call that is left out */
  struct roll_carried **carried; /* of the items of the record that begin a loop or branch on the device */
  struct roll_body *bodies;
  struct {
    struct roll_tensor *v;
    int n, cap;
  } tensors;
  const char *why; /* two rounds differ */
  struct nki_notes *notes;
  struct index notes_of; /* the notes by place */
};

static inline int roll_body_of(const struct roll *r, int item) {
  return r->record->items.v[item].round + 1;
}
static inline struct roll_tensor *roll_tensor_of(struct roll *r, const struct nki_tensor *t) {
  return &r->tensors.v[t->number];
}

/* ---- reroll_tensors.c -------------------------------------------------------------------------------------------- */

/* Fills r->calls, and r->tensors with homes and parts. */
void roll_tensors(struct roll *r, const struct nki_plan *plan);
/* The tensor of which t is a part, or t. */
struct nki_tensor *roll_whole(struct roll *r, struct nki_tensor *t);

/* ---- reroll_match.c ---------------------------------------------------------------------------------------------- */

/* True if y can be round k of the loop whose first rounds are x0 and, for k above 1, x1; then y's own tensors are the same as
 * those of x0.  Otherwise r->why says why. */
bool roll_matches(struct roll *r, const struct nki_items *x0, const struct nki_items *x1, const struct nki_items *y,
                  int64_t k);
/* Undoes what a comparison said about the tensors of these items. */
void roll_forget(struct roll *r, const struct nki_items *x);
/* Adds the places of y, which matches, to those of x. */
void roll_merge(struct roll *r, struct nki_items *x, const struct nki_items *y);
/* Makes x0 the body of the loop, of which x1 is the second round. */
void roll_make_affine(struct roll *r, const struct nki_loop *loop, struct nki_items *x0, const struct nki_items *x1);
/* The call with its views as views of whole tensors. */
struct nki_call *roll_settled(struct roll *r, const struct nki_call *c);

/* ---- reroll_sink.c ----------------------------------------------------------------------------------------------- */

/* Moves each tensor on chip of these items, and of the loops among them, to just before the item of its list that uses it
 * first.  Linear in the items. */
void roll_sink(struct roll *r, struct nki_items *items);

#endif
