/* link: see the header. */
#include "driver/link.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <zlib.h>

/* Appends the text as encodeURIComponent writes it, but for ":" and ",", which stay readable. */
static void put_quoted(struct buf *out, const char *text) {
  for (const unsigned char *p = (const unsigned char *)text; *p; p++)
    if (isalnum(*p) || strchr("-_.!~*'():,", *p))
      buf_putc(out, (char)*p);
    else
      buf_printf(out, "%%%02X", *p);
}

static void put_part(struct buf *out, const char *key, const char *value) {
  const char last = out->len ? out->data[out->len - 1] : '#';
  if (last != '#')
    buf_putc(out, '&');
  buf_printf(out, "%s=", key);
  put_quoted(out, value);
}

/* Appends base64 of the compressed text, in the letters of addresses. */
static enum status put_packed(struct buf *out, const char *key, const char *text, size_t len, struct error *err) {
  uLongf n = compressBound(len);
  unsigned char *packed = malloc(n), *letters = malloc(n / 3 * 4 + 8);
  enum status st = packed && letters && compress2(packed, &n, (const Bytef *)text, len, Z_BEST_COMPRESSION) == Z_OK
                       ? ST_OK
                       : fail(err, ST_NOMEM, "link");
  if (!st) {
    EVP_EncodeBlock(letters, packed, (int)n);
    for (unsigned char *p = letters; *p; p++)
      *p = *p == '+' ? '-' : *p == '/' ? '_' : *p == '=' ? 0 : *p;
    put_part(out, key, (const char *)letters);
  }
  free(packed);
  free(letters);
  return st;
}

/* Appends a list of the job as JSON, compressed or as it is; takes the list. */
static enum status put_list(struct buf *out, const char *key, char *json, bool is_packed, struct error *err) {
  if (!json)
    return fail(err, ST_NOMEM, "link");
  enum status st = ST_OK;
  if (is_packed)
    st = put_packed(out, key, json, strlen(json), err);
  else
    put_part(out, key, json);
  free(json);
  return st;
}

/* The changes of the pipeline by hand. */
static void put_changes(struct buf *out, const struct job *job) {
  for (int i = 0; i < job->n_by_hand; i++) {
    if (i)
      put_quoted(out, "; ");
    else
      put_part(out, "hand", "");
    put_quoted(out, job->by_hand[i]);
  }
}

enum status link_put(struct buf *out, const char *base, const struct job *job, const struct link_view *view,
                     struct error *err) {
  enum status st = ST_OK;
  buf_puts(out, base);
  buf_puts(out, "/#");
  if (view->stage)
    put_part(out, "stage", view->stage);
  if (view->kernel)
    put_part(out, "kernel", view->kernel);
  if (view->selection)
    put_part(out, "sel", view->selection);
  put_part(out, "target", target_name(job->target));
  if (job->language != LANG_NKIPY)
    put_part(out, "lang", language_name(job->language));
  if (job->check)
    put_part(out, "check", "1");
  if (job->is_reference)
    put_part(out, "pipeline", "reference");
  if (job->simulate)
    put_part(out, "run", "1");
  put_changes(out, job);
  if (job->n_inputs)
    st = put_list(out, "in", job_dump_inputs(job), false, err);
  if (job->filename)
    put_part(out, "file", job->filename);
  if (!st && job->n_files)
    st = put_list(out, "files", job_dump_files(job), true, err);
  if (!st)
    st = put_packed(out, "code", job->source, job->source_len, err);
  return st ? st : buf_status(out);
}
