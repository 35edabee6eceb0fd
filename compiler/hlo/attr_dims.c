/* attr_dims: attributes with an entry per dimension: slices, padding, windows, and the roles of a convolution's
 * dimensions.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/index.h"
#include "hlo/attrs.h"

/* Slices and padding have this many entries. */
static size_t rank_of(const struct hlo_instr *i) {
  assert(i->n_operands > 0 && i->operands[0]->shape.dtype != DT_TUPLE);
  return (size_t)i->operands[0]->shape.rank;
}

/* ---- slice={[0:4], [1:9:2]} ---------------------------------------------------------------------------------------- */

static bool slices_is_none(const void *v) {
  return !*(const struct hlo_slice_dim *const *)v;
}

static void slices_dup(struct arena *a, const struct hlo_instr *i, void *v) {
  const struct hlo_slice_dim **s = v;
  if (*s)
    *s = arena_dup(a, *s, rank_of(i) * sizeof **s);
}

static bool slices_equal(const struct hlo_instr *i, const void *vx, const void *vy) {
  const struct hlo_slice_dim *x = *(const struct hlo_slice_dim *const *)vx,
                             *y = *(const struct hlo_slice_dim *const *)vy;
  return x == y || (x && y && !memcmp(x, y, rank_of(i) * sizeof *x));
}

static uint64_t slices_hash(const struct hlo_instr *i, const void *v, uint64_t h) {
  const struct hlo_slice_dim *s = *(const struct hlo_slice_dim *const *)v;
  return s ? hash_mix(h, hash_bytes(s, rank_of(i) * sizeof *s)) : h;
}

static void slices_put(struct buf *out, const struct hlo_instr *i, const void *v) {
  const struct hlo_slice_dim *s = *(const struct hlo_slice_dim *const *)v;
  buf_putc(out, '{');
  for (size_t k = 0; k < rank_of(i); k++) {
    buf_printf(out, "%s[%" PRId64 ":%" PRId64, k ? ", " : "", s[k].start, s[k].limit);
    if (s[k].stride != 1)
      buf_printf(out, ":%" PRId64, s[k].stride);
    buf_putc(out, ']');
  }
  buf_putc(out, '}');
}

static bool slices_read(struct hlo_cursor *c, const struct hlo_instr *i, void *v) {
  struct hlo_slice_dim *s = arena_new_array(c->a, struct hlo_slice_dim, rank_of(i));
  if (!hlo_cur_need(c, '{'))
    return false;
  for (size_t k = 0; k < rank_of(i); k++) {
    s[k].stride = 1;
    if ((k && !hlo_cur_need(c, ',')) || !hlo_cur_need(c, '[') || !hlo_cur_int(c, &s[k].start) ||
        !hlo_cur_need(c, ':') || !hlo_cur_int(c, &s[k].limit) ||
        (hlo_cur_take(c, ':') && !hlo_cur_int(c, &s[k].stride)) || !hlo_cur_need(c, ']'))
      return false;
  }
  *(const struct hlo_slice_dim **)v = s;
  return hlo_cur_need(c, '}');
}

static void slices_to_proto(struct arena *a, const struct hlo_instr *i, const void *v, struct hlo_proto_place to) {
  const struct hlo_slice_dim *s = *(const struct hlo_slice_dim *const *)v;
  Xla__HloInstructionProto__SliceDimensions **out;
  const int n = (int)rank_of(i);
  HLO_PROTO_MESSAGES(a, n, Xla__HloInstructionProto__SliceDimensions,
                     xla__hlo_instruction_proto__slice_dimensions__init, out);
  for (int k = 0; k < n; k++) {
    out[k]->start = s[k].start;
    out[k]->limit = s[k].limit;
    out[k]->stride = s[k].stride;
  }
  *to.n = (size_t)n;
  *(Xla__HloInstructionProto__SliceDimensions ***)to.field = out;
}

static bool slices_from_proto(struct hlo_proto_reader *r, const struct hlo_instr *i, struct hlo_proto_place from,
                              void *v) {
  Xla__HloInstructionProto__SliceDimensions **p = *(Xla__HloInstructionProto__SliceDimensions ***)from.field;
  const size_t rank = rank_of(i);
  struct hlo_slice_dim *s = arena_new_array(r->a, struct hlo_slice_dim, rank);
  if (*from.n != rank)
    return hlo_proto_refuse(r, DG_HLO_INVALID, "%zu ranges for %zu dimensions", *from.n, rank);
  for (size_t k = 0; k < rank; k++)
    s[k] = (struct hlo_slice_dim){p[k]->start, p[k]->limit, p[k]->stride};
  *(const struct hlo_slice_dim **)v = s;
  return true;
}

const struct hlo_attr_kind hlo_kind_slices = {.is_none = slices_is_none,
                                              .dup = slices_dup,
                                              .equal = slices_equal,
                                              .hash = slices_hash,
                                              .put = slices_put,
                                              .read = slices_read,
                                              .to_proto = slices_to_proto,
                                              .from_proto = slices_from_proto};

/* ---- padding=0_1x2_3_1: low, high and perhaps interior of each dimension -------------------------------------------- */

static bool paddings_is_none(const void *v) {
  return !*(const struct hlo_pad_dim *const *)v;
}

static void paddings_dup(struct arena *a, const struct hlo_instr *i, void *v) {
  const struct hlo_pad_dim **p = v;
  if (*p)
    *p = arena_dup(a, *p, rank_of(i) * sizeof **p);
}

static bool paddings_equal(const struct hlo_instr *i, const void *vx, const void *vy) {
  const struct hlo_pad_dim *x = *(const struct hlo_pad_dim *const *)vx, *y = *(const struct hlo_pad_dim *const *)vy;
  return x == y || (x && y && !memcmp(x, y, rank_of(i) * sizeof *x));
}

static uint64_t paddings_hash(const struct hlo_instr *i, const void *v, uint64_t h) {
  const struct hlo_pad_dim *p = *(const struct hlo_pad_dim *const *)v;
  return p ? hash_mix(h, hash_bytes(p, rank_of(i) * sizeof *p)) : h;
}

static void paddings_put(struct buf *out, const struct hlo_instr *i, const void *v) {
  const struct hlo_pad_dim *p = *(const struct hlo_pad_dim *const *)v;
  const size_t rank = rank_of(i);
  bool has_interior = false;
  for (size_t k = 0; k < rank; k++)
    has_interior |= p[k].interior != 0;
  for (size_t k = 0; k < rank; k++) {
    buf_printf(out, "%s%" PRId64 "_%" PRId64, k ? "x" : "", p[k].low, p[k].high);
    if (has_interior)
      buf_printf(out, "_%" PRId64, p[k].interior);
  }
}

static bool paddings_read(struct hlo_cursor *c, const struct hlo_instr *i, void *v) {
  struct hlo_pad_dim *p = arena_new_array(c->a, struct hlo_pad_dim, rank_of(i));
  for (size_t k = 0; k < rank_of(i); k++) {
    if ((k && !hlo_cur_need(c, 'x')) || !hlo_cur_int(c, &p[k].low) || !hlo_cur_need(c, '_') ||
        !hlo_cur_int(c, &p[k].high) || (hlo_cur_take(c, '_') && !hlo_cur_int(c, &p[k].interior)))
      return false;
  }
  *(const struct hlo_pad_dim **)v = p;
  return true;
}

static void paddings_to_proto(struct arena *a, const struct hlo_instr *i, const void *v, struct hlo_proto_place to) {
  const struct hlo_pad_dim *p = *(const struct hlo_pad_dim *const *)v;
  Xla__PaddingConfig *out = *(Xla__PaddingConfig **)to.field = arena_new(a, Xla__PaddingConfig);
  const int n = (int)rank_of(i);
  xla__padding_config__init(out);
  HLO_PROTO_MESSAGES(a, n, Xla__PaddingConfig__PaddingConfigDimension,
                     xla__padding_config__padding_config_dimension__init, out->dimensions);
  out->n_dimensions = (size_t)n;
  for (int k = 0; k < n; k++) {
    out->dimensions[k]->edge_padding_low = p[k].low;
    out->dimensions[k]->edge_padding_high = p[k].high;
    out->dimensions[k]->interior_padding = p[k].interior;
  }
}

static bool paddings_from_proto(struct hlo_proto_reader *r, const struct hlo_instr *i, struct hlo_proto_place from,
                                void *v) {
  const Xla__PaddingConfig *p = *(Xla__PaddingConfig **)from.field;
  const size_t rank = rank_of(i), n = p ? p->n_dimensions : 0;
  struct hlo_pad_dim *d = arena_new_array(r->a, struct hlo_pad_dim, rank);
  if (n != rank)
    return hlo_proto_refuse(r, DG_HLO_INVALID, "padding of %zu dimensions for %zu", n, rank);
  for (size_t k = 0; k < rank; k++)
    d[k] = (struct hlo_pad_dim){p->dimensions[k]->edge_padding_low, p->dimensions[k]->edge_padding_high,
                                p->dimensions[k]->interior_padding};
  *(const struct hlo_pad_dim **)v = d;
  return true;
}

const struct hlo_attr_kind hlo_kind_paddings = {.is_none = paddings_is_none,
                                                .dup = paddings_dup,
                                                .equal = paddings_equal,
                                                .hash = paddings_hash,
                                                .put = paddings_put,
                                                .read = paddings_read,
                                                .to_proto = paddings_to_proto,
                                                .from_proto = paddings_from_proto};

/* ---- window={size=2x2 stride=2x1 pad=0_1x0_0 …} -------------------------------------------------------------------- */

/* Each list of the text is one member, or two, of every dimension. */
static const struct window_list {
  const char *name;
  size_t offset, second; /* of the members; second 0: there is no second */
  int64_t neutral;       /* a list that has only this value is omitted */
} window_lists[] = {
    {"size", offsetof(struct hlo_window_dim, size), 0, 0},
    {"stride", offsetof(struct hlo_window_dim, stride), 0, 1},
    {"pad", offsetof(struct hlo_window_dim, low), offsetof(struct hlo_window_dim, high), 0},
    {"lhs_dilate", offsetof(struct hlo_window_dim, base_dilation), 0, 1},
    {"rhs_dilate", offsetof(struct hlo_window_dim, window_dilation), 0, 1},
    {"rhs_reversal", offsetof(struct hlo_window_dim, is_reversed), 0, 0},
};
enum { WINDOW_LISTS = sizeof window_lists / sizeof *window_lists };

static const struct hlo_window_dim neutral_dim = {.size = 1, .stride = 1, .window_dilation = 1, .base_dilation = 1};

static int64_t window_value(const struct hlo_window_dim *d, size_t offset) {
  return offset == offsetof(struct hlo_window_dim, is_reversed) ? d->is_reversed
                                                                : *(const int64_t *)((const char *)d + offset);
}

static void set_window_value(struct hlo_window_dim *d, size_t offset, int64_t v) {
  if (offset == offsetof(struct hlo_window_dim, is_reversed))
    d->is_reversed = v != 0;
  else
    *(int64_t *)((char *)d + offset) = v;
}

/* XLA omits a window without dimensions. */
static void window_start(void *v) {
  static const struct hlo_window none = {0};
  *(const struct hlo_window **)v = &none;
}

static bool window_is_none(const void *v) {
  return !(*(const struct hlo_window *const *)v)->n;
}

static void window_dup(struct arena *a, const struct hlo_instr *i, void *v) {
  const struct hlo_window **w = v;
  (void)i;
  if (*w)
    *w = arena_dup(a, &(struct hlo_window){(*w)->n, arena_dup(a, (*w)->v, (size_t)(*w)->n * sizeof *(*w)->v)},
                   sizeof **w);
}

static bool window_equal(const struct hlo_instr *i, const void *vx, const void *vy) {
  const struct hlo_window *x = *(const struct hlo_window *const *)vx, *y = *(const struct hlo_window *const *)vy;
  (void)i;
  if (x->n != y->n)
    return false;
  for (int k = 0; k < x->n; k++)
    for (int l = 0; l < WINDOW_LISTS; l++)
      if (window_value(&x->v[k], window_lists[l].offset) != window_value(&y->v[k], window_lists[l].offset) ||
          window_value(&x->v[k], window_lists[l].second) != window_value(&y->v[k], window_lists[l].second))
        return false;
  return true;
}

static bool is_neutral(const struct hlo_window *w, const struct window_list *l) {
  for (int k = 0; k < w->n; k++)
    if (window_value(&w->v[k], l->offset) != l->neutral || (l->second && window_value(&w->v[k], l->second)))
      return false;
  return true;
}

static void window_put(struct buf *out, const struct hlo_instr *i, const void *v) {
  const struct hlo_window *w = *(const struct hlo_window *const *)v;
  (void)i;
  for (const struct window_list *l = window_lists; l < window_lists + WINDOW_LISTS; l++) {
    if (l != window_lists && is_neutral(w, l))
      continue;
    buf_printf(out, "%s%s=", l == window_lists ? "{" : " ", l->name);
    for (int k = 0; k < w->n; k++) {
      buf_printf(out, "%s%" PRId64, k ? "x" : "", window_value(&w->v[k], l->offset));
      if (l->second)
        buf_printf(out, "_%" PRId64, window_value(&w->v[k], l->second));
    }
  }
  buf_putc(out, '}');
}

/* Reads the numbers of one list into the dimensions from d on; returns how many there are, or -1 after a refusal. */
static int read_window_list(struct hlo_cursor *c, const struct window_list *l, struct hlo_span key,
                            struct hlo_window_dim *d) {
  int n = 0;
  do {
    int64_t x, y;
    if (n == HLO_RANK_MAX) {
      hlo_cur_fail(c, key, DG_HLO_INVALID, "a window has at most %d dimensions", HLO_RANK_MAX);
      return -1;
    }
    if (!hlo_cur_int(c, &x) || (l->second && (!hlo_cur_need(c, '_') || !hlo_cur_int(c, &y))))
      return -1;
    set_window_value(&d[n], l->offset, x);
    if (l->second)
      set_window_value(&d[n], l->second, y);
    n++;
  } while (hlo_cur_take(c, 'x'));
  return n;
}

static bool window_read(struct hlo_cursor *c, const struct hlo_instr *i, void *v) {
  struct hlo_window_dim dims[HLO_RANK_MAX];
  int n = 0;

  (void)i;
  for (int k = 0; k < HLO_RANK_MAX; k++)
    dims[k] = neutral_dim;
  if (!hlo_cur_need(c, '{'))
    return false;
  while (!hlo_cur_take(c, '}')) {
    const struct window_list *l = window_lists;
    struct hlo_span key;
    if (!hlo_cur_word(c, &key, "a name") || !hlo_cur_need(c, '='))
      return false;
    while (l < window_lists + WINDOW_LISTS && !hlo_span_is(key, l->name))
      l++;
    if (l == window_lists + WINDOW_LISTS)
      return hlo_cur_fail(c, key, DG_HLO_INVALID, "a window has no %.*s", (int)key.len, key.at);
    const int found = read_window_list(c, l, key, dims);
    if (found < 0)
      return false;
    if (n && found != n)
      return hlo_cur_fail(c, key, DG_HLO_INVALID, "%.*s has %d values in a window of %d dimensions", (int)key.len,
                          key.at, found, n);
    n = found;
  }
  *(const struct hlo_window **)v = arena_dup(
      c->a, &(struct hlo_window){n, arena_dup(c->a, dims, (size_t)n * sizeof *dims)}, sizeof(struct hlo_window));
  return true;
}

static void window_to_proto(struct arena *a, const struct hlo_instr *i, const void *v, struct hlo_proto_place to) {
  const struct hlo_window *w = *(const struct hlo_window *const *)v;
  Xla__Window *out = *(Xla__Window **)to.field = arena_new(a, Xla__Window);
  (void)i;
  xla__window__init(out);
  out->n_dimensions = (size_t)w->n;
  HLO_PROTO_MESSAGES(a, w->n, Xla__WindowDimension, xla__window_dimension__init, out->dimensions);
  for (int k = 0; k < w->n; k++) {
    const struct hlo_window_dim *d = &w->v[k];
    Xla__WindowDimension *p = out->dimensions[k];
    p->size = d->size;
    p->stride = d->stride;
    p->padding_low = d->low;
    p->padding_high = d->high;
    p->window_dilation = d->window_dilation;
    p->base_dilation = d->base_dilation;
    p->window_reversal = d->is_reversed;
  }
}

static bool window_from_proto(struct hlo_proto_reader *r, const struct hlo_instr *i, struct hlo_proto_place from,
                              void *v) {
  const Xla__Window *p = *(Xla__Window **)from.field;
  const size_t n = p ? p->n_dimensions : 0;
  struct hlo_window_dim *dims = arena_new_array(r->a, struct hlo_window_dim, n);
  (void)i;
  for (size_t k = 0; k < n; k++) {
    const Xla__WindowDimension *d = p->dimensions[k];
    dims[k] = (struct hlo_window_dim){
        d->size, d->stride, d->padding_low, d->padding_high, d->window_dilation, d->base_dilation, d->window_reversal};
  }
  *(const struct hlo_window **)v = arena_dup(r->a, &(struct hlo_window){(int)n, dims}, sizeof(struct hlo_window));
  return true;
}

const struct hlo_attr_kind hlo_kind_window = {.start = window_start,
                                              .is_none = window_is_none,
                                              .dup = window_dup,
                                              .equal = window_equal,
                                              .put = window_put,
                                              .read = window_read,
                                              .to_proto = window_to_proto,
                                              .from_proto = window_from_proto};

/* ---- dim_labels=b01f_01io->b01f: what each dimension of input, kernel and output is --------------------------------- */

/* One of the three parts: two letters, and the spatial dimensions by number. */
static void put_roles(struct buf *out, int64_t x, char x_name, int64_t y, char y_name, struct hlo_ints spatial) {
  char text[HLO_RANK_MAX + 1] = {0};
  assert(spatial.n <= HLO_SPATIAL_MAX && x >= 0 && x < spatial.n + 2 && y >= 0 && y < spatial.n + 2);
  text[x] = x_name;
  text[y] = y_name;
  for (int k = 0; k < spatial.n; k++) {
    assert(spatial.v[k] >= 0 && spatial.v[k] < spatial.n + 2);
    text[spatial.v[k]] = (char)('0' + k);
  }
  buf_puts(out, text);
}

static void dim_labels_put(struct buf *out, const struct hlo_instr *i, const void *v) {
  const struct hlo_conv_dims *c = v;
  (void)i;
  put_roles(out, c->input_batch, 'b', c->input_feature, 'f', c->input_spatial);
  buf_putc(out, '_');
  put_roles(out, c->kernel_input_feature, 'i', c->kernel_output_feature, 'o', c->kernel_spatial);
  buf_puts(out, "->");
  put_roles(out, c->output_batch, 'b', c->output_feature, 'f', c->output_spatial);
}

static bool read_roles(struct hlo_cursor *c, char x_name, int64_t *x, char y_name, int64_t *y,
                       struct hlo_ints *spatial) {
  int64_t at[HLO_SPATIAL_MAX];
  int n = 0, n_spatial = 0;

  *x = *y = -1;
  for (int k = 0; k < HLO_SPATIAL_MAX; k++)
    at[k] = -1;
  for (; c->at < c->end && *c->at != '_' && *c->at != '-' && *c->at != ' '; c->at++, n++) {
    const int digit = *c->at >= '0' && *c->at <= '9' ? *c->at - '0' : -1;
    if (*c->at == x_name && *x < 0)
      *x = n;
    else if (*c->at == y_name && *y < 0)
      *y = n;
    else if (digit >= 0 && at[digit] < 0)
      at[digit] = n, n_spatial++;
    else
      return hlo_cur_fail(c, (struct hlo_span){c->at, 1}, DG_HLO_INVALID, "'%c' is not the role of one dimension",
                          *c->at >= 0x20 && *c->at < 0x7f ? *c->at : '?');
  }
  for (int k = 0; k < n_spatial; k++)
    if (at[k] < 0)
      return hlo_cur_fail(c, (struct hlo_span){c->at, 0}, DG_HLO_INVALID, "spatial dimensions must count from 0");
  if (*x < 0 || *y < 0)
    return hlo_cur_fail(c, (struct hlo_span){c->at, 0}, DG_HLO_INVALID, "the roles %c and %c are needed", x_name,
                        y_name);
  *spatial = hlo_ints_dup(c->a, n_spatial, at);
  return true;
}

static bool dim_labels_read(struct hlo_cursor *c, const struct hlo_instr *i, void *v) {
  struct hlo_conv_dims *out = v;
  (void)i;
  hlo_cur_space(c);
  return read_roles(c, 'b', &out->input_batch, 'f', &out->input_feature, &out->input_spatial) && hlo_cur_need(c, '_') &&
         read_roles(c, 'i', &out->kernel_input_feature, 'o', &out->kernel_output_feature, &out->kernel_spatial) &&
         hlo_cur_need(c, '-') && hlo_cur_need(c, '>') &&
         read_roles(c, 'b', &out->output_batch, 'f', &out->output_feature, &out->output_spatial);
}

const struct hlo_attr_kind hlo_kind_dim_labels = {.put = dim_labels_put, .read = dim_labels_read};
