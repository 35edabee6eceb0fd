/* compile_neff: describes a NEFF that somebody sent.
 *
 * The file is hostile until it was read: this runs in a worker's jail, with less memory than a compressed archive can claim.
 */
#include "driver/compile_internal.h"

#include <stdlib.h>

#include "neff/inspect.h"

enum {
  UNPACKED_MAX = 256 << 20, /* bytes of all members, unpacked; the archive and the description need room beside it */
  INFO_NEST_MAX = 32, /* levels of info.json, which the description repeats; readers of frames take FRAME_NEST_MAX */
};

/* jansson has limited the depth of what it read. */
static int depth(const json_t *v) {
  int most = 0;
  const char *key;
  json_t *one;
  size_t i;
  if (json_is_object(v)) {
    json_object_foreach((json_t *)v, key, one) {
      const int d = depth(one);
      most = d > most ? d : most;
    }
  } else if (json_is_array(v)) {
    json_array_foreach(v, i, one) {
      const int d = depth(one);
      most = d > most ? d : most;
    }
  } else {
    return 0;
  }
  return most + 1;
}

static struct neff_limits limits_of(const struct job *j) {
  struct neff_limits l = NEFF_LIMITS;
  l.total_bytes = UNPACKED_MAX;
  if (j->memory_max && (size_t)j->memory_max < l.total_bytes)
    l.total_bytes = (size_t)j->memory_max;
  return l;
}

static enum status read_file(struct run *r, struct neff *x, struct neff_model *m, struct error *err) {
  enum status st = neff_read(r->arena, r->job->source, r->job->source_len, limits_of(r->job), x, err);
  if (!st)
    st = neff_model_read(r->arena, x, m, err);
  if (!st && depth(m->info) > INFO_NEST_MAX)
    st = fail(err, ST_LIMIT, "info.json is nested more than %d levels deep", INFO_NEST_MAX);
  return st;
}

static enum status send_description(struct run *r, const struct neff *x, const struct neff_model *m) {
  json_t *v = neff_inspect(x, m);
  char *text = v ? json_dumps(v, JSON_COMPACT) : NULL;
  struct buf b;
  json_decref(v);
  if (!text)
    return ST_NOMEM;
  buf_init(&b, FRAME_MAX);
  buf_puts(&b, "{\"frame\":\"neff\",\"neff\":");
  buf_puts(&b, text);
  buf_putc(&b, '}');
  free(text);
  if (buf_status(&b) != ST_LIMIT)
    return compile_send(r, &b);
  buf_clear(&b);
  diag_add(&r->diags, DS_ERROR, DG_NEFF_LIMIT, NULL, "the description of the NEFF is larger than %d MiB",
           FRAME_MAX >> 20);
  return ST_OK;
}

enum status compile_neff(struct run *r) {
  struct neff x;
  struct neff_model m = {0};
  struct error err = {0};
  enum status st = read_file(r, &x, &m, &err);
  if (!st)
    st = send_description(r, &x, &m);
  else if (st == ST_INPUT || st == ST_LIMIT) {
    diag_add(&r->diags, DS_ERROR, st == ST_LIMIT ? DG_NEFF_LIMIT : DG_NEFF_FILE, NULL, "%s", err.text);
    st = ST_OK;
  }
  neff_model_clear(&m);
  return st ? st : compile_send_diags(r, -1);
}
