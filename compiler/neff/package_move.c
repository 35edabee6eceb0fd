/* package_move: a transfer of the simulated machine as the descriptors of a NEFF.
 *
 * A descriptor has at most four dimensions on each side: a run of bytes and three repetitions.  The dimensions of both sides
 * are joined where they are contiguous (in one partition, on chip) and split where the other side's are shorter, until both have the same sizes:
 *
 *     src [128 x 512], step [2048, 4]       [128 x 4 x 128], step [2048, 512, 4]
 *     dst [128 x 4 x 128], all contiguous   [128 x 4 x 128], step [2048, 512, 4]      a run of 512 bytes, 4, 128
 *
 * Outer dimensions that are too many become several descriptors.
 */
#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "neff/package_internal.h"

enum { DIMS = 4, SHAPE = 2 * NISA_TILE_MAX };

/* A side of the transfer; the innermost dimension comes first. */
struct side {
  const char *name;
  int64_t start; /* bytes in the variable */
  int64_t pitch; /* on chip: the bytes of a partition, from which a run does not go on to the next one; else 0 */
  int n;
  int64_t size[SHAPE], step[SHAPE];
};

static bool read_side(const struct sim_program *p, const struct sim_operand *o, const int64_t *regs,
                      const char *const *names, struct side *s) {
  *s = (struct side){0};
  if (o->kind != SIM_ACCESS)
    return false;
  const int64_t buffer = o->ref >= 0 ? regs[o->ref] : o->buffer;
  if (buffer < 0 || buffer >= p->n_buffers)
    return false;
  const struct sim_buffer *b = &p->buffers[buffer];
  const int copies = b->place.copies > 1 ? b->place.copies : 1;
  const int64_t copy = sim_linear_value(&o->copy, regs);
  s->name = names[buffer];
  s->pitch = (b->space == MEM_SBUF || b->space == MEM_PSUM) && b->rank && b->dims[0] > 0 ? b->bytes / b->dims[0] : 0;
  s->start = sim_linear_value(&o->start, regs) + (copy % copies + copies) % copies * b->bytes;
  for (int k = o->n_dims; k-- > 0;)
    if (o->dim[k].n != 1) {
      s->size[s->n] = o->dim[k].n;
      s->step[s->n++] = o->dim[k].step;
    }
  return true;
}

/* Splits dimension k of a side after `inner` elements; they divide its size. */
static bool split(struct side *s, int k, int64_t inner) {
  if (s->size[k] == inner)
    return true;
  if (s->n == SHAPE || s->size[k] % inner)
    return false;
  memmove(&s->size[k + 1], &s->size[k], (size_t)(s->n - k) * sizeof *s->size);
  memmove(&s->step[k + 1], &s->step[k], (size_t)(s->n - k) * sizeof *s->step);
  s->n++;
  s->size[k + 1] /= inner;
  s->size[k] = inner;
  s->step[k + 1] = s->step[k] * inner;
  return true;
}

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Gives both sides the same sizes; false if they have no common ones. */
static bool match(struct side *a, struct side *b) {
  for (int k = 0; k < a->n || k < b->n; k++) {
    if (k >= a->n || k >= b->n)
      return false;
    const int64_t inner = gcd(a->size[k], b->size[k]);
    if (inner == 1 && a->size[k] != b->size[k])
      return false;
    if (!split(a, k, inner) || !split(b, k, inner))
      return false;
  }
  return true;
}

static bool continues(const struct side *s, int k, int inner) {
  const bool is_partition = s->pitch && s->step[k] && s->step[k] % s->pitch == 0;
  return !is_partition && s->step[k] == s->step[inner] * s->size[inner];
}

/* Joins dimensions that are contiguous on both sides. */
static void join(struct side *a, struct side *b) {
  int n = 0;
  for (int k = 0; k < a->n; k++) {
    if (n && continues(a, k, n - 1) && continues(b, k, n - 1)) {
      a->size[n - 1] *= a->size[k];
      b->size[n - 1] *= b->size[k];
      continue;
    }
    a->size[n] = a->size[k], a->step[n] = a->step[k];
    b->size[n] = b->size[k], b->step[n] = b->step[k];
    n++;
  }
  a->n = b->n = n;
}

/* The first size counts bytes: a run if both sides' elements are adjacent, else one element. */
static void start_with_bytes(struct side *s, int64_t bytes, bool is_run) {
  if (is_run) {
    s->size[0] *= bytes;
    return;
  }
  memmove(&s->size[1], &s->size[0], (size_t)s->n * sizeof *s->size);
  memmove(&s->step[1], &s->step[0], (size_t)s->n * sizeof *s->step);
  s->n++;
  s->size[0] = bytes;
}

/* Begins a descriptor; the caller closes its object. */
static void put_sides(struct buf *b, const char *op, const struct side *from, const struct side *to, int64_t from_at,
                      int64_t to_at) {
  const int n = from->n < DIMS ? from->n : DIMS, m = to->n < DIMS ? to->n : DIMS;
  json_put_comma(b);
  buf_putc(b, '{');
  json_put_field_str(b, "op", op);
  json_put_field_str(b, "from", from->name);
  json_put_field_str(b, "to", to->name);
  json_put_field_int(b, "from_off", from_at);
  json_put_field_int(b, "to_off", to_at);
  json_put_field_ints(b, "from_sizes", n, from->size);
  json_put_field_ints(b, "to_sizes", m, to->size);
  json_put_field_ints(b, "from_steps", n - 1, from->step + 1);
  json_put_field_ints(b, "to_steps", m - 1, to->step + 1);
}

static bool is_cast(const struct sim_instr *i) {
  return i->operand[1].type != i->operand[0].type;
}

static void put_types(struct buf *b, const struct sim_instr *i) {
  if (!is_cast(i))
    return;
  json_put_field_str(b, "from_dtype", sim_type_name(i->operand[1].type));
  json_put_field_str(b, "to_dtype", sim_type_name(i->operand[0].type));
}

/* Puts a descriptor for each position of the dimensions from k on; the innermost four are a descriptor's own. */
static void put_all(struct buf *b, const struct side *from, const struct side *to, int k, int64_t from_at,
                    int64_t to_at, const struct sim_instr *i) {
  assert(k < SHAPE);
  if (k < DIMS) {
    put_sides(b, is_cast(i) ? "cast" : "copy", from, to, from_at, to_at);
    put_types(b, i);
    buf_putc(b, '}');
    return;
  }
  // cppcheck-suppress arrayIndexOutOfBoundsCond
  for (int64_t n = 0; n < from->size[k] && !buf_status(b); n++)
    put_all(b, from, to, k - 1, from_at + n * from->step[k], to_at + n * to->step[k], i);
}

/* A transpose reads in one order and writes in another, so the sides are not matched: each is as its access says. */
static bool put_transpose(struct buf *b, struct side *from, struct side *to, const struct sim_instr *i) {
  const int64_t bytes = sim_type_bytes(i->operand[1].type);
  struct side copy = *from;
  int64_t shape[DIMS];
  join(from, &copy);
  copy = *to;
  join(to, &copy);
  if (from->n >= DIMS || to->n >= DIMS)
    return false;
  start_with_bytes(from, bytes, false);
  start_with_bytes(to, bytes, false);
  for (int k = 0; k < DIMS; k++) /* outermost first, as NumPy has it */
    shape[k] = DIMS - k < from->n ? from->size[DIMS - k] : 1;
  put_sides(b, "transpose", from, to, from->start, to->start);
  put_types(b, i);
  json_put_field_ints(b, "transpose_shape", DIMS, shape);
  json_put_field_int(b, "transpose_element_size", bytes);
  buf_putc(b, '}');
  return true;
}

bool neff_package_put_descriptors(const struct sim_program *p, const struct sim_instr *i, const int64_t *regs,
                                  const char *const *names, struct buf *b) {
  struct side from, to;
  if ((i->kind != NISA_DMA_COPY && i->kind != NISA_DMA_TRANSPOSE) ||
      !read_side(p, &i->operand[1], regs, names, &from) || !read_side(p, &i->operand[0], regs, names, &to))
    return false;
  if (i->kind == NISA_DMA_TRANSPOSE)
    return put_transpose(b, &from, &to, i);
  if (!match(&from, &to))
    return false;
  const int64_t from_bytes = sim_type_bytes(i->operand[1].type), to_bytes = sim_type_bytes(i->operand[0].type);
  join(&from, &to);
  const bool is_run = from_bytes == to_bytes && from.n && from.step[0] == from_bytes && to.step[0] == to_bytes;
  if (from.n == SHAPE)
    return false;
  start_with_bytes(&from, from_bytes, is_run);
  start_with_bytes(&to, to_bytes, is_run);
  assert(from.n == to.n && from.n >= 1);
  put_all(b, &from, &to, from.n - 1, from.start, to.start, i);
  return true;
}
