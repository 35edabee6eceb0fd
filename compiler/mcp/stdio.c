/* stdio: `nkx mcp`: the Model Context Protocol over standard input and output, a message a line.
 *
 * Jobs run one after another, each in a process of its own (aside.h), so that messages are read meanwhile: a job that waits or runs
 * can be cancelled, and other calls are answered.  The newest results are kept for the tools that look into them.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "aside/aside.h"
#include "driver/link.h"
#include "driver/main.h"
#include "mcp/main.h"
#include "mcp/mcp.h"

enum { KEPT_MAX = 16, WAITING_MAX = 64, SECONDS = 120, SECONDS_MAX = 86400, ANSWER_MAX = 128 << 20 };

static const char usage[] =
    "usage: nkx mcp [options]\n"
    "  Speaks the Model Context Protocol on standard input and output: an assistant compiles kernels, reads and "
    "compares\n"
    "  their stages, checks and simulates them. Kernels run in your own account, as with nkx compile.\n"
    "  --server URL   the explorer that links open (http://localhost:10240)\n"
    "  --seconds N    how long a job may take (120; 0: without a limit)\n";

/* A call of a tool that waits for its job, or whose job runs. */
struct waiting {
  struct waiting *next;
  struct mcp_call call;
  struct arena arena;
};

struct session {
  const char *server;
  int seconds;
  struct arena arena;
  struct aside_host *host; /* started by the first job */
  struct waiting *first;   /* the one that runs, if job.pid is set */
  int n_waiting;
  struct aside job;
  struct {
    char key[JOB_KEY_SIZE];
    struct result_file file;
  } kept[KEPT_MAX]; /* the newest first */
  int n_kept;
  struct buf in;    /* the beginning of a line */
  bool is_skipping; /* … that is too long */
  bool is_broken;   /* the client reads no more */
};

/* ---- sending ----------------------------------------------------------------------------------------------------- */

static void send_line(struct session *s, struct buf *out) {
  if (!buf_status(out))
    buf_putc(out, '\n');
  if (buf_status(out)) { /* it does not fit: the client waits for something */
    buf_clear(out);
    rpc_put_error(out, NULL, RPC_INTERNAL, "the answer is too large", NULL);
    buf_putc(out, '\n');
  }
  fwrite(buf_text(out), 1, out->len, stdout);
  s->is_broken |= fflush(stdout) != 0;
  buf_clear(out);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* Keeps the frames of a result, which are taken. */
static void keep(struct session *s, const char *key, struct result_file *file) {
  int at = 0;
  while (at < s->n_kept && strcmp(s->kept[at].key, key) != 0)
    at++;
  if (at == KEPT_MAX)
    at--;
  if (at < s->n_kept)
    result_file_clear(&s->kept[at].file);
  else
    s->n_kept++;
  memmove(&s->kept[1], &s->kept[0], (size_t)at * sizeof s->kept[0]);
  snprintf(s->kept[0].key, sizeof s->kept[0].key, "%s", key);
  s->kept[0].file = *file;
  result_file_init(file);
}

/* The result with this key, which the caller releases; NULL with err: there is none. */
static json_t *find(const struct session *s, const char *key, struct error *err) {
  json_t *result = NULL;
  for (int i = 0; i < s->n_kept; i++)
    if (!strcmp(s->kept[i].key, key))
      return result_file_parse(&s->kept[i].file, &result, err) ? NULL : result;
  (void)fail(err, ST_INPUT, "there is no result %.64s: the newest %d are kept; compile again", key, KEPT_MAX);
  return NULL;
}

/* ---- jobs -------------------------------------------------------------------------------------------------------- */

static void drop_first(struct session *s) {
  struct waiting *w = s->first;
  s->first = w->next;
  s->n_waiting--;
  mcp_clear(&w->call);
  arena_clear(&w->arena);
  free(w);
}

static void answer_first(struct session *s) {
  struct waiting *w = s->first;
  struct error err = {0};
  struct buf out;
  json_t *result = NULL;
  buf_init(&out, ANSWER_MAX);
  if (aside_result(&s->job, &result, &err)) {
    mcp_answer_failed(&w->call, err.text, &out);
  } else {
    keep(s, rpc_text(result, "key"), &s->job.file);
    mcp_answer(&w->arena, &w->call, result, NULL, &out);
  }
  json_decref(result);
  aside_clear(&s->job);
  send_line(s, &out);
  drop_first(s);
}

/* Starts the job of the first call, if none runs. */
static void start_next(struct session *s) {
  while (s->first && !s->job.pid) {
    struct error err = {0};
    enum status st = s->host ? ST_OK : aside_host_start(&s->arena, &s->host, &err);
    if (!st)
      st = aside_start(&s->job, s->host, &s->first->call.job, false, s->seconds, &err);
    if (!st)
      return;
    struct buf out;
    buf_init(&out, ANSWER_MAX);
    mcp_answer_failed(&s->first->call, err.text, &out);
    send_line(s, &out);
    drop_first(s);
  }
}

/* Takes the call and the arena. */
static void wait_for_job(struct session *s, struct mcp_call *call, struct arena *a, struct buf *out) {
  struct waiting *w = s->n_waiting < WAITING_MAX ? malloc(sizeof *w) : NULL, **end = &s->first;
  if (!w) {
    mcp_answer_failed(call, "too many calls wait for their jobs", out);
    mcp_clear(call);
    arena_clear(a);
    return;
  }
  *w = (struct waiting){.call = *call, .arena = *a};
  while (*end)
    end = &(*end)->next;
  *end = w;
  s->n_waiting++;
}

/* The protocol wants no answer to a request that its client gives up. */
static void cancel(struct session *s, const json_t *id) {
  struct waiting **at = &s->first;
  while (*at && !json_equal((*at)->call.message.id, id))
    at = &(*at)->next;
  if (!*at)
    return;
  if (*at == s->first && s->job.pid)
    aside_clear(&s->job);
  struct waiting *w = *at;
  *at = w->next;
  s->n_waiting--;
  mcp_clear(&w->call);
  arena_clear(&w->arena);
  free(w);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void share(const struct session *s, const struct mcp_call *call, struct buf *out) {
  enum { LINK_MAX = 4 << 20 };
  const struct link_view view = {.kernel = call->job.kernel};
  struct error err = {0};
  struct buf link;
  buf_init(&link, LINK_MAX);
  if (link_put(&link, s->server, &call->job, &view, &err))
    mcp_answer_failed(call, "the link would be too long", out);
  else
    mcp_answer_text(call, buf_text(&link), json_pack("{s:s}", "url", buf_text(&link)), out);
  buf_clear(&link);
}

static void look(const struct session *s, struct arena *a, const struct mcp_call *call, struct buf *out) {
  struct error err = {0};
  json_t *result = call->key ? find(s, call->key, &err) : NULL;
  json_t *with = call->with && !err.text[0] ? find(s, call->with, &err) : NULL;
  if (err.text[0])
    mcp_answer_failed(call, err.text, out);
  else
    mcp_answer(a, call, result, with, out);
  json_decref(result);
  json_decref(with);
}

static void take_line(struct session *s, const char *text, size_t len) {
  struct mcp_call call;
  struct arena a;
  struct buf out;
  arena_init(&a);
  buf_init(&out, ANSWER_MAX);
  switch (mcp_take(&a, text, len, &call, &out)) {
  case MCP_CANCEL:
    cancel(s, call.cancelled);
    break;
  case MCP_CALL:
    if (s->seconds && call.job.shrink_seconds > s->seconds / 2)
      call.job.shrink_seconds = s->seconds / 2 + 1; /* so that it ends by itself */
    if (call.tool->need == MCP_JOB || call.tool->need == MCP_SHRINK) {
      wait_for_job(s, &call, &a, &out); /* which has taken both */
      if (out.len)
        send_line(s, &out);
      return;
    }
    if (call.tool->need == MCP_SHARE)
      share(s, &call, &out);
    else
      look(s, &a, &call, &out);
    break;
  default:
    break;
  }
  if (out.len || buf_status(&out))
    send_line(s, &out);
  buf_clear(&out);
  mcp_clear(&call);
  arena_clear(&a);
}

/* Takes what was read: whole lines, and the beginning of another. */
static void take_bytes(struct session *s, const char *p, size_t n) {
  while (n) {
    const char *newline = memchr(p, '\n', n);
    const size_t len = newline ? (size_t)(newline - p) : n;
    s->is_skipping |= !s->is_skipping && buf_append(&s->in, p, len);
    p += len;
    n -= len;
    if (!newline)
      return;
    p++;
    n--;
    if (s->is_skipping) {
      struct buf out;
      buf_init(&out, ANSWER_MAX);
      rpc_put_error(&out, NULL, RPC_INVALID, "the message is longer than 4 MiB", NULL);
      send_line(s, &out);
    } else if (s->in.len) {
      take_line(s, buf_text(&s->in), s->in.len);
    }
    s->is_skipping = false;
    buf_clear(&s->in);
  }
}

/* Serves until the client has closed its end and has its answers. */
static void serve(struct session *s) {
  char chunk[64 << 10];
  bool is_open = true;
  while (!s->is_broken && (is_open || s->first)) {
    struct pollfd p[2] = {{.fd = is_open ? STDIN_FILENO : -1, .events = POLLIN},
                          {.fd = s->job.pid ? s->job.fd : -1, .events = POLLIN}};
    if (poll(p, 2, aside_timeout_ms(&s->job)) < 0 && errno != EINTR)
      return;
    if (s->job.pid && aside_read(&s->job))
      answer_first(s);
    if (is_open && p[0].revents) {
      const ssize_t n = read(STDIN_FILENO, chunk, sizeof chunk);
      is_open = n > 0 || (n < 0 && errno == EINTR);
      take_bytes(s, chunk, n > 0 ? (size_t)n : 0);
    }
    start_next(s);
  }
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static bool parse(struct session *s, int argc, char **argv) {
  static const struct option options[] = {{"server", required_argument, NULL, 's'},
                                          {"seconds", required_argument, NULL, 'n'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
  char *end;
  for (int o; (o = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
    switch (o) {
    case 's':
      s->server = optarg;
      break;
    case 'n':
      s->seconds = (int)strtol(optarg, &end, 10);
      if (end == optarg || *end || s->seconds < 0 || s->seconds > SECONDS_MAX) {
        fprintf(stderr, "nkx mcp: --seconds %.40s: expected a number from 0 to %d\n", optarg, SECONDS_MAX);
        return false;
      }
      break;
    case 'h':
      fputs(usage, stdout);
      exit(EXIT_DONE);
    default:
      return false;
    }
  }
  if (optind < argc)
    fprintf(stderr, "nkx mcp: %s: it takes no arguments; see nkx mcp --help\n", argv[optind]);
  return optind >= argc;
}

int mcp_main(int argc, char **argv) {
  static struct session s = {.server = "http://localhost:10240", .seconds = SECONDS};
  if (!parse(&s, argc, argv))
    return EXIT_USAGE;
  arena_init(&s.arena);
  buf_init(&s.in, RPC_MESSAGE_MAX);
  serve(&s);
  aside_clear(&s.job);
  while (s.first)
    drop_first(&s);
  for (int i = 0; i < s.n_kept; i++)
    result_file_clear(&s.kept[i].file);
  buf_clear(&s.in);
  arena_clear(&s.arena);
  return s.is_broken ? EXIT_FAULT : EXIT_DONE;
}
