/* compose: calls that no instruction of NISA computes alone, as several calls.
 *
 * What is between the steps is in temporary tensors of f32 or uint8 in SBUF, so the values are those of the call. */
#ifndef NKI_COMPOSE_H
#define NKI_COMPOSE_H

#include "nki/nki.h"

enum { NKI_TEMPS_MAX = 6, NKI_STEPS_MAX = 12 };

/* The accumulator registers, one for each partition: those of the Scalar engine (activation, activation_reduce, activate2),
 * and those of the Vector engine (the other calls that have reduce_cmd).  A program that uses them between calls has a
 * column in SBUF for each set, which lives as long as the kernel; a program whose calls all begin anew needs none.
 *
 * A call reduces its results in f32, before they are converted to dst's type (the formula of tensor_scalar_reduce has dst, its text
 * the f32 result).  It adds them to the registers once, and then stores these in reduce_res, which it does not read (the pseudo-code of
 * activation adds twice; its text does not). */
enum nki_registers { NKI_SCALAR_REGISTERS, NKI_VECTOR_REGISTERS, NKI_REGISTERS };
/* The registers that a call uses; NKI_REGISTERS if it has no reduce_cmd. */
enum nki_registers nki_registers_of(const struct nki_call *c);
/* What a call does with them: "idle", "reset", "reduce", "reset_reduce" or "load_reduce".  A call that names none, but a
 * reduction or its result, begins anew: the table of nki.isa says idle, with which the result would be what an earlier
 * call left. */
const char *nki_reduce_cmd(const struct nki_call *c);
/* True if what the call leaves in the registers, or finds there, matters to another call. */
bool nki_needs_registers(const struct nki_call *c);

struct nki_steps {
  struct arena *arena;
  int first_temp; /* the number of the first temporary tensor */
  int n_temps;
  struct nki_tensor *registers[NKI_REGISTERS]; /* NULL: the program needs none */
  struct nki_tensor *temp[NKI_TEMPS_MAX];
  int n;
  struct nki_call step[NKI_STEPS_MAX];
};

/* Writes the steps of c.  False if c is one step itself.  The caller sets arena and first_temp. */
bool nki_compose(const struct nki_call *c, struct nki_steps *out);

#endif
