#include "api/told.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "api/misses.h"
#include "api/services.h"
#include "store/peers.h"
#include "work/editors.h"

void told_say_editor(const struct services *s, const struct editor_place *place) {
  char text[PEERS_MESSAGE_MAX + 1];
  if (!s->peers)
    return;
  snprintf(text, sizeof text, "editor %s %lld", place->key, (long long)place->entered_ms);
  peers_say(s->peers, text);
}

static const int64_t USED_MAX = INT64_C(1) << 40; /* more than any share */
static const char *const uses[] = {
    [QUOTA_USE_COMPILE] = "compile", [QUOTA_USE_LINK] = "link", [QUOTA_USE_LINK_BYTES] = "bytes"};
static const char miss[] = "miss";

static void say(const struct services *s, const char *what, long long n, const char *address) {
  char text[PEERS_MESSAGE_MAX + 1];
  if (s->peers && (size_t)snprintf(text, sizeof text, "used %s %lld %s", what, n, address) < sizeof text)
    peers_say(s->peers, text);
}

void told_say_used(const struct services *s, const char *address, enum quota_use what, int64_t n) {
  say(s, uses[what], n, address);
}

void told_say_miss(const struct services *s, const char *address) {
  say(s, miss, 1, address);
}

void told_say_open(void *services, const char *address, const struct quota_open *open) {
  const struct services *s = services;
  char text[PEERS_MESSAGE_MAX + 1];
  if ((size_t)snprintf(text, sizeof text, "open %016llx %d %d %s", (unsigned long long)s->server_id, open->jobs,
                       open->connections, address) < sizeof text)
    peers_say(s->peers, text);
}

void told_tick(void *services) {
  quota_tick(((const struct services *)services)->quota);
}

static void heard_used(const struct services *s, const char *what, int64_t n, const char *address) {
  if (!strcmp(what, miss))
    misses_count(s->misses, address);
  for (size_t i = 0; i < sizeof uses / sizeof *uses; i++)
    if (!strcmp(what, uses[i]))
      quota_used_elsewhere(s->quota, address, (enum quota_use)i, n < USED_MAX ? n : USED_MAX);
}

/* A message that is not known is one of a later version's, or somebody else's on the database. */
void told_heard(void *services, const char *message) {
  const struct services *s = services;
  char key[65], what[16];
  long long ms, n;
  unsigned long long server;
  struct quota_open open;
  int address = 0;
  if (sscanf(message, "editor %64[0-9a-f] %lld", key, &ms) == 2)
    editors_end_before(s->editors, key, ms);
  else if (sscanf(message, "used %15[a-z] %lld %n", what, &n, &address) == 2 && address && message[address])
    heard_used(s, what, n, message + address);
  else if (sscanf(message, "open %16llx %d %d %n", &server, &open.jobs, &open.connections, &address) == 3 && address &&
           message[address])
    quota_open_elsewhere(s->quota, server, message + address, &open);
}
