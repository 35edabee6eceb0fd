/* number: rows of elements as f32 or as 64-bit integers, and back, by the rules of nisa/nisa.h. */
#ifndef SIM_NUMBER_H
#define SIM_NUMBER_H

#include "sim/program.h"

/* Each function converts n elements that lie `step` bytes apart at `at`. */

/* To f32; integers as their types say. */
void sim_load_f32(enum sim_type t, const char *at, int64_t step, int64_t n, float *out);
/* From f32: to a narrower float by rounding to nearest even, to an integer in the same way, and if out of range to the
 * nearest value; NaN becomes 0. */
void sim_store_f32(enum sim_type t, char *at, int64_t step, int64_t n, const float *in);

/* To integers, extended as the type says; a float's bits, not extended. */
void sim_load_int(enum sim_type t, const char *at, int64_t step, int64_t n, int64_t *out);
/* From integers, which wrap around at the width of the type; a float gets the bits. */
void sim_store_int(enum sim_type t, char *at, int64_t step, int64_t n, const int64_t *in);
/* The same, but a float gets the value of the integer wrapped to 32 bits. */
void sim_store_int_value(enum sim_type t, char *at, int64_t step, int64_t n, const int64_t *in, bool is_unsigned);

/* Elements of `size` bytes, bit by bit. */
void sim_copy(int size, char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n);

/* A register of type t as one element, in memory form; at has 8 bytes. */
void sim_store_register(enum sim_type t, int64_t reg, char *at);
int64_t sim_load_register(enum sim_type t, const char *at);

#endif
