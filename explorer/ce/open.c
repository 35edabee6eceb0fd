/* GET /clientstate/BASE64: redirects to the page's own form of a link, which has everything after the '#'.  No server
 * sees that part, so nothing runs here and nothing is kept. */
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <zlib.h>

#include "api/compile.h"
#include "ce/internal.h"

enum { URL_MAX = 32 << 10 };

/* Appends a value of a fragment; characters that may not be there become %XX. */
static void put_escaped(struct buf *b, const char *s) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~:,";
  for (; *s; s++)
    buf_printf(b, strchr(plain, *s) ? "%c" : "%%%02X", (unsigned char)*s);
}

/* Appends a text as the page's own links have it: base64url of a zlib stream. */
static void put_packed(struct buf *b, const char *source, size_t n) {
  uLongf bound = compressBound(n);
  unsigned char *packed = malloc(bound), *text = malloc(bound / 3 * 4 + 8);
  if (packed && text && compress(packed, &bound, (const Bytef *)source, n) == Z_OK) {
    int k = EVP_EncodeBlock(text, packed, (int)bound);
    while (k > 0 && text[k - 1] == '=')
      k--;
    for (int i = 0; i < k; i++)
      buf_putc(b, text[i] == '+' ? '-' : text[i] == '/' ? '_' : (char)text[i]);
  } else {
    b->failed = ST_NOMEM;
  }
  free(packed);
  free(text);
}

static void put_inputs(struct buf *b, const struct job *job) {
  char *inputs = job_dump_inputs(job);
  if (inputs) {
    buf_puts(b, "&in=");
    put_escaped(b, inputs);
  } else {
    b->failed = ST_NOMEM;
  }
  free(inputs);
}

static void put_files(struct buf *b, const struct job *job) {
  char *files = job_dump_files(job);
  if (files) {
    buf_puts(b, "&files=");
    put_packed(b, files, strlen(files));
  } else {
    b->failed = ST_NOMEM;
  }
  free(files);
}

static void put_address(struct buf *b, const struct job *job) {
  buf_puts(b, "/#");
  if (job->stop_after) {
    buf_puts(b, "stage=");
    put_escaped(b, job->stop_after);
    buf_putc(b, '&');
  }
  if (job->kernel) {
    buf_puts(b, "kernel=");
    put_escaped(b, job->kernel);
    buf_putc(b, '&');
  }
  buf_printf(b, "target=%s", target_name(job->target));
  if (job->check)
    buf_puts(b, "&check=1");
  if (job->n_inputs)
    put_inputs(b, job);
  if (job->n_files)
    put_files(b, job);
  buf_puts(b, "&code=");
  put_packed(b, job->source, job->source_len);
}

/* Writes the page's address for what the state shows first.  ST_INPUT if its arguments make no sense. */
static enum status write_address(struct buf *b, const json_t *state) {
  struct arena a;
  struct ce_ask q;
  struct job job;
  struct error err;
  enum status st = compile_arena(&a, JOB_JSON_MAX, &err);
  if (st)
    return st;
  ce_ask_init(&q);
  ce_state_ask(state, &a, &q);
  st = ce_ask_job(&q, &a, &job, &err);
  if (!st && q.args.complaint)
    st = ST_INPUT;
  if (!st) {
    put_address(b, &job);
    st = buf_status(b);
  }
  ce_ask_clear(&q);
  arena_clear(&a);
  return st;
}

enum MHD_Result ce_open_state(struct request *rq) {
  struct buf url;
  rq->is_private = true;
  json_t *state = ce_state_decode(rq->rest, strlen(rq->rest));
  buf_init(&url, URL_MAX);
  enum status st = state ? write_address(&url, state) : ST_INPUT;
  json_decref(state);
  if (st) {
    buf_clear(&url);
    return http_problem(rq, st == ST_LIMIT ? PB_TOO_LARGE : PB_BAD_FIELD,
                        st == ST_LIMIT ? "The state is too large for an address; store it with /api/shortener."
                                       : "Invalid client state data in URL",
                        NULL);
  }
  struct MHD_Response *r = MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);
  if (r) {
    MHD_add_response_header(r, MHD_HTTP_HEADER_LOCATION, buf_text(&url));
    MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  }
  buf_clear(&url);
  return http_send(rq, MHD_HTTP_FOUND, r);
}
