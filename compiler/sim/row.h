/* row: operators on rows of numbers. */
#ifndef SIM_ROW_H
#define SIM_ROW_H

#include "sim/program.h"

enum { SIM_CHUNK = 1024 }; /* elements of a row */

/* Values between the steps of an instruction: f32, or integers. */
struct sim_row {
  bool is_int;
  union {
    float f32[SIM_CHUNK];
    int64_t ints[SIM_CHUNK];
  };
};

/* out[k] = x[k] `op` y[k]; out may be x or y. */
void sim_arith_f32(enum sim_operator op, int64_t n, const float *x, const float *y, float *out);
void sim_arith_int(enum sim_operator op, int64_t n, const int64_t *x, const int64_t *y, int64_t *out);
/* out[k] = x[k] `op` y, or y `op` x[k]; out may be x. */
void sim_arith_scalar_f32(enum sim_operator op, bool is_reversed, int64_t n, const float *x, float y, float *out);
/* out[k] = x[k] * scale + bias, each step rounded. */
void sim_scale_f32(int64_t n, const float *x, float scale, float bias, float *out);
/* x[0] `op` x[1] …, in an order that depends on n alone; n is at least 1 (a sum may have none). */
float sim_sum_f32(int64_t n, const float *x);
float sim_fold_f32(enum sim_operator op, int64_t n, const float *x);

/* The integers as f32, or the f32 as the bits that it has, in place. */
void sim_row_to_f32(struct sim_row *r, int64_t n, bool is_unsigned);
void sim_row_to_bits(struct sim_row *r, int64_t n, bool is_unsigned);

#endif
