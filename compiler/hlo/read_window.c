/* hlo_read_window: windows, roles of dimensions, groups of devices and aliases of custom calls, in HLO text. */
#include <string.h>

#include "hlo/read_text.h"

/* ---- windows ------------------------------------------------------------------------------------------------------ */

enum window_field { WF_SIZE, WF_STRIDE, WF_PAD, WF_BASE, WF_DILATION, WF_REVERSAL, WF_COUNT };

static bool one_value(struct hlo_cursor *c, enum window_field f, struct hlo_window_dim *d) {
  int64_t reversed;
  switch (f) {
  case WF_SIZE:
    return hlo_cur_int(c, &d->size);
  case WF_STRIDE:
    return hlo_cur_int(c, &d->stride);
  case WF_PAD:
    return hlo_cur_int(c, &d->low) && hlo_cur_need(c, '_') && hlo_cur_int(c, &d->high);
  case WF_BASE:
    return hlo_cur_int(c, &d->base_dilation);
  case WF_DILATION:
    return hlo_cur_int(c, &d->window_dilation);
  default:
    if (!hlo_cur_int(c, &reversed))
      return false;
    d->is_reversed = reversed != 0;
    return true;
  }
}

bool hlo_read_window(struct hlo_cursor *c, const struct hlo_window **out) {
  static const char *const names[] = {"size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal"};
  struct hlo_window_dim v[HLO_RANK_MAX];
  int n = 0;

  for (int k = 0; k < HLO_RANK_MAX; k++)
    v[k] = (struct hlo_window_dim){.size = 1, .stride = 1, .window_dilation = 1, .base_dilation = 1};
  if (!hlo_cur_need(c, '{'))
    return false;
  while (!hlo_cur_take(c, '}')) {
    struct hlo_span key;
    int f = 0, at = 0;
    if (!hlo_cur_word(c, &key, "a name") || !hlo_cur_need(c, '='))
      return false;
    while (f < WF_COUNT && !hlo_span_is(key, names[f]))
      f++;
    if (f == WF_COUNT)
      return hlo_cur_fail(c, key, DG_HLO_INVALID, "a window has no %.*s", (int)key.len, key.at);
    do {
      if (at == HLO_RANK_MAX)
        return hlo_cur_fail(c, key, DG_HLO_INVALID, "a window has at most %d dimensions", HLO_RANK_MAX);
      if (!one_value(c, (enum window_field)f, &v[at++]))
        return false;
    } while (hlo_cur_take(c, 'x'));
    if (n && at != n)
      return hlo_cur_fail(c, key, DG_HLO_INVALID, "%.*s has %d values in a window of %d dimensions", (int)key.len,
                          key.at, at, n);
    n = at;
  }
  struct hlo_window *w = arena_new(c->a, struct hlo_window);
  *w = (struct hlo_window){n, arena_dup(c->a, v, (size_t)n * sizeof *v)};
  *out = w;
  return true;
}

/* ---- roles -------------------------------------------------------------------------------------------------------- */

/* One part of the labels: two letters, and the spatial dimensions by number. */
static bool read_roles(struct hlo_cursor *c, char x_name, int64_t *x, char y_name, int64_t *y,
                       struct hlo_ints *spatial) {
  int64_t at[HLO_RANK_MAX];
  int n = 0, n_spatial = 0;

  *x = *y = -1;
  for (int k = 0; k < HLO_RANK_MAX; k++)
    at[k] = -1;
  for (; c->at < c->end && *c->at != '_' && *c->at != '-' && *c->at != ' '; c->at++, n++) {
    const int digit = *c->at >= '0' && *c->at <= '9' ? *c->at - '0' : -1;
    if (n == HLO_RANK_MAX)
      return hlo_cur_fail(c, (struct hlo_span){c->at, 1}, DG_HLO_INVALID, "more than %d dimensions", HLO_RANK_MAX);
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

bool hlo_read_dim_labels(struct hlo_cursor *c, struct hlo_conv_dims *out) {
  hlo_cur_space(c);
  return read_roles(c, 'b', &out->input_batch, 'f', &out->input_feature, &out->input_spatial) && hlo_cur_need(c, '_') &&
         read_roles(c, 'i', &out->kernel_input_feature, 'o', &out->kernel_output_feature, &out->kernel_spatial) &&
         hlo_cur_need(c, '-') && hlo_cur_need(c, '>') &&
         read_roles(c, 'b', &out->output_batch, 'f', &out->output_feature, &out->output_spatial);
}

/* ---- groups ------------------------------------------------------------------------------------------------------- */

enum { GROUPS_MAX = 4096 };

/* [2,4]<=[8]: two groups of four, counted through */
static bool read_counted_groups(struct hlo_cursor *c, const struct hlo_groups **out) {
  int64_t n, size, total;
  if (!hlo_cur_need(c, '[') || !hlo_cur_int(c, &n) || !hlo_cur_need(c, ',') || !hlo_cur_int(c, &size) ||
      !hlo_cur_need(c, ']') || !hlo_cur_need(c, '<') || !hlo_cur_need(c, '=') || !hlo_cur_need(c, '[') ||
      !hlo_cur_int(c, &total) || !hlo_cur_need(c, ']'))
    return false;
  if (n < 1 || size < 1 || n > GROUPS_MAX || size > GROUPS_MAX || n * size != total)
    return hlo_cur_fail(c, (struct hlo_span){c->at, 0}, DG_HLO_INVALID,
                        "%lld groups of %lld devices are not %lld devices", (long long)n, (long long)size,
                        (long long)total);
  struct hlo_ints *v = arena_new_array(c->a, struct hlo_ints, (size_t)n);
  int64_t *ids = arena_new_array(c->a, int64_t, (size_t)size);
  for (int64_t k = 0, id = 0; k < n; k++) {
    for (int64_t j = 0; j < size; j++)
      ids[j] = id++;
    v[k] = hlo_ints_dup(c->a, (int)size, ids);
  }
  *out = arena_dup(c->a, &(struct hlo_groups){(int)n, v}, sizeof **out);
  return true;
}

bool hlo_read_groups(struct hlo_cursor *c, const struct hlo_groups **out) {
  int n = 0, cap = 0;
  struct hlo_ints *v = NULL;
  if (hlo_cur_peek(c, '['))
    return read_counted_groups(c, out);
  if (!hlo_cur_need(c, '{'))
    return false;
  if (hlo_cur_take(c, '}')) /* all devices */
    return true;
  do {
    if (n == GROUPS_MAX)
      return hlo_cur_fail(c, (struct hlo_span){c->at, 0}, DG_HLO_INVALID, "more than %d groups", GROUPS_MAX);
    if (n == cap) {
      struct hlo_ints *more = arena_new_array(c->a, struct hlo_ints, (size_t)(cap ? cap * 2 : 8));
      if (n)
        memcpy(more, v, (size_t)n * sizeof *v);
      v = more;
      cap = cap ? cap * 2 : 8;
    }
    if (!hlo_cur_ints(c, &v[n++]))
      return false;
  } while (hlo_cur_take(c, ','));
  *out = arena_dup(c->a, &(struct hlo_groups){n, v}, sizeof **out);
  return hlo_cur_need(c, '}');
}

/* ---- custom calls ------------------------------------------------------------------------------------------------- */

bool hlo_read_operand_aliases(struct hlo_cursor *c, struct hlo_attrs *out) {
  struct hlo_operand_alias v[64];
  int n = 0;
  if (!hlo_cur_need(c, '{'))
    return false;
  while (!hlo_cur_peek(c, '}')) {
    struct hlo_ints within;
    if (n == 64)
      return hlo_cur_fail(c, (struct hlo_span){c->at, 0}, DG_HLO_INVALID, "more than 64 aliases");
    if (!hlo_cur_ints(c, &v[n].output_index) || !hlo_cur_need(c, ':') || !hlo_cur_need(c, '(') ||
        !hlo_cur_int(c, &v[n].operand) || !hlo_cur_need(c, ',') || !hlo_cur_ints(c, &within) || !hlo_cur_need(c, ')'))
      return false;
    if (within.n)
      return hlo_cur_fail(c, (struct hlo_span){c->at, 0}, DG_HLO_INVALID,
                          "an alias of a tuple's element has no form here");
    n++;
    if (!hlo_cur_take(c, ','))
      break;
  }
  out->n_operand_aliases = n;
  out->operand_aliases = arena_dup(c->a, v, (size_t)n * sizeof *v);
  return hlo_cur_need(c, '}');
}
