/* methods: what each message of an editor does. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/clock.h"
#include "driver/pipeline.h"
#include "lsp/serve.h"

enum { CANCELLED = -32800, NOT_INITIALIZED = -32002, PAUSE_MS = 150, MESSAGE_MAX = 64 << 20, LINK_MAX = 1 << 20 };

/* ---- sending ----------------------------------------------------------------------------------------------------- */

/* result: released; NULL: null. */
static void answer(struct lsp_server *s, const json_t *id, json_t *result) {
  struct buf b;
  buf_init(&b, MESSAGE_MAX);
  rpc_put_result(&b, id, result ? result : json_null());
  lsp_send(s, &b);
}

static void refuse(struct lsp_server *s, const json_t *id, int code, const char *why) {
  struct buf b;
  buf_init(&b, MESSAGE_MAX);
  rpc_put_error(&b, id, code, why, NULL);
  lsp_send(s, &b);
}

static void ask(struct lsp_server *s, const char *method, json_t *params) {
  struct buf b;
  buf_init(&b, MESSAGE_MAX);
  rpc_put_request(&b, ++s->n_requests, method, params);
  lsp_send(s, &b);
}

static void notify(struct lsp_server *s, const char *method, json_t *params) {
  struct buf b;
  buf_init(&b, MESSAGE_MAX);
  rpc_put_notification(&b, method, params);
  lsp_send(s, &b);
}

void lsp_publish(struct lsp_server *s, const struct document *d, const json_t *result) {
  notify(s, "textDocument/publishDiagnostics",
         json_pack("{s:s,s:I,s:o}", "uri", d->uri, "version", (json_int_t)d->version, "diagnostics",
                   lsp_diagnostics(d, result)));
}

/* ---- the life of the server -------------------------------------------------------------------------------------- */

static bool has_flag(const json_t *o, const char *const *path, size_t n) {
  for (size_t i = 0; i < n; i++)
    o = json_object_get(o, path[i]);
  return json_is_true(o);
}

static void initialize(struct lsp_server *s, const struct rpc_message *m) {
  static const char *const shows[] = {"capabilities", "window", "showDocument", "support"};
  static const char *const refreshes[] = {"capabilities", "workspace", "inlayHint", "refreshSupport"};
  if (s->is_initialized) {
    refuse(s, m->id, RPC_INVALID, "initialize comes once");
    return;
  }
  s->is_initialized = true;
  s->shows_documents = has_flag(m->params, shows, 4);
  s->refreshes_hints = has_flag(m->params, refreshes, 4);
  answer(s, m->id,
         json_pack("{s:{s:s,s:{s:b,s:i},s:b,s:b,s:{s:[s]},s:{s:[s]}},s:{s:s,s:s}}", "capabilities", "positionEncoding",
                   "utf-16", "textDocumentSync", "openClose", 1, "change", 1, "hoverProvider", 1, "inlayHintProvider",
                   1, "codeActionProvider", "codeActionKinds", "refactor.rewrite", "executeCommandProvider", "commands",
                   LSP_OPEN, "serverInfo", "name", "nkx", "version", release_version()));
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static void plan(struct document *d, int pause_ms) {
  d->due_ms = document_has_kernels(d) ? clock_now_ms() + pause_ms : 0;
  d->has_ended |= !d->due_ms; /* nothing will come */
}

static void open_document(struct lsp_server *s, const json_t *params) {
  const json_t *doc = json_object_get(params, "textDocument");
  const char *uri = rpc_text(doc, "uri"), *text = rpc_text(doc, "text");
  const long long version = json_integer_value(json_object_get(doc, "version"));
  struct document *d = uri ? lsp_find(s, uri) : NULL;
  if (!uri || !text)
    return;
  if (d) {
    document_set_text(d, text, version);
  } else {
    if (s->n_docs == s->cap_docs) {
      const int cap = s->cap_docs ? 2 * s->cap_docs : 8;
      struct document *more = realloc(s->docs, (size_t)cap * sizeof *more);
      if (!more)
        return;
      s->docs = more;
      s->cap_docs = cap;
    }
    d = &s->docs[s->n_docs++];
    document_init(d, uri, text, version);
  }
  plan(d, 0);
}

/* The editor sends whole texts, as we ask it to. */
static void change_document(struct lsp_server *s, const json_t *params) {
  const json_t *doc = json_object_get(params, "textDocument"), *changes = json_object_get(params, "contentChanges");
  const char *uri = rpc_text(doc, "uri");
  const size_t n = json_array_size(changes);
  const char *text = n ? rpc_text(json_array_get(changes, n - 1), "text") : NULL;
  struct document *d = uri ? lsp_find(s, uri) : NULL;
  if (!d || !text)
    return;
  document_set_text(d, text, json_integer_value(json_object_get(doc, "version")));
  plan(d, PAUSE_MS);
  if (!d->due_ms) { /* it has no kernels any more */
    lsp_publish(s, d, NULL);
    lsp_answer_waiting(s, d);
  }
}

static void close_document(struct lsp_server *s, const json_t *params) {
  const char *uri = rpc_text(json_object_get(params, "textDocument"), "uri");
  struct document *d = uri ? lsp_find(s, uri) : NULL;
  if (!d)
    return;
  d->has_ended = true;
  lsp_answer_waiting(s, d);
  lsp_publish(s, d, NULL);
  document_clear(d);
  *d = s->docs[--s->n_docs];
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

static void open_in_explorer(struct lsp_server *s, const struct rpc_message *m) {
  const json_t *about = json_array_get(json_object_get(m->params, "arguments"), 0);
  const char *uri = rpc_text(about, "uri"), *command = rpc_text(m->params, "command");
  const struct document *d = uri ? lsp_find(s, uri) : NULL;
  struct error err = {0};
  struct buf link;
  if (!command || strcmp(command, LSP_OPEN) != 0 || !d) {
    refuse(s, m->id, RPC_PARAMS, "expected the command " LSP_OPEN " with {\"uri\"} of an open document");
    return;
  }
  buf_init(&link, LINK_MAX);
  if (lsp_link(d, &s->cfg, json_object_get(about, "range"), &link, &err)) {
    refuse(s, m->id, RPC_INTERNAL, "the link would be too long");
  } else {
    if (s->shows_documents)
      ask(s, "window/showDocument", json_pack("{s:s,s:b}", "uri", buf_text(&link), "external", 1));
    else
      notify(s, "window/showMessage", json_pack("{s:i,s:s}", "type", 3, "message", buf_text(&link)));
    answer(s, m->id, json_string(buf_text(&link)));
  }
  buf_clear(&link);
}

struct question {
  const char *method;
  json_t *(*tell)(const struct document *d, const json_t *params);
};

static json_t *tell_hover(const struct document *d, const json_t *params) {
  return lsp_hover(d, json_object_get(params, "position"));
}
static json_t *tell_hints(const struct document *d, const json_t *params) {
  return lsp_hints(d, json_object_get(params, "range"));
}
static json_t *tell_actions(const struct document *d, const json_t *params) {
  return lsp_actions(d, json_object_get(params, "range"));
}

static const struct question questions[] = {{"textDocument/hover", tell_hover},
                                            {"textDocument/inlayHint", tell_hints},
                                            {"textDocument/codeAction", tell_actions}};

static const struct question *find_question(const char *method) {
  for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
    if (!strcmp(questions[i].method, method))
      return &questions[i];
  return NULL;
}

static const struct document *document_of(struct lsp_server *s, const struct rpc_message *m) {
  const char *uri = rpc_text(json_object_get(m->params, "textDocument"), "uri");
  return uri ? lsp_find(s, uri) : NULL;
}

/* Takes the message if it is to be answered later. */
static void ask_question(struct lsp_server *s, struct rpc_message *m, const struct question *q) {
  const struct document *d = document_of(s, m);
  struct lsp_waiting *w = d && !d->has_ended ? calloc(1, sizeof *w) : NULL, **end = &s->waiting;
  if (!w) {
    answer(s, m->id, d ? q->tell(d, m->params) : NULL);
    return;
  }
  w->message = *m;
  *m = (struct rpc_message){0};
  while (*end)
    end = &(*end)->next;
  *end = w;
}

static void drop_waiting(struct lsp_waiting **at) {
  struct lsp_waiting *w = *at;
  *at = w->next;
  rpc_clear(&w->message);
  free(w);
}

void lsp_answer_waiting(struct lsp_server *s, const struct document *d) {
  for (struct lsp_waiting **at = &s->waiting; *at;) {
    const struct rpc_message *m = &(*at)->message;
    if (document_of(s, m) != d) {
      at = &(*at)->next;
      continue;
    }
    answer(s, m->id, find_question(m->method)->tell(d, m->params));
    drop_waiting(at);
  }
}

static void cancel(struct lsp_server *s, const json_t *id) {
  for (struct lsp_waiting **at = &s->waiting; *at; at = &(*at)->next)
    if (json_equal((*at)->message.id, id)) {
      refuse(s, id, CANCELLED, "cancelled");
      drop_waiting(at);
      return;
    }
}

static void shut_down(struct lsp_server *s, const json_t *id) {
  while (s->waiting) {
    refuse(s, s->waiting->message.id, CANCELLED, "the server shuts down");
    drop_waiting(&s->waiting);
  }
  aside_clear(&s->job);
  s->is_shut_down = true;
  if (id)
    answer(s, id, NULL);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void take_note(struct lsp_server *s, const struct rpc_message *m) {
  static const struct {
    const char *method;
    void (*take)(struct lsp_server *s, const json_t *params);
  } notes[] = {{"textDocument/didOpen", open_document},
               {"textDocument/didChange", change_document},
               {"textDocument/didClose", close_document}};
  if (!strcmp(m->method, "exit"))
    s->has_ended = true;
  else if (!strcmp(m->method, "$/cancelRequest"))
    cancel(s, json_object_get(m->params, "id"));
  for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
    if (s->is_initialized && !s->is_shut_down && !strcmp(m->method, notes[i].method))
      notes[i].take(s, m->params);
}

static void take_request(struct lsp_server *s, struct rpc_message *m) {
  const struct question *q = find_question(m->method);
  if (!strcmp(m->method, "initialize"))
    initialize(s, m);
  else if (!s->is_initialized)
    refuse(s, m->id, NOT_INITIALIZED, "initialize comes first");
  else if (!strcmp(m->method, "shutdown"))
    shut_down(s, m->id);
  else if (s->is_shut_down)
    refuse(s, m->id, RPC_INVALID, "the server has shut down");
  else if (q)
    ask_question(s, m, q);
  else if (!strcmp(m->method, "workspace/executeCommand"))
    open_in_explorer(s, m);
  else
    refuse(s, m->id, RPC_NO_METHOD, "there is no such method here");
}

void lsp_take(struct lsp_server *s, struct rpc_message *m) {
  if (m->kind == RPC_NOTIFICATION)
    take_note(s, m);
  else if (m->kind == RPC_REQUEST)
    take_request(s, m);
  rpc_clear(m); /* what waits has taken its own */
}
