/* order: calls that wait for others without reading what those write.
 *
 *     kernel.with_schedule([("b", "a")])               b begins when a is complete; the names are those of name=
 *     nisa.tensor_copy(…).depends_on(loaded)           the same for what a call returned
 *
 *     with nl.no_reorder():                            in each engine, the calls of the block are executed in their order, and
 *                                                      their transfers started, between those before and after the block
 *
 * The last one does not make engines wait for each other, and rounds of loops in it become loops again: the vendor's text speaks of
 * the order of instructions, not of more.  In NISA its instructions have the unit attribute in_order.
 *
 * In NISA the instruction of a has the attribute label="a", that of b after="a" (of several: "a,c"), and engine-programs gives b's engine a
 * wait for a's.  A call never waits for one that the kernel makes later, so that no waits form a circle; both are in the same
 * loops and branches on the device, where one execution waits for one.
 */
#ifndef NKI_ORDER_H
#define NKI_ORDER_H

#include "nki/nki.h"

struct nki_order {
  const char *name; /* of name=, or one that a wait for it gives it */
  bool is_named;    /* by the kernel */
  bool is_awaited;
  struct {
    const char **v;
    int n, cap;
  } after;          /* the names of the calls that it waits for */
  int item, region; /* while waits are resolved: where it is, and the item that begins the region around it, or -1 */
};

/* True if the call waits, or others wait for it. */
static inline bool nki_is_ordered(const struct nki_call *c) {
  return c->order && (c->order->is_awaited || c->order->after.n);
}

/* Gives the call a name, which lives as long as the program. */
void nki_order_name(struct nki_program *p, struct nki_call *c, const char *name);
/* `after` waits for `before`; both are calls of the running instance. */
void nki_order_add(struct nki_program *p, struct nki_call *after, struct nki_call *before);
/* Resolves what nki_order_add and the grid's schedule say of the running instance, whose calls are all recorded.  False with *err; *at is
 * the call that it is about, or NULL. */
bool nki_order_resolve(struct nki_program *p, struct nki_error *err, const struct nki_call **at);
/* True if both wait for calls of the same names, and are waited for alike. */
bool nki_order_equal(const struct nki_call *x, const struct nki_call *y);

#endif
