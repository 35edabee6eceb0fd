/* Answers that are whole before they are sent, compressed for clients that accept that.
 *
 * They are compressed while they are sent, a block at a time, so that a large one does not hold up the other
 * connections of its thread.
 */
#include <stdlib.h>

#include "http/http.h"
#include "http/packer.h"
#include "http/unsent.h"

enum {
  WORTH_PACKING = 1024, /* smaller answers fit into one packet anyway */
  BLOCK = 32 << 10,
};

struct packed {
  struct packer *packer;
  struct packer_input left;
  struct http_bytes bytes;
  struct unsent_answer *unsent;
  bool is_done, is_ok;
};

static void release(const struct http_bytes *b) {
  if (b->release)
    b->release(b->user);
}

static ssize_t read_packed(void *user, uint64_t pos, char *to, size_t max) {
  struct packed *p = user;
  size_t n = 0;
  (void)pos;
  while (!n && !p->is_done)
    n = packer_run(p->packer, &p->left, PACKER_END, to, max, &p->is_done, &p->is_ok);
  return n ? (ssize_t)n : p->is_ok ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void free_packed(void *user) {
  struct packed *p = user;
  packer_free(p->packer);
  release(&p->bytes);
  unsent_remove(p->unsent);
  free(p);
}

/* NULL when out of memory; the bytes are then released. */
static struct MHD_Response *packed_response(enum packing kind, const struct http_bytes *b,
                                            struct unsent_answer *unsent) {
  struct packed *p = calloc(1, sizeof *p);
  if (!p) {
    release(b);
    unsent_remove(unsent);
    return NULL;
  }
  *p = (struct packed){
      .packer = packer_new(kind), .left = {b->data, b->len}, .bytes = *b, .unsent = unsent, .is_ok = true};
  struct MHD_Response *r =
      p->packer ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_packed, p, free_packed) : NULL;
  if (!r)
    free_packed(p);
  return r;
}

struct plain {
  struct http_bytes bytes;
  struct unsent_answer *unsent;
};

static void free_plain(void *user) {
  struct plain *p = user;
  release(&p->bytes);
  unsent_remove(p->unsent);
  free(p);
}

/* NULL when out of memory; the bytes are then released. */
static struct MHD_Response *plain_response(const struct http_bytes *b, struct unsent_answer *unsent) {
  struct plain *p = malloc(sizeof *p);
  if (!p) {
    release(b);
    unsent_remove(unsent);
    return NULL;
  }
  *p = (struct plain){*b, unsent};
  struct MHD_Response *r =
      MHD_create_response_from_buffer_with_free_callback_cls(b->len, (void *)(uintptr_t)b->data, free_plain, p);
  if (!r)
    free_plain(p);
  return r;
}

/* The client has the bytes already. */
static enum MHD_Result send_not_modified(struct request *rq, const struct http_bytes *b) {
  struct MHD_Response *r = MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);
  release(b);
  if (!r)
    return MHD_NO;
  MHD_add_response_header(r, MHD_HTTP_HEADER_ETAG, b->etag);
  MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, b->cache ? b->cache : "no-store");
  return http_send(rq, MHD_HTTP_NOT_MODIFIED, r);
}

bool http_has_room(struct request *rq, size_t len) {
  char client[ADDRESS_TEXT_SIZE];
  http_client_key(rq, client);
  return len < UNSENT_COUNTED || unsent_has_room(rq->unsent, client, len);
}

enum MHD_Result http_bytes(struct request *rq, unsigned status, const struct http_bytes *b) {
  if (b->etag && status == MHD_HTTP_OK && http_has_etag(rq, b->etag))
    return send_not_modified(rq, b);
  const bool is_counted = b->release && !b->is_shared && b->len >= UNSENT_COUNTED;
  char client[ADDRESS_TEXT_SIZE];
  http_client_key(rq, client);
  struct unsent_answer *unsent = is_counted ? unsent_add(rq->unsent, client, b->len) : NULL;
  if (is_counted && !unsent) {
    release(b);
    return http_problem(rq, PB_UNSENT, NULL, NULL);
  }
  const enum packing packing = b->len >= WORTH_PACKING && !b->is_packed ? packing_for(rq) : PACKING_NONE;
  struct MHD_Response *r = packing ? packed_response(packing, b, unsent) : plain_response(b, unsent);
  if (!r)
    return MHD_NO;
  MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, b->type);
  MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, b->cache ? b->cache : "no-store");
  if (b->etag)
    MHD_add_response_header(r, MHD_HTTP_HEADER_ETAG, b->etag);
  if (b->vary)
    MHD_add_response_header(r, MHD_HTTP_HEADER_VARY, b->vary);
  if (b->disposition)
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_DISPOSITION, b->disposition);
  packing_add_headers(packing, r);
  return http_send(rq, status, r);
}
