/* serve: the state of `nkx lsp`, which serve.c runs and methods.c answers from. */
#ifndef LSP_SERVE_H
#define LSP_SERVE_H

#include "aside/aside.h"
#include "lsp/lsp.h"
#include "rpc/rpc.h"

/* A request about a document that has no result yet: it is answered when its first compile ends. */
struct lsp_waiting {
  struct lsp_waiting *next;
  struct rpc_message message;
};

struct lsp_server {
  struct lsp_settings cfg;
  struct arena arena;
  struct aside_host *host;  /* started by the first compile */
  struct aside job;         /* the compile that runs */
  char *job_uri, *job_text; /* of its document; heap, NULL if none runs */
  struct document *docs;    /* heap */
  int n_docs, cap_docs;
  struct lsp_waiting *waiting; /* the oldest first */
  int n_requests;              /* that we have sent */
  bool is_initialized, is_shut_down, has_ended;
  bool shows_documents, refreshes_hints; /* what the client can do */
  bool is_broken;                        /* it reads no more */
};

struct document *lsp_find(struct lsp_server *s, const char *uri);
/* Sends a message; b is cleared. */
void lsp_send(struct lsp_server *s, struct buf *b);
/* Takes a message, which is released.  methods.c */
void lsp_take(struct lsp_server *s, struct rpc_message *m);
/* Answers what waits for this document. */
void lsp_answer_waiting(struct lsp_server *s, const struct document *d);
/* Sends the diagnostics of a document; result NULL: it has none. */
void lsp_publish(struct lsp_server *s, const struct document *d, const struct json_t *result);

#endif
