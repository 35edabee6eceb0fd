#include "api/told.h"

#include <stdio.h>

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

/* A message that is not known is one of a later version's, or somebody else's on the database. */
void told_heard(void *services, const char *message) {
  const struct services *s = services;
  char key[65];
  long long ms;
  if (sscanf(message, "editor %64[0-9a-f] %lld", key, &ms) == 2)
    editors_end_before(s->editors, key, ms);
}
