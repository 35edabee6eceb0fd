/* serve: `nkx lsp`: the Language Server Protocol over standard input and output.
 *
 * Messages are read while a compile runs in a process of its own (aside.h).  A text is compiled after a pause in typing; a newer text of
 * the same document takes the place of the compile that runs.
 */
#include "lsp/serve.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <jansson.h>

#include "base/clock.h"
#include "driver/main.h"
#include "lsp/main.h"

enum { SECONDS = 60, HEAD_MAX = 4096, MESSAGE_MAX = 64 << 20 };

static const char usage[] = "usage: nkx lsp [options]\n"
                            "  Speaks the Language Server Protocol on standard input and output. Texts that import "
                            "nkigen, nkipy, nki or neuronxcc are\n"
                            "  compiled while you type, in your own account, as with nkx compile.\n"
                            "  --target trn1|trn2|trn3    the machine (trn2)\n"
                            "  --server URL               the explorer that links open (http://localhost:10240)\n";

/* ---- sending ----------------------------------------------------------------------------------------------------- */

void lsp_send(struct lsp_server *s, struct buf *b) {
  if (buf_status(b))
    s->is_broken = true; /* an answer of more than 64 MiB, or no memory: the client would wait for ever */
  printf("Content-Length: %zu\r\n\r\n", b->len);
  fwrite(buf_text(b), 1, b->len, stdout);
  s->is_broken |= fflush(stdout) != 0;
  buf_clear(b);
}

/* ---- compiles ---------------------------------------------------------------------------------------------------- */

struct document *lsp_find(struct lsp_server *s, const char *uri) {
  for (int i = 0; i < s->n_docs; i++)
    if (!strcmp(s->docs[i].uri, uri))
      return &s->docs[i];
  return NULL;
}

static void forget_job(struct lsp_server *s) {
  aside_clear(&s->job);
  free(s->job_uri);
  free(s->job_text);
  s->job_uri = s->job_text = NULL;
}

static void keep_good(struct document *d, char **text, json_t *result) {
  free(d->good.text);
  json_decref(d->good.result);
  d->good = (struct document_result){*text, json_incref(result)};
  *text = NULL;
}

/* A result of ours that says what went wrong outside of the pipeline. */
static json_t *failure(const char *code, const char *message) {
  return json_pack("{s:s,s:[{s:s,s:s,s:s}]}", "status", "error", "diagnostics", "severity", "error", "code", code,
                   "message", message);
}

static void end_job(struct lsp_server *s) {
  struct document *d = lsp_find(s, s->job_uri);
  struct error err = {0};
  json_t *result = NULL;
  const enum status st = aside_result(&s->job, &result, &err);
  if (st)
    result = failure(st == ST_TIMEOUT ? "time-limit" : "internal", err.text);
  if (d) {
    if (!strcmp(rpc_text(result, "status") ? rpc_text(result, "status") : "", "ok"))
      keep_good(d, &s->job_text, result);
    d->has_ended = true;
    lsp_publish(s, d, result);
    lsp_answer_waiting(s, d);
    if (s->refreshes_hints) {
      struct buf b;
      buf_init(&b, MESSAGE_MAX);
      rpc_put_request(&b, ++s->n_requests, "workspace/inlayHint/refresh", NULL);
      lsp_send(s, &b);
    }
  }
  json_decref(result);
  forget_job(s);
}

static void start_job(struct lsp_server *s, struct document *d) {
  struct error err = {0};
  struct job job;
  lsp_job(d, &s->cfg, &job);
  d->due_ms = 0;
  enum status st = s->host ? ST_OK : aside_host_start(&s->arena, &s->host, &err);
  if (!st)
    st = aside_start(&s->job, s->host, &job, true, SECONDS, &err);
  if (st) {
    json_t *result = failure("internal", err.text);
    d->has_ended = true;
    lsp_publish(s, d, result);
    lsp_answer_waiting(s, d);
    json_decref(result);
    return;
  }
  s->job_uri = strdup(d->uri);
  s->job_text = strdup(d->text);
}

/* Starts what is due, and stops a compile whose text is not the newest.  Returns how long nothing is to be done, -1: for ever. */
static int look_around(struct lsp_server *s) {
  const struct document *running = s->job.pid ? lsp_find(s, s->job_uri) : NULL;
  int64_t next = INT64_MAX;
  if (s->job.pid && (!running || strcmp(running->text, s->job_text) != 0))
    forget_job(s);
  for (int i = 0; i < s->n_docs && !s->is_shut_down; i++) {
    struct document *d = &s->docs[i];
    if (!d->due_ms || s->job.pid)
      continue;
    if (d->due_ms <= clock_now_ms())
      start_job(s, d);
    else if (d->due_ms < next)
      next = d->due_ms;
  }
  if (s->job.pid)
    return aside_timeout_ms(&s->job);
  const int64_t left = next == INT64_MAX ? -1 : next - clock_now_ms();
  return left < -1 ? 0 : (int)left;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The length that a message's head says, and that of the head; false if it is not complete.  *len -1: there is none. */
static bool read_head(const char *p, size_t n, size_t *head, long *len) {
  const char *end = memmem(p, n, "\r\n\r\n", 4);
  *len = -1;
  if (!end)
    return n > HEAD_MAX; /* no head is as long */
  *head = (size_t)(end - p) + 4;
  for (const char *line = p; line < end; line = (const char *)memmem(line, (size_t)(end + 2 - line), "\r\n", 2) + 2)
    if (!strncasecmp(line, "content-length:", 15))
      *len = strtol(line + 15, NULL, 10);
  return true;
}

static void take_text(struct lsp_server *s, const char *text, size_t len) {
  struct rpc_message m;
  struct error err = {0};
  const int code = rpc_read(text, len, &m, &err);
  if (!code) {
    lsp_take(s, &m);
    return;
  }
  struct buf b;
  buf_init(&b, MESSAGE_MAX);
  rpc_put_error(&b, m.id, code, err.text, NULL);
  lsp_send(s, &b);
  rpc_clear(&m);
}

/* Takes the whole messages of what was read; false if it is not of this protocol. */
static bool take_bytes(struct lsp_server *s, struct buf *in) {
  size_t at = 0, head;
  long len;
  while (!s->has_ended && read_head(buf_text(in) + at, in->len - at, &head, &len)) {
    if (len < 0 || len > MESSAGE_MAX / 2)
      return false;
    if (in->len - at < head + (size_t)len)
      break;
    take_text(s, buf_text(in) + at + head, (size_t)len);
    at += head + (size_t)len;
  }
  if (at) {
    memmove(in->data, in->data + at, in->len - at);
    in->len -= at;
  }
  return true;
}

/* Serves until the client says `exit` or closes its end. */
static void serve(struct lsp_server *s) {
  char chunk[64 << 10];
  struct buf in;
  bool is_open = true;
  buf_init(&in, MESSAGE_MAX);
  while (is_open && !s->has_ended && !s->is_broken) {
    const int wait_ms = look_around(s);
    struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
                          {.fd = s->job.pid ? s->job.fd : -1, .events = POLLIN}};
    if (poll(p, 2, wait_ms) < 0 && errno != EINTR)
      break;
    if (s->job.pid && aside_read(&s->job))
      end_job(s);
    if (!p[0].revents)
      continue;
    const ssize_t n = read(STDIN_FILENO, chunk, sizeof chunk);
    is_open = (n > 0 && !buf_append(&in, chunk, (size_t)n) && take_bytes(s, &in)) || (n < 0 && errno == EINTR);
  }
  buf_clear(&in);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static bool parse(struct lsp_settings *cfg, int argc, char **argv) {
  static const struct option options[] = {{"target", required_argument, NULL, 't'},
                                          {"server", required_argument, NULL, 's'},
                                          {"stdio", no_argument, NULL, 'o'}, /* which editors add; it is so anyway */
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
  for (int o; (o = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
    switch (o) {
    case 't':
      if (!target_from_name(optarg, &cfg->target)) {
        fprintf(stderr, "nkx lsp: --target %.60s: expected " TARGET_NAMES "\n", optarg);
        return false;
      }
      break;
    case 's':
      cfg->server = optarg;
      break;
    case 'o':
      break;
    case 'h':
      fputs(usage, stdout);
      exit(EXIT_DONE);
    default:
      return false;
    }
  }
  if (optind < argc)
    fprintf(stderr, "nkx lsp: %s: it takes no arguments; see nkx lsp --help\n", argv[optind]);
  return optind >= argc;
}

int lsp_main(int argc, char **argv) {
  static struct lsp_server s = {.cfg = {"http://localhost:10240", TARGET_TRN2}};
  if (!parse(&s.cfg, argc, argv))
    return EXIT_USAGE;
  arena_init(&s.arena);
  serve(&s);
  forget_job(&s);
  for (int i = 0; i < s.n_docs; i++)
    document_clear(&s.docs[i]);
  free(s.docs);
  arena_clear(&s.arena);
  return s.is_shut_down && s.has_ended ? EXIT_DONE : EXIT_REFUSED; /* as the protocol wants it */
}
