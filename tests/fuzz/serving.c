#include "serving.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "app.h"
#include "base/log.h"
#include "config.h"
#include "fuzz.h"
#include "http/server.h"
#include "store/store.h"

enum { ANSWER_MAX = 8 << 20, DIAL_TRIES = 100, WAIT_MS = 20000, MOMENT_MS = 1, SILENCE_MS = 50 };

static struct {
  char dir[64], worker[96], store[96];
  struct config cfg;
  struct app app;
  int port;
  unsigned talks;
  char answer[ANSWER_MAX + 1];
} s;

static const char page[] = "<!doctype html><title>page</title>";
/* what stands in for the worker's zygote never says that it is ready */
static const char worker[] = "#!/bin/sh\nexec cat <&3 >/dev/null\n";
static const char frames[] = "{\"frame\":\"start\",\"version\":1,\"key\":\"" SERVING_KEY
                             "\",\"language\":\"nkipy\",\"target\":\"trn2\",\"pipeline\":\"1\"}\n"
                             "{\"frame\":\"kernel\",\"kernel\":0,\"name\":\"k\",\"inputs\":[],\"outputs\":[]}\n"
                             "{\"frame\":\"stage\",\"kernel\":0,\"stage\":{\"index\":0,\"name\":\"hlo\",\"text\":\"%a "
                             "= f32[2] add(%b, %c)\\n\"}}\n"
                             "{\"frame\":\"stage\",\"kernel\":0,\"stage\":{\"index\":1,\"name\":\"cse\",\"text\":\"%a "
                             "= f32[2] add(%b, %b)\\n\"}}\n"
                             "{\"frame\":\"artifact\",\"artifact\":{\"name\":\"hlo.txt\"},\"data\":\"QQ==\"}\n"
                             "{\"frame\":\"end\",\"status\":\"ok\",\"time_us\":5}\n";
static const char doc[] = "{\"title\":\"t\",\"view\":null,\"request\":{\"source\":\"x\"},\"pipeline\":\"1\"}";

static void write_file(const char *name, const char *text, mode_t mode) {
  char path[160];
  snprintf(path, sizeof path, "%s/%s", s.dir, name);
  FILE *f = fopen(path, "w");
  FUZZ_CHECK(f && fputs(text, f) >= 0 && !fclose(f) && !chmod(path, mode));
}

static void remove_dir(void) {
  char command[96];
  snprintf(command, sizeof command, "rm -rf %s", s.dir);
  if (system(command))
    perror("rm");
}

struct put {
  struct store_task task; /* first */
  int done[2];
};

static void put(struct store_task *t, struct db *db) {
  struct put *p = (struct put *)t;
  struct store_snippet sn;
  struct error err;

  store_snippet_init(&sn);
  ident_hash(SERVING_ID, strlen(SERVING_ID), &sn.id);
  memcpy(sn.public_id, SERVING_ID, sizeof sn.public_id);
  sn.created_ms = store_now_ms();
  FUZZ_CHECK(!buf_puts(&sn.doc, doc) && !buf_puts(&sn.frames, frames));
  FUZZ_CHECK(store_put_snippet(db, &sn, &err) == ST_OK);
  FUZZ_CHECK(store_put_result(db, SERVING_KEY, frames, sizeof frames - 1, &err) == ST_OK);
  store_snippet_clear(&sn);
  FUZZ_CHECK(write(p->done[1], "x", 1) == 1);
}

static void fill_store(void) {
  struct put p = {.task.run = put};
  char c;
  FUZZ_CHECK(!pipe(p.done) && store_submit(s.app.services.store, STORE_WRITE, &p.task));
  FUZZ_CHECK(read(p.done[0], &c, 1) == 1);
  close(p.done[0]);
  close(p.done[1]);
}

static void check_started(enum status st, const struct error *err) {
  if (st) {
    fprintf(stderr, "the server does not start: %s\n", err->text);
    abort();
  }
}

static void start(void) {
  struct error err;
  snprintf(s.dir, sizeof s.dir, "/tmp/nkx-fuzz-XXXXXX");
  FUZZ_CHECK(mkdtemp(s.dir));
  atexit(remove_dir);
  write_file("index.html", page, 0600);
  write_file("worker", worker, 0700);
  snprintf(s.worker, sizeof s.worker, "%s/worker", s.dir);
  snprintf(s.store, sizeof s.store, "sqlite:%s/fuzz.sqlite", s.dir);
  log_set_level(LOG_ERROR);

  char *argv[] = {"--confine", "no",  "--port",         "0",   "--queue",    "0",   "--worker", s.worker,
                  "--web-dir", s.dir, "--examples-dir", s.dir, "--data-dir", s.dir, "--store",  s.store};
  char *env[] = {NULL};
  static struct arena a;
  arena_init(&a);
  check_started(config_parse(&a, sizeof argv / sizeof *argv, argv, env, &s.cfg, &err), &err);
  int launcher[2]; /* nobody is at the launcher's end: there are no workers here */
  FUZZ_CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, launcher));
  struct listeners at;
  check_started(server_listen(&s.cfg.http, &at, &err), &err);
  s.port = at.ports[LISTEN_PUBLIC];
  check_started(app_start(&s.cfg, launcher[0], &at, &s.app, &err), &err);
  fill_store();
}

/* A connection from the next address; -1 with errno. */
static int try_dial(void) {
  const int on = 1;
  struct sockaddr_in me = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002 + s.talks++ % 0xfffffc)};
  struct sockaddr_in it = {
      .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)s.port)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  FUZZ_CHECK(fd >= 0 && !setsockopt(fd, IPPROTO_IP, 24 /* IP_BIND_ADDRESS_NO_PORT */, &on, sizeof on));
  if (!bind(fd, (struct sockaddr *)&me, sizeof me) && !connect(fd, (struct sockaddr *)&it, sizeof it))
    return fd;
  int e = errno;
  close(fd);
  errno = e;
  return -1;
}

/* Ports and memory for sockets are the machine's: where it has none left for a moment, that is no finding. */
static int dial(void) {
  int fd = try_dial();
  for (int i = 0; fd < 0 && i < DIAL_TRIES; i++) {
    perror("dial");
    usleep(100000);
    fd = try_dial();
  }
  FUZZ_CHECK(fd >= 0);
  return fd;
}

/* Sends what the socket takes now; true once nothing is left, or nobody takes it. */
static bool send_some(int fd, const char *data, size_t len, size_t *sent) {
  ssize_t k = send(fd, data + *sent, len - *sent, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (k > 0)
    *sent += (size_t)k;
  return *sent == len || (k < 0 && errno != EAGAIN);
}

/* The end of our side comes a moment after the last byte: the HTTP library, told of both at once, notices only the
 * bytes and would keep the connection until it has been silent for long.  Told of it while a store thread works for
 * the request it may still do so: an answer and then silence is an end, too. */
const char *serving_say(const void *data, size_t len, size_t *answer_len) {
  enum { SENDING, LISTENING, CLOSING } phase = SENDING;
  size_t n = 0, sent = 0;

  if (!s.app.server)
    start();
  int fd = dial();
  for (;;) {
    struct pollfd p = {.fd = fd, .events = (short)(POLLIN | (phase == SENDING ? POLLOUT : 0))};
    int ready = poll(&p, 1, phase == LISTENING ? MOMENT_MS : phase == CLOSING && n ? SILENCE_MS : WAIT_MS);
    if (!ready && phase == LISTENING) {
      shutdown(fd, SHUT_WR);
      phase = CLOSING;
    } else if (!ready) {
      FUZZ_CHECK(n > 0); /* it answers or closes in any case */
      break;
    }
    if (p.revents & POLLOUT && send_some(fd, data, len, &sent))
      phase = LISTENING;
    if (p.revents & (POLLIN | POLLHUP | POLLERR)) {
      FUZZ_CHECK(n < ANSWER_MAX);
      ssize_t k = recv(fd, s.answer + n, ANSWER_MAX - n, MSG_DONTWAIT);
      if (k <= 0)
        break;
      n += (size_t)k;
    }
  }
  close(fd);
  s.answer[n] = 0;
  if (answer_len)
    *answer_len = n;
  return s.answer;
}

/* The value of a header of the first answer, NULL if there is none. */
static const char *header(const char *answer, const char *end, const char *name) {
  const char *at = strcasestr(answer, name);
  return at && at < end ? at + strlen(name) : NULL;
}

/* What says that it is JSON is JSON.  The answer to HEAD has no body, but the next answer may be there, and one in pieces or compressed is
 * not looked at. */
static void check_body(const char *answer) {
  const char *end = strstr(answer, "\r\n\r\n");
  FUZZ_CHECK(end);
  const char *type = header(answer, end, "\r\nContent-Type: "), *length = header(answer, end, "\r\nContent-Length: ");
  const size_t n = length ? strtoul(length, NULL, 10) : 0;
  bool is_json = type && (!strncmp(type, "application/json", 16) || !strncmp(type, "application/problem+json", 24));
  const bool has_body = n && strlen(end + 4) >= n && strncmp(end + 4, "HTTP/1.", 7) != 0;
  if (!is_json || !has_body || header(answer, end, "\r\nContent-Encoding: "))
    return;
  json_t *v = json_loadb(end + 4, n, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
  FUZZ_CHECK(v);
  json_decref(v);
}

int serving_status(const char *answer) {
  static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n"; /* for who expects it; the answer comes after the body */
  int status = 0;
  if (!strncmp(answer, go_on, sizeof go_on - 1))
    answer += sizeof go_on - 1;
  if (!*answer)
    return 0;
  FUZZ_CHECK(sscanf(answer, "HTTP/1.%*1[01] %3d ", &status) == 1);
  FUZZ_CHECK(status >= 200 && status < 600 && status != 500);
  check_body(answer);
  return status;
}

int serving_post(const char *path, const void *body, size_t len) {
  struct buf b;
  buf_init(&b, ANSWER_MAX);
  buf_printf(&b,
             "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-Nkx-Request: 1\r\n"
             "Content-Length: %zu\r\nConnection: close\r\n\r\n",
             path, len);
  FUZZ_CHECK(buf_append(&b, body, len) == ST_OK);
  int status = serving_status(serving_say(b.data, b.len, NULL));
  buf_clear(&b);
  return status;
}
